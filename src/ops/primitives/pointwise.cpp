#include <algorithm>
#include <cmath>

#include "ops/algebra.h"
#include "ops/combiner.h"
#include "ops/complex.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using Unary = double (*)(double);
using UnaryInt = int64_t (*)(int64_t);
using Binary = double (*)(double, double);
using BinaryInt = int64_t (*)(int64_t, int64_t);
using C = std::complex<double>;
using UnaryComplex = C (*)(C);
using BinaryComplex = C (*)(C, C);

// Dtypes that a composition does not bring together are a caller's mistake: a gradient of another dtype than what it is of.
void check_one_dtype(const Type& a, const Type& b) {
  BRASA_CHECK(a.dtype == b.dtype, "expected operands of one dtype, got ", a, " and ", b);
}

std::vector<Type> same_type(const Args& args) {
  Type t = operand(args, 0);
  t.weak = false;
  for (size_t i = 1; i < args.size(); ++i) {
    check_one_dtype(t, operand(args, i));
    BRASA_ASSERT(operand(args, i).shape == t.shape, "operands ", t, " and ", operand(args, i));
  }
  return {t};
}

std::vector<Type> bool_type(const Args& args) {
  Type t = same_type(args)[0];
  t.dtype = DType::Bool;
  return {t};
}

// Floating and complex elements are computed in double and rounded once, integers in 64 bits and wrapped. A null function means that
// the primitive is not defined there.
Eval unary_eval(Unary f, UnaryInt g, UnaryComplex h) {
  return [f, g, h](const Node& n, std::span<const Array* const> in) {
    Array out = result_array(n);
    const Array& x = *in[0];
    if (is_complex(x.dtype)) {
      BRASA_CHECK(h, n.op->name(), " is not defined for ", name(x.dtype));
      for (int64_t i = 0; i < out.numel(); ++i) set_complex(out, i, h(get_complex(x, i)));
      return std::vector<Array>{std::move(out)};
    }
    bool integer = by_int(x.dtype);
    BRASA_CHECK(integer ? g != nullptr : f != nullptr, n.op->name(), " is not defined for ", name(x.dtype));
    for (int64_t i = 0; i < out.numel(); ++i) integer ? set_int(out, i, g(get_int(x, i))) : set(out, i, f(get(x, i)));
    return std::vector<Array>{std::move(out)};
  };
}

Eval binary_eval(Binary f, BinaryInt g, BinaryComplex h) {
  return [f, g, h](const Node& n, std::span<const Array* const> in) {
    Array out = result_array(n);
    const Array &x = *in[0], &y = *in[1];
    if (is_complex(x.dtype)) {
      BRASA_CHECK(h, n.op->name(), " is not defined for ", name(x.dtype));
      for (int64_t i = 0; i < out.numel(); ++i) set_complex(out, i, h(get_complex(x, i), get_complex(y, i)));
      return std::vector<Array>{std::move(out)};
    }
    bool integer = by_int(x.dtype);
    BRASA_CHECK(integer ? g != nullptr : f != nullptr, n.op->name(), " is not defined for ", name(x.dtype));
    for (int64_t i = 0; i < out.numel(); ++i)
      integer ? set_int(out, i, g(get_int(x, i), get_int(y, i))) : set(out, i, f(get(x, i), get(y, i)));
    return std::vector<Array>{std::move(out)};
  };
}

// The type of a primitive that is given for these kinds of numbers; a row that asks for another one is told so when its graph is built.
auto type_if(std::string name, bool real, bool integer, bool complex) {
  return [=](const Args& args) {
    DType t = operand(args, 0).dtype;
    BRASA_CHECK(is_complex(t) ? complex : by_int(t) ? integer : real, name, " is not defined for ", brasa::name(t));
    return same_type(args);
  };
}

using UnaryPartial = Value (*)(Value x, Value out);

void unary(Table& t, const char* name, int work, Unary f, UnaryInt g, UnaryPartial partial, UnaryComplex h = nullptr) {
  auto row =
      t.prim(str(name, "(Tensor x) -> Tensor")).pointwise(work).type(type_if(name, f, g, h)).eval(unary_eval(f, g, h));
  if (partial)
    row.partial([partial](size_t, std::span<const Value> in, Value out) { return partial(in[0], out); });
  else
    row.no_gradient();
}

