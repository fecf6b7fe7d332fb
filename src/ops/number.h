#pragma once

#include <limits>

#include "ir/graph.h"

namespace brasa::ops {

/// A Scalar argument: a literal, or a rank-0 value that is only known when the graph runs.
class Number {
 public:
  Number(ir::Arg a) : arg_(std::move(a)) {}    // NOLINT
  Number(double v) : arg_(v) {}                // NOLINT
  Number(int v) : arg_(v) {}                   // NOLINT
  Number(int64_t v) : arg_(v) {}               // NOLINT
  Number(bool v) : arg_(v) {}                  // NOLINT
  Number(ir::Value v) : arg_(v) {}             // NOLINT
  Number(std::complex<double> v) : arg_(v) {}  // NOLINT

  const ir::Arg& arg() const { return arg_; }
  operator ir::Arg() const { return arg_; }  // NOLINT
  bool is_value() const { return arg_.is<ir::Value>(); }
  /// A symbolic size.
  bool is_size() const;
  /// A literal.
  bool is_known() const { return !is_value() && !is_size(); }
  /// A literal of exactly this value.
  bool is(double v) const;
  bool is_nan() const;
  /// The literal as a double; brasa::Error if it is only known at run time, or complex.
  double as_double() const;
  /// The same for a literal of integer category, and for any literal.
  int64_t as_int() const;
  std::complex<double> as_complex() const;
  /// int64, float64, bool or complex128: the category that takes part in promotion.
  DType dtype() const;

 private:
  ir::Arg arg_;
};

/// Truncated; what does not fit (and NaN) becomes the smallest number, as x86 converts.
inline int64_t truncated(double v) {
  return v >= -0x1p63 && v < 0x1p63 ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
}

}  // namespace brasa::ops
