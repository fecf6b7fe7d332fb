#pragma once

#include <cstdint>
#include <string_view>

#include "ops/number.h"
#include "ops/scalar_op.h"

namespace brasa::ops {

/// How reduce, scan and scatter put two elements together: associative and commutative. In graphs they stand by name.
enum class Combiner : uint8_t {
  Replace,  // "": of scatter, the new one
  Add,
  Mul,
  Max,  // NaN wins
  Min,  // NaN wins
  And,
  Or,
};

/// brasa::InternalError for a name that is none.
Combiner combiner_of(std::string_view name);
std::string_view name(Combiner c);
/// The same on two elements; None for Replace.
ScalarOp scalar_op(Combiner c);

/// brasa::Error for one that this dtype does not have: complex numbers have no order.
void check_combiner(Combiner c, DType t);

/// What changes nothing: a literal of the dtype's category.
Number identity(Combiner c, DType t);
inline Number identity(std::string_view combiner, DType t) { return identity(combiner_of(combiner), t); }

double combine(Combiner c, double a, double b);
std::complex<double> combine(Combiner c, std::complex<double> a, std::complex<double> b);
/// In 64 bits, wrapping.
int64_t combine(Combiner c, int64_t a, int64_t b);

}  // namespace brasa::ops
