#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Divisors of integers, and the parts of floating numbers.
namespace brasa::ops {
namespace {

// Steps of Euclid's algorithm that two numbers of this type may need: those of the largest Fibonacci numbers in it.
int euclidean_steps(DType t) {
  switch (size_of(t)) {
    case 1: return 13;
    case 2: return 24;
    case 4: return 47;
    default: return 93;
  }
}

Value gcd(const char* op, Value x, Value y) {
  auto [p, q] = promoted(x, y);
  DType t = dtype_of(p);
  BRASA_CHECK(is_integral(t, false), op, ": expected integers, got ", type_of(x), " and ", type_of(y));
  std::vector<Value> a = {abs(p)}, b = {abs(q)};
  for (int i = 0; i < euclidean_steps(t); ++i) {
    Value divisor = where(eq(b[i], 0), constant_like(b[i], 1), b[i]), rest = prim::binary("rem", a[i], divisor);
    a.push_back(b[i]);
    b.push_back(rest);
  }
  // From the last step to the first, so that each step is an operand that is left out where no number needs it.
  Value out = a.back();
  for (size_t i = a.size() - 1; i-- > 0;) out = where(eq(b[i], 0), a[i], out);
  return out;
}

Value lcm(Value x, Value y) {
  auto [p, q] = promoted(x, y);
  Value g = gcd("lcm", p, q);
  return abs(prim::binary("div", p, g) * q);
}

// The mantissa in [1/2, 1) and the exponent, from the bits; subnormal numbers are scaled up first.
std::vector<Value> frexp(Value v) {
  DType type = dtype_of(v);
  BRASA_CHECK(is_floating(type), "torch.frexp() only supports floating-point dtypes, got ", type_of(v));
  Value x = to_opmath(v);
  bool wide = dtype_of(x) == DType::Float64;
  DType bits_type = wide ? DType::Int64 : DType::Int32;
  int mantissa_bits = wide ? 52 : 23, bias = wide ? 1022 : 126, scale = wide ? 54 : 25;
  int64_t exponent_mask = wide ? 0x7ff : 0xff;
  Value tiny = lt(abs(x), wide ? 0x1p-1022 : 0x1p-126);
  Value scaled = where(tiny, x * (wide ? 0x1p54 : 0x1p25), x);
  Value bits = prim::bitcast(scaled, bits_type);
  auto constant = [&](int64_t n) { return constant_like(bits, n); };
  Value field = pointwise("bit_and", pointwise("shr", bits, constant(mantissa_bits)), constant(exponent_mask));
  Value shift = field - int64_t{bias}, half = pointwise("shr", shift, constant(1));
  Value exponent = shift - where(tiny, constant(scale), constant(0));
  // 2^-shift as two factors, because it may itself be too small a number.
  auto power = [&](Value n) {
    return prim::bitcast(pointwise("shl", n + int64_t{bias + 1}, constant(mantissa_bits)), dtype_of(x));
  };
  Value mantissa = scaled * power(-half) * power(half - shift);
  Value plain = logical_or(eq(x, 0), eq(field, exponent_mask));  // 0, infinities and NaN stay
  return {convert(where(plain, x, mantissa), type), convert(where(plain, constant(0), exponent), DType::Int32)};
}

}  // namespace

void add_integers(Table& t) {
  t.op("aten::gcd(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc(
          "The greatest common divisor, by Euclid's algorithm with as many steps as the type may need; of 0 and 0 it is 0.")
      .composed([](Value x, Value y) { return gcd("gcd", x, y); })
      .no_gradient()
      .samples({{ints(3, 5).in(-30, 30), ints(5).in(-30, 30)},
                {ints(0), ints(0)},
                {ints(4).in(0, 40).of(DType::UInt8), ints(4).in(0, 40).of(DType::UInt8)}});
  t.op("aten::lcm(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The least common multiple; 0 where one of them is 0.")
      .composed(lcm)
      .no_gradient()
      .samples({{ints(3, 5).in(-30, 30), ints(5).in(-30, 30)}, {ints(0), ints(0)}});
  t.op("aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)")
      .doc("self = mantissa · 2^exponent with |mantissa| in [1/2, 1); 0, infinities and NaN have the exponent 0.")
      .composed(frexp)
      .samples({{floats(3, 5)}, {floats(7).strided(2).in(-90, 90)}, {floats(0)}});
}

}  // namespace brasa::ops
