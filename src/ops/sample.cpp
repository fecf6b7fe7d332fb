#include "ops/sample.h"

namespace brasa::ops {

TensorSample TensorSample::strided(int64_t s) const {
  TensorSample t = *this;
  t.stride = s;
  return t;
}
TensorSample TensorSample::in(double lo, double hi) const {
  TensorSample t = *this;
  t.low = lo;
  t.high = hi;
  return t;
}
TensorSample TensorSample::of(DType d) const {
  TensorSample t = *this;
  t.dtype = d;
  return t;
}

}  // namespace brasa::ops
