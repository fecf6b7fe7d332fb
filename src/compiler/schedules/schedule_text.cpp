#include <charconv>
#include <span>

#include "compiler/schedules/schedule.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

template <class T>
struct Choice {
  std::string_view name;
  T Schedule::* value;
};
constexpr Choice<int> kNumbers[] = {
    {"width", &Schedule::width},
    {"unroll", &Schedule::unroll},
    {"serial unroll", &Schedule::serial_unroll},
    {"chains", &Schedule::chains},
    {"rows", &Schedule::rows},
    {"vectors", &Schedule::vectors},
    {"rest", &Schedule::rest},
    {"row blocks", &Schedule::row_blocks},
    {"row least", &Schedule::row_least},
    {"row pieces", &Schedule::row_pieces},
    {"panel blocks", &Schedule::panel_blocks},
    {"neighbours", &Schedule::neighbours},
    {"k unroll", &Schedule::k_unroll},
    {"threads", &Schedule::threads},
    {"row threads", &Schedule::row_threads},
    {"tile", &Schedule::tile},
    {"across", &Schedule::across},
    {"parts", &Schedule::parts},
};
constexpr Choice<int64_t> kCounts[] = {
    {"row bytes", &Schedule::row_bytes},
    {"grain", &Schedule::grain},
    {"beside", &Schedule::beside},
};
constexpr Choice<bool> kFlags[] = {
    {"vector outside", &Schedule::vector_outside},
    {"along k", &Schedule::along_k},
    {"next panel", &Schedule::next_panel},
    {"stage rows", &Schedule::stage_rows},
    {"stage tile", &Schedule::stage_tile},
    {"matrix tiles", &Schedule::matrix_tiles},
    {"atomic", &Schedule::atomic},
};
constexpr std::string_view kAxes[] = {"parallel", "serial", "vector", "single"};  // by Axis::Kind

const Schedule kUsual;

class Parser {
 public:
  Parser(std::string_view text, const Domain& domain) : rest_(text), domain_(domain) {}

  Schedule run() {
    Schedule s = all();
    require(rest_.empty());
    return s;
  }

 private:
  void require(bool ok) const { BRASA_CHECK(ok, "no choice of a schedule: '", rest_, "'"); }
  bool accept(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) { require(accept(word)); }
  template <class T>
  T number() {
    T value{};
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    require(error == std::errc());
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  template <class T>
  bool accept_number(std::span<const Choice<T>> choices, Schedule& s) {
    for (const Choice<T>& c : choices)
      if (accept(str(c.name, " "))) {
        s.*c.value = number<T>();
        return true;
      }
    return false;
  }

  Schedule all() {
    Schedule s;
    if (rest_.empty() || rest_[0] == '}') return s;
    do choice(s);
    while (accept("; "));
    return s;
  }

  void choice(Schedule& s) {
    for (size_t kind = 0; kind < std::size(kAxes); ++kind)
      if (accept(str(kAxes[kind], " d"))) return s.axes.push_back(axis(static_cast<Axis::Kind>(kind)));
    if (accept_number<int>(kNumbers, s) || accept_number<int64_t>(kCounts, s)) return;
    for (const Choice<bool>& f : kFlags)
      if (accept(f.name)) {
        s.*f.value = true;
        return;
      }
    if (accept("first {")) {
      s.before.push_back(all());
      return expect("}");
    }
    expect("stage");
    while (accept(" %")) s.staged.push_back(number<uint32_t>());
  }

  Axis axis(Axis::Kind kind) {
    Axis a{1, number<size_t>(), 1, false, kind, 0};
    if (accept("-d")) a.count = number<size_t>() + 1 - a.first;
    require(a.count > 0 && a.first + a.count <= domain_.dims.size());
    for (size_t d = a.first; d < a.first + a.count; ++d) a.extent = a.extent * domain_.dims[d];
    a.reduced = domain_.reduced[a.first];
    a.summed = domain_.sums(a.first);
    expect(str(" [", a.extent, "]"));
    if (a.reduced) expect(" reduced");
    if (a.summed) expect(" summed");
    if (accept(" in pieces of ")) a.piece = number<int64_t>();
    if (accept(" by ")) {
      a.spelled_out = number<int64_t>();
      expect(" spelled out");
      a.again = accept(", the last again");
    }
    return a;
  }

  std::string_view rest_;
  const Domain& domain_;
};

}  // namespace

void append_to(std::string& out, const Schedule& s) {
  size_t start = out.size();
  auto word = [&](const std::string& w) {
    if (out.size() > start) out += "; ";
    out += w;
  };
  for (const Axis& a : s.axes) {
    std::string w = str(kAxes[a.kind], " d", a.first);
    if (a.count > 1) w += str("-d", a.first + a.count - 1);
    w += str(" [", a.extent, "]");
    if (a.reduced) w += " reduced";
    if (a.summed) w += " summed";
    if (a.piece) w += str(" in pieces of ", a.piece);
    if (a.spelled_out) w += str(" by ", a.spelled_out, " spelled out");
    if (a.again) w += ", the last again";
    word(w);
  }
  auto numbers = [&](const auto& choices) {
    for (const auto& c : choices)
      if (s.*c.value != kUsual.*c.value) word(str(c.name, " ", s.*c.value));
  };
  numbers(kNumbers);
  for (const Choice<bool>& f : kFlags)
    if (s.*f.value) word(std::string(f.name));
  if (!s.staged.empty()) {
    std::string w = "stage";
    for (uint32_t id : s.staged) w += str(" %", id);
    word(w);
  }
  numbers(kCounts);
  for (const Schedule& b : s.before) word(str("first {", b, "}"));
}

Schedule parse_schedule(std::string_view text, const Domain& domain) { return Parser(text, domain).run(); }

}  // namespace brasa::compiler
