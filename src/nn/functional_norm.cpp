#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "nn/optional.h"
#include "support/error.h"

namespace brasa::nn::functional {

Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return brasa::layer_norm(input, o.normalized_shape(), optional(o.weight()), optional(o.bias()), o.eps());
}

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  double momentum = o.momentum().value_or(0.0);
  if (o.training() && input.dim() >= 2)
    BRASA_CHECK(input.size(1) == 0 || input.numel() != input.size(1),
                "Expected more than 1 value per channel when training, got input size ", input.sizes());
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

Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  // Running statistics are the mean over the samples of what batch norm keeps for each (sample, channel).
  if (o.use_input_stats() && o.running_mean().defined()) {
    int64_t n = input.size(0), c = input.size(1);
    std::vector<int64_t> merged = input.sizes().vec();
    merged[0] = 1;
    merged[1] = n * c;
    Tensor mean = o.running_mean().repeat(n), var = o.running_var().repeat(n);
    auto each = [&](const Tensor& t) { return t.defined() ? t.repeat(n) : Tensor(); };
    Tensor out = batch_norm(input.contiguous().view(merged), mean, var,
                            BatchNormFuncOptions()
                                .weight(each(o.weight()))
                                .bias(each(o.bias()))
                                .training(true)
                                .momentum(o.momentum())
                                .eps(o.eps()));
    NoGradGuard no_grad;
    o.running_mean().copy_(mean.view({n, c}).mean(0));
    o.running_var().copy_(var.view({n, c}).mean(0));
    return out.view(input.sizes());
  }
  return brasa::instance_norm(input, optional(o.weight()), optional(o.bias()), optional(o.running_mean()),
                              optional(o.running_var()), o.use_input_stats(), o.momentum(), o.eps(), true);
}

Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return brasa::group_norm(input, o.num_groups(), optional(o.weight()), optional(o.bias()), o.eps());
}

Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& o) {
  BRASA_CHECK(input.dim() >= 3, "local_response_norm: expected an input of at least 3 dimensions, got ", input.sizes());
  if (input.numel() == 0) return input;
  // The channels become one spatial dimension of a picture, over which an average pool slides.
  std::vector<int64_t> flat{input.size(0), 1, input.size(1), -1};
  Tensor squares = constant_pad_nd((input * input).reshape(flat), {0, 0, o.size() / 2, (o.size() - 1) / 2});
  Tensor mean = brasa::avg_pool2d(squares, {o.size(), 1}, 1).view(input.sizes());
  return input / (mean * o.alpha() + o.k()).pow(o.beta());
}

Tensor normalize(const Tensor& input, NormalizeFuncOptions o) {
  Tensor denominator = input.norm(o.p(), o.dim(), true).clamp_min(o.eps()).expand_as(input);
  if (!o.out() || !o.out()->defined()) return input / denominator;
  Tensor out = *o.out();
  return div_out(out, input, denominator);
}

}  // namespace brasa::nn::functional
