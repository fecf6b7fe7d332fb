#pragma once

#include <tuple>

#include <brasa/nn/any.h>
#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

BRASA_LAYER(AvgPool1d, const Tensor& input);
BRASA_LAYER(AvgPool2d, const Tensor& input);
BRASA_LAYER(AvgPool3d, const Tensor& input);
BRASA_LAYER(AdaptiveAvgPool1d, const Tensor& input);
BRASA_LAYER(AdaptiveAvgPool2d, const Tensor& input);
BRASA_LAYER(AdaptiveAvgPool3d, const Tensor& input);
/// (sum of xᵖ)^(1/p) over a window.
BRASA_LAYER(LPPool1d, const Tensor& input);
BRASA_LAYER(LPPool2d, const Tensor& input);
BRASA_LAYER(LPPool3d, const Tensor& input);

/// forward_with_indices gives {values, positions in each input plane}.
#define BRASA_MAX_POOL(Name)                                                     \
  class BRASA_API Name##Impl : public detail::Layer<Name##Impl, Name##Options> { \
   public:                                                                       \
    using detail::Layer<Name##Impl, Name##Options>::Layer;                       \
    void pretty_print(std::ostream& stream) const override;                      \
    Tensor forward(const Tensor& input);                                         \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);        \
  };                                                                             \
  BRASA_MODULE(Name)
BRASA_MAX_POOL(MaxPool1d);
BRASA_MAX_POOL(MaxPool2d);
BRASA_MAX_POOL(MaxPool3d);
BRASA_MAX_POOL(AdaptiveMaxPool1d);
BRASA_MAX_POOL(AdaptiveMaxPool2d);
BRASA_MAX_POOL(AdaptiveMaxPool3d);
#undef BRASA_MAX_POOL

/// Graham 2014: windows of random steps.
#define BRASA_FRACTIONAL(Name)                                            \
  class BRASA_API Name##Impl : public Cloneable<Name##Impl> {             \
   public:                                                                \
    Name##Impl(ExpandingArray<Name##Options::dims> kernel_size);          \
    explicit Name##Impl(Name##Options options);                           \
    void reset() override;                                                \
    void pretty_print(std::ostream& stream) const override;               \
    Tensor forward(const Tensor& input);                                  \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input); \
    Name##Options options;                                                \
    Tensor _random_samples;                                               \
  };                                                                      \
  BRASA_MODULE(Name)
BRASA_FRACTIONAL(FractionalMaxPool2d);
BRASA_FRACTIONAL(FractionalMaxPool3d);
#undef BRASA_FRACTIONAL

/// Puts values back where max pooling took them from, zeros elsewhere.
#define BRASA_MAX_UNPOOL(Name)                                                             \
  class BRASA_API Name##Impl : public detail::Layer<Name##Impl, Name##Options> {           \
   public:                                                                                 \
    using detail::Layer<Name##Impl, Name##Options>::Layer;                                 \
    void pretty_print(std::ostream& stream) const override;                                \
    Tensor forward(const Tensor& input, const Tensor& indices,                             \
                   const std::optional<std::vector<int64_t>>& output_size = std::nullopt); \
                                                                                           \
   protected:                                                                              \
    BRASA_FORWARD_DEFAULTS({2, AnyValue(std::optional<std::vector<int64_t>>())})           \
  };                                                                                       \
  BRASA_MODULE(Name)
BRASA_MAX_UNPOOL(MaxUnpool1d);
BRASA_MAX_UNPOOL(MaxUnpool2d);
BRASA_MAX_UNPOOL(MaxUnpool3d);
#undef BRASA_MAX_UNPOOL

}  // namespace brasa::nn
