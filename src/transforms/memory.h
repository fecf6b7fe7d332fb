#pragma once

#include <cstdint>

#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::transforms {

/// Elements and bytes of values at example sizes: the hints, and 64 where there is none. No sum of a graph's overflows.
class ExampleSizes {
 public:
  explicit ExampleSizes(const ir::Facts& facts) : facts_(facts) {}
  int64_t numel(const ir::Type& t) const;
  int64_t bytes(const ir::Type& t) const;
  int64_t bytes(const ir::Node& n) const;  ///< of all results

 private:
  const ir::Facts& facts_;
};

/// The most bytes that a graph of primitives has in memory at once, beyond inputs and results, where its nodes run in their order: about what
/// an arena takes. Movement takes none, and neither does point-wise work that one loop reads, or loops while its operands are there.
int64_t peak_bytes(const ir::Graph& graph, const ir::Facts& facts);

}  // namespace brasa::transforms
