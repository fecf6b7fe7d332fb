#include <brasa/scalar.h>

#include <cmath>
#include <ostream>

#include "support/error.h"

namespace brasa {

double Scalar::toDouble() const {
  BRASA_CHECK(!isComplex() || imag_ == 0, "value cannot be converted to type double without overflow: it is complex");
  if (isFloatingPoint() || isComplex()) return d_;
  if (type_ == DType::UInt64) return static_cast<double>(static_cast<uint64_t>(i_));
  return static_cast<double>(i_);
}

int64_t Scalar::toLong() const {
  BRASA_CHECK(type_ != DType::UInt64,
              "value cannot be converted to type int64_t without overflow: ", static_cast<uint64_t>(i_));
  if (type_ == DType::Int64 || type_ == DType::Bool) return i_;
  double v = toDouble();
  BRASA_CHECK(v >= -9223372036854775808.0 && v < 9223372036854775808.0,
              "value cannot be converted to type int64_t without overflow: ", v);
  return static_cast<int64_t>(v);
}

uint64_t Scalar::toUInt64() const {
  if (type_ == DType::UInt64) return static_cast<uint64_t>(i_);
  if (isFloatingPoint() && d_ >= 0x1p63 && d_ < 0x1p64) return static_cast<uint64_t>(d_);
  return static_cast<uint64_t>(toLong());
}

bool Scalar::toBool() const {
  if (isComplex()) return d_ != 0 || imag_ != 0;
  return isFloatingPoint() ? d_ != 0 : i_ != 0;
}

std::complex<double> Scalar::toComplexDouble() const {
  return isComplex() ? std::complex<double>(d_, imag_) : std::complex<double>(toDouble(), 0);
}

Scalar Scalar::operator-() const {
  if (isComplex()) return -toComplexDouble();
  BRASA_CHECK(!isBoolean(), "the negative of a boolean number is not defined");
  return isFloatingPoint() ? Scalar(-d_) : Scalar(-toLong());
}

bool Scalar::equal(const Scalar& o) const {
  if (isComplex() || o.isComplex()) return toComplexDouble() == o.toComplexDouble();
  if (isFloatingPoint() || o.isFloatingPoint()) return toDouble() == o.toDouble();
  return i_ == o.i_ && (type_ == DType::UInt64) == (o.type_ == DType::UInt64);
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  if (s.isComplex()) return out << s.toComplexDouble();
  if (s.isFloatingPoint()) return out << s.toDouble();
  if (s.isBoolean()) return out << (s.toBool() ? "true" : "false");
  if (s.type() == DType::UInt64) return out << s.toUInt64();
  return out << s.toLong();
}

}  // namespace brasa
