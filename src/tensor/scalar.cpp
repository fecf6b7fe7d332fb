#include <brasa/scalar.h>

#include <cmath>
#include <ostream>
#include <sstream>

#include "support/error.h"

namespace brasa {

double Scalar::toDouble() const {
  BRASA_CHECK(!isComplex() || imag_ == 0, "value cannot be converted to type double without overflow: it is complex");
  if (isFloatingPoint() || isComplex()) return d_;
  if (type_ == DType::UInt64) return static_cast<double>(static_cast<uint64_t>(i_));
  return static_cast<double>(i_);
}

namespace {

[[noreturn]] void fail_overflow(std::string_view type, const Scalar& s) {
  std::ostringstream text;
  text << s;
  fail(str("value cannot be converted to type ", type, " without overflow: ", text.str()));
}

}  // namespace

double Scalar::real(double most, std::string_view type) const {
  double v = toDouble();
  if (std::abs(v) > most && !std::isinf(v)) fail_overflow(type, *this);
  return v;
}

int64_t Scalar::whole(int64_t lowest, int64_t most, size_t bits) const {
  bool integer = isIntegral(true), fits = type_ != DType::UInt64;
  if (integer)
    fits = fits && i_ <= most && i_ >= (lowest == 0 ? -most : lowest);
  else
    fits = toDouble() >= static_cast<double>(lowest) && toDouble() <= static_cast<double>(most);
  if (!fits) fail_overflow(str(lowest == 0 ? "u" : "", "int", bits, "_t"), *this);
  return integer ? i_ : static_cast<int64_t>(d_);
}

int64_t Scalar::toLong() const {
  if (type_ == DType::Int64 || type_ == DType::Bool) return i_;
  if (type_ == DType::UInt64 || !(toDouble() >= -0x1p63 && toDouble() < 0x1p63)) fail_overflow("int64_t", *this);
  return static_cast<int64_t>(d_);
}

uint64_t Scalar::toUInt64() const {
  if (isIntegral(true)) return static_cast<uint64_t>(i_);
  if (!(toDouble() >= 0 && toDouble() < 0x1p64)) fail_overflow("uint64_t", *this);
  return static_cast<uint64_t>(d_);
}

void Scalar::check_fits(DType t) const {
  if (t == DType::Bool) return;
  double largest = info_of(real_part_of(t)).largest;
  if (is_complex(t)) {
    for (double part : {toComplexDouble().real(), toComplexDouble().imag()})
      if (std::abs(part) > largest && !std::isinf(part)) fail_overflow(name(t), *this);
  } else if (is_floating(t)) {
    real(largest, name(t));
  } else {
    visit_dtype(t, [&]<class T>(std::type_identity<T>) {
      if constexpr (std::is_integral_v<T>) (void)to<T>();
    });
  }
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
