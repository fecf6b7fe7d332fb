#pragma once

#include "ops/algebra.h"
#include "support/error.h"

// What PyTorch computes an operator for: elements of another kind would give a number where it gives an error.
namespace brasa::ops {

/// x itself; brasa::Error unless its elements are real floating numbers.
inline Value floating_only(const char* op, Value x) {
  BRASA_CHECK(is_floating(dtype_of(x)), "\"", op, "\" not implemented for ", name(dtype_of(x)));
  return x;
}

/// x itself; brasa::Error for complex numbers.
inline Value real_only(const char* op, Value x) {
  BRASA_CHECK(!is_complex(dtype_of(x)), "\"", op, "\" not implemented for ", name(dtype_of(x)));
  return x;
}

/// brasa::Error for an index that is not int64.
inline void check_long_index(const char* op, Value index) {
  BRASA_CHECK(dtype_of(index) == DType::Int64, op, ": Expected a long tensor for index, but got ", type_of(index));
}

/// brasa::Error for an index that is neither int64 nor int32.
inline void check_integer_index(const char* op, Value index) {
  BRASA_CHECK(dtype_of(index) == DType::Int64 || dtype_of(index) == DType::Int32, op,
              ": Expected an index of one of the following scalar types: Long, Int; but got ", type_of(index));
}

}  // namespace brasa::ops
