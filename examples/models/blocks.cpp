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

PerceptronImpl::PerceptronImpl(int64_t in, int64_t hidden, int64_t out) {
  fc1 = register_module("fc1", nn::Linear(in, hidden));
  fc2 = register_module("fc2", nn::Linear(hidden, hidden));
  fc3 = register_module("fc3", nn::Linear(hidden, out));
}
Tensor PerceptronImpl::forward(const Tensor& x) { return fc3(relu(fc2(relu(fc1(x))))); }

Tensor PointwiseImpl::forward(const Tensor& x, const Tensor& y, const Tensor& z) {
  return where(x > 0, (x * y + z).tanh() * sigmoid(z), x.exp().clamp_max(4) - y) * 0.5 + x;
}

SoftmaxNormImpl::SoftmaxNormImpl(int64_t width) {
  n = register_module("n", nn::LayerNorm(nn::LayerNormOptions({width})));
}
Tensor SoftmaxNormImpl::forward(const Tensor& x) { return softmax(n(x) * 0.125, -1); }

SequenceClassifierImpl::SequenceClassifierImpl(int64_t inputs, int64_t hidden, int64_t classes) {
  lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(inputs, hidden).num_layers(2).batch_first(true)));
  head = register_module("head", nn::Linear(hidden, classes));
}
Tensor SequenceClassifierImpl::forward(const Tensor& x) { return head(std::get<0>(lstm(x)).select(1, -1)); }

}  // namespace models
