#include <brasa/nn/modules/activation.h>

#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

void GELUImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::GELU()"; }
Tensor GELUImpl::forward(const Tensor& input) { return functional::gelu(input, options); }

void ReLUImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::ReLU(" << (options.inplace() ? "inplace=true" : "") << ")";
}
Tensor ReLUImpl::forward(Tensor input) { return functional::relu(std::move(input), options); }

void LeakyReLUImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::LeakyReLU(negative_slope=" << options.negative_slope()
         << (options.inplace() ? ", inplace=true" : "") << ")";
}
Tensor LeakyReLUImpl::forward(Tensor input) { return functional::leaky_relu(std::move(input), options); }

void SiLUImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::SiLU()"; }
Tensor SiLUImpl::forward(const Tensor& input) { return silu(input); }

void TanhImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Tanh()"; }
Tensor TanhImpl::forward(const Tensor& input) { return tanh(input); }

void SigmoidImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Sigmoid()"; }
Tensor SigmoidImpl::forward(const Tensor& input) { return sigmoid(input); }

void SoftmaxImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Softmax(dim=" << options.dim() << ")";
}
Tensor SoftmaxImpl::forward(const Tensor& input) { return functional::softmax(input, options); }

void LogSoftmaxImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::LogSoftmax(dim=" << options.dim() << ")";
}
Tensor LogSoftmaxImpl::forward(const Tensor& input) { return functional::log_softmax(input, options); }

DropoutImpl::DropoutImpl(const DropoutOptions& o) : options(o) { DropoutImpl::reset(); }
void DropoutImpl::reset() {
  BRASA_CHECK(options.p() >= 0 && options.p() <= 1, "Dropout: the probability must lie in [0, 1], got ", options.p());
}
void DropoutImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Dropout(p=" << options.p() << ", inplace=" << word(options.inplace()) << ")";
}
Tensor DropoutImpl::forward(Tensor input) {
  return functional::dropout(
      std::move(input),
      functional::DropoutFuncOptions().p(options.p()).training(is_training()).inplace(options.inplace()));
}

}  // namespace brasa::nn
