#pragma once

#include <brasa/brasa.h>

#include "tensor/recorder.h"

namespace brasa::optim {

/// Zeros for an optimizer's state. They are made outside a recording: they outlive it, and so the first compiled step has the
/// same graph as the later ones.
inline Tensor state_zeros(IntArrayRef sizes, const TensorOptions& options) {
  Recorder::Scope none(nullptr);
  return zeros(sizes, options);
}
inline Tensor state_zeros_like(const Tensor& parameter) { return state_zeros(parameter.sizes(), parameter.options()); }
inline Tensor state_full_like(const Tensor& parameter, double value) {
  Recorder::Scope none(nullptr);
  return full(parameter.sizes(), value, parameter.options());
}

}  // namespace brasa::optim
