#include <brasa/nn/modules/activation.h>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

namespace F = functional;
using std::ostream;

void ELUImpl::pretty_print(ostream& s) const {
  Described(s, "ELU")("alpha", options.alpha()).flag("inplace", options.inplace());
}
Tensor ELUImpl::forward(Tensor input) { return F::elu(std::move(input), options); }

void SELUImpl::pretty_print(ostream& s) const { Described(s, "SELU").flag("inplace", options.inplace()); }
Tensor SELUImpl::forward(Tensor input) { return F::selu(std::move(input), options); }

void CELUImpl::pretty_print(ostream& s) const {
  Described(s, "CELU")("alpha", options.alpha()).flag("inplace", options.inplace());
}
Tensor CELUImpl::forward(Tensor input) { return F::celu(std::move(input), options); }

void GELUImpl::pretty_print(ostream& s) const { Described(s, "GELU"); }
Tensor GELUImpl::forward(const Tensor& input) { return F::gelu(input, options); }

void GLUImpl::pretty_print(ostream& s) const { Described(s, "GLU")("dim", options.dim()); }
Tensor GLUImpl::forward(const Tensor& input) { return F::glu(input, options); }

void ReLUImpl::pretty_print(ostream& s) const { Described(s, "ReLU").flag("inplace", options.inplace()); }
Tensor ReLUImpl::forward(Tensor input) { return F::relu(std::move(input), options); }

void ReLU6Impl::pretty_print(ostream& s) const { Described(s, "ReLU6").flag("inplace", options.inplace()); }
Tensor ReLU6Impl::forward(Tensor input) { return F::relu6(std::move(input), options); }

void LeakyReLUImpl::pretty_print(ostream& s) const {
  Described(s, "LeakyReLU").words()("negative_slope", options.negative_slope()).flag("inplace", options.inplace());
}
Tensor LeakyReLUImpl::forward(Tensor input) { return F::leaky_relu(std::move(input), options); }

void HardshrinkImpl::pretty_print(ostream& s) const { Described(s, "Hardshrink").words().value(options.lambda()); }
Tensor HardshrinkImpl::forward(const Tensor& input) { return F::hardshrink(input, options); }

HardtanhImpl::HardtanhImpl(const HardtanhOptions& o) : Layer(o) { HardtanhImpl::reset(); }
void HardtanhImpl::reset() {
  BRASA_CHECK(options.max_val() > options.min_val(), "max_val must be greater than min_val, got ", options.max_val(),
              " and ", options.min_val());
}
void HardtanhImpl::pretty_print(ostream& s) const {
  Described(s, "Hardtanh")
      .words()("min_val", options.min_val())("max_val", options.max_val())
      .flag("inplace", options.inplace());
}
Tensor HardtanhImpl::forward(Tensor input) { return F::hardtanh(std::move(input), options); }

void SoftplusImpl::pretty_print(ostream& s) const {
  Described(s, "Softplus")("beta", options.beta())("threshold", options.threshold());
}
Tensor SoftplusImpl::forward(const Tensor& input) { return F::softplus(input, options); }

void SoftshrinkImpl::pretty_print(ostream& s) const { Described(s, "Softshrink").value(options.lambda()); }
Tensor SoftshrinkImpl::forward(const Tensor& input) { return F::softshrink(input, options); }

void SoftmaxImpl::pretty_print(ostream& s) const { Described(s, "Softmax")("dim", options.dim()); }
Tensor SoftmaxImpl::forward(const Tensor& input) { return F::softmax(input, options); }

void SoftminImpl::pretty_print(ostream& s) const { Described(s, "Softmin")("dim", options.dim()); }
Tensor SoftminImpl::forward(const Tensor& input) { return F::softmin(input, options); }

void LogSoftmaxImpl::pretty_print(ostream& s) const { Described(s, "LogSoftmax")("dim", options.dim()); }
Tensor LogSoftmaxImpl::forward(const Tensor& input) { return F::log_softmax(input, options); }

void RReLUImpl::pretty_print(ostream& s) const {
  Described(s, "RReLU")("lower", options.lower())("upper", options.upper()).flag("inplace", options.inplace());
}
Tensor RReLUImpl::forward(Tensor input) {
  return F::rrelu(std::move(input), F::RReLUFuncOptions()
                                        .lower(options.lower())
                                        .upper(options.upper())
                                        .training(is_training())
                                        .inplace(options.inplace()));
}

ThresholdImpl::ThresholdImpl(double threshold, double value) : Layer(ThresholdOptions(threshold, value)) {}
void ThresholdImpl::pretty_print(ostream& s) const {
  Described(s, "Threshold")("threshold", options.threshold())("value", options.value())
      .flag("inplace", options.inplace());
}
Tensor ThresholdImpl::forward(Tensor input) { return F::threshold(std::move(input), options); }

#define BRASA_PLAIN_LAYER(Name, function)                                  \
  void Name##Impl::pretty_print(ostream& s) const { Described(s, #Name); } \
  Tensor Name##Impl::forward(const Tensor& input) { return function(input); }
BRASA_PLAIN_LAYER(LogSigmoid, F::logsigmoid)
BRASA_PLAIN_LAYER(Mish, F::mish)
BRASA_PLAIN_LAYER(Sigmoid, brasa::sigmoid)
BRASA_PLAIN_LAYER(SiLU, F::silu)
BRASA_PLAIN_LAYER(Softsign, F::softsign)
BRASA_PLAIN_LAYER(Tanh, brasa::tanh)
BRASA_PLAIN_LAYER(Tanhshrink, F::tanhshrink)
#undef BRASA_PLAIN_LAYER

void Softmax2dImpl::pretty_print(ostream& s) const { Described(s, "Softmax2d"); }
Tensor Softmax2dImpl::forward(const Tensor& input) {
  BRASA_CHECK(input.dim() == 3 || input.dim() == 4, "Softmax2d requires a 3D or 4D tensor as input, got ",
              input.sizes());
  return F::softmax(input, -3);
}

PReLUImpl::PReLUImpl(const PReLUOptions& o) : options(o) { PReLUImpl::reset(); }
void PReLUImpl::reset() { weight = register_parameter("weight", full({options.num_parameters()}, options.init())); }
void PReLUImpl::pretty_print(ostream& s) const { Described(s, "PReLU")("num_parameters", options.num_parameters()); }
Tensor PReLUImpl::forward(const Tensor& input) { return F::prelu(input, weight); }

}  // namespace brasa::nn