using BinaryPartial = Value (*)(size_t operand, Value a, Value b, Value out);

RowBuilder binary(Table& t, const char* name, int work, Binary f, BinaryInt g, BinaryPartial partial,
                  BinaryComplex h = nullptr) {
  auto row = t.prim(str(name, "(Tensor a, Tensor b) -> Tensor"))
                 .pointwise(work)
                 .type(type_if(name, f, g, h))
                 .eval(binary_eval(f, g, h));
  if (partial)
    row.partial([partial](size_t i, std::span<const Value> in, Value out) { return partial(i, in[0], in[1], out); });
  else
    row.no_gradient();
  return row;
}

RowBuilder comparison(Table& t, const char* name, Binary f, BinaryInt g, bool complex = false) {
  return t.prim(str(name, "(Tensor a, Tensor b) -> Tensor"))
      .pointwise()
      .type(bool_type)
      .no_gradient()
      .eval([f, g, complex](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        if (is_complex(in[0]->dtype)) {
          BRASA_CHECK(complex, n.op->name(), " is not defined for ", brasa::name(in[0]->dtype));
          bool equal = g(0, 0) != 0;
          for (int64_t i = 0; i < out.numel(); ++i)
            set_int(out, i, (get_complex(*in[0], i) == get_complex(*in[1], i)) == equal);
          return std::vector<Array>{std::move(out)};
        }
        bool integer = by_int(in[0]->dtype);
        for (int64_t i = 0; i < out.numel(); ++i)
          set_int(out, i, integer ? g(get_int(*in[0], i), get_int(*in[1], i)) : f(get(*in[0], i), get(*in[1], i)) != 0);
        return std::vector<Array>{std::move(out)};
      });
}

Value zero(Value x) { return zeros_like(x); }

double digamma(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (x < 0) {
    if (x == std::floor(x)) return NAN;
    return digamma(1 - x) - M_PI / std::tan(M_PI * (x - std::floor(x)));
  }
  double r = 0;
  for (; x < 10; ++x) r -= 1 / x;
  double y = 1 / (x * x);
  // Asymptotic series with Bernoulli numbers, Abramowitz & Stegun 6.3.18.
  return r + std::log(x) - 0.5 / x -
         y * (1. / 12 -
              y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y * (1. / 132 - y * (691. / 32760 - y / 12))))));
}

double erfinv(double y) {
  if (!(std::fabs(y) <= 1)) return NAN;
  if (std::fabs(y) == 1) return std::copysign(INFINITY, y);
  // Giles's central starting value (2010), then Newton's steps with Halley's correction on erf or, in the tails, erfc.
  double w = -std::log1p(-y * y);
  double x = std::copysign(std::sqrt(std::max(0.0, w)) * (w < 5 ? 0.9 : 1.0), y);
  if (std::fabs(y) < 1e-8) return y * std::sqrt(M_PI) / 2;
  for (int i = 0; i < 60; ++i) {
    double error =
        std::fabs(y) < 0.5 ? std::erf(x) - y : std::copysign(1.0, y) * ((1 - std::fabs(y)) - std::erfc(std::fabs(x)));
    double step = error / (2 / std::sqrt(M_PI) * std::exp(-x * x));
    double next = x - step / (1 + x * step);
    if (!(std::fabs(next - x) > 1e-17 * std::fabs(x))) break;
    x = next;
  }
  return x;
}

// ψ′ by reflection to x >= 0.5, six steps of its recurrence, and the asymptotic series of Abramowitz & Stegun 6.4.12.
Value trigamma(Value x) {
  Value low = lt(x, 0.5);
  Value y = where(low, 1 - x, x);
  Value r = zeros_like(x);
  for (int i = 0; i < 6; ++i) {
    r = r + 1 / (y * y);
    y = y + 1;
  }
  Value w = 1 / (y * y);
  r = r + (1 + 1 / (2 * y) + w * (1. / 6 - w * (1. / 30 - w * (1. / 42 - w / 30)))) / y;
  Value s = M_PI / sin(M_PI * where(low, x, constant_like(x, 0.5)));
  return where(low, s * s - r, r);
}

