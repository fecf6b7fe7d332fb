#include <brasa/profiler.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "support/error.h"

namespace brasa::profiler {
namespace {

constexpr std::array kKinds = {"operator", "kernel", "compilation", "range"};

struct Column {
  const char* name;
  double (*of)(const Average&);
};
constexpr Column kColumns[] = {
    {"self_time", [](const Average& a) { return a.self; }},
    {"total_time", [](const Average& a) { return a.total; }},
    {"calls", [](const Average& a) { return static_cast<double>(a.calls); }},
    {"bytes", [](const Average& a) { return static_cast<double>(a.bytes); }},
    {"flops", [](const Average& a) { return a.flops; }},
    {"memory", [](const Average& a) { return static_cast<double>(a.memory); }},
};

std::string time_text(double us) {
  return us < 1e3   ? fmt::format("{:.2f} us", us)
         : us < 1e6 ? fmt::format("{:.3f} ms", us * 1e-3)
                    : fmt::format("{:.3f} s", us * 1e-6);
}

std::string bytes_text(int64_t n) {
  double b = static_cast<double>(n), size = b < 0 ? -b : b;
  return n == 0           ? "-"
         : size < 1024    ? fmt::format("{} B", n)
         : size < 1 << 20 ? fmt::format("{:.1f} KiB", b / 1024)
         : size < 1 << 30 ? fmt::format("{:.1f} MiB", b / (1 << 20))
                          : fmt::format("{:.2f} GiB", b / (1 << 30));
}

// A kernel's name tells its loops, and is as long as they are.
std::string shortened(const std::string& name) {
  constexpr size_t kMost = 60;
  std::string line = name.substr(0, name.find('\n'));
  return line.size() <= kMost ? line : line.substr(0, kMost - 3).append("...");
}

// Columns of cells that line up: words to the left, numbers to the right.
class Table {
 public:
  template <class F>
  void add(const char* title, const std::vector<const Average*>& rows, F cell) {
    lines_.resize(rows.size() + 1);
    std::vector<std::string> cells{title};
    for (const Average* a : rows) cells.push_back(cell(*a));
    size_t width = 0;
    for (const std::string& c : cells) width = std::max(width, c.size());
    bool words = kWords.count(title) > 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string& line = lines_[i];
      if (!line.empty()) line += "  ";
      line += words ? fmt::format("{:<{}}", cells[i], width) : fmt::format("{:>{}}", cells[i], width);
    }
  }
  std::string text() const {
    std::string out;
    for (const std::string& line : lines_) out += line + "\n";
    return out;
  }

 private:
  static inline const std::set<std::string_view> kWords = {"name", "kind", "shapes", "source"};
  std::vector<std::string> lines_;
};

}  // namespace

const char* name(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

Averages profile::key_averages(Grouping by) const {
  std::map<std::tuple<Kind, std::string, std::string, std::string>, Average> sums;
  // The events that the current one is inside of, by device and thread.
  struct Open {
    Average* sum;
    double end;
  };
  std::map<std::pair<std::string, uint32_t>, std::vector<Open>> open;
  for (const Event& e : events()) {
    std::string shapes = by.shapes ? e.shapes : "", source = by.source ? e.source : "";
    Average& a = sums[{e.kind, e.name, shapes, source}];
    a.kind = e.kind;
    a.name = e.name;
    a.shapes = std::move(shapes);
    a.source = std::move(source);
    ++a.calls;
    a.total += e.duration;
    a.self += e.duration;
    a.bytes += e.bytes;
    a.flops += e.flops;
    a.memory += e.memory;
    std::vector<Open>& around = open[{e.device.str(), e.thread}];
    while (!around.empty() && around.back().end < e.start + e.duration) around.pop_back();
    if (!around.empty()) around.back().sum->self -= e.duration;
    around.push_back({&a, e.start + e.duration});
  }
  std::vector<Average> rows;
  for (auto& [key, average] : sums) rows.push_back(std::move(average));
  return Averages(std::move(rows));
}

std::string Averages::table(const std::string& sort_by, int64_t row_limit) const {
  const Column* column =
      std::find_if(std::begin(kColumns), std::end(kColumns), [&](const Column& c) { return c.name == sort_by; });
  if (column == std::end(kColumns)) {
    std::string known;
    for (const Column& c : kColumns) known += (known.empty() ? "" : ", ") + std::string(c.name);
    fail(str("table: expected sort_by to be one of ", known, "; got '", sort_by, "'"));
  }
  std::vector<const Average*> rows;
  for (const Average& a : rows_) rows.push_back(&a);
  double all = 0;
  for (const Average* a : rows) all += a->self;
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Average* a, const Average* b) { return column->of(*a) > column->of(*b); });
  if (row_limit >= 0 && rows.size() > static_cast<size_t>(row_limit)) rows.resize(static_cast<size_t>(row_limit));

  auto rate = [](double n, double us) { return n > 0 && us > 0 ? fmt::format("{:.1f}", n / us * 1e-3) : "-"; };
  auto any = [&](auto has) { return std::any_of(rows.begin(), rows.end(), [&](const Average* a) { return has(*a); }); };
  Table table;
  table.add("name", rows, [](const Average& a) { return shortened(a.name); });
  table.add("kind", rows, [](const Average& a) { return std::string(profiler::name(a.kind)); });
  if (any([](const Average& a) { return !a.shapes.empty(); }))
    table.add("shapes", rows, [](const Average& a) { return shortened(a.shapes); });
  if (any([](const Average& a) { return !a.source.empty(); }))
    table.add("source", rows, [](const Average& a) { return shortened(a.source); });
  table.add("calls", rows, [](const Average& a) { return std::to_string(a.calls); });
  table.add("self %", rows, [&](const Average& a) { return fmt::format("{:.2f}", all > 0 ? 100 * a.self / all : 0); });
  table.add("self", rows, [](const Average& a) { return time_text(a.self); });
  table.add("total", rows, [](const Average& a) { return time_text(a.total); });
  table.add("mean", rows, [](const Average& a) { return time_text(a.total / static_cast<double>(a.calls)); });
  table.add("GB/s", rows, [&](const Average& a) { return rate(static_cast<double>(a.bytes), a.total); });
  table.add("GFLOP/s", rows, [&](const Average& a) { return rate(a.flops, a.total); });
  if (roofline_)
    table.add("roof %", rows, [&](const Average& a) {
      double best = 1e6 * std::max(static_cast<double>(a.bytes) / roofline_->bytes_per_second,
                                   a.flops / roofline_->flops_per_second);
      return best > 0 && a.total > 0 ? fmt::format("{:.0f}", 100 * best / a.total) : std::string("-");
    });
  table.add("memory", rows, [](const Average& a) { return bytes_text(a.memory); });
  return table.text();
}

}  // namespace brasa::profiler
