#include "ops/quadrature.h"

namespace brasa::ops {

Quadrature double_exponential(int64_t rank) {
  constexpr int kPoints = 142;
  constexpr double kStep = 0.05, kFirst = -4, kHalfPi = 1.57079632679489661923;
  Shape shape(static_cast<size_t>(rank) + 1, Expr(1));
  shape[0] = Expr(kPoints);
  Value t = prim::iota(shape, 0, DType::Float64) * kStep + kFirst;
  Value v = exp(kHalfPi * prim::unary("sinh", t));
  return {v, v * prim::unary("cosh", t) * (kHalfPi * kStep)};
}

}  // namespace brasa::ops
