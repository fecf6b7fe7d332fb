#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "ir/arg.h"

namespace brasa::ops {

/// A tensor that tests make for a sample call: deterministic values in [low, high).
struct TensorSample {
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  double low = -2, high = 2;
  int64_t stride = 1;  // of the innermost dimension

  TensorSample strided(int64_t s) const;
  TensorSample in(double lo, double hi) const;
  TensorSample of(DType t) const;
};

inline TensorSample tensor(DType t, std::vector<int64_t> shape) { return {t, std::move(shape)}; }
template <class... N>
TensorSample floats(N... n) {
  return tensor(DType::Float32, {static_cast<int64_t>(n)...});
}
template <class... N>
TensorSample ints(N... n) {
  return tensor(DType::Int64, {static_cast<int64_t>(n)...}).in(0, 2);
}
template <class... N>
TensorSample bools(N... n) {
  return tensor(DType::Bool, {static_cast<int64_t>(n)...}).in(0, 2);
}

/// One argument of a sample: a tensor, a list of tensors, or any other kind.
using SampleArg = std::variant<ir::Arg, TensorSample, std::vector<TensorSample>>;
/// Arguments by position; missing ones have the schema's default.
struct Sample {
  std::vector<SampleArg> args;
  Sample(std::initializer_list<SampleArg> a) : args(a) {}  // NOLINT
};

inline ir::Arg list(std::initializer_list<int64_t> items) {
  std::vector<ir::Expr> out;
  for (int64_t i : items) out.emplace_back(i);
  return ir::Arg(std::move(out));
}

}  // namespace brasa::ops
