#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <brasa/profiler.h>

namespace brasa::tool {

/// What one way of running one workload took, a number for each round: milliseconds, the first call's seconds. After a failure there are
/// no more rounds.
struct Timing {
  std::vector<double> medians, leasts, firsts;
  std::string error;
  std::optional<double> median() const;  ///< of the rounds' medians
  std::optional<double> least() const;
};

/// Brasa in one mode, or a peer.
struct Candidate {
  std::string name, version;
  bool ours = false, compiled = false;
};

struct Comparison {
  struct Row {
    std::string workload;
    /// The time that the FLOP or the bytes of the compiled kernels, whichever takes longer, need at best.
    std::optional<double> floor_ms;
    std::vector<std::optional<Timing>> timings;  ///< of the candidates; nothing where one does not have the workload
  };
  std::string processor;
  int threads = 1, rounds = 1;
  bool cpu_time = false;  ///< times are those of all threads on processors
  double load_before = 0, load_after = 0;
  profiler::Roofline roofline{};
  std::vector<Candidate> candidates;
  std::vector<std::pair<std::string, std::string>> missing;  ///< peers and reasons
  std::vector<Row> rows;
};

/// The candidates of a row that count: the fastest peer, and Brasa's fastest compiled mode (without one its fastest).
struct Best {
  const Timing *ours = nullptr, *peer = nullptr;
  std::string peer_name;
};
Best best_of(const Comparison& c, const Comparison::Row& row);

/// For a terminal: columns aligned, what failed below.
std::string table_of(const Comparison& c);
nlohmann::ordered_json json_of(const Comparison& c);
/// An SVG: a line for each workload, a dot for each candidate's time relative to the best peer's on a logarithmic axis, a mark at the floor.
std::string plot_of(const Comparison& c);

}  // namespace brasa::tool
