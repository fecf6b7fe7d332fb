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
namespace {

template <class Options>
void check_channels(const Options& options) {
  BRASA_CHECK(options.in_channels() > 0 && options.out_channels() > 0 && options.groups() > 0,
              "convolution: in_channels, out_channels and groups must be positive");
  BRASA_CHECK(options.in_channels() % options.groups() == 0, "convolution: in_channels ", options.in_channels(),
              " must be divisible by groups ", options.groups());
  BRASA_CHECK(options.out_channels() % options.groups() == 0, "convolution: out_channels ", options.out_channels(),
              " must be divisible by groups ", options.groups());
}

void init_conv(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  auto [fan_in, fan_out] = init::_calculate_fan_in_and_fan_out(weight);
  double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

// `shape`: of the weight but for the kernel's dimensions.
template <class Impl>
void make_weights(Impl& module, std::vector<int64_t> shape) {
  const auto& options = module.options;
  shape.insert(shape.end(), options.kernel_size()->begin(), options.kernel_size()->end());
  module.weight = module.register_parameter("weight", brasa::empty(shape));
  module.bias = module.register_parameter("bias", options.bias() ? brasa::empty({options.out_channels()}) : Tensor(),
                                          options.bias());
  module.reset_parameters();
}

}  // namespace

template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(const ConvOptions<D>& o) : options(o) {
  ConvNdImpl::reset();
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset() {
  check_channels(options);
  for (int64_t s : *options.stride())
    BRASA_CHECK(s == 1 || !options.padding().is_same(), "padding='same' is not supported for strided convolutions");
  std::vector<int64_t> shape{options.out_channels(), options.in_channels() / options.groups()};
  make_weights(*this, std::move(shape));
}

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset_parameters() {
  init_conv(weight, bias);
}

namespace {

template <size_t D>
bool other(const ExpandingArray<D>& a, int64_t usual) {
  return std::any_of(a->begin(), a->end(), [&](int64_t v) { return v != usual; });
}

functional::PadMode pad_mode(const ConvPaddingMode& mode) {
  if (mode.is<enumtype::kReflect>()) return kReflect;
  if (mode.is<enumtype::kReplicate>()) return kReplicate;
  return kCircular;
}

// For F::pad, last dimension first; "same" padding with dilation and an odd rest behind.
template <size_t D>
std::vector<int64_t> around(const ConvOptions<D>& o) {
  std::vector<int64_t> out;
  for (size_t i = D; i-- > 0;) {
    if (const auto* padding = o.padding().sizes()) {
      out.insert(out.end(), 2, (**padding)[i]);
    } else {
      int64_t total = o.padding().is_same() ? (*o.dilation())[i] * ((*o.kernel_size())[i] - 1) : 0;
      out.insert(out.end(), {total / 2, total - total / 2});
    }
  }
  return out;
}

}  // namespace

template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  Described d(stream, "Conv" + std::to_string(D) + "d");
  d.value(options.in_channels()).value(options.out_channels());
  d("kernel_size", options.kernel_size())("stride", options.stride());
  if (const auto* padding = options.padding().sizes()) {
    if (other(*padding, 0)) d("padding", *padding);
  } else {
    d("padding", options.padding().is_same() ? "'same'" : "'valid'");
  }
  if (other(options.dilation(), 1)) d("dilation", options.dilation());
  if (options.groups() != 1) d("groups", options.groups());
  if (!options.bias()) d("bias", false);
  if (options.padding_mode().index() != 0) d("padding_mode", enumtype::get_enum_name(options.padding_mode()));
}

#define BRASA_CONV(D)                                                                                      \
  Conv##D##dImpl::Conv##D##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size) \
      : Conv##D##dImpl(Conv##D##dOptions(in_channels, out_channels, kernel_size)) {}                       \
  Conv##D##dImpl::Conv##D##dImpl(const Conv##D##dOptions& o) : ConvNdImpl(o) {}                            \
  Tensor Conv##D##dImpl::forward(const Tensor& input) {                                                    \
    auto o = functional::Conv##D##dFuncOptions()                                                           \
                 .bias(bias)                                                                               \
                 .stride(options.stride())                                                                 \
                 .padding(options.padding())                                                               \
                 .dilation(options.dilation())                                                             \
                 .groups(options.groups());                                                                \
    if (options.padding_mode().index() == 0) return functional::conv##D##d(input, weight, o);              \
    auto pad = functional::PadFuncOptions(around(options));                                                \
    pad.mode(pad_mode(options.padding_mode()));                                                            \
    return functional::conv##D##d(functional::pad(input, pad), weight, o.padding(ExpandingArray<D>(0)));   \
  }                                                                                                        \
  template class ConvNdImpl<D, Conv##D##dImpl>;
