#pragma once

#include <cstdint>
#include <vector>

namespace brasa::transforms {

/// Minimum cut by Dinic's algorithm (E. A. Dinic, 1970).
class MaxFlow {
 public:
  static constexpr int64_t kInfinite = INT64_MAX / 4;

  explicit MaxFlow(int nodes) : first_(nodes, -1) {}
  void edge(int from, int to, int64_t capacity);
  /// Runs, and says for each node whether it lies on the source's side of a minimum cut (the one nearest the sink).
  std::vector<bool> source_side(int source, int sink);

 private:
  struct Edge {
    int to, next;
    int64_t capacity;
  };
  bool layer(int source, int sink);
  int64_t push(int node, int sink, int64_t limit);

  std::vector<int> first_, level_, current_;
  std::vector<Edge> edges_;
};

}  // namespace brasa::transforms
