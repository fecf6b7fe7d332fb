#include <brasa/nn/functional.h>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::nn::functional {
namespace {

// PyTorch's numbers of the reductions: none, mean, sum.
int64_t reduction_number(const Reduction& r) { return static_cast<int64_t>(r.index()); }

std::optional<Tensor> optional(const Tensor& t) { return t.defined() ? std::optional<Tensor>(t) : std::nullopt; }

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return brasa::linear(input, weight, optional(bias));
}

Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& o) {
  return brasa::conv1d(input, weight, optional(o.bias()), o.stride(), o.padding(), o.dilation(), o.groups());
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& o) {
  return brasa::conv2d(input, weight, optional(o.bias()), o.stride(), o.padding(), o.dilation(), o.groups());
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& o) {
  return brasa::conv3d(input, weight, optional(o.bias()), o.stride(), o.padding(), o.dilation(), o.groups());
}

Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return brasa::layer_norm(input, o.normalized_shape(), optional(o.weight()), optional(o.bias()), o.eps());
}

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  double momentum = o.momentum().value_or(0.0);
  if (!o.training() || !running_mean.defined())
    return brasa::batch_norm(input, optional(o.weight()), optional(o.bias()), optional(running_mean),
                             optional(running_var), o.training(), momentum, o.eps(), true);
  auto [result, mean, invstd, new_mean, new_var] = _native_batch_norm_legit_functional(
      input, optional(o.weight()), optional(o.bias()), running_mean, running_var, true, momentum, o.eps());
  NoGradGuard no_grad;
  running_mean.copy_(new_mean);
  running_var.copy_(new_var);
  return result;
}

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  return brasa::embedding(weight, input, o.padding_idx().value_or(-1));
}

Tensor dropout(Tensor input, const DropoutFuncOptions& o) {
  BRASA_CHECK(o.p() >= 0 && o.p() <= 1, "dropout: the probability must lie in [0, 1], got ", o.p());
  if (!o.inplace()) return brasa::dropout(input, o.p(), o.training());
  return brasa::dropout_(input, o.p(), o.training());
}

Tensor relu(Tensor input, const ReLUFuncOptions& o) { return o.inplace() ? brasa::relu_(input) : brasa::relu(input); }
Tensor gelu(const Tensor& input, const GELUFuncOptions& o) { return brasa::gelu(input, o.approximate()); }
Tensor silu(const Tensor& input) { return brasa::silu(input); }
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& o) {
  return o.inplace() ? brasa::leaky_relu_(input, o.negative_slope()) : brasa::leaky_relu(input, o.negative_slope());
}
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& o) { return brasa::softmax(input, o.dim()); }
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& o) { return brasa::log_softmax(input, o.dim()); }

Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& o) {
  return brasa::max_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());
}
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& o) {
  return brasa::avg_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad(),
                           o.divisor_override());
}
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& o) {
  return brasa::adaptive_avg_pool2d(input, o.output_size());
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& o) {
  return cross_entropy_loss(input, target, optional(o.weight()), reduction_number(o.reduction()), o.ignore_index(),
                            o.label_smoothing());
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o) {
  return brasa::nll_loss_nd(input, target, optional(o.weight()), reduction_number(o.reduction()), o.ignore_index());
}
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& o) {
  return brasa::mse_loss(input, target, reduction_number(o.reduction()));
}
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& o) {
  return brasa::l1_loss(input, target, reduction_number(o.reduction()));
}

}  // namespace brasa::nn::functional