// By the formula alone: what a product of infinities is, its parts say.
C complex_product(C a, C b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

int64_t int_pow(int64_t a, int64_t e) {
  if (e < 0) return a == 1 ? 1 : a == -1 ? (e & 1 ? -1 : 1) : 0;
  uint64_t r = 1, base = static_cast<uint64_t>(a);
  for (; e; e >>= 1, base *= base)
    if (e & 1) r *= base;
  return static_cast<int64_t>(r);
}

// A table, one row a primitive.
// clang-format off
// e^z - 1 without the ones that cancel near 0.
C expm1_of(C z) {
  double half = std::sin(z.imag() / 2), real = std::expm1(z.real());
  return {z.imag() == 0 ? real : real * std::cos(z.imag()) - 2 * half * half, std::exp(z).imag()};
}

void add_unary(Table& t) {
  constexpr double two_over_sqrt_pi = 1.1283791670955126;
  constexpr double ln2 = 0.69314718055994531, ln10 = 2.3025850929940457;
  unary(t, "neg", 1, [](double x) { return -x; }, [](int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); },
        [](Value x, Value) { return constant_like(x, -1); }, [](C z) { return -z; });
  unary(t, "abs", 1, [](double x) { return std::fabs(x); },
        [](int64_t x) { return x < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x; },
        [](Value x, Value) { return prim::unary("sign", x); });
  unary(t, "sign", 1, [](double x) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); },
        [](int64_t x) { return static_cast<int64_t>((x > 0) - (x < 0)); }, [](Value x, Value) { return zero(x); });
  auto same = [](int64_t x) { return x; };
  auto flat = [](Value x, Value) { return zero(x); };
  unary(t, "floor", 1, [](double x) { return std::floor(x); }, same, flat);
  unary(t, "ceil", 1, [](double x) { return std::ceil(x); }, same, flat);
  unary(t, "round", 1, [](double x) { return std::nearbyint(x); }, same, flat);
  unary(t, "trunc", 1, [](double x) { return std::trunc(x); }, same, flat);
  unary(t, "exp", 10, [](double x) { return std::exp(x); }, nullptr, [](Value, Value y) { return y; }, [](C z) { return std::exp(z); });
  unary(t, "exp2", 8, [](double x) { return std::exp2(x); }, nullptr, [](Value, Value y) { return y * ln2; }, [](C z) { return std::exp(z * M_LN2); });
  unary(t, "expm1", 12, [](double x) { return std::expm1(x); }, nullptr, [](Value, Value y) { return y + 1; }, expm1_of);
  unary(t, "log", 12, [](double x) { return std::log(x); }, nullptr, [](Value x, Value) { return 1 / x; }, [](C z) { return std::log(z); });
  unary(t, "log2", 12, [](double x) { return std::log2(x); }, nullptr, [](Value x, Value) { return 1 / (x * ln2); }, [](C z) { return std::log(z) / M_LN2; });
  unary(t, "log10", 12, [](double x) { return std::log10(x); }, nullptr, [](Value x, Value) { return 1 / (x * ln10); }, [](C z) { return std::log10(z); });
  unary(t, "log1p", 14, [](double x) { return std::log1p(x); }, nullptr, [](Value x, Value) { return 1 / (x + 1); }, [](C z) { return std::log(1.0 + z); });
  unary(t, "sin", 14, [](double x) { return std::sin(x); }, nullptr, [](Value x, Value) { return cos(x); }, [](C z) { return std::sin(z); });
  unary(t, "cos", 14, [](double x) { return std::cos(x); }, nullptr, [](Value x, Value) { return -sin(x); }, [](C z) { return std::cos(z); });
  unary(t, "tan", 20, [](double x) { return std::tan(x); }, nullptr, [](Value, Value y) { return 1 + y * y; }, [](C z) { return std::tan(z); });
  unary(t, "asin", 16, [](double x) { return std::asin(x); }, nullptr, [](Value x, Value) { return rsqrt(1 - x * x); }, [](C z) { return std::asin(z); });
  unary(t, "acos", 16, [](double x) { return std::acos(x); }, nullptr, [](Value x, Value) { return -rsqrt(1 - x * x); }, [](C z) { return std::acos(z); });
  unary(t, "atan", 16, [](double x) { return std::atan(x); }, nullptr, [](Value x, Value) { return 1 / (x * x + 1); }, [](C z) { return std::atan(z); });
  unary(t, "sinh", 16, [](double x) { return std::sinh(x); }, nullptr,
        [](Value x, Value) { return prim::unary("cosh", x); }, [](C z) { return std::sinh(z); });
  unary(t, "cosh", 16, [](double x) { return std::cosh(x); }, nullptr,
        [](Value x, Value) { return prim::unary("sinh", x); }, [](C z) { return std::cosh(z); });
  unary(t, "tanh", 14, [](double x) { return std::tanh(x); }, nullptr, [](Value, Value y) { return 1 - y * y; }, [](C z) { return std::tanh(z); });
  unary(t, "asinh", 20, [](double x) { return std::asinh(x); }, nullptr, [](Value x, Value) { return rsqrt(x * x + 1); }, [](C z) { return std::asinh(z); });
  unary(t, "acosh", 20, [](double x) { return std::acosh(x); }, nullptr, [](Value x, Value) { return rsqrt(x * x - 1); }, [](C z) { return std::acosh(z); });
  unary(t, "atanh", 20, [](double x) { return std::atanh(x); }, nullptr, [](Value x, Value) { return 1 / (1 - x * x); }, [](C z) { return std::atanh(z); });
  unary(t, "sqrt", 4, [](double x) { return std::sqrt(x); }, nullptr, [](Value, Value y) { return 0.5 / y; }, [](C z) { return std::sqrt(z); });
  unary(t, "rsqrt", 4, [](double x) { return 1 / std::sqrt(x); }, nullptr, [](Value, Value y) { return -0.5 * (y * y * y); }, [](C z) { return 1.0 / std::sqrt(z); });
  unary(t, "erf", 16, [](double x) { return std::erf(x); }, nullptr,
        [](Value x, Value) { return two_over_sqrt_pi * exp(-(x * x)); });
  unary(t, "erfc", 20, [](double x) { return std::erfc(x); }, nullptr,
        [](Value x, Value) { return -two_over_sqrt_pi * exp(-(x * x)); });
  unary(t, "erfinv", 30, erfinv, nullptr, [](Value, Value y) { return 1 / two_over_sqrt_pi * exp(y * y); });
  unary(t, "lgamma", 40, [](double x) { return std::lgamma(x); }, nullptr,
        [](Value x, Value) { return prim::unary("digamma", x); });
  unary(t, "digamma", 40, digamma, nullptr, [](Value x, Value) { return trigamma(x); });
  t.prim("bit_not(Tensor x) -> Tensor")
      .doc("Flips every bit; of a bool the truth value.")
      .pointwise()
      .no_gradient()
      .type(same_type)
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        BRASA_CHECK(by_int(out.dtype), "prim::bit_not is not defined for ", name(out.dtype));
        bool truth = out.dtype == DType::Bool;
        for (int64_t i = 0; i < out.numel(); ++i) set_int(out, i, truth ? !get_int(*in[0], i) : ~get_int(*in[0], i));
        return std::vector<Array>{std::move(out)};
      });
}

