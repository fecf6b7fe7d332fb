#pragma once

#include <brasa/nn/any.h>
#include <brasa/nn/modules/layer.h>

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

#define BRASA_CONV(D)                                                                         \
  class BRASA_API Conv##D##dImpl : public ConvNdImpl<D, Conv##D##dImpl> {                     \
   public:                                                                                    \
    Conv##D##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size); \
    explicit Conv##D##dImpl(const Conv##D##dOptions& options);                                \
    Tensor forward(const Tensor& input);                                                      \
  };                                                                                          \
  BRASA_MODULE(Conv##D##d)
BRASA_CONV(1);
BRASA_CONV(2);
BRASA_CONV(3);
#undef BRASA_CONV

/// weight [in_channels, out_channels / groups, kernel…]. output_size, if given, settles the size that the stride leaves open.
template <size_t D, class Derived>
class BRASA_API ConvTransposeNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvTransposeNdImpl(const ConvTransposeOptions<D>& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const std::optional<IntArrayRef>& output_size = std::nullopt);

  ConvTransposeOptions<D> options;
  Tensor weight, bias;

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(std::optional<IntArrayRef>())})
};

#define BRASA_CONV_TRANSPOSE(D)                                                                        \
  class BRASA_API ConvTranspose##D##dImpl : public ConvTransposeNdImpl<D, ConvTranspose##D##dImpl> {   \
   public:                                                                                             \
    using ConvTransposeNdImpl<D, ConvTranspose##D##dImpl>::ConvTransposeNdImpl;                        \
    ConvTranspose##D##dImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size); \
  };                                                                                                   \
  BRASA_MODULE(ConvTranspose##D##d)
BRASA_CONV_TRANSPOSE(1);
BRASA_CONV_TRANSPOSE(2);
BRASA_CONV_TRANSPOSE(3);
#undef BRASA_CONV_TRANSPOSE

/// Sums blocks into an image (col2im), and takes an image into blocks (im2col).
class BRASA_API FoldImpl : public detail::Layer<FoldImpl, FoldOptions> {
 public:
  using detail::Layer<FoldImpl, FoldOptions>::Layer;
  FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size);
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
};
BRASA_MODULE(Fold);
BRASA_LAYER(Unfold, const Tensor& input);

}  // namespace brasa::nn
