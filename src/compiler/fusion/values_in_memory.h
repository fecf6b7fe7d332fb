#pragma once

#include <unordered_set>
#include <vector>

#include "compiler/schedules/machine.h"
#include "ir/graph.h"

namespace brasa::compiler {

/// Kernels with more pointers than this lose registers, and gain nothing.
constexpr size_t kMaxBuffers = 48;

/// A kernel of more nodes takes more than its share of the time to compile.
constexpr int kMostNodes = 2000;

/// The nodes, by id, whose results go to memory; all others are computed again wherever they are read. `forced` ones do in any
/// case, and those that a library computes (by id). A call of `groups` that can read its operands from memory takes the place of those of its nodes
/// in `library`.
std::vector<bool> values_in_memory(const ir::Graph& graph, const std::unordered_set<ir::Value>& forced,
                                   std::vector<const Implementation*>& library, const LibraryGroups& groups,
                                   const Machine& machine);

/// The values in memory that an expression reads, without their places, each to `f`; how many nodes it has.
template <class F>
int each_read_value(const ir::Node* root, const std::vector<bool>& in_memory, F f) {
  std::vector<const ir::Node*> stack{root};
  std::unordered_set<const ir::Node*> seen;
  int nodes = 0;
  while (!stack.empty()) {
    const ir::Node* n = stack.back();
    stack.pop_back();
    ++nodes;
    n->for_each_input([&](ir::Value v) {
      if (!seen.insert(v.node).second) return;
      if (in_memory[v.node->id] || ir::is_input(v))
        f(v.node);
      else
        stack.push_back(v.node);
    });
  }
  return nodes;
}

/// Work for one element of a point-wise primitive, in simple instructions.
int work_of(const ir::Node* n);

}  // namespace brasa::compiler