// A tie gives each operand half, as PyTorch's maximum does. The operands alone are compared: computed again for backward, they may be
// rounded in another way than where the result was.
Value part_of_extremum(size_t i, Value a, Value b, Value (*beyond)(Value, Value)) {
  Value mine = i == 0 ? a : b, other = i == 0 ? b : a;
  Value with_nan = where(ne(other, other), zero(a), where(ne(mine, mine), constant_like(a, 1), zero(a)));
  return where(eq(a, b), constant_like(a, 0.5), where(beyond(mine, other), constant_like(a, 1), with_nan));
}

void add_binary(Table& t) {
  binary(t, "add", 1, [](double a, double b) { return a + b; },
         [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); },
         [](size_t, Value a, Value, Value) { return constant_like(a, 1); }, [](C a, C b) { return a + b; }).symbolic([](Expr a, Expr b) -> std::optional<Expr> { return a + b; }).commutative();
  binary(t, "sub", 1, [](double a, double b) { return a - b; },
         [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); },
         [](size_t i, Value a, Value, Value) { return constant_like(a, i == 0 ? 1 : -1); }, [](C a, C b) { return a - b; }).symbolic([](Expr a, Expr b) -> std::optional<Expr> { return a - b; });
  binary(t, "mul", 1, [](double a, double b) { return a * b; },
         [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); },
         [](size_t i, Value a, Value b, Value) { return i == 0 ? b : a; }, complex_product).symbolic([](Expr a, Expr b) -> std::optional<Expr> { return a * b; }).commutative();
  // Integer division truncates; by 0 it gives 0, so that no kernel traps.
  binary(t, "div", 4, [](double a, double b) { return a / b; },
         [](int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b; },
         [](size_t i, Value, Value b, Value out) { return i == 0 ? 1 / b : -(out / b); }, [](C a, C b) { return a / b; }).symbolic([](Expr a, Expr b) -> std::optional<Expr> {
    if (a->min < 0 || b->min < 1) return std::nullopt;  // truncation is the floor where nothing is negative
    return ir::floordiv(a, b);
  });
  binary(t, "rem", 10, [](double a, double b) { return std::fmod(a, b); }, [](int64_t a, int64_t b) { return b == 0 || b == -1 ? int64_t{0} : a % b; },
         [](size_t i, Value a, Value b, Value) {
           return i == 0 ? constant_like(a, 1) : -prim::unary("trunc", a / b);
         }).symbolic([](Expr a, Expr b) -> std::optional<Expr> {
    if (a->min < 0 || b->min < 1) return std::nullopt;  // truncation is the floor where nothing is negative
    return ir::mod(a, b);
  });
  binary(t, "pow", 30, [](double a, double b) { return std::pow(a, b); }, int_pow, [](size_t i, Value a, Value b, Value out) {
    // d/da a^b = b a^(b-1), and 0 for b = 0; d/db a^b = a^b ln a, and 0 for a = 0 with b >= 0.
    if (i == 0) return where(eq(b, 0), zero(a), b * pointwise("pow", a, b - 1));
    return where(logical_and(eq(a, 0), ge(real(b), 0)), zero(a), out * log(a));
  }, [](C a, C b) { return std::pow(a, b); });
  binary(t, "atan2", 20, [](double a, double b) { return std::atan2(a, b); }, nullptr, [](size_t i, Value a, Value b, Value) {
    Value r = 1 / (a * a + b * b);
    return i == 0 ? b * r : -(a * r);
  });
  binary(t, "max", 1, [](double a, double b) { return combine(Combiner::Max, a, b); }, [](int64_t a, int64_t b) { return std::max(a, b); },
         [](size_t i, Value a, Value b, Value) { return part_of_extremum(i, a, b, gt); }).commutative();
  binary(t, "min", 1, [](double a, double b) { return combine(Combiner::Min, a, b); }, [](int64_t a, int64_t b) { return std::min(a, b); },
         [](size_t i, Value a, Value b, Value) { return part_of_extremum(i, a, b, lt); }).commutative();
  binary(t, "nextafter", 1, [](double a, double b) { return std::nextafter(a, b); }, nullptr, [](size_t i, Value a, Value b, Value) {
    return i == 0 ? convert(ne(a, b), dtype_of(a)) : Value{};
  }).eval([](const Node& n, std::span<const Array* const> in) {
    Array out = result_array(n);
    bool single = in[0]->dtype == DType::Float32;
    for (int64_t i = 0; i < out.numel(); ++i) {
      double a = get(*in[0], i), b = get(*in[1], i);
      set(out, i, single ? std::nextafter(static_cast<float>(a), static_cast<float>(b)) : std::nextafter(a, b));
    }
    return std::vector<Array>{std::move(out)};
  });
  binary(t, "bit_and", 1, nullptr, [](int64_t a, int64_t b) { return a & b; }, nullptr).commutative();
  binary(t, "bit_or", 1, nullptr, [](int64_t a, int64_t b) { return a | b; }, nullptr).commutative();
  binary(t, "bit_xor", 1, nullptr, [](int64_t a, int64_t b) { return a ^ b; }, nullptr).commutative();
  comparison(t, "eq", [](double a, double b) { return double(a == b); }, [](int64_t a, int64_t b) { return int64_t(a == b); }, true).commutative().any_dtype();
  comparison(t, "ne", [](double a, double b) { return double(a != b); }, [](int64_t a, int64_t b) { return int64_t(a != b); }, true).commutative().any_dtype();
  comparison(t, "lt", [](double a, double b) { return double(a < b); }, [](int64_t a, int64_t b) { return int64_t(a < b); });
  comparison(t, "le", [](double a, double b) { return double(a <= b); }, [](int64_t a, int64_t b) { return int64_t(a <= b); });
  comparison(t, "gt", [](double a, double b) { return double(a > b); }, [](int64_t a, int64_t b) { return int64_t(a > b); });
  comparison(t, "ge", [](double a, double b) { return double(a >= b); }, [](int64_t a, int64_t b) { return int64_t(a >= b); });
}
// clang-format on

