#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "runtime/cuda/ptx.h"

namespace brasa::runtime::cuda {

/// What an element becomes: numbers of float32, each made of earlier ones. The first is the element; the last is what is written. None: the
/// element itself.
struct Epilogue {
  /// Min and Max are NaN where one is; And, Xor and Shl are of bits; what Less gives is read by Select alone.
  enum class Op : uint8_t {
    Number,
    Add,
    Sub,
    Mul,
    Fma,
    Min,
    Max,
    Abs,
    Neg,
    Exp2,
    Reciprocal,
    Rsqrt,
    Less,
    Select,
    And,
    Xor,
    Shl
  };
  struct Step {
    Op op;
    std::array<int16_t, 3> of = {};  // which numbers: 0 is the element, i + 1 what step i gave
    uint32_t bits = 0;               // of a Number; how far Shl shifts
    auto operator<=>(const Step&) const = default;
  };
  std::vector<Step> steps;
  auto operator<=>(const Epilogue&) const = default;
};

/// What follows a product of reduced floats: a function of its rounded elements, and where these go themselves, if anywhere.
struct AfterProduct {
  const Epilogue& epilogue;
  void* elements = nullptr;
  int64_t elements_row = 0;  // how far apart their rows lie
};

/// Its steps in a kernel's text: what `x` becomes.
Ptx::Reg computed(const Epilogue& epilogue, Ptx& text, const Ptx::Reg& x);

}  // namespace brasa::runtime::cuda
