#include "ops/series.h"

namespace brasa::ops {

Value polynomial(Value x, Coefficients c) {
  if (c.size() == 1) return constant_like(x, c[0]);
  Value sum = x * c[0] + c[1];
  for (size_t i = 2; i < c.size(); ++i) sum = sum * x + c[i];
  return sum;
}

Value chebyshev_sum(Value x, Coefficients c) {
  Value before = constant_like(x, c[0]), now = x * c[0] + c[1];
  Value last = zeros_like(x);
  for (size_t i = 2; i < c.size(); ++i) {
    last = before;
    before = now;
    now = x * before - last + c[i];
  }
  return 0.5 * (now - last);
}

}  // namespace brasa::ops