// Shifts need the width: a distance outside [0, width) gives 0, or the sign for an arithmetic right shift.
Eval shift_eval(bool left) {
  return [left](const Node& n, std::span<const Array* const> in) {
    Array out = result_array(n);
    BRASA_CHECK(is_integral(out.dtype), n.op->name(), " is not defined for ", name(out.dtype));
    int64_t width = 8 * size_of(out.dtype);
    for (int64_t i = 0; i < out.numel(); ++i) {
      int64_t a = get_int(*in[0], i), b = get_int(*in[1], i);
      bool outside = b < 0 || b >= width;
      int64_t r = outside ? (left    ? 0
                             : a < 0 ? -1
                                     : 0)
                  : left  ? static_cast<int64_t>(static_cast<uint64_t>(a) << b)
                          : a >> b;
      set_int(out, i, r);
    }
    return std::vector<Array>{std::move(out)};
  };
}

std::vector<Type> part_type(const Args& args) {
  BRASA_ASSERT(is_complex(operand(args, 0).dtype), "a part of ", operand(args, 0));
  return {{real_part_of(operand(args, 0).dtype), operand(args, 0).shape, false}};
}
Eval part_eval(bool imaginary) {
  return [imaginary](const Node& n, std::span<const Array* const> in) {
    Array out = result_array(n);
    for (int64_t i = 0; i < out.numel(); ++i) {
      C z = get_complex(*in[0], i);
      set(out, i, imaginary ? z.imag() : z.real());
    }
    return std::vector<Array>{std::move(out)};
  };
}

