#include <brasa/profiler.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
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
  return line.size() <= kMost ? line : line.substr(0, kMost - 3) + "...";
}

}  // namespace

const char* name(Kind kind) { return kKinds[static_cast<size_t>(kind)]; }

Averages profile::key_averages() const {
  std::map<std::pair<Kind, std::string>, Average> sums;
  // The events that the current one is inside of, by device and thread.
  struct Open {
    Average* sum;
    double end;
  };
  std::map<std::pair<std::string, uint32_t>, std::vector<Open>> open;
  for (const Event& e : events()) {
    Average& a = sums[{e.kind, e.name}];
    a.kind = e.kind;
    a.name = e.name;
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
  double all = 0;
  size_t width = 4;
  for (const Average& a : rows_) {
    rows.push_back(&a);
    all += a.self;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Average* a, const Average* b) { return column->of(*a) > column->of(*b); });
  if (row_limit >= 0 && rows.size() > static_cast<size_t>(row_limit)) rows.resize(static_cast<size_t>(row_limit));
  for (const Average* a : rows) width = std::max(width, shortened(a->name).size());
  auto rate = [](double per_microsecond, double unit) {
    return per_microsecond > 0 ? fmt::format("{:.1f}", per_microsecond / unit) : std::string("-");
  };
  std::string out = fmt::format("{:<{}}  {:<11} {:>7}  {:>6}  {:>11}  {:>11}  {:>11}  {:>8}  {:>9}  {:>11}\n", "name",
                                width, "kind", "calls", "self %", "self", "total", "mean", "GB/s", "GFLOP/s", "memory");
  for (const Average* a : rows)
    out += fmt::format("{:<{}}  {:<11} {:>7}  {:>6.2f}  {:>11}  {:>11}  {:>11}  {:>8}  {:>9}  {:>11}\n",
                       shortened(a->name), width, name(a->kind), a->calls, all > 0 ? 100 * a->self / all : 0.0,
                       time_text(a->self), time_text(a->total), time_text(a->total / static_cast<double>(a->calls)),
                       rate(a->total > 0 ? static_cast<double>(a->bytes) / a->total : 0, 1e3),
                       rate(a->total > 0 ? a->flops / a->total : 0, 1e3), bytes_text(a->memory));
  return out;
}

}  // namespace brasa::profiler
