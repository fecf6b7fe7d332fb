#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

BRASA_LAYER(ReflectionPad1d, const Tensor& input);
BRASA_LAYER(ReflectionPad2d, const Tensor& input);
BRASA_LAYER(ReflectionPad3d, const Tensor& input);
BRASA_LAYER(ReplicationPad1d, const Tensor& input);
BRASA_LAYER(ReplicationPad2d, const Tensor& input);
BRASA_LAYER(ReplicationPad3d, const Tensor& input);
BRASA_LAYER(ZeroPad1d, const Tensor& input);
BRASA_LAYER(ZeroPad2d, const Tensor& input);
BRASA_LAYER(ZeroPad3d, const Tensor& input);

#define BRASA_CONSTANT_PAD(D)                                                                                     \
  class BRASA_API ConstantPad##D##dImpl : public detail::Layer<ConstantPad##D##dImpl, ConstantPad##D##dOptions> { \
   public:                                                                                                        \
    using detail::Layer<ConstantPad##D##dImpl, ConstantPad##D##dOptions>::Layer;                                  \
    ConstantPad##D##dImpl(ExpandingArray<D * 2> padding, double value);                                           \
    void pretty_print(std::ostream& stream) const override;                                                       \
    Tensor forward(const Tensor& input);                                                                          \
  };                                                                                                              \
  BRASA_MODULE(ConstantPad##D##d)
BRASA_CONSTANT_PAD(1);
BRASA_CONSTANT_PAD(2);
BRASA_CONSTANT_PAD(3);
#undef BRASA_CONSTANT_PAD

}  // namespace brasa::nn
