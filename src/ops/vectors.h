#pragma once

#include "ops/table.h"

namespace brasa::ops {

/// Whether a node is a factorisation that is asked for vectors besides values, by its last argument.
inline bool asks_for_vectors(const ir::Node& n) {
  if (n.op == ir::input_op() || n.args.empty()) return false;
  return row_of(n).schema.params.back().name == "with_vectors" && n.args.back().get<bool>();
}

}  // namespace brasa::ops
