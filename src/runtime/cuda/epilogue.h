#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/ptx.h"

namespace brasa::runtime::cuda {

/// What an element becomes: numbers of float32, each made of earlier ones. The first is the element, the next one that at its place in another
/// matrix, if one is read.
struct Epilogue {
  /// Min and Max are NaN where one is; And, Xor and Shl are of bits; what Less gives is read by Select alone.
  enum class Op : uint8_t {
    Number,
    Add,
    Sub,
    Mul,
    Div,
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
    std::array<int16_t, 3> of = {};  // which numbers
    uint32_t bits = 0;               // of a Number; how far Shl shifts
    auto operator<=>(const Step&) const = default;
  };
  std::vector<Step> steps;             // step i gives number `operands` + i
  std::vector<int16_t> results = {0};  // which numbers are written: one, or two
  int operands = 1;                    // 2: with another matrix
  auto operator<=>(const Epilogue&) const = default;

  /// How many instructions it takes for each element.
  size_t instructions() const;
  bool is_none() const { return steps.empty() && results.size() == 1; }
  bool reads_other() const { return operands > 1; }
  bool writes_two() const { return results.size() > 1; }
};

/// A text that tells it from others.
std::string text_of(const Epilogue& epilogue);

/// What follows a product of reduced floats: functions of its rounded elements and of another matrix, the last of which is the product's result.
/// Rows lie so many elements apart.
struct AfterProduct {
  const Epilogue& epilogue;
  const void* other = nullptr;
  int64_t other_row = 0;
  void* first = nullptr;  // of two results
  int64_t first_row = 0;
};

/// Its steps in a kernel's text: what is written of these operands.
Ptx::Regs computed(const Epilogue& epilogue, Ptx& text, const Ptx::Regs& operands);

}  // namespace brasa::runtime::cuda
