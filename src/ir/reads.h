#pragma once

#include <unordered_set>

#include "ir/graph.h"

namespace brasa::ir {

/// The values that live nodes or the graph's outputs read.
inline std::unordered_set<Value> read_values(const Graph& graph) {
  std::unordered_set<Value> read;
  for (const Node* n : live_nodes(graph)) n->for_each_input([&](Value v) { read.insert(v); });
  for (const Output& o : graph.outputs()) read.insert(o.value);
  return read;
}

}  // namespace brasa::ir
