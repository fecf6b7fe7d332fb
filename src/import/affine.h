#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace brasa::import {

/// factor · symbol + offset; a number has no symbol and the factor 0.
struct Affine {
  std::string symbol;
  int64_t factor = 0, offset = 0;
};

/// What sympy writes of a size: "s77", "2*s77 + 1", or "Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))".
/// Nothing for other expressions.
std::optional<Affine> affine_of(std::string_view text);

}  // namespace brasa::import
