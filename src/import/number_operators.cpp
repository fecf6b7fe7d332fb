#include <algorithm>
#include <cmath>

#include "import/frame.h"
#include "support/error.h"

// Python's operators on numbers, what is asked about a tensor, and the checks of values and sizes.
namespace brasa::import {
namespace {

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

Scalar rounded(const Scalar& a, double (*round)(double)) {
  return whole(a) ? a : Scalar(static_cast<int64_t>(round(a.toDouble())));
}
Scalar negated(const Scalar& a) { return subtract(whole(a) ? Scalar(int64_t{0}) : Scalar(-0.0), a); }

// A table's functions are of these two kinds.
template <auto F>
void binary(Frame& f, const Node& n) {
  f.set(n, 0, Scalar(F(f.number(f.argument(n, 0)), f.number(f.argument(n, 1)))));
}
template <auto F>
void unary(Frame& f, const Node& n) {
  f.set(n, 0, Scalar(F(f.number(f.argument(n, 0)))));
}

void size_of(Frame& f, const Node& n) {
  f.set(n, 0, Scalar(f.tensor(f.argument(n, 0)).size(f.number(f.argument(n, 1)).toLong())));
}
void stride_of(Frame& f, const Node& n) {
  f.set(n, 0, Scalar(f.tensor(f.argument(n, 0)).stride(f.number(f.argument(n, 1)).toLong())));
}
void numel_of(Frame& f, const Node& n) { f.set(n, 0, Scalar(f.tensor(f.argument(n, 0)).numel())); }
void offset_of(Frame& f, const Node& n) { f.set(n, 0, Scalar(f.tensor(f.argument(n, 0)).storage_offset())); }
void item(Frame& f, const Node& n) { f.set(n, 0, f.tensor(f.argument(n, 0)).item()); }
void truth(Frame& f, const Node& n) { f.set(n, 0, Scalar(truth_of(f.value(f.argument(n, 0))))); }
void choose(Frame& f, const Node& n) {
  f.set(n, 0, f.value(f.argument(n, truth_of(f.value(f.argument(n, 0))) ? 1 : 2)));
}
void sum(Frame& f, const Node& n) {
  Scalar out(int64_t{0});
  for (const Argument& a : n.arguments)
    for (const Value& v : f.values(a)) out = add(out, number_of(v));
  f.set(n, 0, out);
}

void nothing(Frame&, const Node&) {}
void assert_true(Frame& f, const Node& n) {
  if (truth_of(f.value(f.argument(n, 0)))) return;
  for (const Argument& a : n.arguments)
    if (const auto* message = std::get_if<std::string>(&a.value)) fail(*message);
  fail("an assertion of the program does not hold");
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
  int64_t v = to_int(f.number(f.argument(n, 0)));
  auto bound = [&](const char* name) { return f.named(n, name) ? f.value(*f.named(n, name)) : Value(); };
  Value least = bound("min"), greatest = bound("max");
  bool low = std::holds_alternative<Scalar>(least) && v < to_int(number_of(least));
  bool high = std::holds_alternative<Scalar>(greatest) && v > to_int(number_of(greatest));
  BRASA_CHECK(!low && !high, "the number ", v, " is outside of its range");
}

const Handlers& aten() {
  static const Handlers kTable{
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
  return kTable;
}

// By the last part of the name; functions of `operator`, `math` and `torch`.
const Handlers& python() {
  static const Handlers kTable{
      {"add", binary<add>},
      {"sub", binary<subtract>},
      {"mul", binary<multiply>},
      {"floordiv", binary<floor_divide>},
      {"mod", binary<modulo>},
      {"pow", binary<power>},
      {"truediv", binary<[](const Scalar& a, const Scalar& b) { return Scalar(to_double(a) / to_double(b)); }>},
      {"eq", binary<[](const Scalar& a, const Scalar& b) { return compared(a, b, std::equal_to<>()); }>},
      {"ne", binary<[](const Scalar& a, const Scalar& b) { return compared(a, b, std::not_equal_to<>()); }>},
      {"lt", binary<[](const Scalar& a, const Scalar& b) { return compared(a, b, std::less<>()); }>},
      {"le", binary<[](const Scalar& a, const Scalar& b) { return compared(a, b, std::less_equal<>()); }>},
      {"gt", binary<[](const Scalar& a, const Scalar& b) { return compared(a, b, std::greater<>()); }>},
      {"ge", binary<[](const Scalar& a, const Scalar& b) { return compared(a, b, std::greater_equal<>()); }>},
      {"and_", binary<[](const Scalar& a, const Scalar& b) { return bitwise(a, b, std::bit_and<>()); }>},
      {"or_", binary<[](const Scalar& a, const Scalar& b) { return bitwise(a, b, std::bit_or<>()); }>},
      {"xor", binary<[](const Scalar& a, const Scalar& b) { return bitwise(a, b, std::bit_xor<>()); }>},
      {"lshift",
       binary<[](const Scalar& a, const Scalar& b) { return multiply(a, Scalar(int64_t{1} << shift_of(b))); }>},
      {"rshift", binary<[](const Scalar& a, const Scalar& b) { return Scalar(to_int(a) >> shift_of(b)); }>},
      {"neg", unary<negated>},
      {"pos", unary<[](const Scalar& a) { return a; }>},
      {"abs", unary<[](const Scalar& a) { return to_double(a) < 0 ? negated(a) : a; }>},
      {"not_", unary<[](const Scalar& a) { return Scalar(!truth_of(a)); }>},
      {"sym_not", unary<[](const Scalar& a) { return Scalar(!truth_of(a)); }>},
      {"trunc", unary<[](const Scalar& a) { return rounded(a, std::trunc); }>},
      {"floor", unary<[](const Scalar& a) { return rounded(a, std::floor); }>},
      {"ceil", unary<[](const Scalar& a) { return rounded(a, std::ceil); }>},
      {"round", unary<[](const Scalar& a) { return rounded(a, std::nearbyint); }>},
      {"sym_int",
       unary<[](const Scalar& a) { return Scalar(whole(a) ? to_int(a) : static_cast<int64_t>(a.toDouble())); }>},
      {"sym_float", unary<[](const Scalar& a) { return Scalar(to_double(a)); }>},
      {"sym_max",
       binary<[](const Scalar& a, const Scalar& b) { return compared(a, b, std::less<>()).toBool() ? b : a; }>},
      {"sym_min",
       binary<[](const Scalar& a, const Scalar& b) { return compared(b, a, std::less<>()).toBool() ? b : a; }>},
      {"sym_sqrt", unary<[](const Scalar& a) { return Scalar(std::sqrt(to_double(a))); }>},
      {"sqrt", unary<[](const Scalar& a) { return Scalar(std::sqrt(to_double(a))); }>},
      {"log2", unary<[](const Scalar& a) { return Scalar(std::log2(to_double(a))); }>},
      {"sym_ite", choose},
      {"sym_sum", sum},
  };
  return kTable;
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
