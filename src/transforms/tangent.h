#pragma once

#include "ops/primitives.h"
#include "ops/table.h"

// Tangents and cotangents as values: an absent one is zero.
namespace brasa::transforms {

/// Whether values of this dtype have derivatives.
inline bool has_tangent(ir::Value v) {
  DType t = ir::type_of(v).dtype;
  return is_floating(t) || is_complex(t);
}

/// A row through which derivatives of any order see nothing, although the value is the operand's. A body's graph holds many calls, so that
/// graphs of derivatives keep it for those that are taken of them in turn; what is compiled has the operand.
inline bool detaches(const ops::Row& row) { return row.view && row.no_gradient; }

/// A tangent times a partial derivative, which is often 1: that of a sum.
inline ir::Value times(ir::Value t, ir::Value partial) {
  const ir::Node& n = *partial.node;
  bool one = ops::kind_of(n) == ops::Kind::Full && n.arg(0) == ir::Arg(1.0);
  return one ? t : ops::prim::binary("mul", t, partial);
}

inline ir::Value plus(ir::Value a, ir::Value b) {
  if (!a) return b;
  return b ? ops::prim::binary("add", a, b) : a;
}

}  // namespace brasa::transforms
