#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include <brasa/dtype.h>

// The C++ types of tensors' elements.
namespace brasa {

/// Floats of 16 and 8 bits as they are stored; arithmetic happens in float.
/// Conversions round to nearest even.
/// `rounded` gives the nearest number; those of 8 bits are made of floats, as in PyTorch.
#define BRASA_NARROW_FLOAT(Name, Bits)   \
  struct BRASA_API Name {                \
    Bits x = 0;                          \
    Name() = default;                    \
    Name(float v);          /* NOLINT */ \
    operator float() const; /* NOLINT */ \
    static Name rounded(double v);       \
  };
BRASA_NARROW_FLOAT(Half, uint16_t)
BRASA_NARROW_FLOAT(BFloat16, uint16_t)
BRASA_NARROW_FLOAT(Float8_e5m2, uint8_t)
BRASA_NARROW_FLOAT(Float8_e4m3fn, uint8_t)
#undef BRASA_NARROW_FLOAT

template <class T>
concept ReducedFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float8_e5m2> ||
                       std::is_same_v<T, Float8_e4m3fn>;

// Of two of a kind the result is rounded to it; with another number it is that of float.
#define BRASA_REDUCED_OPERATOR(op)                                                                             \
  template <ReducedFloat T> T operator op(T a, T b) { return static_cast<float>(a) op static_cast<float>(b); } \
  template <ReducedFloat T, class O> T& operator op##=(T & a, const O & b) {                                   \
    return a = static_cast<float>(a) op static_cast<float>(b);                                                 \
  }
BRASA_REDUCED_OPERATOR(+)
BRASA_REDUCED_OPERATOR(-)
BRASA_REDUCED_OPERATOR(*)
BRASA_REDUCED_OPERATOR(/)
#undef BRASA_REDUCED_OPERATOR

/// Two of them as they are stored.
struct ComplexHalf {
  Half re, im;
  ComplexHalf() = default;
  explicit ComplexHalf(std::complex<double> v) : re(Half::rounded(v.real())), im(Half::rounded(v.imag())) {}
  operator std::complex<double>() const { return {re, im}; }  // NOLINT
};

/// _(DType's enumerator, type of its elements) for each dtype.
#define BRASA_FORALL_DTYPES(_)             \
  _(UInt8, uint8_t)                        \
  _(Int8, int8_t)                          \
  _(Int16, int16_t)                        \
  _(Int32, int32_t)                        \
  _(Int64, int64_t)                        \
  _(Float16, ::brasa::Half)                \
  _(Float32, float)                        \
  _(Float64, double)                       \
  _(Complex32, ::brasa::ComplexHalf)       \
  _(Complex64, std::complex<float>)        \
  _(Complex128, std::complex<double>)      \
  _(Bool, bool)                            \
  _(BFloat16, ::brasa::BFloat16)           \
  _(Float8_e5m2, ::brasa::Float8_e5m2)     \
  _(Float8_e4m3fn, ::brasa::Float8_e4m3fn) \
  _(UInt64, uint64_t)

/// The dtype whose elements are of C++ type T.
template <class T>
struct dtype_for;
#define BRASA_DTYPE_FOR(Name, Type)             \
  template <> struct dtype_for<Type> {          \
    static constexpr DType value = DType::Name; \
  };
BRASA_FORALL_DTYPES(BRASA_DTYPE_FOR)
#undef BRASA_DTYPE_FOR
template <> struct dtype_for<char> : dtype_for<int8_t> {};
template <> struct dtype_for<long long> : dtype_for<int64_t> {};
template <> struct dtype_for<unsigned long long> : dtype_for<uint64_t> {};

namespace detail {
[[noreturn]] BRASA_API void unknown_dtype(DType t);
}

/// f(std::type_identity<T>()) for the type T of the dtype's elements.
template <class F> decltype(auto) visit_dtype(DType t, F&& f) {
  switch (t) {
#define BRASA_DTYPE_CASE(Name, Type) \
  case DType::Name: return f(std::type_identity<Type>());
    BRASA_FORALL_DTYPES(BRASA_DTYPE_CASE)
#undef BRASA_DTYPE_CASE
  }
  detail::unknown_dtype(t);
}

}  // namespace brasa