void add_others(Table& t) {
  for (bool left : {true, false})
    t.prim(str(left ? "shl" : "shr", "(Tensor a, Tensor b) -> Tensor"))
        .pointwise()
        .type(same_type)
        .no_gradient()
        .eval(shift_eval(left));

  t.prim("select(Tensor condition, Tensor a, Tensor b) -> Tensor")
      .doc("a where the condition holds, else b.")
      .pointwise()
      .any_dtype()
      .type([](const Args& args) {
        Type t = operand(args, 1);
        t.weak = false;
        check_one_dtype(t, operand(args, 2));
        BRASA_ASSERT(operand(args, 0).dtype == DType::Bool && operand(args, 0).shape == t.shape &&
                         operand(args, 2).shape == t.shape,
                     operand(args, 0), operand(args, 1), operand(args, 2));
        return std::vector<Type>{t};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        for (int64_t i = 0; i < out.numel(); ++i) copy_element(out, i, get_int(*in[0], i) ? *in[1] : *in[2], i);
        return std::vector<Array>{std::move(out)};
      })
      .transposed([](size_t i, const Node& n, Value ct) {
        if (i == 0) return Value{};
        Value c = n.arg<Value>(0);
        return i == 1 ? prim::select(c, ct, zero(ct)) : prim::select(c, zero(ct), ct);
      });

  auto with_dtype = [](const Args& args) {
    return std::vector<Type>{{args[1].get<DType>(), operand(args, 0).shape, false}};
  };
  t.prim("convert(Tensor x, ScalarType dtype) -> Tensor")
      .doc("Floating to integer truncates; to bool: is not 0; integers wrap.")
      .pointwise()
      .any_dtype()
      .type(with_dtype)
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        const Array& x = *in[0];
        for (int64_t i = 0; i < out.numel(); ++i) convert_element(out, i, x, i);
        return std::vector<Array>{std::move(out)};
      })
      .transposed([](size_t, const Node& n, Value ct) {
        DType from = dtype_of(n.arg<Value>(0));
        return is_floating(from) || is_complex(from) ? convert(ct, from) : Value{};
      });
  t.prim("real(Tensor x) -> Tensor")
      .doc("The real part of a complex number.")
      .pointwise()
      .type(part_type)
      .eval(part_eval(false))
      .transposed([](size_t, const Node&, Value ct) { return complex(ct, zero(ct)); });
  t.prim("imag(Tensor x) -> Tensor")
      .doc("The imaginary part of a complex number.")
      .pointwise()
      .type(part_type)
      .eval(part_eval(true))
      .transposed([](size_t, const Node&, Value ct) { return complex(zero(ct), ct); });
  t.prim("complex(Tensor real, Tensor imag) -> Tensor")
      .doc("The complex number of two parts.")
      .pointwise()
      .type([](const Args& args) {
        Type t = same_type(args)[0];
        t.dtype = complex_of(t.dtype);
        return std::vector<Type>{t};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        for (int64_t i = 0; i < out.numel(); ++i) set_complex(out, i, {get(*in[0], i), get(*in[1], i)});
        return std::vector<Array>{std::move(out)};
      })
      .transposed([](size_t i, const Node&, Value ct) { return i == 0 ? real(ct) : imag(ct); });
  t.prim("bitcast(Tensor x, ScalarType dtype) -> Tensor")
      .doc("The same bits as another dtype of the same width.")
      .pointwise()
      .any_dtype()
      .no_gradient()
      .type([with_dtype](const Args& args) {
        BRASA_ASSERT(size_of(args[1].get<DType>()) == size_of(operand(args, 0).dtype), "bitcast between widths");
        return with_dtype(args);
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = *in[0];
        out.dtype = n.types[0].dtype;
        return std::vector<Array>{std::move(out)};
      });

  t.prim("philox(Tensor seed, Tensor offset, Tensor index) -> Tensor")
      .doc(
          "A word of Philox4x32-10 (Salmon et al. 2011) under key seed: of each 64 indices the first 16 take word 0 of 16 "
          "blocks, the next 16 word 1 of the same; the counter is offset / 4 + index / 64 * 16 + index % 16.")
      .pointwise(40)
      .costly()  // ten rounds of multiplication, for a mask of few bytes
      .no_gradient()
      .type([](const Args& args) {
        BRASA_ASSERT(same_type(args)[0].dtype == DType::Int64, "philox of ", operand(args, 0));
        return std::vector<Type>{{DType::Int32, operand(args, 0).shape, false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        for (int64_t i = 0; i < out.numel(); ++i) {
          auto key = static_cast<uint64_t>(get_int(*in[0], i));
          auto index = static_cast<uint64_t>(get_int(*in[2], i));
          uint64_t block = static_cast<uint64_t>(get_int(*in[1], i)) / 4 + (index / 64 * 16 + index % 16);
          uint32_t c[4] = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
          auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
          for (int round = 0; round < 10; ++round) {
            uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
            uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
                                static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
            std::copy(next, next + 4, c);
            k0 += 0x9E3779B9;
            k1 += 0xBB67AE85;
          }
          set_int(out, i, static_cast<int32_t>(c[index / 16 % 4]));
        }
        return std::vector<Array>{std::move(out)};
      });
}

}  // namespace

void add_pointwise_primitives(Table& t) {
  add_unary(t);
  add_binary(t);
  add_others(t);
}

namespace prim {

Value unary(const char* name, Value x) { return call(str("prim::", name), {x}); }
Value binary(const char* name, Value a, Value b) { return call(str("prim::", name), {a, b}); }
Value select(Value c, Value a, Value b) { return call("prim::select", {c, a, b}); }
Value convert(Value x, DType dtype) {
  const Type& t = ir::type_of(x);
  return t.dtype == dtype && !t.weak ? x : call("prim::convert", {x, dtype});
}
Value bitcast(Value x, DType dtype) { return ir::type_of(x).dtype == dtype ? x : call("prim::bitcast", {x, dtype}); }
Value philox(Value seed, Value offset, Value index) { return call("prim::philox", {seed, offset, index}); }

}  // namespace prim
}  // namespace brasa::ops
