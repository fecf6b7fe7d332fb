#include <brasa/nn/modules/padding.h>

#include <brasa/nn/functional.h>

#include "nn/print.h"

namespace brasa::nn {

namespace F = functional;

#define BRASA_PAD(Name, padding_mode)                                                                         \
  void Name##Impl::pretty_print(std::ostream& s) const { Described(s, #Name)("padding", options.padding()); } \
  Tensor Name##Impl::forward(const Tensor& input) {                                                           \
    return F::pad(input, F::PadFuncOptions(ArrayRef<int64_t>(options.padding())).mode(padding_mode));         \
  }
#define BRASA_PADS(D)                                                                                     \
  BRASA_PAD(ReflectionPad##D##d, kReflect)                                                                \
  BRASA_PAD(ReplicationPad##D##d, kReplicate)                                                             \
  BRASA_PAD(ZeroPad##D##d, kConstant)                                                                     \
  ConstantPad##D##dImpl::ConstantPad##D##dImpl(ExpandingArray<D * 2> padding, double value)               \
      : Layer(ConstantPad##D##dOptions(padding, value)) {}                                                \
  void ConstantPad##D##dImpl::pretty_print(std::ostream& s) const {                                       \
    Described(s, "ConstantPad" #D "d")("padding", options.padding())("value", options.value());           \
  }                                                                                                       \
  Tensor ConstantPad##D##dImpl::forward(const Tensor& input) {                                            \
    return F::pad(input, F::PadFuncOptions(ArrayRef<int64_t>(options.padding())).value(options.value())); \
  }
BRASA_PADS(1)
BRASA_PADS(2)
BRASA_PADS(3)
#undef BRASA_PADS
#undef BRASA_PAD

}  // namespace brasa::nn
