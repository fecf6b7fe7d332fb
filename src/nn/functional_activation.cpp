#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "support/error.h"

namespace brasa::nn::functional {

// An activation of the table that has an in-place form, with what it takes besides its input.
#define BRASA_ACTIVATION(name, Name, ...)                                     \
  Tensor name(Tensor input, const Name##FuncOptions& o) {                     \
    if (o.inplace()) return brasa::name##_(input __VA_OPT__(, ) __VA_ARGS__); \
    return brasa::name(input __VA_OPT__(, ) __VA_ARGS__);                     \
  }
BRASA_ACTIVATION(elu, ELU, o.alpha())
BRASA_ACTIVATION(selu, SELU)
BRASA_ACTIVATION(celu, CELU, o.alpha())
BRASA_ACTIVATION(relu, ReLU)
BRASA_ACTIVATION(relu6, ReLU6)
BRASA_ACTIVATION(leaky_relu, LeakyReLU, o.negative_slope())
BRASA_ACTIVATION(rrelu, RReLU, o.lower(), o.upper(), o.training())
BRASA_ACTIVATION(hardtanh, Hardtanh, o.min_val(), o.max_val())
BRASA_ACTIVATION(threshold, Threshold, o.threshold(), o.value())
#undef BRASA_ACTIVATION

Tensor prelu(const Tensor& input, const Tensor& weight) { return brasa::prelu(input, weight); }
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& o) { return brasa::hardshrink(input, o.lambda()); }
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& o) { return brasa::softshrink(input, o.lambda()); }
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& o) {
  return brasa::softplus(input, o.beta(), o.threshold());
}
Tensor gelu(const Tensor& input, const GELUFuncOptions& o) { return brasa::gelu(input, o.approximate()); }
Tensor glu(const Tensor& input, const GLUFuncOptions& o) {
  BRASA_CHECK(input.dim() > 0, "glu: it does not support an input of no dimensions, as half of one must be even");
  return brasa::glu(input, o.dim());
}
Tensor silu(const Tensor& input) { return brasa::silu(input); }
Tensor mish(const Tensor& input) { return brasa::mish(input); }
Tensor logsigmoid(const Tensor& input) { return log_sigmoid(input); }
Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }

Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& o) { return brasa::softmax(input, o.dim(), o.dtype()); }
Tensor softmin(const Tensor& input, const SoftminFuncOptions& o) { return brasa::softmax(-input, o.dim(), o.dtype()); }
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& o) {
  return brasa::log_softmax(input, o.dim(), o.dtype());
}

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o) {
  Tensor gumbels = -empty_like(logits).exponential_(1).log();
  Tensor soft = ((logits + gumbels) / o.tau()).softmax(o.dim());
  if (!o.hard()) return soft;
  Tensor index = std::get<1>(soft.max(o.dim(), true));
  Tensor hard = zeros_like(logits).scatter_(o.dim(), index, 1.0);
  return hard - soft.detach() + soft;
}

}  // namespace brasa::nn::functional
