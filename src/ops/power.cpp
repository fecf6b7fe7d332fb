#include <algorithm>
#include <iterator>

#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// PyTorch's square root and squares stand for the powers that they are.
Value power(Value x, const Number& e) {
  BRASA_CHECK(!(is_integral(dtype_of(x), true) && e.dtype() == DType::Int64 && !e.is_value() && e.as_double() < 0),
              "Integers to negative integer powers are not allowed.");
  if (is_integral(dtype_of(x), true) && e.dtype() == DType::Int64 && e.is_value())
    check_values(ge(e.arg().get<Value>(), 0), "pow: Integers to negative integer powers are not allowed.");
  Value y = promoted(x, e)[0];
  bool real = is_floating(dtype_of(y));
  if (e.is(1)) return y;
  if (e.is(2)) return y * y;
  if (e.is(3)) return y * y * y;
  if (real && e.is(0.5)) return sqrt(y);
  if (real && e.is(-0.5)) return rsqrt(y);
  if (real && e.is(-1)) return 1 / y;
  if (real && e.is(-2)) return 1 / (y * y);
  return pointwise("pow", y, e);
}

DType double_of(Value x) { return is_complex(dtype_of(x)) ? DType::Complex128 : DType::Float64; }

// Exponents that graphs know.
constexpr double kKnown[] = {0, 1, 2, 3, 0.5, -0.5, -1, -2};

// Other exponents have one derivative, whether a graph knows them or not: less than them by 1 before they are rounded, and no square of it.
std::vector<Value> power_derivative(const Saved& s) {
  Number e(s.args[1]);
  if (e.is(0)) return {};
  if (e.is(1)) return {s.ct()};
  if (e.is(2)) return {s.ct() * conj(2 * s.in(0))};
  Value x = convert(s.in(0), dtype_of(s.out()));
  bool known = std::any_of(std::begin(kKnown), std::end(kKnown), [&](double v) { return e.is(v); });
  Value slope = e * (known ? power(x, e - 1) : pointwise("pow", x, e - 1));
  if (!e.is_value()) return {s.ct() * conj(slope)};
  Value at_zero = eq(convert(e.arg().get<Value>(), dtype_of(x)), 0);
  return {where(at_zero, zeros_like(s.ct()), s.ct() * conj(slope))};
}

}  // namespace

void add_powers(Table& t) {
  const std::vector<double> special(std::begin(kKnown), std::end(kKnown));
  t.op("aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
      .out(Out::Cast)
      .doc("self to the power of exponent.")
      .autocast(Autocast::None, Autocast::Float32)
      .sparse(Sparse::Power)
      .composed_in_opmath([](Value x, Number e) { return power(x, e); })
      .special("exponent", special)
      .vjp(own_derivative(power_derivative))
      .samples({{floats(3, 5), 2}, {floats(4).in(0.5, 2), -1.5}, {ints(4), 3}, {floats(2), 0}});
  t.op("aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
      .out(Out::Cast)
      .doc("self to the power of exponent.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath([](Value x, Value e) { return pointwise("pow", x, e); })
      .samples({{floats(3, 5).in(0.5, 2), floats(5)}, {ints(4), ints(4)}});
  t.op("aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor")
      .out(Out::Cast)
      .doc("self to the power of exponent.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath([](Number x, Value e) {
        auto [y, b] = promoted(e, x);
        return prim::binary("pow", b, y);
      })
      .samples({{2.5, floats(3, 5)}, {2, ints(4)}});
  t.op("aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
      .doc("The power in float64.")
      .composed([](Value x, Value e) { return pointwise("pow", convert(x, double_of(x)), convert(e, double_of(e))); })
      .samples({{floats(3, 5).in(0.5, 2), floats(5)}, {ints(4), ints(4)}});
  t.op("aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
      .doc("The power in float64.")
      .composed([](Value x, Number e) { return call("aten::pow.Tensor_Scalar", {convert(x, double_of(x)), e.arg()}); })
      .special("exponent", special)
      .samples({{floats(3, 5).in(0.5, 2), 1.5}, {ints(4), 2}});
  t.op("aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor")
      .doc("The power in float64.")
      .composed([](Number x, Value e) {
        Value y = convert(e, is_complex(x.dtype()) ? DType::Complex128 : double_of(e));
        return prim::binary("pow", full(x, shape_of(y), dtype_of(y)), y);
      })
      .samples({{1.5, floats(5)}, {2, ints(4)}});
}

}  // namespace brasa::ops
