#include <cmath>

#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

bool is_bool(Value v) { return dtype_of(v) == DType::Bool; }

void check_alpha(DType result, const Number& alpha) {
  BRASA_CHECK(alpha.dtype() != DType::Bool || result == DType::Bool,
              "Boolean alpha only supported for Boolean results, got a result of ", name(result));
  BRASA_CHECK(!is_integral(result, true) || !is_floating(alpha.dtype()),
              "For integral input tensors, argument alpha must not be a floating point number, got a result of ",
              name(result));
  BRASA_CHECK(is_complex(result) || !is_complex(alpha.dtype()),
              "For non-complex input tensors, argument alpha must not be a complex number, got a result of ",
              name(result));
}

// alpha * b, to be added to a: in the dtype of the sum, as b's own may be an integer's or narrower.
Value scaled(Value a, Value b, const Number& alpha) {
  DType t = result_type({a, b});
  check_alpha(t, alpha);
  return alpha.is(1) ? b : convert(b, t) * alpha;
}

Value add_scaled(Value a, Value b, const Number& alpha) { return a + scaled(a, b, alpha); }

// A product must not wrap before the wider operand comes to it.
std::array<Value, 3> of_common_dtype(Value a, Value b, Value c) {
  DType t = result_type({a, b, c});
  return {convert(a, t), convert(b, t), convert(c, t)};
}

