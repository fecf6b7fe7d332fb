#pragma once

#include <initializer_list>

#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/shapes.h"
#include "support/error.h"

// Every norm with a mean is brasa::standardize over some dimensions, then a scale and a shift; that one row brings the
// derivative. Reduced floats are computed in float32 and rounded once.
namespace brasa::ops {

inline std::vector<Value> standardized(Value x, const Dims& dims, const Number& eps) {
  return call_all("brasa::standardize", {x, int_arg(dims), eps});
}

// The same with statistics that were computed before, which are x's still: a derivative by x goes through them too.
struct Standardized {
  Value y, rstd;
};
inline Standardized standardized_again(Value x, const Dims& dims, Value m, Value rstd) {
  std::vector<Value> s = call_all("brasa::standardize_again", {x, int_arg(dims), m, rstd});
  return {s[0], s[1]};
}

// The dtype of saved statistics: the parameters' if they are wider than x.
inline DType statistics_dtype(Value x, Value weight, Value bias) {
  Value p = weight ? weight : bias;
  return p && dtype_of(p) == DType::Float32 ? DType::Float32 : dtype_of(x);
}

inline void check_parameter(const char* op, const char* what, Value p, const Shape& shape) {
  if (p) check_shape(op, what, p, shape);
}
// Parameters have x's dtype, or are float32 beside a narrower x.
inline void check_dtypes(const char* op, Value x, std::initializer_list<Value> parameters) {
  floating_only(op, x);
  for (Value p : parameters)
    BRASA_CHECK(!p || dtype_of(p) == dtype_of(x) || (is_reduced_floating(dtype_of(x)) && dtype_of(p) == DType::Float32),
                op, ": mixed dtype: expected parameters of ", name(dtype_of(x)),
                " as the input, or of float32 beside a narrower one, got ", p ? name(dtype_of(p)) : "");
}

}  // namespace brasa::ops
