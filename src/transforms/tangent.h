#pragma once

#include "ops/primitives.h"

// Tangents and cotangents as values: an absent one is zero.
namespace brasa::transforms {

/// Whether values of this dtype have derivatives.
inline bool has_tangent(ir::Value v) {
  DType t = ir::type_of(v).dtype;
  return is_floating(t) || is_complex(t);
}

inline ir::Value plus(ir::Value a, ir::Value b) {
  if (!a) return b;
  return b ? ops::prim::binary("add", a, b) : a;
}

}  // namespace brasa::transforms
