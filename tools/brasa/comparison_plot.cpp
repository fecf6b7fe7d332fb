#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "comparison.h"
#include "svg.h"

namespace brasa::tool {

using svg::colour;
using svg::escaped;
using svg::line;
using svg::text;

namespace {

constexpr double kLeft = 240, kWidth = 640, kTop = 64, kLine = 26, kBottom = 44;

// Powers of two, from left to right.
struct Axis {
  int low = -1, high = 1;
  void include(double ratio) {
    low = std::max(-6, std::min(low, static_cast<int>(std::floor(std::log2(ratio)))));
    high = std::min(6, std::max(high, static_cast<int>(std::ceil(std::log2(ratio)))));
  }
  double at(double ratio) const {
    double share = (std::log2(ratio) - low) / (high - low);
    return kLeft + kWidth * std::clamp(share, 0.0, 1.0);
  }
};

}  // namespace

std::string plot_of(const Comparison& c) {
  // A row's times are relative to the best peer's; without one they are to Brasa's.
  auto unit = [&](const Comparison::Row& row) {
    Best best = best_of(c, row);
    const Timing* t = best.peer ? best.peer : best.ours;
    return t ? t->median() : std::nullopt;
  };
  Axis axis;
  for (const Comparison::Row& row : c.rows) {
    std::optional<double> one = unit(row);
    if (!one) continue;
    for (const std::optional<Timing>& t : row.timings)
      if (t && t->error.empty() && t->median()) axis.include(*t->median() / *one);
    if (row.floor_ms && *row.floor_ms > 0) axis.include(*row.floor_ms / *one);
  }
  double bottom = kTop + kLine * static_cast<double>(c.rows.size()), height = bottom + kBottom;
  std::string out = svg::begin(kLeft + kWidth + 30, height);
  double x = 16;
  for (size_t i = 0; i < c.candidates.size(); ++i) {
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"20\" r=\"5\" fill=\"{}\"/>\n", x, colour(i));
    out += text(x + 9, 24, "start", c.candidates[i].name);
    x += 26 + 7 * static_cast<double>(c.candidates[i].name.size());
  }
  out += line(x, 13, x, 27, "black", 2) + text(x + 7, 24, "start", "roofline");
  for (int power = axis.low; power <= axis.high; ++power) {
    double tick = axis.at(std::exp2(power));
    out += line(tick, kTop - 8, tick, bottom, power == 0 ? "#555555" : "#dddddd", 1);
    out +=
        text(tick, kTop - 14, "middle", power < 0 ? fmt::format("1/{}", 1 << -power) : fmt::format("{}", 1 << power));
  }
  for (size_t r = 0; r < c.rows.size(); ++r) {
    const Comparison::Row& row = c.rows[r];
    double y = kTop + kLine * (static_cast<double>(r) + 0.5);
    out += text(kLeft - 12, y + 4, "end", row.workload);
    out += line(kLeft, y, kLeft + kWidth, y, "#eeeeee", 1);
    std::optional<double> one = unit(row);
    if (!one) continue;
    if (row.floor_ms && *row.floor_ms > 0)
      out += line(axis.at(*row.floor_ms / *one), y - 8, axis.at(*row.floor_ms / *one), y + 8, "black", 2);
    for (size_t i = 0; i < c.candidates.size(); ++i) {
      const std::optional<Timing>& t = row.timings[i];
      if (!t || !t->error.empty() || !t->median()) continue;
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" fill-opacity=\"0.85\"><title>{}, {}: {:.4g} ms</title></circle>\n",
          axis.at(*t->median() / *one), y, colour(i), escaped(row.workload), escaped(c.candidates[i].name),
          *t->median());
    }
  }
  out += text(kLeft + kWidth / 2, bottom + 20, "middle", "time relative to the best peer's; left is faster");
  out += text(kLeft + kWidth / 2, bottom + 36, "middle",
              fmt::format("{}, {} threads{}", c.processor, c.threads, c.cpu_time ? ", processor time" : ""));
  return out + "</svg>\n";
}

}  // namespace brasa::tool
