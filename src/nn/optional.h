#pragma once

#include <optional>

#include <brasa/tensor.h>

namespace brasa::nn {

/// LibTorch's absent tensor is an undefined one; the operators take an optional.
inline std::optional<Tensor> optional(const Tensor& t) { return t.defined() ? std::optional<Tensor>(t) : std::nullopt; }

}  // namespace brasa::nn
