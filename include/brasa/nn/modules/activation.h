#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

BRASA_LAYER(ELU, Tensor input);
BRASA_LAYER(SELU, Tensor input);
BRASA_LAYER(CELU, Tensor input);
BRASA_LAYER(GELU, const Tensor& input);
BRASA_LAYER(GLU, const Tensor& input);
BRASA_LAYER(ReLU, Tensor input);
BRASA_LAYER(ReLU6, Tensor input);
BRASA_LAYER(LeakyReLU, Tensor input);
BRASA_LAYER(Hardshrink, const Tensor& input);
class BRASA_API HardtanhImpl : public detail::Layer<HardtanhImpl, HardtanhOptions> {
 public:
  explicit HardtanhImpl(const HardtanhOptions& options = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
};
BRASA_MODULE(Hardtanh);
BRASA_LAYER(Softplus, const Tensor& input);
BRASA_LAYER(Softshrink, const Tensor& input);
BRASA_LAYER(Softmax, const Tensor& input);
BRASA_LAYER(Softmin, const Tensor& input);
BRASA_LAYER(LogSoftmax, const Tensor& input);
/// The slope is drawn from [lower, upper] while training, else their mean.
BRASA_LAYER(RReLU, Tensor input);

class BRASA_API ThresholdImpl : public detail::Layer<ThresholdImpl, ThresholdOptions> {
 public:
  using detail::Layer<ThresholdImpl, ThresholdOptions>::Layer;
  ThresholdImpl(double threshold, double value);
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
};
BRASA_MODULE(Threshold);

#define BRASA_PLAIN_LAYER(Name)                               \
  class BRASA_API Name##Impl : public Cloneable<Name##Impl> { \
   public:                                                    \
    void reset() override {}                                  \
    void pretty_print(std::ostream& stream) const override;   \
    Tensor forward(const Tensor& input);                      \
  };                                                          \
  BRASA_MODULE(Name)
BRASA_PLAIN_LAYER(LogSigmoid);
BRASA_PLAIN_LAYER(Mish);
BRASA_PLAIN_LAYER(Sigmoid);
BRASA_PLAIN_LAYER(SiLU);
/// Softmax over the channels of [C, H, W] or [N, C, H, W].
BRASA_PLAIN_LAYER(Softmax2d);
BRASA_PLAIN_LAYER(Softsign);
BRASA_PLAIN_LAYER(Tanh);
BRASA_PLAIN_LAYER(Tanhshrink);
#undef BRASA_PLAIN_LAYER

/// max(0, x) + weight · min(0, x), one weight for all or one a channel.
class BRASA_API PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  explicit PReLUImpl(const PReLUOptions& options = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  PReLUOptions options;
  Tensor weight;
};
BRASA_MODULE(PReLU);

}  // namespace brasa::nn