BRASA_CONV(1)
BRASA_CONV(2)
BRASA_CONV(3)
#undef BRASA_CONV

template <size_t D, class Derived>
ConvTransposeNdImpl<D, Derived>::ConvTransposeNdImpl(const ConvTransposeOptions<D>& o) : options(o) {
  ConvTransposeNdImpl::reset();
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset() {
  check_channels(options);
  std::vector<int64_t> shape{options.in_channels(), options.out_channels() / options.groups()};
  make_weights(*this, std::move(shape));
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset_parameters() {
  init_conv(weight, bias);
}

template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  Described d(stream, "ConvTranspose" + std::to_string(D) + "d");
  d.value(options.in_channels()).value(options.out_channels());
  d("kernel_size", options.kernel_size())("stride", options.stride());
  if (other(options.padding(), 0)) d("padding", options.padding());
  if (other(options.dilation(), 1)) d("dilation", options.dilation());
  if (other(options.output_padding(), 0)) d("output_padding", options.output_padding());
  if (options.groups() != 1) d("groups", options.groups());
  if (!options.bias()) d("bias", false);
  if (options.padding_mode().index() != 0) d("padding_mode", enumtype::get_enum_name(options.padding_mode()));
}

namespace {

// The output padding that gives the sizes asked for.
template <size_t D>
ExpandingArray<D> output_padding(const ConvTransposeOptions<D>& o, const Tensor& input,
                                 const std::optional<IntArrayRef>& wanted) {
  BRASA_CHECK(o.padding_mode().index() == 0, "Only `zeros` padding mode is supported for ConvTranspose", D, "d");
  if (!wanted) return o.output_padding();
  IntArrayRef size = wanted->size() == D + 2 ? wanted->slice(2) : *wanted;
  BRASA_CHECK(size.size() == D, "transposed convolution: output_size must have ", D, " or ", D + 2, " elements, got ",
              *wanted);
  ExpandingArray<D> out = 0;
  for (size_t i = 0; i < D; ++i) {
    int64_t least = (input.size(static_cast<int64_t>(i) + 2) - 1) * (*o.stride())[i] - 2 * (*o.padding())[i] +
                    (*o.dilation())[i] * ((*o.kernel_size())[i] - 1) + 1;
    int64_t most = least + (*o.stride())[i] - 1;
    BRASA_CHECK(least <= size[i] && size[i] <= most, "transposed convolution: an output size of ", size[i],
                " was asked for in dimension ", i + 2, ", which can be ", least, " to ", most);
    (*out)[i] = size[i] - least;
  }
  return out;
}

}  // namespace

#define BRASA_CONV_TRANSPOSE(D)                                                                                    \
  ConvTranspose##D##dImpl::ConvTranspose##D##dImpl(int64_t in_channels, int64_t out_channels,                      \
                                                   ExpandingArray<D> kernel_size)                                  \
      : ConvTransposeNdImpl(ConvTranspose##D##dOptions(in_channels, out_channels, kernel_size)) {}                 \
  template <>                                                                                                      \
  Tensor ConvTransposeNdImpl<D, ConvTranspose##D##dImpl>::forward(const Tensor& input,                             \
                                                                  const std::optional<IntArrayRef>& output_size) { \
    return functional::conv_transpose##D##d(input, weight,                                                         \
                                            functional::ConvTranspose##D##dFuncOptions()                           \
                                                .bias(bias)                                                        \
                                                .stride(options.stride())                                          \
                                                .padding(options.padding())                                        \
                                                .output_padding(output_padding(options, input, output_size))       \
                                                .groups(options.groups())                                          \
                                                .dilation(options.dilation()));                                    \
  }                                                                                                                \
  template class ConvTransposeNdImpl<D, ConvTranspose##D##dImpl>;
BRASA_CONV_TRANSPOSE(1)
BRASA_CONV_TRANSPOSE(2)
BRASA_CONV_TRANSPOSE(3)
#undef BRASA_CONV_TRANSPOSE

FoldImpl::FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
    : Layer(FoldOptions(output_size, kernel_size)) {}
void FoldImpl::pretty_print(std::ostream& stream) const {
  Described(stream, "Fold")("output_size", options.output_size())("kernel_size", options.kernel_size())(
      "dilation", options.dilation())("padding", options.padding())("stride", options.stride());
}
Tensor FoldImpl::forward(const Tensor& input) { return functional::fold(input, options); }

void UnfoldImpl::pretty_print(std::ostream& stream) const {
  Described(stream, "Unfold")("kernel_size", options.kernel_size())("dilation", options.dilation())(
      "padding", options.padding())("stride", options.stride());
}
Tensor UnfoldImpl::forward(const Tensor& input) { return functional::unfold(input, options); }

}  // namespace brasa::nn
