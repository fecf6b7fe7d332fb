#pragma once

#include <brasa/nn/cloneable.h>
#include <brasa/nn/options.h>
#include <brasa/nn/pimpl.h>

namespace brasa::nn {

/// weight [out_channels, in_channels / groups, kernel…], bias [out_channels], uniform in ±1/sqrt(fan_in).
template <size_t D, class Derived>
class BRASA_API ConvNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvNdImpl(const ConvOptions<D>& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  ConvOptions<D> options;
  Tensor weight, bias;
};

#define BRASA_CONV(D)                                                                        \
  class BRASA_API Conv##D##dImpl : public ConvNdImpl<D, Conv##D##dImpl> {                    \
   public:                                                                                   \
    Conv##D##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size) \
        : Conv##D##dImpl(Conv##D##dOptions(in_channels, out_channels, kernel_size)) {}       \
    explicit Conv##D##dImpl(const Conv##D##dOptions& options);                               \
    Tensor forward(const Tensor& input);                                                     \
  };                                                                                         \
  BRASA_MODULE(Conv##D##d)
BRASA_CONV(1);
BRASA_CONV(2);
BRASA_CONV(3);
#undef BRASA_CONV

}  // namespace brasa::nn
