#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "ops/random_key.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Every element draws one 32-bit word of the generator's Philox stream, so that a seed gives the same numbers on any device.
namespace brasa::ops {
namespace {

using OptDType = std::optional<DType>;
using Text = std::optional<std::string>;
using Flag = std::optional<bool>;

#define BRASA_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

DType floating(const char* op, OptDType dtype, DType otherwise) {
  DType t = dtype.value_or(otherwise);
  BRASA_CHECK(is_floating(t), "\"", op, "\" not implemented for ", name(t));
  return t;
}

// cos(2πt) for t in [-1/2, 1], without the general function's care for large angles: as -sin(2πy) of the distance y from a quarter,
// by sin's Taylor series, which at π/2 is right to the last bit that t has.
Value cosine_of_turns(Value t) {
  bool twice = dtype_of(t) == DType::Float64;
  Value r = t - prim::unary("floor", t + 0.5), a = (abs(r) - 0.25) * (2 * std::numbers::pi), a2 = a * a;
  double term = twice ? 23 : 13;
  double factorial = 1;
  for (double k = 2; k <= term; ++k) factorial *= k;
  auto coefficient = [&] { return (static_cast<int64_t>(term) / 2 % 2 ? 1 : -1) / factorial; };  // of -sin
  Value sum = constant_like(a, coefficient());
  while (term > 1) {
    factorial /= term * (term - 1);
    term -= 2;
    sum = sum * a2 + coefficient();
  }
  return sum * a;
}

// Box & Muller 1958: elements 2k and 2k + 1 are the cosine and the sine of one pair of words.
Value standard_normal(Value key, const Shape& shape, DType dtype) {
  DType wide = opmath(dtype);
  bool twice = wide == DType::Float64;
  Value i = prim::iota({ir::product(shape)}, 0, DType::Int64);
  Value odd = pointwise("bit_and", i, 1), first = i - odd;
  auto unit = [&](Value w, double add) {
    if (twice) return (convert(w, wide) + add) * 0x1p-32;
    return (convert(pointwise("shr", w, 8), wide) + add) * 0x1p-24;
  };
  Value radius = sqrt(-2.0 * log(unit(words(key, first), 1)));
  // The sine lies a quarter behind.
  Value turns = unit(words(key, first + 1), 0) - convert(odd, wide) * 0.25;
  return convert(prim::reshape(radius * cosine_of_turns(turns), shape), dtype);
}

// In [low, low + width), all int64 of index's shape. Up to 2³¹ the upper half of word times width; wider ones take 63 bits, whose
// remainder is as good as even, the upper ones from the far half of the stream. `width` may be known only in the call.
Value integers(Value key, Value index, Value low, Value width, std::optional<int64_t> known_width) {
  constexpr int64_t kNarrow = int64_t{1} << 31;
  Value w = words(key, index);
  auto few = [&] { return pointwise("shr", w * width, 32); };
  auto many = [&] {
    Value more = pointwise("bit_and", words(key, index + Number(int64_t{1} << 62)), Number(int64_t{0x7fffffff}));
    return prim::binary("rem", pointwise("bit_or", pointwise("shl", more, 32), w), width);
  };
  bool is_narrow = known_width && *known_width > 0 && *known_width <= kNarrow;
  Value r = is_narrow ? few() : known_width ? many() : where(le(width, Number(kNarrow)), few(), many());
  return r + low;
}

// In [low, high) where their distance is beyond int64: all 64 bits are drawn, and those that are not below the distance, fewer than
// half, go around.
Value integers_of_all_bits(Value key, Value index, int64_t low, int64_t high) {
  auto wrapped = [](uint64_t v) { return Number(static_cast<int64_t>(v)); };
  uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  constexpr uint64_t kSign = uint64_t{1} << 63;  // with it turned, int64 compare like uint64
  Value upper = words(key, index + Number(int64_t{1} << 62));
  Value all = pointwise("bit_or", pointwise("shl", upper, 32), words(key, index));
  Value over = ge(pointwise("bit_xor", all, wrapped(kSign)), wrapped(width ^ kSign));
  return where(over, all + wrapped(-width), all) + wrapped(static_cast<uint64_t>(low));
}

// The greatest integer up to which the dtype holds all.
int64_t last_integer(DType t) {
  BRASA_CHECK(computes(t) && !is_complex(t), "\"random_\" not implemented for ", name(t));
  int digits = info_of(t).digits;
  if (is_floating(t)) return int64_t{1} << digits;
  return digits == 63 ? INT64_MAX : (int64_t{1} << digits) - 1;
}

void check_order(Expr low, Expr high) {
  BRASA_CHECK(is_less(low, high), "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
}

// How far numbers of `digits` binary digits lie apart around v.
int64_t spacing(int64_t v, int digits) {
  uint64_t magnitude = v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  return int64_t{1} << std::max(0, static_cast<int>(std::bit_width(magnitude)) - digits);
}

// The range [low, high) without what the dtype does not hold, so that no number rounds out of it.
void fit_range(DType t, Expr& low, Expr& high) {
  int64_t last = last_integer(t), first = is_floating(t) ? -last : is_signed(t) ? -last - 1 : 0;
  Expr end = high - 1;
  bool low_fits = last == INT64_MAX || (!is_less(low, first) && !is_less(last, low));
  bool high_fits = last == INT64_MAX || !is_less(last, end);
  if (!is_floating(t)) {
    BRASA_CHECK(low_fits, "random_: from=", low, " is out of bounds for ", name(t));
    BRASA_CHECK(high_fits, "random_: to - 1 = ", end, " is out of bounds for ", name(t));
    return;
  }
  if (low_fits && high_fits) return;
  // Beyond its digits a floating dtype holds some integers only.
  constexpr int64_t kHalf = 65504;
  int64_t from = known_size(low), to = known_size(end);
  BRASA_CHECK(t != DType::Float16 || (from >= -kHalf && from <= kHalf), "random_: from=", from,
              " is out of bounds for ", name(t));
  BRASA_CHECK(t != DType::Float16 || (to >= -kHalf && to <= kHalf), "random_: to - 1 = ", to, " is out of bounds for ",
              name(t));
  auto below = [&](int64_t v) { return v & -spacing(v, info_of(t).digits); };
  int64_t greatest = below(to), least = below(from);
  bool any = least == from || !__builtin_add_overflow(least, spacing(from, info_of(t).digits), &least);
  BRASA_CHECK(any && least <= greatest,
              "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=", from,
              " >= to=", to + 1, " of ", name(t));
  low = Expr(least);
  high = Expr(greatest + 1);
}

// In [low, high).
Value integers(Value key, const Shape& shape, Expr low, Expr high, DType dtype) {
  check_order(low, high);
  fit_range(dtype, low, high);
  Value i = prim::iota({ir::product(shape)}, 0, DType::Int64);
  auto all = [&](Expr e) { return full(Number(Arg(e)), shape_of(i), DType::Int64); };
  // From below zero the distance may be beyond int64, where symbols would wrap.
  if (!(low->min >= 0) && is_less(ir::min(low, 0) + (INT64_MAX - 1), high - 1)) {
    low = known_size(low);
    high = known_size(high);
  }
  Value drawn;
  if (int64_t width = 0; !low.is_constant() || !high.is_constant())
    drawn = integers(key, i, all(low), all(high - low), std::nullopt);
  else if (__builtin_sub_overflow(high.constant(), low.constant(), &width))
    drawn = integers_of_all_bits(key, i, low.constant(), high.constant());
  else
    drawn = integers(key, i, all(low), all(width), width);
  return convert(prim::reshape(drawn, shape), dtype);
}

// In [0, high) for a tensor of one number.
Value integers(Value key, const Shape& shape, Value high, DType dtype) {
  BRASA_CHECK(rank_of(high) == 0 && !is_complex(dtype_of(high)),
              "randint_like: high must be a real tensor without dimensions, got ", type_of(high));
  Value width = convert(high, DType::Int64);
  check_values(gt(width, 0), "randint_like: expected a positive 'high'");
  int64_t last = last_integer(dtype);
  if (!is_floating(dtype))
    check_values(le(width - 1, Number(last)), str("randint_like: high - 1 is out of bounds for ", name(dtype)));
  Value i = prim::iota({ir::product(shape)}, 0, DType::Int64);
  Value r = integers(key, i, zeros_like(i), broadcast_to(width, shape_of(i)), std::nullopt);
  return convert(prim::reshape(r, shape), dtype);
}

// What random_ draws below without an upper bound.
int64_t end_of_integers(DType t) {
  int64_t last = last_integer(t);
  return last == INT64_MAX ? last : last + 1;
}

// Of complex numbers, real and imaginary part have the variance 1/2 each.
Value normal_of_any_kind(const char* op, Value key, const Shape& shape, OptDType dtype, DType otherwise) {
  DType t = dtype.value_or(otherwise);
  if (!is_complex(t)) return standard_normal(key, shape, floating(op, dtype, otherwise));
  Shape parts = shape;
  parts.push_back(Expr(2));
  return call("aten::view_as_complex", {standard_normal(key, parts, real_part_of(t)) * std::sqrt(0.5)});
}

void add_uniform(Table& t) {
  t.op("aten::rand(SymInt[] size, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("Uniform in [0, 1).")
      .random()
      .composed([](Shape size, OptDType dtype, Text, Text, Flag, Value key) {
        return uniform(key, size, floating("rand", dtype, DType::Float32));
      })
      .samples({{list({3, 5})}, {list({0})}});
  t.op("aten::rand_like(Tensor self, *, " BRASA_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor")
      .no_gradient()
      .doc("Uniform in [0, 1), in self's shape and dtype.")
      .keeps_memory_format()
      .random()
      .composed([](Value x, OptDType dtype, Text, Text, Flag, Text, Value key) {
        return uniform(key, shape_of(x), floating("rand_like", dtype, dtype_of(x)));
      })
      .samples({{floats(3, 5)}});
  t.op("aten::uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor")
      .doc("Uniform in [from, to), in self's shape and dtype.")
      .random()
      .composed([](Value x, Number from, Number to, Value key) {
        DType t = floating("uniform", std::nullopt, dtype_of(x));
        return convert(uniform(key, shape_of(x), opmath(t)) * (to - from) + from, t);
      })
      .precondition([](Value, double from, double to, Value) {
        BRASA_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
        BRASA_CHECK(std::isfinite(to - from), "uniform_ expects to-from to be a number, but found to=", to,
                    " and from=", from);
      })
      .no_gradient()
      .samples({{floats(3, 5), -1.0, 2.0}});
  t.op("aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .doc("Integers, uniform in [0, high).")
      .random()
      .composed([](Expr high, Shape size, OptDType dtype, Text, Text, Flag, Value key) {
        return integers(key, size, 0, high, dtype.value_or(DType::Int64));
      })
      .precondition([](Expr high, Shape, OptDType, Text, Text, Flag, Value) { check_order(0, high); })
      .samples({{10, list({3, 5})}});
  t.op("aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .doc("Integers, uniform in [low, high).")
      .random()
      .composed([](Expr low, Expr high, Shape size, OptDType dtype, Text, Text, Flag, Value key) {
        return integers(key, size, low, high, dtype.value_or(DType::Int64));
      })
      .precondition([](Expr low, Expr high, Shape, OptDType, Text, Text, Flag, Value) { check_order(low, high); })
      .samples({{-3, 10, list({3, 5})}});
  t.op("aten::randint_like(Tensor self, SymInt high, *, " BRASA_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor")
      .no_gradient()
      .doc("Integers, uniform in [0, high), in self's shape and dtype.")
      .random()
      .composed([](Value x, Expr high, OptDType dtype, Text, Text, Flag, Text, Value key) {
        return integers(key, shape_of(x), 0, high, dtype.value_or(dtype_of(x)));
      })
      .precondition([](Value, Expr high, OptDType, Text, Text, Flag, Text, Value) { check_order(0, high); })
      .samples({{ints(3, 5), 10}});
  t.op("aten::randint_like.Tensor(Tensor self, Tensor high, *, " BRASA_OPTIONS
       ", MemoryFormat? memory_format=None) -> Tensor")
      .doc("Integers, uniform in [0, high), in self's shape and dtype.")
      .random()
      .composed([](Value x, Value high, OptDType dtype, Text, Text, Flag, Text, Value key) {
        return integers(key, shape_of(x), high, dtype.value_or(dtype_of(x)));
      })
      .samples({{ints(3, 5), ints().in(10, 11)}});
  t.op("aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " BRASA_OPTIONS
       ", MemoryFormat? memory_format=None) -> Tensor")
      .doc("Integers, uniform in [low, high), in self's shape and dtype.")
      .random()
      .composed([](Value x, Expr low, Expr high, OptDType dtype, Text, Text, Flag, Text, Value key) {
        return integers(key, shape_of(x), low, high, dtype.value_or(dtype_of(x)));
      })
      .precondition([](Value, Expr low, Expr high, OptDType, Text, Text, Flag, Text, Value) { check_order(low, high); })
      .samples({{ints(3, 5), -3, 10}});
  t.op("aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor")
      .doc("Integers, uniform in [from, to), in self's shape and dtype.")
      .random()
      .composed([](Value x, Expr from, std::optional<Expr> to, Value key) {
        return integers(key, shape_of(x), from, to.value_or(end_of_integers(dtype_of(x))), dtype_of(x));
      })
      .precondition([](Value, Expr from, std::optional<Expr> to, Value) {
        if (to) check_order(from, *to);
      })
      .no_gradient()
      .samples({{ints(3, 5), -3, 10}});
  t.op("aten::random(Tensor self, *, Generator? generator=None) -> Tensor")
      .doc(
          "Integers, uniform in [0, max] for an integral dtype, in [0, 2^digits] for a floating one, in self's shape and dtype.")
      .random()
      .composed(
          [](Value x, Value key) { return integers(key, shape_of(x), 0, end_of_integers(dtype_of(x)), dtype_of(x)); })
      .no_gradient()
      .samples({{ints(3, 5)}, {floats(4)}});
  t.op("aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor")
      .doc("Integers, uniform in [0, to), in self's shape and dtype.")
      .random()
      .composed([](Value x, Expr to, Value key) { return integers(key, shape_of(x), 0, to, dtype_of(x)); })
      .precondition([](Value, Expr to, Value) { check_order(0, to); })
      .no_gradient()
      .samples({{ints(3, 5), 10}});
  t.op("aten::randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
      .doc("The numbers below n in random order.")
      .random()
      .composed([](Expr n, OptDType dtype, Text, Text, Flag, Value key) {
        return convert(prim::sort(words(key, prim::iota({n}, 0, DType::Int64)), 0, false)[1],
                       dtype.value_or(DType::Int64));
      })
      .precondition([](Expr n, OptDType dtype, Text, Text, Flag, Value) {
        DType t = dtype.value_or(DType::Int64);
        BRASA_CHECK(n.constant() >= 0, "n must be non-negative, got ", n);
        BRASA_CHECK(n.constant() - 1 <= last_integer(t), "randperm: n = ", n, " is too large for ", name(t));
      })
      .samples({{7}, {0}});
}

Value normal(Value key, const Shape& shape, DType dtype, const Number& mean, const Number& std) {
  DType wide = opmath(dtype);
  Value x = standard_normal(key, shape, wide);
  if (!std.is(1)) x = x * std;
  if (!mean.is(0)) x = x + mean;
  return convert(x, dtype);
}

void check_deviation(double std) { BRASA_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std); }
void check_deviations(Value std) { check_values(ge(std, 0), "normal expects all elements of std >= 0.0"); }

void add_normal(Table& t) {
  t.op("aten::randn(SymInt[] size, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("Normal with mean 0 and variance 1.")
      .random()
      .composed([](Shape size, OptDType dtype, Text, Text, Flag, Value key) {
        return normal_of_any_kind("randn", key, size, dtype, DType::Float32);
      })
      .samples({{list({3, 5})}, {list({0})}});
  t.op("aten::randn_like(Tensor self, *, " BRASA_OPTIONS ", MemoryFormat? memory_format=None) -> Tensor")
      .no_gradient()
      .doc("Normal with mean 0 and variance 1, in self's shape and dtype.")
      .keeps_memory_format()
      .random()
      .composed([](Value x, OptDType dtype, Text, Text, Flag, Text, Value key) {
        return normal_of_any_kind("randn_like", key, shape_of(x), dtype, dtype_of(x));
      })
      .samples({{floats(3, 5)}});
  t.op("aten::normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor")
      .doc("Normal with this mean and standard deviation, in self's shape and dtype.")
      .random()
      .composed([](Value x, Number mean, Number std, Value key) {
        return normal(key, shape_of(x), floating("normal", std::nullopt, dtype_of(x)), mean, std);
      })
      .precondition([](Value, double, double std, Value) { check_deviation(std); })
      .no_gradient()
      .samples({{floats(3, 5), 1.0, 0.5}});
  t.alias("aten::normal", "aten::normal_functional");
  t.op("aten::normal.float_float(float mean, float std, SymInt[] size, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("Normal with this mean and standard deviation.")
      .random()
      .composed([](Number mean, Number std, Shape size, OptDType dtype, Text, Text, Flag, Value key) {
        return normal(key, size, floating("normal", dtype, DType::Float32), mean, std);
      })
      .precondition([](double, double std, Shape, OptDType, Text, Text, Flag, Value) { check_deviation(std); })
      .samples({{1.0, 0.5, list({3, 5})}});
  t.op("aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .doc("Normal with a mean and a standard deviation for each element.")
      .random()
      .composed_in_opmath([](Value mean, Value std, Value key) {
        check_deviations(std);
        Value z = standard_normal(key, broadcast_shapes(shape_of(mean), shape_of(std)), dtype_of(mean));
        return z * std + mean;
      })
      .no_gradient()
      .samples({{floats(3, 5), floats(5).in(0, 1)}});
  t.op("aten::normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor")
      .doc("Normal with a mean for each element.")
      .random()
      .composed_in_opmath([](Value mean, Number std, Value key) {
        return standard_normal(key, shape_of(mean), dtype_of(mean)) * std + mean;
      })
      .precondition([](Value, double std, Value) { check_deviation(std); })
      .no_gradient()
      .samples({{floats(3, 5), 0.5}});
  t.op("aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor")
      .doc("Normal with a standard deviation for each element.")
      .random()
      .composed_in_opmath([](Number mean, Value std, Value key) {
        check_deviations(std);
        return standard_normal(key, shape_of(std), dtype_of(std)) * std + mean;
      })
      .no_gradient()
      .samples({{1.0, floats(3, 5).in(0, 1)}});
}

void add_others(Table& t) {
  t.op("aten::exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor")
      .doc("Exponential with this rate, in self's shape and dtype.")
      .random()
      .composed([](Value x, Number rate, Value key) {
        DType t = floating("exponential", std::nullopt, dtype_of(x));
        return convert(-log1p(-uniform(key, shape_of(x), opmath(t))) / rate, t);
      })
      .precondition([](Value, double rate, Value) {
        BRASA_CHECK(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
      })
      .no_gradient()
      .samples({{floats(3, 5), 2.0}});
  t.op("aten::cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor")
      .doc("median + sigma tan(π (u - 1/2)) of a uniform u, in self's shape and dtype.")
      .random()
      .composed([](Value x, Number median, Number sigma, Value key) {
        DType t = floating("cauchy", std::nullopt, dtype_of(x));
        Value u = uniform(key, shape_of(x), opmath(t));
        return convert(prim::unary("tan", (u - 0.5) * std::numbers::pi) * sigma + median, t);
      })
      .precondition([](Value, double, double sigma, Value) {
        BRASA_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
      })
      .no_gradient()
      .samples({{floats(3, 5), 1.0, 2.0}});
  t.op("aten::log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor")
      .doc("The exponential of normal numbers, in self's shape and dtype.")
      .random()
      .composed([](Value x, Number mean, Number std, Value key) {
        DType t = floating("log_normal", std::nullopt, dtype_of(x));
        return convert(exp(standard_normal(key, shape_of(x), opmath(t)) * std + mean), t);
      })
      .precondition([](Value, double, double std, Value) {
        BRASA_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
      })
      .no_gradient()
      .samples({{floats(3, 5), 0.0, 0.5}});
  t.op("aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor")
      .doc("How many trials of probability p it takes to succeed, in self's shape and dtype.")
      .random()
      .composed([](Value x, Number p, Value key) {
        DType t = is_floating(dtype_of(x)) ? opmath(dtype_of(x)) : DType::Float64;
        Value u = uniform(key, shape_of(x), t);
        // The logarithm of a number is the same for all elements, in double precision.
        Number slope = p.is_known() ? Number(std::log1p(-p.as_double())) : Number(log1p(to_value(-p)));
        return convert(prim::unary("floor", log1p(-u) / slope) + 1, dtype_of(x));
      })
      .precondition([](Value, double p, Value) {
        BRASA_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
      })
      .no_gradient()
      .samples({{floats(3, 5), 0.25}, {ints(4), 0.5}});
}

}  // namespace

void add_random(Table& t) {
  add_uniform(t);
  add_normal(t);
  add_others(t);
  // Every row takes a generator; PyTorch has an overload for it where the schema begins with sizes or has options.
  for (const char* name : {"rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm"})
    t.alias(str("aten::", name, ".generator"), str("aten::", name));
  t.alias("aten::randint.low_generator", "aten::randint.low");
  t.alias("aten::randint_like.Tensor_generator", "aten::randint_like.Tensor");
  t.alias("aten::randint_like.low_generator_dtype", "aten::randint_like.low_dtype");
}

}  // namespace brasa::ops
