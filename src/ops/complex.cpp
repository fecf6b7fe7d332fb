#include "ops/complex.h"

#include <limits>

#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {

Value real(Value x) { return is_complex(dtype_of(x)) ? prim::unary("real", x) : x; }
Value imag(Value x) { return is_complex(dtype_of(x)) ? prim::unary("imag", x) : zeros_like(x); }
Value complex(Value real, Value imag) { return prim::binary("complex", real, imag); }
Value conj(Value x) { return is_complex(dtype_of(x)) ? complex(real(x), -imag(x)) : x; }

Value magnitude(Value real, Value imag) {
  Value a = abs(real), b = abs(imag), large = maximum(a, b), small = minimum(a, b);
  Value plain = logical_or(eq(large, 0), eq(large, std::numeric_limits<double>::infinity()));
  Value ratio = small / where(plain, constant_like(large, 1), large);
  return where(plain, large, large * sqrt(1 + square(ratio)));
}
Value magnitude(Value x) { return is_complex(dtype_of(x)) ? magnitude(real(x), imag(x)) : abs(x); }

namespace {

void check_complex(const char* op, Value x) {
  BRASA_CHECK(is_complex(dtype_of(x)), op, " is not implemented for tensors with non-complex dtypes, got ", type_of(x));
}
void check_parts(const char* op, Value a, Value b) {
  BRASA_CHECK(is_floating(dtype_of(a)) && dtype_of(a) == dtype_of(b) && dtype_of(a) != DType::BFloat16, op,
              ": expected both inputs to be of one dtype of float16, float32 or float64, but got ", name(dtype_of(a)),
              " and ", name(dtype_of(b)));
}

Value imaginary(Value x) {
  check_complex("imag", x);
  return imag(x);
}
Value of_parts(Value a, Value b) {
  check_parts("complex", a, b);
  auto [x, y] = promoted(a, b);
  return complex(x, y);
}
Value polar(Value r, Value angle) {
  check_parts("polar", r, angle);
  auto [x, y] = promoted(r, angle);
  return complex(x * cos(y), x * sin(y));
}
Value angle(Value x) {
  if (is_complex(dtype_of(x))) return pointwise("atan2", imag(x), real(x));
  Value v = to_float(x);
  return where(is_nan(v), v, where(lt(v, 0), constant_like(v, 3.14159265358979323846), zeros_like(v)));
}
Value as_real(Value x) {
  check_complex("view_as_real", x);
  return prim::concat({unsqueeze(real(x), rank_of(x)), unsqueeze(imag(x), rank_of(x))}, rank_of(x));
}
Value as_complex(Value x) {
  check_parts("view_as_complex", x, x);
  int64_t last = rank_of(x) - 1;
  BRASA_CHECK(last >= 0 && same_size(size_of(x, last), 2), "Tensor must have a last dimension of size 2, got ",
              type_of(x));
  return complex(squeeze(narrow(x, last, 0, 1), last), squeeze(narrow(x, last, 1, 1), last));
}

}  // namespace

void add_complex(Table& t) {
  const std::vector<Sample> parts = {{floats(3, 5), floats(3, 5)}};
  t.op("aten::real(Tensor(a) self) -> Tensor(a)")
      .doc("The real part; a real tensor itself.")
      .view()
      .composed(real)
      .samples({{floats(3)}, {tensor(DType::Complex64, {3})}});
  t.op("aten::imag(Tensor self) -> Tensor")
      .doc("The imaginary part.")
      .composed(imaginary)
      .samples({{tensor(DType::Complex64, {3})}});
  t.op("aten::conj_physical(Tensor self) -> Tensor")
      .doc("The conjugate.")
      .composed(conj)
      .samples({{floats(3)}, {tensor(DType::Complex64, {3})}});
  t.alias("aten::_conj_physical", "aten::conj_physical");
  t.op("aten::complex(Tensor real, Tensor imag) -> Tensor").doc("real + i imag.").composed(of_parts).samples(parts);
  t.op("aten::polar(Tensor abs, Tensor angle) -> Tensor")
      .doc("abs (cos angle + i sin angle).")
      .composed(polar)
      .samples(parts);
  t.op("aten::angle(Tensor self) -> Tensor")
      .doc("The argument of a number in (-π, π].")
      .composed(angle)
      .samples({{floats(3, 5)}, {tensor(DType::Complex64, {3})}});
  t.op("aten::view_as_real(Tensor self) -> Tensor")
      .doc("The parts as a last dimension of size 2.")
      .composed(as_real)
      .samples({{tensor(DType::Complex64, {3, 2})}});
  t.op("aten::view_as_complex(Tensor self) -> Tensor")
      .doc("The last dimension, of size 2, as the parts of complex numbers.")
      .composed(as_complex)
      .samples({{floats(3, 2)}});
  t.alias("aten::view_as_real_copy", "aten::view_as_real");
  t.alias("aten::view_as_complex_copy", "aten::view_as_complex");
}

}  // namespace brasa::ops
