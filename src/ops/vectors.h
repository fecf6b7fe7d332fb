#pragma once

#include <optional>

#include "ops/table.h"

namespace brasa::ops {

/// Of a factorisation that may leave its vectors out: whether it is asked for them, by its last argument. Nothing for other nodes.
inline std::optional<bool> with_vectors(const ir::Node& n) {
  if (n.op == ir::input_op() || n.args.empty()) return std::nullopt;
  if (row_of(n).schema.params.back().name != "with_vectors") return std::nullopt;
  return n.args.back().get<bool>();
}

}  // namespace brasa::ops
