#include "comparison.h"

#include <fmt/format.h>
#include <algorithm>

namespace brasa::tool {
namespace {

using Json = nlohmann::ordered_json;

std::string milliseconds(double ms) { return ms < 0.1 ? fmt::format("{:.4f}", ms) : fmt::format("{:.4g}", ms); }

std::string cell(const std::optional<Timing>& t) {
  if (!t) return "-";
  std::optional<double> ms = t->median();
  return !t->error.empty() || !ms ? "failed" : milliseconds(*ms);
}

// a / b, where both are there.
std::optional<double> ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}
std::optional<double> median_of(const Timing* t) { return t ? t->median() : std::nullopt; }
std::optional<double> least_of(const Timing* t) { return t ? t->least() : std::nullopt; }

std::string number(std::optional<double> v) { return v ? fmt::format("{:.2f}", *v) : "-"; }
std::string percent(std::optional<double> v) { return v ? fmt::format("{:.0f}%", 100 * *v) : "-"; }
Json value(std::optional<double> v) { return v ? Json(*v) : Json(nullptr); }

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      out += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    out += "\n";
  }
  return out;
}

}  // namespace

std::optional<double> Timing::median() const {
  if (medians.empty()) return std::nullopt;
  std::vector<double> sorted = medians;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

std::optional<double> Timing::least() const {
  if (leasts.empty()) return std::nullopt;
  return *std::min_element(leasts.begin(), leasts.end());
}

Best best_of(const Comparison& c, const Comparison::Row& row) {
  Best best;
  bool compiled = false;
  for (size_t i = 0; i < c.candidates.size(); ++i) {
    const Candidate& candidate = c.candidates[i];
    const std::optional<Timing>& t = row.timings[i];
    if (!t || !t->error.empty() || !t->median()) continue;
    const Timing*& place = candidate.ours ? best.ours : best.peer;
    bool first_compiled = candidate.ours && candidate.compiled && !compiled;
    if (candidate.ours && !candidate.compiled && compiled) continue;
    if (place && !first_compiled && *place->median() <= *t->median()) continue;
    place = &*t;
    compiled |= candidate.ours && candidate.compiled;
    if (!candidate.ours) best.peer_name = candidate.name;
  }
  return best;
}

std::string table_of(const Comparison& c) {
  std::string out =
      fmt::format("{}, {} threads, load {:.1f} to {:.1f}; peak {:.0f} GFLOP/s, {:.1f} GB/s\n", c.processor, c.threads,
                  c.load_before, c.load_after, c.roofline.flops_per_second / 1e9, c.roofline.bytes_per_second / 1e9);
  std::string versions, failures;
  for (const Candidate& candidate : c.candidates)
    if (!candidate.ours) versions += (versions.empty() ? "" : ", ") + candidate.name + " " + candidate.version;
  if (!versions.empty()) out += versions + "\n";
  out += fmt::format("milliseconds{}: the median of {} rounds' medians\n\n", c.cpu_time ? " of processor time" : "",
                     c.rounds);
  std::vector<std::vector<std::string>> rows(1, {"workload"});
  for (const Candidate& candidate : c.candidates) rows[0].push_back(candidate.name);
  for (const char* title : {"ratio", "of leasts", "roofline", "best peer's"}) rows[0].emplace_back(title);
  for (const Comparison::Row& row : c.rows) {
    std::vector<std::string> cells = {row.workload};
    for (size_t i = 0; i < c.candidates.size(); ++i) {
      cells.push_back(cell(row.timings[i]));
      if (row.timings[i] && !row.timings[i]->error.empty())
        failures += fmt::format("{}, {}: {}\n", row.workload, c.candidates[i].name, row.timings[i]->error);
    }
    Best best = best_of(c, row);
    cells.push_back(number(ratio(median_of(best.ours), median_of(best.peer))));
    cells.push_back(number(ratio(least_of(best.ours), least_of(best.peer))));
    cells.push_back(percent(ratio(row.floor_ms, median_of(best.ours))));
    cells.push_back(percent(ratio(row.floor_ms, median_of(best.peer))));
    rows.push_back(cells);
  }
  out += aligned(rows);
  if (!failures.empty()) out += "\nfailed:\n" + failures;
  for (const auto& [peer, reason] : c.missing) out += fmt::format("missing: {}: {}\n", peer, reason);
  return out;
}

Json json_of(const Comparison& c) {
  Json candidates = Json::array(), missing = Json::array(), rows = Json::array();
  for (const Candidate& candidate : c.candidates)
    candidates.push_back({{"name", candidate.name}, {"version", candidate.version}, {"peer", !candidate.ours}});
  for (const auto& [peer, reason] : c.missing) missing.push_back({{"name", peer}, {"reason", reason}});
  for (const Comparison::Row& row : c.rows) {
    Json timings = Json::object();
    for (size_t i = 0; i < c.candidates.size(); ++i) {
      if (!row.timings[i]) continue;
      const Timing& t = *row.timings[i];
      Json& line = timings[c.candidates[i].name];
      line = {{"median_ms", value(t.median())},
              {"min_ms", value(t.least())},
              {"first_s", t.firsts.empty() ? Json(nullptr) : Json(t.firsts[0])},
              {"warm_first_s", t.firsts.size() < 2 ? Json(nullptr) : Json(t.firsts[1])},
              {"rounds_ms", t.medians}};
      if (!t.error.empty()) line["error"] = t.error;
    }
    Best best = best_of(c, row);
    rows.push_back({{"workload", row.workload},
                    {"times", timings},
                    {"best_peer", best.peer ? Json(best.peer_name) : Json(nullptr)},
                    {"ratio", value(ratio(median_of(best.ours), median_of(best.peer)))},
                    {"ratio_of_leasts", value(ratio(least_of(best.ours), least_of(best.peer)))},
                    {"floor_ms", value(row.floor_ms)},
                    {"roofline", value(ratio(row.floor_ms, median_of(best.ours)))},
                    {"best_peers_roofline", value(ratio(row.floor_ms, median_of(best.peer)))}});
  }
  return {{"processor", c.processor},
          {"threads", c.threads},
          {"rounds", c.rounds},
          {"clock", c.cpu_time ? "processor" : "wall"},
          {"load", {c.load_before, c.load_after}},
          {"peak_gflops", c.roofline.flops_per_second / 1e9},
          {"peak_gb_per_s", c.roofline.bytes_per_second / 1e9},
          {"candidates", candidates},
          {"missing", missing},
          {"rows", rows}};
}

}  // namespace brasa::tool
