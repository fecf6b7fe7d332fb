#pragma once

#include <brasa/brasa.h>

#include "tensor/recorder.h"

namespace brasa::optim {

/// What an optimizer's state begins with. It is made outside a recording: it outlives that, and so the first compiled step has the
/// same graph as the later ones.
inline Tensor state_full(IntArrayRef sizes, double value, const TensorOptions& options) {
  Recorder::Scope none(nullptr);
  return full(sizes, value, options);
}
inline Tensor state_full_like(const Tensor& parameter, double value) {
  return state_full(parameter.sizes(), value, parameter.options());
}
inline Tensor state_zeros_like(const Tensor& parameter) { return state_full_like(parameter, 0); }
/// Makes it if it is not there yet.
inline void make(Tensor& state, const Tensor& parameter, double value = 0) {
  if (!state.defined()) state = state_full_like(parameter, value);
}

}  // namespace brasa::optim
