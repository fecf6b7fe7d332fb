#pragma once

#include <complex>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string_view>
#include <type_traits>

#include <brasa/elements.h>

namespace brasa {

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
      i_ = static_cast<int64_t>(v);
      type_ = v > T{} && i_ < 0 ? DType::UInt64 : DType::Int64;
    }
  }
  template <ReducedFloat T>
  Scalar(T v) : Scalar(static_cast<float>(v)) {}  // NOLINT
  template <class T>
  Scalar(std::complex<T> v) : type_(DType::Complex128), d_(v.real()), imag_(v.imag()) {}  // NOLINT

  bool isFloatingPoint() const { return type_ == DType::Float64; }
  bool isIntegral(bool include_bool = false) const {
    return type_ == DType::Int64 || type_ == DType::UInt64 || (include_bool && type_ == DType::Bool);
  }
  bool isComplex() const { return type_ == DType::Complex128; }
  bool isBoolean() const { return type_ == DType::Bool; }
  /// Int64, Float64, Complex128 or Bool; UInt64 of what int64_t does not hold.
  DType type() const { return type_; }

  // brasa::Error of what a type does not hold: numbers beyond its range, NaN as an integer, an imaginary part as a real number. Fractions
  // are dropped, infinities stay, and negative integers wrap to unsigned ones.
  double toDouble() const;
  float toFloat() const { return static_cast<float>(real(std::numeric_limits<float>::max(), "float")); }
  int64_t toLong() const;
  uint64_t toUInt64() const;
  int toInt() const { return to<int>(); }
  int16_t toShort() const { return to<int16_t>(); }
  int8_t toChar() const { return to<int8_t>(); }
  uint8_t toByte() const { return to<uint8_t>(); }
  bool toBool() const;
  std::complex<double> toComplexDouble() const;
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return toBool();
    } else if constexpr (std::is_same_v<T, std::complex<double>> || std::is_same_v<T, std::complex<float>>) {
      return T(toComplexDouble());
    } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      if constexpr (std::is_unsigned_v<T>)
        return toUInt64();
      else
        return toLong();
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(whole(std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(), 8 * sizeof(T)));
    } else if constexpr (std::is_same_v<T, float>) {
      return toFloat();
    } else {
      return static_cast<T>(toDouble());
    }
  }
  Scalar operator-() const;
  bool equal(const Scalar& o) const;
  /// brasa::Error if an element of this dtype does not hold it.
  void check_fits(DType t) const;

 private:
  double real(double most, std::string_view type) const;
  int64_t whole(int64_t lowest, int64_t most, size_t bits) const;
  DType type_ = DType::Int64;
  union {
    int64_t i_;
    double d_;
  };
  double imag_ = 0;
};

BRASA_API std::ostream& operator<<(std::ostream& out, const Scalar& s);

}  // namespace brasa
