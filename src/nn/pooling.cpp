#include <brasa/nn/modules/pooling.h>

#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "nn/print.h"

namespace brasa::nn {

void MaxPool2dImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::MaxPool2d(kernel_size=" << options.kernel_size() << ", stride=" << options.stride()
         << ", padding=" << options.padding() << ", dilation=" << options.dilation()
         << ", ceil_mode=" << word(options.ceil_mode()) << ")";
}
Tensor MaxPool2dImpl::forward(const Tensor& input) { return functional::max_pool2d(input, options); }
std::tuple<Tensor, Tensor> MaxPool2dImpl::forward_with_indices(const Tensor& input) {
  return max_pool2d_with_indices(input, options.kernel_size(), options.stride(), options.padding(), options.dilation(),
                                 options.ceil_mode());
}

void AvgPool2dImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::AvgPool2d(kernel_size=" << options.kernel_size() << ", stride=" << options.stride()
         << ", padding=" << options.padding() << ")";
}
Tensor AvgPool2dImpl::forward(const Tensor& input) { return functional::avg_pool2d(input, options); }

void AdaptiveAvgPool2dImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::AdaptiveAvgPool2d(output_size=" << options.output_size() << ")";
}
Tensor AdaptiveAvgPool2dImpl::forward(const Tensor& input) { return functional::adaptive_avg_pool2d(input, options); }

}  // namespace brasa::nn
