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

// As views of the numbers in memory.
Value part(Value x, int64_t which) {
  Value parts = call("prim::as_real", {x});
  return squeeze(narrow(parts, rank_of(x), which, 1), rank_of(x));
}
Value real_part(Value x) { return is_complex(dtype_of(x)) ? part(x, 0) : x; }
Value imaginary_part(Value x) {
  check_complex("imag", x);
  return part(x, 1);
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
Value as_real(Value x) { return call("prim::as_real", {x}); }
Value as_complex(Value x) { return call("prim::as_complex", {x}); }

}  // namespace

void add_complex(Table& t) {
  const std::vector<Sample> parts = {{floats(3, 5), floats(3, 5)}}, complexes = {{tensor(DType::Complex64, {3, 2})}};
  t.op("aten::real(Tensor(a) self) -> Tensor(a)")
      .doc("The real part; a real tensor itself.")
      .view()
      .composed(real_part)
      .samples({{floats(3)}, {tensor(DType::Complex64, {3})}});
  t.op("aten::imag(Tensor(a) self) -> Tensor(a)")
      .doc("The imaginary part.")
      .view()
      .composed(imaginary_part)
      .samples({{tensor(DType::Complex64, {3})}});
  t.op("aten::conj_physical(Tensor self) -> Tensor")
      .doc("The conjugate.")
      .view()
      .composed(conj)
      .samples({{floats(3)}, {tensor(DType::Complex64, {3})}});
  t.alias("aten::_conj_physical", "aten::conj_physical");
  t.op("aten::complex(Tensor real, Tensor imag) -> Tensor").doc("real + i imag.").composed(of_parts).samples(parts);
  t.op("aten::polar(Tensor abs, Tensor angle) -> Tensor")
      .doc("abs (cos angle + i sin angle).")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(polar)
      .samples(parts);
  t.op("aten::angle(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("The argument of a number in (-π, π].")
      .composed(angle)
      .samples({{floats(3, 5)}, {tensor(DType::Complex64, {3})}});
  t.op("aten::view_as_real(Tensor(a) self) -> Tensor(a)")
      .doc("The parts as a last dimension of size 2.")
      .view()
      .composed(as_real)
      .samples(complexes);
  t.op("aten::view_as_real_copy(Tensor self) -> Tensor")
      .doc("A copy of view_as_real's result.")
      .composed(as_real)
      .samples(complexes);
  t.op("aten::view_as_complex(Tensor(a) self) -> Tensor(a)")
      .doc("The last dimension, of size 2, as the parts of complex numbers.")
      .autocast(Autocast::Float32, Autocast::None)
      .view("Tensor must have a last dimension with stride 1, and other strides and an offset divisible by 2")
      .composed(as_complex)
      .samples({{floats(3, 2)}});
  t.op("aten::view_as_complex_copy(Tensor self) -> Tensor")
      .doc("A copy of view_as_complex's result.")
      .composed(as_complex)
      .samples({{floats(3, 2)}});
}

}  // namespace brasa::ops