void check_subtraction(Value a, DType b) {
  BRASA_CHECK_AS(
      NotImplementedError, !is_bool(a) || b != DType::Bool,
      "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
      "instead.");
  BRASA_CHECK_AS(
      NotImplementedError, !is_bool(a) && b != DType::Bool,
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` "
      "or `logical_not()` operator instead.");
}

Value sub_scaled(Value a, Value b, const Number& alpha) {
  check_subtraction(a, dtype_of(b));
  return a - scaled(a, b, alpha);
}

// With the rounding of a floored quotient as in Python's float floor division: exact multiples stay exact.
Value floor_quotient(Value a, Value b) {
  if (!is_floating(dtype_of(a))) {
    Value q = prim::binary("div", a, b), r = a - q * b;
    return is_signed(dtype_of(a)) ? q - convert(logical_and(ne(r, 0), ne(lt(r, 0), lt(b, 0))), dtype_of(q)) : q;
  }
  Value mod = prim::binary("rem", a, b), by_zero = eq(b, 0);
  Value q = prim::binary("div", where(by_zero, a, a - mod), b);
  q = where(logical_and(ne(mod, 0), ne(lt(b, 0), lt(mod, 0))), q - 1, q);
  Value down = prim::unary("floor", q);
  down = where(gt(q - down, 0.5), down + 1, down);
  Value nothing = where(ne(sign_bit(a), sign_bit(b)), constant_like(q, -0.0), zeros_like(q));
  return where(by_zero, q, where(ne(q, 0), down, nothing));
}

Value trunc_quotient(Value a, Value b) {
  Value q = prim::binary("div", a, b);
  return is_floating(dtype_of(a)) ? prim::unary("trunc", q) : q;
}

// Integers have no result for a divisor of 0, if there is anything to divide: so many elements, of which nothing is assumed.
void check_divisor(Value b, Expr elements) {
  if (elements.is(0)) return;
  Value good = ne(b, 0);
  if (!elements.is_constant() && type_of(b).numel() != elements)
    good = logical_or(good, eq(size_tensor(elements, shape_of(b)), 0));
  check_values(good, "ZeroDivisionError");
}
void check_divisor(const Number& b, Expr elements) {
  BRASA_CHECK(!b.is(0) || same_size(elements, 0), "ZeroDivisionError");
  if (!b.is_known()) check_divisor(to_value(b), elements);
}

// Both in one dtype. The divisor is a Value or a Number.
template <class Divisor>
std::array<Value, 2> division(const char* op, Value a, const Divisor& b) {
  auto [x, y] = promoted(a, b);
  BRASA_CHECK(!is_bool(x), op, " is not defined for bool");
  if (!is_floating(dtype_of(x))) check_divisor(b, type_of(x).numel());
  return {x, y};
}

template <class Divisor>
Value rounded_quotient(Value a, const Divisor& b, const std::optional<std::string>& mode) {
  if (!mode) return a / b;
  BRASA_CHECK(*mode == "trunc" || *mode == "floor",
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode, "'");
  auto [x, y] = division("div with rounding_mode", a, b);
  return *mode == "trunc" ? trunc_quotient(x, y) : floor_quotient(x, y);
}

template <class Divisor>
Value floor_divide(Value a, const Divisor& b) {
  auto [x, y] = division("floor_divide", a, b);
  return floor_quotient(x, y);
}

template <class Divisor>
Value remainder(Value a, const Divisor& b) {
  auto [x, y] = division("remainder", a, b);
  Value r = prim::binary("rem", x, y);
  if (!is_signed(dtype_of(r))) return r;
  return where(logical_and(ne(r, 0), ne(lt(r, 0), lt(y, 0))), r + y, r);
}

template <class Divisor>
Value c_remainder(Value a, const Divisor& b) {
  auto [x, y] = division("fmod", a, b);
  return prim::binary("rem", x, y);
}

std::vector<Value> quotient_derivative(const Saved& s) {
  if (!s.args[2].is_none()) return {};
  Value a = s.in(0), b = s.in(1), ct = s.ct();
  return {ct / b, -(ct * (a / b) / b)};
}

enum class Packed : uint8_t { Floats, IntegersToo };

// The commonest calls of an operator of two operands.
std::vector<Sample> packed_calls(Packed which) {
  std::vector<Sample> calls = {{floats(8, 8), floats(8, 8)},
                               {floats(8, 8), floats(8)},
                               {floats(8, 8), floats(8, 1)},
                               {floats(8), floats(8, 8)},
                               {floats(8, 1), floats(8, 8)},
                               {floats(8, 8), 2.0},
                               {floats(8, 8), 2}};
  if (which == Packed::IntegersToo) calls.insert(calls.end(), {{ints(8), ints(8)}, {ints(8), 2}});
  return calls;
}

void add_sums(Table& t) {
  t.op("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .out(Out::Cast)
      .doc("self + alpha * other.")
      .sparse(Sparse::Add)
      .packed(packed_calls(Packed::IntegersToo))
      .composed_in_opmath([](Value a, Value b, Number alpha) { return add_scaled(a, b, alpha); })
      .samples({{floats(3, 5), floats(3, 5)},
                {floats(3, 1), floats(5), 2.5},
                {floats(0), floats(1)},
                {floats(7).strided(2), ints(7)},
                {ints(2, 3), ints(3), 3}});
  t.op("aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .out(Out::Cast)
      .doc("self + alpha * other.")
      .composed_in_opmath([](Value a, Number b, Number alpha) {
        auto [x, y] = promoted(a, b);
        return add_scaled(x, y, alpha);
      })
      .samples({{floats(3, 5), 2}, {ints(4), 0.5}, {floats(0), 1.5, 2}});
  t.op("aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .out(Out::Cast)
      .doc("self - alpha * other.")
      .sparse(Sparse::Sub)
      .packed(packed_calls(Packed::IntegersToo))
      .composed_in_opmath([](Value a, Value b, Number alpha) { return sub_scaled(a, b, alpha); })
      .samples({{floats(3, 5), floats(3, 5)}, {floats(2, 1, 3), floats(4, 1), 0.5}, {ints(1), floats(0)}});
  t.op("aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .out(Out::Cast)
      .doc("self - alpha * other.")
      .composed_in_opmath([](Value a, Number b, Number alpha) {
        check_subtraction(a, b.dtype());
        auto [x, y] = promoted(a, b);
        return sub_scaled(x, y, alpha);
      })
      .samples({{floats(3, 5), 2}, {ints(4), 1, 2}});
  t.op("aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .doc("other - alpha * self.")
      .composed_in_opmath([](Value a, Value b, Number alpha) { return sub_scaled(b, a, alpha); })
      .samples({{floats(3, 5), floats(5)}, {floats(2), floats(2), 3}});
  t.op("aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .doc("other - alpha * self.")
      .composed_in_opmath([](Value a, Number b, Number alpha) {
        check_subtraction(a, b.dtype());
        auto [x, y] = promoted(a, b);
        return sub_scaled(y, x, alpha);
      })
      .samples({{floats(3, 5), 2}, {ints(4), 1, 2}});
  t.alias("aten::subtract.Tensor", "aten::sub.Tensor");
  t.alias("aten::subtract.Scalar", "aten::sub.Scalar");
}

void add_products(Table& t) {
  t.op("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("self * other.")
      .sparse(Sparse::Mul)
      .packed(packed_calls(Packed::IntegersToo))
      .composed_in_opmath([](Value a, Value b) { return a * b; })
      .samples({{floats(3, 5), floats(3, 5)},
                {floats(3, 1), floats(1, 5)},
                {floats(0), floats(1)},
                {ints(4), floats(4).strided(3)}});
  t.op("aten::mul.Scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc("self * other.")
      .sparse(Sparse::Linear)
      .composed_in_opmath([](Value a, Number b) { return a * b; })
      .samples({{floats(3, 5), 2.5}, {ints(4), 3}, {ints(4), 0.5}});
  t.alias("aten::multiply.Tensor", "aten::mul.Tensor");
  t.alias("aten::multiply.Scalar", "aten::mul.Scalar");

  t.op("aten::div.Tensor(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("self / other; integers give the default floating dtype.")
      .sparse(Sparse::Div)
      .packed(packed_calls(Packed::Floats))
      .composed_in_opmath([](Value a, Value b) { return a / b; })
      .samples({{floats(3, 5), floats(3, 5).in(0.5, 2)},
                {floats(3, 1), floats(4).in(-2, -0.5)},
                {ints(3), ints(3).in(1, 5)}});
  t.op("aten::div.Scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc("self / other; integers give the default floating dtype.")
      .sparse(Sparse::Linear)
      .composed_in_opmath([](Value a, Number b) { return a / b; })
      .samples({{floats(3, 5), 2.5}, {ints(4), 3}});
  t.op("aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
      .out(Out::Cast)
      .doc("self / other, rounded towards zero ('trunc') or minus infinity ('floor').")
      .sparse(Sparse::Div)
      .composed_in_opmath(
          [](Value a, Value b, std::optional<std::string> mode) { return rounded_quotient(a, b, mode); })
      .vjp(own_derivative(quotient_derivative))
      .samples({{floats(3, 5), floats(5).in(0.5, 2), "floor"},
                {ints(4).in(-9, 9), ints(4).in(2, 4), "trunc"},
                {floats(2), floats(1).in(1, 2), ir::Arg()}});
  t.op("aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor")
      .out(Out::Cast)
      .doc("self / other, rounded towards zero ('trunc') or minus infinity ('floor').")
      .sparse(Sparse::Div)
      .composed_in_opmath(
          [](Value a, Number b, std::optional<std::string> mode) { return rounded_quotient(a, b, mode); })
      .vjp(own_derivative([](const Saved& s) {
        if (!s.args[2].is_none()) return std::vector<Value>{};
        return std::vector<Value>{s.ct() / conj(constant_like(s.ct(), Number(s.args[1])))};
      }))
      .samples({{floats(3, 5), 0.7, "floor"}, {ints(4).in(-9, 9), 2, "trunc"}, {floats(2), 3, ir::Arg()}});
  t.alias("aten::divide.Tensor", "aten::div.Tensor");
  t.alias("aten::divide.Scalar", "aten::div.Scalar");
  t.alias("aten::divide.Tensor_mode", "aten::div.Tensor_mode");
  t.alias("aten::divide.Scalar_mode", "aten::div.Scalar_mode");
  t.alias("aten::true_divide.Tensor", "aten::div.Tensor");
  t.alias("aten::true_divide.Scalar", "aten::div.Scalar");

  t.op("aten::floor_divide(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The quotient rounded to minus infinity.")
      .composed_in_opmath([](Value a, Value b) { return floor_divide(a, b); })
      .vjp(zero_derivative())
      .samples({{floats(3, 5), floats(5).in(0.5, 2)}, {ints(4).in(-9, 9), ints(4).in(2, 4)}});
  t.op("aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc("The quotient rounded to minus infinity.")
      .composed_in_opmath([](Value a, Number b) { return floor_divide(a, b); })
      .vjp(zero_derivative())
      .samples({{floats(3, 5), 0.75}, {ints(4).in(-9, 9), -2}});
}

void add_remainders(Table& t) {
  t.op("aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("self - other * floor(self / other): the sign of other.")
      .composed_in_opmath([](Value a, Value b) { return remainder(a, b); })
      .samples({{floats(3, 5), floats(5).in(0.5, 2)}, {ints(4).in(-9, 9), ints(4).in(2, 4)}});
  t.op("aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc("self - other * floor(self / other): the sign of other.")
      .composed_in_opmath([](Value a, Number b) { return remainder(a, b); })
      .samples({{floats(3, 5), 0.75}, {ints(4).in(-9, 9), -4}});
  t.op("aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
      .doc("self - other * floor(self / other): the sign of other.")
      .composed_in_opmath([](Number a, Value b) {
        auto [y, x] = promoted(b, a);
        return remainder(x, b);
      })
      .samples({{2.5, floats(5).in(0.5, 2)}, {7, ints(4).in(2, 4)}});
  t.op("aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("C's fmod: the sign of self.")
      .composed_in_opmath([](Value a, Value b) { return c_remainder(a, b); })
      .samples({{floats(3, 5), floats(5).in(0.5, 2)}, {ints(4).in(-9, 9), ints(4).in(2, 4)}});
  t.op("aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc("C's fmod: the sign of self.")
      .composed_in_opmath([](Value a, Number b) { return c_remainder(a, b); })
      .samples({{floats(3, 5), 0.75}, {ints(4).in(-9, 9), -4}});
}

void check_interpolated(Value a) {
  BRASA_CHECK(!is_integral(dtype_of(a), true), "\"lerp\" not implemented for ", name(dtype_of(a)));
}

void add_combinations(Table& t) {
  t.op("aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor")
      .doc("self + weight * (end - self), from the nearer end so that weight 1 gives end exactly.")
      .composed_in_opmath([](Value a, Value b, Value w) {
        check_interpolated(a);
        BRASA_CHECK(rank_of(w) == 0 || dtype_of(w) == dtype_of(a), "lerp: expected dtype ", name(dtype_of(a)),
                    " for `weight` but got dtype ", name(dtype_of(w)));
        Value d = b - a;
        return where(lt(abs(w), 0.5), a + w * d, b - d * (1 - w));
      })
      .one_dtype({"self", "end"})
      .samples({{floats(3, 5), floats(5), floats(3, 1).in(0, 1)}, {floats(2), floats(2), floats(1)}});
  t.op("aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor")
      .out(Out::Cast)
      .doc("self + weight * (end - self).")
      .composed_in_opmath([](Value a, Value b, Number w) {
        check_interpolated(a);
        Value d = b - a;
        if (w.is_value()) {
          Value v = w.arg().get<Value>();
          return where(lt(abs(v), 0.5), a + w * d, b - d * Number(1 - v));
        }
        return std::abs(w.as_double()) < 0.5 ? a + w * d : b - d * (1 - w.as_double());
      })
      .one_dtype({"self", "end"})
      .samples({{floats(3, 5), floats(5), 0.25}, {floats(2), floats(2), 0.75}});
  t.op("aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
      .out(Out::Cast)
      .doc("self + value * tensor1 * tensor2.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed_in_opmath([](Value x, Value a, Value b, Number value) {
        std::array<Value, 3> v = of_common_dtype(x, a, b);
        return v[0] + (value.is(1) ? v[1] : v[1] * value) * v[2];
      })
      .samples({{floats(3, 5), floats(5), floats(3, 1), 0.5}, {ints(3), ints(3), ints(3), 2}});
  t.op("aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
      .out(Out::Cast)
      .doc("self + value * tensor1 / tensor2.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed_in_opmath([](Value x, Value a, Value b, Number value) {
        BRASA_CHECK(
            !is_integral(dtype_of(a), true) || !is_integral(dtype_of(b), true),
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
            "division of tensor1 and tensor2. Got ",
            type_of(a), " and ", type_of(b));
        std::array<Value, 3> v = of_common_dtype(x, a, b);
        return v[0] + (value.is(1) ? v[1] : v[1] * value) / v[2];
      })
      .samples({{floats(3, 5), floats(5), floats(3, 1).in(0.5, 2), 0.5}});
}

void check_condition(Value c) {
  BRASA_CHECK(dtype_of(c) == DType::Bool || dtype_of(c) == DType::UInt8,
              "where expected condition to be a boolean tensor, but got a tensor with dtype ", name(dtype_of(c)));
}

void add_where(Table& t) {
  t.op("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor")
      .doc("self where the condition holds, else other.")
      .composed([](Value c, Value a, Value b) {
        check_condition(c);
        return where(c, a, b);
      })
      .samples(
          {{bools(3, 5), floats(5), floats(3, 1)}, {bools(1), floats(4), ints(4)}, {bools(0), floats(0), floats(1)}});
  t.op("aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
      .doc("self where the condition holds, else other.")
      .composed([](Value c, Number a, Value b) {
        check_condition(c);
        auto [y, x] = promoted(b, a);
        return where(c, x, y);
      })
      .samples({{bools(3, 5), 1.5, floats(5)}});
  t.op("aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
      .doc("self where the condition holds, else other.")
      .composed([](Value c, Value a, Number b) {
        check_condition(c);
        auto [x, y] = promoted(a, b);
        return where(c, x, y);
      })
      .samples({{bools(3, 5), floats(5), 0}});
  t.op("aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
      .doc("self where the condition holds, else other.")
      .composed([](Value c, Number a, Number b) {
        check_condition(c);
        auto type = [](const Number& n) { return is_floating(n.dtype()) ? DType::Float32 : n.dtype(); };
        DType t = promote(type(a), type(b));
        return where(c, scalar(a, t), scalar(b, t));
      })
      .samples({{bools(3, 5), 1, 0.5}, {bools(2), 1, 2}});
}

}  // namespace

void add_arithmetic(Table& t) {
  add_sums(t);
  add_products(t);
  add_remainders(t);
  add_combinations(t);
  add_where(t);
}

}  // namespace brasa::ops
