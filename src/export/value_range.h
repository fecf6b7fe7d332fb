#pragma once

#include <optional>
#include <unordered_map>

#include "ir/graph.h"

namespace brasa::exporting {

/// No element of a value is less or greater; of numbers that are no integers the integers around them. What is absent is not known.
struct ValueRange {
  std::optional<ir::Expr> least, greatest;
};

/// Ranges of what is computed from constants, positions, truth values and sizes, as a graph of primitives says. Integers that wrap are
/// not thought of.
class ValueRanges {
 public:
  ValueRange of(ir::Value v);

 private:
  ValueRange compute(ir::Value v);
  ValueRange pointwise(const ir::Node& n);
  ValueRange where(ir::Value v, ir::Value condition, bool is);
  ValueRange reduced(const ir::Node& n);
  std::unordered_map<ir::Value, ValueRange> known_;
};

}  // namespace brasa::exporting
