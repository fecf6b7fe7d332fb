#include <brasa/nn/modules/dropout.h>

#include <brasa/nn/functional.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

template <class Derived>
DropoutImplBase<Derived>::DropoutImplBase(const DropoutOptions& o) : options(o) {
  DropoutImplBase::reset();
}
template <class Derived>
void DropoutImplBase<Derived>::reset() {
  BRASA_CHECK(options.p() >= 0 && options.p() <= 1, "dropout probability has to be between 0 and 1, but got ",
              options.p());
}

#define BRASA_DROPOUT(Name, function)                                                                            \
  template class DropoutImplBase<Name##Impl>;                                                                    \
  void Name##Impl::pretty_print(std::ostream& s) const {                                                         \
    Described(s, #Name)("p", options.p())("inplace", options.inplace());                                         \
  }                                                                                                              \
  Tensor Name##Impl::forward(Tensor input) {                                                                     \
    auto o = functional::DropoutFuncOptions().p(options.p()).training(is_training()).inplace(options.inplace()); \
    return functional::function(std::move(input), o);                                                            \
  }
BRASA_DROPOUT(Dropout, dropout)
BRASA_DROPOUT(Dropout2d, dropout2d)
BRASA_DROPOUT(Dropout3d, dropout3d)
BRASA_DROPOUT(AlphaDropout, alpha_dropout)
BRASA_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout)
#undef BRASA_DROPOUT

}  // namespace brasa::nn
