#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

/// Checks the probability.
template <class Derived>
class BRASA_API DropoutImplBase : public Cloneable<Derived> {
 public:
  explicit DropoutImplBase(double p) : DropoutImplBase(DropoutOptions(p)) {}
  explicit DropoutImplBase(const DropoutOptions& options = {});
  void reset() override;
  DropoutOptions options;
};

#define BRASA_DROPOUT(Name)                                         \
  class BRASA_API Name##Impl : public DropoutImplBase<Name##Impl> { \
   public:                                                          \
    using DropoutImplBase<Name##Impl>::DropoutImplBase;             \
    void pretty_print(std::ostream& stream) const override;         \
    Tensor forward(Tensor input);                                   \
  };                                                                \
  BRASA_MODULE(Name)
/// Zeroes elements with probability p while training and scales the others by 1 / (1 - p).
BRASA_DROPOUT(Dropout);
/// Zeroes whole channels.
BRASA_DROPOUT(Dropout2d);
BRASA_DROPOUT(Dropout3d);
/// Keeps mean and variance of what SELU gives (Klambauer et al. 2017).
BRASA_DROPOUT(AlphaDropout);
BRASA_DROPOUT(FeatureAlphaDropout);
#undef BRASA_DROPOUT

}  // namespace brasa::nn
