#include "transforms/max_flow.h"

#include <algorithm>

namespace brasa::transforms {

void MaxFlow::edge(int from, int to, int64_t capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<int>(edges_.size()) - 1;
  edges_.push_back({from, first_[to], 0});
  first_[to] = static_cast<int>(edges_.size()) - 1;
}

bool MaxFlow::layer(int source, int sink) {
  level_.assign(first_.size(), -1);
  level_[source] = 0;
  std::vector<int> queue = {source};
  for (size_t i = 0; i < queue.size(); ++i)
    for (int e = first_[queue[i]]; e >= 0; e = edges_[e].next)
      if (edges_[e].capacity > 0 && level_[edges_[e].to] < 0) {
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
  return level_[sink] >= 0;
}

// Depth-first along the layers with a stack of its own: graphs are thousands of nodes deep.
int64_t MaxFlow::push(int source, int sink, int64_t limit) {
  std::vector<int> path;  // edges
  int node = source;
  for (;;) {
    if (node == sink) {
      int64_t flow = limit;
      for (int e : path) flow = std::min(flow, edges_[e].capacity);
      for (int e : path) {
        edges_[e].capacity -= flow;
        edges_[e ^ 1].capacity += flow;
      }
      return flow;
    }
    int& e = current_[node];
    while (e >= 0 && !(edges_[e].capacity > 0 && level_[edges_[e].to] == level_[node] + 1)) e = edges_[e].next;
    if (e >= 0) {
      path.push_back(e);
      node = edges_[e].to;
    } else {
      if (path.empty()) return 0;
      level_[node] = -1;
      node = edges_[path.back() ^ 1].to;
      path.pop_back();
    }
  }
}

std::vector<bool> MaxFlow::source_side(int source, int sink) {
  while (layer(source, sink)) {
    current_ = first_;
    while (push(source, sink, kInfinite) > 0) {
    }
  }
  std::vector<bool> side(first_.size(), true);
  side[sink] = false;
  std::vector<int> leads_there{sink};
  for (size_t i = 0; i < leads_there.size(); ++i)
    for (int e = first_[leads_there[i]]; e >= 0; e = edges_[e].next) {
      int from = edges_[e].to;
      if (!side[from] || edges_[e ^ 1].capacity == 0) continue;
      side[from] = false;
      leads_there.push_back(from);
    }
  return side;
}

}  // namespace brasa::transforms
