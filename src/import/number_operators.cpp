#include <algorithm>
#include <cmath>

#include <brasa/call.h>

#include "import/frame.h"
#include "support/error.h"
#include "support/lazy.h"
#include "tensor/recorder.h"

// Python's operators on numbers, what is asked about a tensor, and the checks of values and sizes.
namespace brasa::import {
namespace {

using ir::Expr;

bool whole(const Scalar& s) { return !s.isFloatingPoint() && !s.isComplex(); }
int64_t to_int(const Scalar& s) { return s.isBoolean() ? s.toBool() : s.toLong(); }
double to_double(const Scalar& s) { return whole(s) ? static_cast<double>(to_int(s)) : s.toDouble(); }

int64_t checked(bool overflow, int64_t v) {
  BRASA_CHECK(!overflow, "an integer that does not fit 64 bits");
  return v;
}
Scalar add(const Scalar& a, const Scalar& b) {
  if (!whole(a) || !whole(b)) return to_double(a) + to_double(b);
  int64_t v;
  bool overflow = __builtin_add_overflow(to_int(a), to_int(b), &v);
  return checked(overflow, v);
}
Scalar subtract(const Scalar& a, const Scalar& b) {
  if (!whole(a) || !whole(b)) return to_double(a) - to_double(b);
  int64_t v;
  bool overflow = __builtin_sub_overflow(to_int(a), to_int(b), &v);
  return checked(overflow, v);
}
Scalar multiply(const Scalar& a, const Scalar& b) {
  if (!whole(a) || !whole(b)) return to_double(a) * to_double(b);
  int64_t v;
  bool overflow = __builtin_mul_overflow(to_int(a), to_int(b), &v);
  return checked(overflow, v);
}
// Towards minus infinity, and the remainder has the divisor's sign.
Scalar floor_divide(const Scalar& a, const Scalar& b) {
  if (!whole(a) || !whole(b)) return std::floor(to_double(a) / to_double(b));
  int64_t x = to_int(a), y = to_int(b);
  BRASA_CHECK(y != 0 && !(x == INT64_MIN && y == -1), "a division of ", x, " by ", y);
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}
Scalar modulo(const Scalar& a, const Scalar& b) {
  if (!whole(a) || !whole(b)) {
    double r = std::fmod(to_double(a), to_double(b));
    return r != 0 && (r < 0) != (to_double(b) < 0) ? r + to_double(b) : r;
  }
  int64_t x = to_int(a), y = to_int(b);
  BRASA_CHECK(y != 0, "a division of ", x, " by 0");
  int64_t r = y == -1 ? 0 : x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
Scalar power(const Scalar& a, const Scalar& b) {
  if (!whole(a) || !whole(b) || to_int(b) < 0) return std::pow(to_double(a), to_double(b));
  Scalar out(int64_t{1});
  int64_t times = to_int(b);
  if (to_int(a) == 0 || to_int(a) == 1) return times == 0 ? Scalar(int64_t{1}) : Scalar(to_int(a));
  if (to_int(a) == -1) return times % 2 ? int64_t{-1} : int64_t{1};
  for (int64_t i = 0; i < times; ++i) out = multiply(out, a);  // An overflow ends it.
  return out;
}
template <class F>
Scalar compared(const Scalar& a, const Scalar& b, F f) {
  return whole(a) && whole(b) ? f(to_int(a), to_int(b)) : f(to_double(a), to_double(b));
}
template <class F>
Scalar bitwise(const Scalar& a, const Scalar& b, F f) {
  int64_t v = f(to_int(a), to_int(b));
  return a.isBoolean() && b.isBoolean() ? Scalar(v != 0) : Scalar(v);
}
int64_t shift_of(const Scalar& b) {
  BRASA_CHECK(to_int(b) >= 0 && to_int(b) < 63, "a shift by ", to_int(b));
  return to_int(b);
}

Scalar negated(const Scalar& a) { return subtract(whole(a) ? Scalar(int64_t{0}) : Scalar(-0.0), a); }

// An operation on numbers: what it gives for values, for integers that are expressions of sizes, and the operator that does it for tensors.
struct Rule {
  Scalar (*values)(const Scalar&, const Scalar&);
  std::optional<Expr> (*sizes)(Expr, Expr) = nullptr;
  const char* tensors = nullptr;
  bool one = false;  // takes one number, given twice
  /// Where a comparison of two integers, or what is made of truth values, holds: see Number.
  Expr (*compares)(const Expr&, const Expr&) = nullptr;
  Expr (*combines)(const Expr&, const Expr&) = nullptr;
};

Tensor as_operand(const Number& n, bool real) {
  DType dtype = real ? DType::Float64 : DType::Bool;
  if (n.varies()) return n.element(dtype);
  return call("aten::full", {IntArrayRef(), n.value}, {{"dtype", dtype}}).at(0);
}

Number combined(const Rule& rule, const Number& a, const Number& b) {
  Number out(rule.values(a.value, b.value));
  if (!a.varies() && !b.varies()) {
    if (a.size && b.size && whole(out.value) && !out.value.isBoolean())
      return Number(out.value.toLong(), Expr(out.value.toLong()), a.by);
    return out;
  }
  out.by = a.varies() ? a.by : b.by;
  out.of_values = a.of_values || b.of_values;
  if (rule.compares && a.size && b.size) out.holds = rule.compares(*a.size, *b.size);
  if (rule.combines && a.holds && b.holds) out.holds = rule.combines(*a.holds, *b.holds);
  if (a.size && b.size && rule.sizes) out.size = rule.sizes(*a.size, *b.size);
  if (out.size || !rule.tensors || (whole(out.value) && !out.value.isBoolean())) return out;
  bool real = !a.value.isBoolean() || !b.value.isBoolean();
  out.computed = std::make_shared<Number::Computed>();
  out.computed->make = [&rule, a, b, real] {
    std::vector<CallArg> operands;
    Tensor x = as_operand(a, real), y = rule.one ? Tensor() : as_operand(b, real);
    operands.emplace_back(x);
    if (!rule.one) operands.emplace_back(y);
    return call(rule.tensors, operands).at(0);
  };
  return out;
}

// ---- Real numbers that are quotients of integers: what they are rounded to is an integer of sizes, too.

constexpr double kExact = 0x1p20;  // products with sizes, which are below 2^32, are exact

// The factor as a quotient of which products with integers round down and up as they do in floating point. A fraction that is no sum of powers
// of 2 is tried with integers up to a million.
std::optional<std::pair<int64_t, int64_t>> fraction_of(double factor) {
  if (!(std::abs(factor) < kExact)) return std::nullopt;
  for (int64_t below = 1; below <= (1 << 20); below *= 2)
    if (double above = factor * static_cast<double>(below); above == std::floor(above) && std::abs(above) < kExact)
      return std::pair(static_cast<int64_t>(above), below);
  for (int64_t below = 3; below < 1000; ++below) {
    double above = std::nearbyint(factor * static_cast<double>(below));
    if (above / static_cast<double>(below) != factor || above < 1) continue;
    auto numerator = static_cast<int64_t>(above);
    for (int64_t n = 0; n < (1 << 20); ++n) {
      double product = factor * static_cast<double>(n);
      int64_t down = n * numerator / below;
      if (std::floor(product) != static_cast<double>(down) ||
          std::ceil(product) != static_cast<double>(down + (down * below != n * numerator)))
        return std::nullopt;
    }
    return std::pair(numerator, below);
  }
  return std::nullopt;
}

bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::optional<Number::Quotient> as_quotient(const Number& n) {
  if (n.quotient) return n.quotient;
  if (n.size) return Number::Quotient{*n.size, 1};
  if (n.varies() || !n.value.isFloatingPoint()) return std::nullopt;
  auto fraction = fraction_of(n.value.toDouble());
  return fraction ? std::optional(Number::Quotient{Expr(fraction->first), fraction->second}) : std::nullopt;
}

std::optional<Number::Quotient> product_of(const Number& a, const Number& b) {
  auto x = as_quotient(a), y = as_quotient(b);
  if (!x || !y || (x->above.is_constant() == y->above.is_constant())) return std::nullopt;
  if (x->above.is_constant()) std::swap(x, y);
  // What was rounded once is not exact any more.
  if (!power_of_two(x->below) || x->below > (1 << 20)) return std::nullopt;
  if (x->below != 1 && !power_of_two(y->below)) return std::nullopt;
  if (!power_of_two(y->below) && x->above->min < 0) return std::nullopt;
  return Number::Quotient{x->above * y->above, x->below * y->below};
}
std::optional<Number::Quotient> quotient_of(const Number& a, const Number& b) {
  if (!a.size || !b.size || !b.size->is_constant() || b.size->constant() <= 0) return std::nullopt;
  return Number::Quotient{*a.size, b.size->constant()};
}
std::optional<Number::Quotient> sum_of(const Number& a, const Number& b, int64_t sign) {
  auto x = as_quotient(a), y = as_quotient(b);
  if (!x || !y || !(power_of_two(x->below) || y->below == 1) || !(power_of_two(y->below) || x->below == 1))
    return std::nullopt;
  int64_t below = std::max(x->below, y->below);
  return Number::Quotient{x->above * Expr(below / x->below) + y->above * Expr(sign * (below / y->below)), below};
}

// A table's functions are of these kinds.
template <const Rule& R>
void binary(Frame& f, const Node& n) {
  f.set(n, 0, combined(R, f.exact_number(f.argument(n, 0)), f.exact_number(f.argument(n, 1))));
}
template <const Rule& R>
void unary(Frame& f, const Node& n) {
  Number a = f.exact_number(f.argument(n, 0));
  f.set(n, 0, combined(R, a, a));
}
// Of what may be a quotient.
template <const Rule& R, auto Of>
void real(Frame& f, const Node& n) {
  Number a = f.exact_number(f.argument(n, 0)), b = f.exact_number(f.argument(n, R.one ? 0 : 1)),
         out = combined(R, a, b);
  if (out.computed) out.quotient = Of(a, b);
  f.set(n, 0, std::move(out));
}
// To an integer.
template <double (*Round)(double), auto Of>
void round_to(Frame& f, const Node& n) {
  Number a = f.exact_number(f.argument(n, 0));
  if (whole(a.value)) return f.set(n, 0, a.value.isBoolean() ? Number(Scalar(to_int(a.value))) : a);
  Scalar value(static_cast<int64_t>(Round(a.value.toDouble())));
  f.set(n, 0, a.quotient ? Number(value.toLong(), Of(a.quotient->above, a.quotient->below), a.by) : Number(value));
}

Number known_size(const Frame& f, const Tensor& t, int64_t dim) {
  int64_t d = dim < 0 ? dim + t.dim() : dim;
  KnownSizes* r = f.known_sizes();
  return {t.size(dim), r ? r->size_of(t, d) : std::nullopt, r};
}
// The product of the sizes from a dimension on.
Number product_of_sizes(const Frame& f, const Tensor& t, int64_t first);

void size_of(Frame& f, const Node& n) {
  f.set(n, 0, known_size(f, f.tensor(f.argument(n, 0)), f.number(f.argument(n, 1)).toLong()));
}
void stride_of(Frame& f, const Node& n) {
  Tensor t = f.tensor(f.argument(n, 0));
  int64_t dim = f.number(f.argument(n, 1)).toLong();
  f.set(n, 0, t.is_contiguous() ? product_of_sizes(f, t, (dim < 0 ? dim + t.dim() : dim) + 1) : Scalar(t.stride(dim)));
}
void numel_of(Frame& f, const Node& n) { f.set(n, 0, product_of_sizes(f, f.tensor(f.argument(n, 0)), 0)); }
void offset_of(Frame& f, const Node& n) { f.set(n, 0, Scalar(f.tensor(f.argument(n, 0)).storage_offset())); }

// What a tensor's only element is when the recorded program runs; nothing where no such program is being recorded.
std::optional<Number> recorded_item(const Frame& f, const Tensor& t) {
  KnownSizes* sizes = f.known_sizes();
  Recorder* recorder = sizes ? sizes->recorder() : nullptr;
  if (!recorder || Recorder::current() != recorder || is_complex(t.scalar_type()) || t.numel() != 1)
    return std::nullopt;
  Number out(t.scalar_type() == kBool ? Scalar(true) : Scalar(1.0));
  if (is_integral(t.scalar_type(), false)) {
    auto integers = recorder->integers(t, "the number");
    if (!integers) return std::nullopt;
    const Recorder::Integer& i = integers->at(0);
    out = Number(i.example, sizes->named(i.name), sizes);
    if (!out.varies()) return out;
  }
  out.by = sizes;
  out.of_values = true;
  out.computed = std::make_shared<Number::Computed>();
  out.computed->made = t.reshape({}).clone();  // which no later write reaches
  return out;
}
void item(Frame& f, const Node& n) {
  Tensor t = f.tensor(f.argument(n, 0));
  std::optional<Number> recorded = recorded_item(f, t);
  f.set(n, 0, recorded ? *recorded : Number(t.item()));
}
void truth(Frame& f, const Node& n) { f.set(n, 0, Number(Scalar(truth_of(f.value(f.argument(n, 0)))))); }
void choose(Frame& f, const Node& n) {
  Number condition = f.exact_number(f.argument(n, 0));
  Value chosen = f.value(f.argument(n, truth_of(condition) ? 1 : 2));
  // Which one it is differs with sizes: what is left of it is its value.
  f.set(n, 0, condition.varies() ? Value(Number(number_of(chosen))) : chosen);
}

void nothing(Frame&, const Node&) {}
void assert_true(Frame& f, const Node& n) {
  std::string message = "an assertion of the program does not hold";
  for (const Argument& a : n.arguments)
    if (const auto* text = std::get_if<std::string>(&a.value)) message = *text;
  Value condition = f.value(f.argument(n, 0));
  const auto* number = std::get_if<Number>(&condition);
  if (number && number->by && number->holds) return number->by->require(*number->holds, message);
  if (!truth_of(condition)) fail(message);
}
void assert_metadata(Frame& f, const Node& n) {
  Tensor t = f.tensor(f.argument(n, 0));
  if (const Argument* a = f.named(n, "dtype"))
    if (const auto* dtype = std::get_if<DType>(&a->value))
      BRASA_CHECK(t.scalar_type() == *dtype, "a tensor of ", name(t.scalar_type()), ", expected ", name(*dtype));
  if (const Argument* a = f.named(n, "size"); a && std::holds_alternative<NumberList>(a->value)) {
    std::vector<int64_t> sizes;
    for (const Value& v : f.values(*a)) sizes.push_back(number_of(v).toLong());
    BRASA_CHECK(t.sizes() == sizes, "a tensor of sizes ", t.sizes(), ", expected ", sizes);
  }
}
// The least and the greatest that a number may be.
void check_range(Frame& f, const Node& n) {
  Number number = f.exact_number(f.argument(n, 0));
  auto bound = [&](const char* name) { return f.named(n, name) ? f.value(*f.named(n, name)) : Value(); };
  Value least = bound("min"), greatest = bound("max");
  if (number.by && number.size && !number.size->is_constant()) {
    auto require = [&](const Expr& e) { number.by->require(e, "a number of the program is outside of its range"); };
    if (std::holds_alternative<Number>(least)) require(*number.size - Expr(to_int(number_of(least))));
    if (std::holds_alternative<Number>(greatest)) require(Expr(to_int(number_of(greatest))) - *number.size);
    return;
  }
  int64_t v = to_int(number_of(number));
  bool low = std::holds_alternative<Number>(least) && v < to_int(number_of(least));
  bool high = std::holds_alternative<Number>(greatest) && v > to_int(number_of(greatest));
  BRASA_CHECK(!low && !high, "the number ", v, " is outside of its range");
}

const Handlers& aten() {
  static constinit Lazy<Handlers> kTable([] {
    return Handlers{
        {"sym_size.int", size_of},
        {"sym_stride.int", stride_of},
        {"sym_numel.default", numel_of},
        {"sym_storage_offset.default", offset_of},
        {"item.default", item},
        {"_local_scalar_dense.default", item},
        {"Bool.Tensor", truth},
        {"is_nonzero.default", truth},
        {"_assert_scalar.default", assert_true},
        {"_assert_async.default", assert_true},
        {"_assert_async.msg", assert_true},
        {"_assert_tensor_metadata.default", assert_metadata},
        {"sym_constrain_range.default", check_range},
        {"sym_constrain_range_for_size.default", check_range},
        {"_print.default", nothing},
    };
  });
  return *kTable;
}

// ---- The operations.

using Size = std::optional<Expr>;

// Divisors are greater than 0 where anything is divided.
bool divides(Expr e) { return e->min >= (e.is_constant() ? 1 : 0); }
Size power_of_size(Expr a, Expr times) {
  constexpr int64_t kMost = 8;
  if (!times.is_constant() || times.constant() < 0 || times.constant() > kMost) return std::nullopt;
  Expr out(1);
  for (int64_t i = 0; i < times.constant(); ++i) out = out * a;
  return out;
}
Size shifted_up(Expr a, Expr by) {
  return by.is_constant() && by->value >= 0 && by->value < 32 ? Size(a * Expr(int64_t{1} << by->value)) : std::nullopt;
}
Size shifted_down(Expr a, Expr by) {
  return by.is_constant() && by->value >= 0 && by->value < 32 ? Size(ir::floordiv(a, Expr(int64_t{1} << by->value)))
                                                              : std::nullopt;
}
Expr down(Expr above, int64_t below) { return ir::floordiv(above, Expr(below)); }
Expr up(Expr above, int64_t below) { return ir::ceildiv(above, Expr(below)); }
Size towards_zero(Expr above, int64_t below) { return above->min >= 0 ? Size(down(above, below)) : std::nullopt; }
Size to_nearest(Expr above, int64_t below) { return below == 1 ? Size(above) : std::nullopt; }

template <class F>
Scalar compare(const Scalar& a, const Scalar& b) {
  return compared(a, b, F());
}
template <class F>
Scalar bits(const Scalar& a, const Scalar& b) {
  return bitwise(a, b, F());
}

constexpr Rule kAdd{add, [](Expr a, Expr b) { return Size(a + b); }, "aten::add.Tensor"};
constexpr Rule kSub{subtract, [](Expr a, Expr b) { return Size(a - b); }, "aten::sub.Tensor"};
constexpr Rule kMul{multiply, [](Expr a, Expr b) { return Size(a * b); }, "aten::mul.Tensor"};
constexpr Rule kFloorDiv{floor_divide,
                         [](Expr a, Expr b) { return divides(b) ? Size(ir::floordiv(a, b)) : std::nullopt; },
                         "aten::floor_divide"};
constexpr Rule kMod{modulo, [](Expr a, Expr b) { return divides(b) ? Size(ir::mod(a, b)) : std::nullopt; },
                    "aten::remainder.Tensor"};
constexpr Rule kPow{power, power_of_size, "aten::pow.Tensor_Tensor"};
constexpr Rule kTrueDiv{[](const Scalar& a, const Scalar& b) { return Scalar(to_double(a) / to_double(b)); }, nullptr,
                        "aten::div.Tensor"};
Expr not_greater(const Expr& a, const Expr& b) { return b - a; }
Expr not_less(const Expr& a, const Expr& b) { return a - b; }
Expr less(const Expr& a, const Expr& b) { return b - a - Expr(1); }
Expr greater(const Expr& a, const Expr& b) { return a - b - Expr(1); }
Expr equal(const Expr& a, const Expr& b) { return ir::min(a - b, b - a); }
Expr different(const Expr& a, const Expr& b) { return ir::max(a - b, b - a) - Expr(1); }
Expr neither(const Expr& a, const Expr&) { return -a - Expr(1); }

constexpr Rule kEq{compare<std::equal_to<>>, nullptr, "aten::eq.Tensor", false, equal};
constexpr Rule kNe{compare<std::not_equal_to<>>, nullptr, "aten::ne.Tensor", false, different};
constexpr Rule kLt{compare<std::less<>>, nullptr, "aten::lt.Tensor", false, less};
constexpr Rule kLe{compare<std::less_equal<>>, nullptr, "aten::le.Tensor", false, not_greater};
constexpr Rule kGt{compare<std::greater<>>, nullptr, "aten::gt.Tensor", false, greater};
constexpr Rule kGe{compare<std::greater_equal<>>, nullptr, "aten::ge.Tensor", false, not_less};
constexpr Rule kAnd{bits<std::bit_and<>>, nullptr, "aten::logical_and", false, nullptr, ir::min};
constexpr Rule kOr{bits<std::bit_or<>>, nullptr, "aten::logical_or", false, nullptr, ir::max};
constexpr Rule kXor{bits<std::bit_xor<>>, nullptr, "aten::logical_xor"};
constexpr Rule kLeft{[](const Scalar& a, const Scalar& b) { return multiply(a, Scalar(int64_t{1} << shift_of(b))); },
                     shifted_up};
constexpr Rule kRight{[](const Scalar& a, const Scalar& b) { return Scalar(to_int(a) >> shift_of(b)); }, shifted_down};
constexpr Rule kNeg{[](const Scalar& a, const Scalar&) { return negated(a); }, [](Expr a, Expr) { return Size(-a); },
                    "aten::neg", true};
constexpr Rule kAbs{[](const Scalar& a, const Scalar&) { return to_double(a) < 0 ? negated(a) : a; },
                    [](Expr a, Expr) { return Size(ir::max(a, -a)); }, "aten::abs", true};
constexpr Rule kNot{[](const Scalar& a, const Scalar&) { return Scalar(!truth_of(Number(a))); },
                    nullptr,
                    "aten::logical_not",
                    true,
                    nullptr,
                    neither};
constexpr Rule kFloat{[](const Scalar& a, const Scalar&) { return Scalar(to_double(a)); }, nullptr, "aten::clone",
                      true};
constexpr Rule kSqrt{[](const Scalar& a, const Scalar&) { return Scalar(std::sqrt(to_double(a))); }, nullptr,
                     "aten::sqrt", true};
constexpr Rule kLog2{[](const Scalar& a, const Scalar&) { return Scalar(std::log2(to_double(a))); }, nullptr,
                     "aten::log2", true};
constexpr Rule kMax{[](const Scalar& a, const Scalar& b) { return compared(a, b, std::less<>()).toBool() ? b : a; },
                    [](Expr a, Expr b) { return Size(ir::max(a, b)); }, "aten::maximum"};
constexpr Rule kMin{[](const Scalar& a, const Scalar& b) { return compared(b, a, std::less<>()).toBool() ? b : a; },
                    [](Expr a, Expr b) { return Size(ir::min(a, b)); }, "aten::minimum"};

Number product_of_sizes(const Frame& f, const Tensor& t, int64_t first) {
  Number out(1, Expr(1), f.known_sizes());
  for (int64_t d = first; d < t.dim(); ++d) out = combined(kMul, out, known_size(f, t, d));
  return out;
}
void sum(Frame& f, const Node& n) {
  Number out(0, Expr(0), f.known_sizes());
  for (const Argument& a : n.arguments)
    for (const Value& v : f.values(a)) {
      const auto* number = std::get_if<Number>(&v);
      out = combined(kAdd, out, number ? *number : Number(number_of(v)));
    }
  f.set(n, 0, std::move(out));
}
void identity(Frame& f, const Node& n) { f.set(n, 0, f.exact_number(f.argument(n, 0))); }

std::optional<Number::Quotient> quotient_by_one(const Number& a, const Number&) { return as_quotient(a); }
std::optional<Number::Quotient> plus(const Number& a, const Number& b) { return sum_of(a, b, 1); }
std::optional<Number::Quotient> minus(const Number& a, const Number& b) { return sum_of(a, b, -1); }

// By the last part of the name; functions of `operator`, `math` and `torch`.
const Handlers& python() {
  static constinit Lazy<Handlers> kTable([] {
    return Handlers{
        {"add", real<kAdd, plus>},
        {"sub", real<kSub, minus>},
        {"mul", real<kMul, product_of>},
        {"floordiv", binary<kFloorDiv>},
        {"mod", binary<kMod>},
        {"pow", binary<kPow>},
        {"truediv", real<kTrueDiv, quotient_of>},
        {"eq", binary<kEq>},
        {"ne", binary<kNe>},
        {"lt", binary<kLt>},
        {"le", binary<kLe>},
        {"gt", binary<kGt>},
        {"ge", binary<kGe>},
        {"and_", binary<kAnd>},
        {"or_", binary<kOr>},
        {"xor", binary<kXor>},
        {"lshift", binary<kLeft>},
        {"rshift", binary<kRight>},
        {"neg", unary<kNeg>},
        {"pos", identity},
        {"abs", unary<kAbs>},
        {"not_", unary<kNot>},
        {"sym_not", unary<kNot>},
        {"trunc", round_to<std::trunc, towards_zero>},
        {"floor", round_to<std::floor, down>},
        {"ceil", round_to<std::ceil, up>},
        {"round", round_to<std::nearbyint, to_nearest>},
        {"sym_int", round_to<std::trunc, towards_zero>},
        {"sym_float", real<kFloat, quotient_by_one>},
        {"sym_max", binary<kMax>},
        {"sym_min", binary<kMin>},
        {"sym_sqrt", unary<kSqrt>},
        {"sqrt", unary<kSqrt>},
        {"log2", unary<kLog2>},
        {"sym_ite", choose},
        {"sym_sum", sum},
    };
  });
  return *kTable;
}

}  // namespace

Handler number_handler(const std::string& target) {
  if (Handler h = find(aten(), "torch.ops.aten.", target)) return h;
  if (target.starts_with("torch.ops.")) return nullptr;
  std::string_view last = std::string_view(target).substr(target.rfind('.') + 1);
  if (last.starts_with("_sym")) last.remove_prefix(1);
  return find(python(), last);
}

}  // namespace brasa::import
