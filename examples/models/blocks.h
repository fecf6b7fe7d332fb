#pragma once

#include <brasa/nn.h>

namespace models {

/// x + b(gelu(a(norm(x)))): the feed-forward half of a transformer block.
struct MlpBlockImpl : brasa::nn::Module {
  explicit MlpBlockImpl(int64_t width = 512, int64_t hidden = 2048);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::LayerNorm n{nullptr};
  brasa::nn::Linear a{nullptr}, b{nullptr};
};
BRASA_MODULE(MlpBlock);

/// Three linear layers with relu between them.
struct PerceptronImpl : brasa::nn::Module {
  PerceptronImpl(int64_t in, int64_t hidden, int64_t out);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};
BRASA_MODULE(Perceptron);

/// where(x > 0, tanh(x y + z) sigmoid(z), min(exp(x), 4) - y) / 2 + x.
struct PointwiseImpl : brasa::nn::Module {
  brasa::Tensor forward(const brasa::Tensor& x, const brasa::Tensor& y, const brasa::Tensor& z);
};
BRASA_MODULE(Pointwise);

/// softmax(layer_norm(x) / 8) over the last dimension.
struct SoftmaxNormImpl : brasa::nn::Module {
  explicit SoftmaxNormImpl(int64_t width);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::LayerNorm n{nullptr};
};
BRASA_MODULE(SoftmaxNorm);

/// Two LSTM layers over a sequence, and scores of classes from its last step. [n, steps, inputs] -> [n, classes].
struct SequenceClassifierImpl : brasa::nn::Module {
  SequenceClassifierImpl(int64_t inputs, int64_t hidden, int64_t classes);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::LSTM lstm{nullptr};
  brasa::nn::Linear head{nullptr};
};
BRASA_MODULE(SequenceClassifier);

}  // namespace models
