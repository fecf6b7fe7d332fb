#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>

#include <brasa/brasa.h>
#include <brasa/call.h>

#include "ir/expr.h"

namespace brasa {
class KnownSizes;
}

namespace brasa::import {

/// A number of a running graph. Where a recording knows the sizes that it was computed from, also what it is for other sizes.
struct Number {
  Number(Scalar v) : value(std::move(v)) {}  // NOLINT
  Number(int64_t v, std::optional<ir::Expr> e, KnownSizes* knows) : value(v), by(e ? knows : nullptr), size(e) {}

  Scalar value;
  KnownSizes* by = nullptr;  // the recording that knows what follows; else nothing of it is there
  /// An integer as an expression of sizes; a constant for a literal.
  std::optional<ir::Expr> size;
  /// A real number that is exactly this quotient of integers, rounded as its value is.
  struct Quotient {
    ir::Expr above;
    int64_t below = 1;
  };
  std::optional<Quotient> quotient;
  /// What computes the number, or truth value, when the program runs: a tensor without dimensions, float64 or bool; made when it is read.
  struct Computed {
    std::function<Tensor()> make;
    Tensor made;
  };
  std::shared_ptr<Computed> computed;

  /// Of a truth value: it is true where this is not negative.
  std::optional<ir::Expr> holds;
  /// It depends on what tensors hold, so that nobody but the recording may read it.
  bool of_values = false;

  /// Whether it differs when the recorded program runs, in a way that is known.
  bool varies() const { return computed || (size && !size->is_constant()); }
  /// A number that varies as such a tensor.
  Tensor element(DType dtype) const;
};

/// What a name stands for: nothing, a tensor or a number. Lists are their items.
using Value = std::variant<std::monostate, Tensor, Number>;

/// An integer as a recording's calls take it.
CallArg named_argument(const Number& n);

}  // namespace brasa::import
