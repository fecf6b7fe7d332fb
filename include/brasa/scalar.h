#pragma once

#include <complex>
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include <brasa/dtype.h>

namespace brasa {

/// The dtype whose elements are of C++ type T.
template <class T>
struct dtype_for;
// clang-format off
template <> struct dtype_for<uint8_t> { static constexpr DType value = DType::UInt8; };
template <> struct dtype_for<int8_t> { static constexpr DType value = DType::Int8; };
template <> struct dtype_for<char> { static constexpr DType value = DType::Int8; };
template <> struct dtype_for<int16_t> { static constexpr DType value = DType::Int16; };
template <> struct dtype_for<int32_t> { static constexpr DType value = DType::Int32; };
template <> struct dtype_for<long> { static constexpr DType value = DType::Int64; };
template <> struct dtype_for<long long> { static constexpr DType value = DType::Int64; };
template <> struct dtype_for<float> { static constexpr DType value = DType::Float32; };
template <> struct dtype_for<double> { static constexpr DType value = DType::Float64; };
template <> struct dtype_for<std::complex<float>> { static constexpr DType value = DType::Complex64; };
template <> struct dtype_for<std::complex<double>> { static constexpr DType value = DType::Complex128; };
template <> struct dtype_for<bool> { static constexpr DType value = DType::Bool; };
// clang-format on

/// A 16-bit float as it is stored; arithmetic happens in float.
struct BRASA_API Half {
  uint16_t x = 0;
  Half() = default;
  Half(float v);           // NOLINT
  operator float() const;  // NOLINT
};
struct BRASA_API BFloat16 {
  uint16_t x = 0;
  BFloat16() = default;
  BFloat16(float v);       // NOLINT
  operator float() const;  // NOLINT
};
// Of two of a kind the result is rounded to it; with another number it is that of float.
template <class T>
concept ReducedFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
#define BRASA_REDUCED_OPERATOR(op)                             \
  template <ReducedFloat T>                                    \
  T operator op(T a, T b) {                                    \
    return static_cast<float>(a) op static_cast<float>(b);     \
  }                                                            \
  template <ReducedFloat T, class O>                           \
  T& operator op##=(T & a, const O & b) {                      \
    return a = static_cast<float>(a) op static_cast<float>(b); \
  }
BRASA_REDUCED_OPERATOR(+)
BRASA_REDUCED_OPERATOR(-)
BRASA_REDUCED_OPERATOR(*)
BRASA_REDUCED_OPERATOR(/)
#undef BRASA_REDUCED_OPERATOR
template <> struct dtype_for<Half> {
  static constexpr DType value = DType::Float16;
};
template <> struct dtype_for<BFloat16> {
  static constexpr DType value = DType::BFloat16;
};

/// A number of the program: an integer, a floating number, a complex one or a bool.
class BRASA_API Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  Scalar(T v) {  // NOLINT
    if constexpr (std::is_same_v<T, bool>) {
      type_ = DType::Bool;
      i_ = v;
    } else if constexpr (std::is_floating_point_v<T>) {
      type_ = DType::Float64;
      d_ = static_cast<double>(v);
    } else {
      type_ = DType::Int64;
      i_ = static_cast<int64_t>(v);
    }
  }
  Scalar(Half v) : Scalar(static_cast<float>(v)) {}      // NOLINT
  Scalar(BFloat16 v) : Scalar(static_cast<float>(v)) {}  // NOLINT
  template <class T>
  Scalar(std::complex<T> v) : type_(DType::Complex128), d_(v.real()), imag_(v.imag()) {}  // NOLINT

  bool isFloatingPoint() const { return type_ == DType::Float64; }
  bool isIntegral(bool include_bool = false) const {
    return type_ == DType::Int64 || (include_bool && type_ == DType::Bool);
  }
  bool isComplex() const { return type_ == DType::Complex128; }
  bool isBoolean() const { return type_ == DType::Bool; }
  /// Int64, Float64, Complex128 or Bool.
  DType type() const { return type_; }

  /// brasa::Error if a complex number with an imaginary part is asked for a real one.
  double toDouble() const;
  float toFloat() const { return static_cast<float>(toDouble()); }
  int64_t toLong() const;
  int toInt() const { return static_cast<int>(toLong()); }
  int16_t toShort() const { return static_cast<int16_t>(toLong()); }
  int8_t toChar() const { return static_cast<int8_t>(toLong()); }
  uint8_t toByte() const { return static_cast<uint8_t>(toLong()); }
  bool toBool() const;
  std::complex<double> toComplexDouble() const;
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return toBool();
    } else if constexpr (std::is_same_v<T, std::complex<double>> || std::is_same_v<T, std::complex<float>>) {
      return T(toComplexDouble());
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(toLong());
    } else {
      return static_cast<T>(toDouble());
    }
  }
  Scalar operator-() const;
  bool equal(const Scalar& o) const;

 private:
  DType type_ = DType::Int64;
  union {
    int64_t i_;
    double d_;
  };
  double imag_ = 0;
};

BRASA_API std::ostream& operator<<(std::ostream& out, const Scalar& s);

}  // namespace brasa
