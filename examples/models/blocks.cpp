#include "blocks.h"

#include <brasa/brasa.h>

namespace models {

using namespace brasa;

MlpBlockImpl::MlpBlockImpl(int64_t width, int64_t hidden) {
  n = register_module("n", nn::LayerNorm(nn::LayerNormOptions({width})));
  a = register_module("a", nn::Linear(width, hidden));
  b = register_module("b", nn::Linear(hidden, width));
}
Tensor MlpBlockImpl::forward(const Tensor& x) { return x + b(gelu(a(n(x)))); }

Tensor PointwiseImpl::forward(const Tensor& x, const Tensor& y, const Tensor& z) {
  return where(x > 0, (x * y + z).tanh() * sigmoid(z), x.exp().clamp_max(4) - y) * 0.5 + x;
}

SoftmaxNormImpl::SoftmaxNormImpl(int64_t width) {
  n = register_module("n", nn::LayerNorm(nn::LayerNormOptions({width})));
}
Tensor SoftmaxNormImpl::forward(const Tensor& x) { return softmax(n(x) * 0.125, -1); }

}  // namespace models
