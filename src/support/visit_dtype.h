#pragma once

#include <brasa/dtype.h>

#include <complex>
#include <type_traits>

#include "support/error.h"
#include "support/half.h"

namespace brasa {

/// 16 bits of storage as a number.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(double v) : bits(double_to_half(v)) {}
  operator double() const { return half_to_float(bits); }  // NOLINT
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(double v) : bits(double_to_bfloat16(v)) {}
  operator double() const { return bfloat16_to_float(bits); }  // NOLINT
};
struct ComplexHalf {
  Half re, im;
  ComplexHalf() = default;
  explicit ComplexHalf(std::complex<double> v) : re(v.real()), im(v.imag()) {}
  operator std::complex<double>() const { return {re, im}; }  // NOLINT
};

/// f(std::type_identity<T>()) for the C++ type of the dtype's elements in memory: uint8_t, …, Half, BFloat16, float, bool,
/// std::complex<float>, …
template <class F>
decltype(auto) visit_dtype(DType t, F&& f) {
  switch (t) {
    case DType::UInt8: return f(std::type_identity<uint8_t>());
    case DType::Int8: return f(std::type_identity<int8_t>());
    case DType::Int16: return f(std::type_identity<int16_t>());
    case DType::Int32: return f(std::type_identity<int32_t>());
    case DType::Int64: return f(std::type_identity<int64_t>());
    case DType::Float16: return f(std::type_identity<Half>());
    case DType::Float32: return f(std::type_identity<float>());
    case DType::Float64: return f(std::type_identity<double>());
    case DType::Complex32: return f(std::type_identity<ComplexHalf>());
    case DType::Complex64: return f(std::type_identity<std::complex<float>>());
    case DType::Complex128: return f(std::type_identity<std::complex<double>>());
    case DType::Bool: return f(std::type_identity<bool>());
    case DType::BFloat16: return f(std::type_identity<BFloat16>());
  }
  fail_internal("no dtype has this number");
}

}  // namespace brasa
