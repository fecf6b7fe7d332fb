#include <brasa/scalar.h>

#include <cmath>
#include <ostream>

#include "support/error.h"
#include "support/half.h"

namespace brasa {

Half::Half(float v) : x(double_to_half(v)) {}
Half::operator float() const { return half_to_float(x); }
BFloat16::BFloat16(float v) : x(double_to_bfloat16(v)) {}
BFloat16::operator float() const { return bfloat16_to_float(x); }

double Scalar::toDouble() const {
  if (isFloatingPoint()) return d_;
  if (isComplex()) {
    BRASA_CHECK(imag_ == 0, "value cannot be converted to type double without overflow: it is complex");
    return d_;
  }
  return static_cast<double>(i_);
}

int64_t Scalar::toLong() const {
  if (type_ == DType::Int64 || type_ == DType::Bool) return i_;
  double v = toDouble();
  BRASA_CHECK(v >= -9223372036854775808.0 && v < 9223372036854775808.0,
              "value cannot be converted to type int64_t without overflow: ", v);
  return static_cast<int64_t>(v);
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
  return isFloatingPoint() ? Scalar(-d_) : Scalar(-i_);
}

bool Scalar::equal(const Scalar& o) const {
  if (isComplex() || o.isComplex()) return toComplexDouble() == o.toComplexDouble();
  if (isFloatingPoint() || o.isFloatingPoint()) return toDouble() == o.toDouble();
  return i_ == o.i_;
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  if (s.isComplex()) return out << s.toComplexDouble();
  if (s.isFloatingPoint()) return out << s.toDouble();
  if (s.isBoolean()) return out << (s.toBool() ? "true" : "false");
  return out << s.toLong();
}

}  // namespace brasa
