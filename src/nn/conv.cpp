#include <brasa/nn/modules/conv.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(const ConvOptions<D>& o) : options(o) {
  ConvNdImpl::reset();
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset() {
  BRASA_CHECK(options.in_channels() > 0 && options.out_channels() > 0 && options.groups() > 0,
              "convolution: in_channels, out_channels and groups must be positive");
  BRASA_CHECK(options.in_channels() % options.groups() == 0, "convolution: in_channels ", options.in_channels(),
              " must be divisible by groups ", options.groups());
  BRASA_CHECK(options.out_channels() % options.groups() == 0, "convolution: out_channels ", options.out_channels(),
              " must be divisible by groups ", options.groups());
  std::vector<int64_t> shape{options.out_channels(), options.in_channels() / options.groups()};
  shape.insert(shape.end(), options.kernel_size()->begin(), options.kernel_size()->end());
  weight = this->register_parameter("weight", brasa::empty(shape));
  bias = this->register_parameter("bias", options.bias() ? brasa::empty({options.out_channels()}) : Tensor());
  reset_parameters();
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  auto [fan_in, fan_out] = init::_calculate_fan_in_and_fan_out(weight);
  double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  auto other = [](const ExpandingArray<D>& a, int64_t usual) {
    return std::any_of(a->begin(), a->end(), [&](int64_t v) { return v != usual; });
  };
  stream << "torch::nn::Conv" << D << "d(" << options.in_channels() << ", " << options.out_channels()
         << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride();
  if (other(options.padding(), 0)) stream << ", padding=" << options.padding();
  if (other(options.dilation(), 1)) stream << ", dilation=" << options.dilation();
  if (options.groups() != 1) stream << ", groups=" << options.groups();
  if (!options.bias()) stream << ", bias=false";
  stream << ")";
}

#define BRASA_CONV(D)                                                           \
  Conv##D##dImpl::Conv##D##dImpl(const Conv##D##dOptions& o) : ConvNdImpl(o) {} \
  Tensor Conv##D##dImpl::forward(const Tensor& input) {                         \
    return functional::conv##D##d(input, weight,                                \
                                  functional::Conv##D##dFuncOptions()           \
                                      .bias(bias)                               \
                                      .stride(options.stride())                 \
                                      .padding(options.padding())               \
                                      .dilation(options.dilation())             \
                                      .groups(options.groups()));               \
  }                                                                             \
  template class ConvNdImpl<D, Conv##D##dImpl>;
BRASA_CONV(1)
BRASA_CONV(2)
BRASA_CONV(3)
#undef BRASA_CONV

}  // namespace brasa::nn
