#include <brasa/nn/modules/loss.h>

#include <ostream>

#include <brasa/nn/functional.h>

namespace brasa::nn {

CrossEntropyLossImpl::CrossEntropyLossImpl(CrossEntropyLossOptions o) : options(std::move(o)) {
  CrossEntropyLossImpl::reset();
}
void CrossEntropyLossImpl::reset() { weight = register_buffer("weight", options.weight()); }
void CrossEntropyLossImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::CrossEntropyLoss()"; }
Tensor CrossEntropyLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::cross_entropy(input, target, CrossEntropyLossOptions(options).weight(weight));
}

NLLLossImpl::NLLLossImpl(NLLLossOptions o) : options(std::move(o)) { NLLLossImpl::reset(); }
void NLLLossImpl::reset() { weight = register_buffer("weight", options.weight()); }
void NLLLossImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::NLLLoss()"; }
Tensor NLLLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::nll_loss(input, target, NLLLossOptions(options).weight(weight));
}

void MSELossImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::MSELoss()"; }
Tensor MSELossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::mse_loss(input, target, options);
}

void L1LossImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::L1Loss()"; }
Tensor L1LossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::l1_loss(input, target, options);
}

}  // namespace brasa::nn
