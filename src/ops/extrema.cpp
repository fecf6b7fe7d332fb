#include <algorithm>

#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// Whether `limit` decides: where y is beyond it (`beyond` compares them), and everywhere if it is NaN, of which a literal needs
// no test.
Value decides(const char* beyond, Value y, Value limit, const Number& number) {
  Value out = pointwise(beyond, y, limit);
  if (!is_floating(dtype_of(limit)) || !(number.is_value() || number.is_nan())) return out;
  return logical_or(out, ne(limit, limit));
}
// A limit beyond the integers of x's dtype is their end, on the side where it leaves room.
Number representable(Value x, const Number& limit, bool low) {
  DType t = dtype_of(x);
  if (!is_integral(t) || size_of(t) == 8 || !is_integral(limit.dtype()) || limit.is_size()) return limit;
  int64_t bits = 8 * size_of(t), least = t == DType::UInt8 ? 0 : -(int64_t{1} << (bits - 1));
  int64_t most = least + (int64_t{1} << bits) - 1;
  if (limit.is_value()) {
    Value n = convert(limit.arg().get<Value>(), DType::Int64);
    return convert(minimum(maximum(n, scalar(least, DType::Int64)), scalar(most, DType::Int64)), t);
  }
  int64_t n = limit.as_int();
  BRASA_CHECK(low ? n <= most : n >= least, "Clamp ", low ? "min" : "max", " value ", n,
              " is outside the representable range of ", name(t));
  return std::clamp(n, least, most);
}
// `open`: the limit itself counts as outside.
Value above(Value x, const Number& given, bool open) {
  Number low = representable(x, given, true);
  auto [y, l] = promoted(x, low);
  real_only("clamp", y);
  return where(decides(open ? "le" : "lt", y, l, low), l, y);
}
Value below(Value x, const Number& given, bool open) {
  Number high = representable(x, given, false);
  auto [y, h] = promoted(x, high);
  real_only("clamp", y);
  return where(decides(open ? "ge" : "gt", y, h, high), h, y);
}

void add_clamps(Table& t) {
  t.op("aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor")
      .doc("self limited to [min, max]; max where min > max. The gradient passes where min < self < max.")
      .backward_node("ClampBackward1")
      .packed({{floats(8), 0.2, 0.8}})
      .composed_in_opmath([](Value x, std::optional<Number> low, std::optional<Number> high) {
        BRASA_CHECK(low || high, "torch.clamp: At least one of 'min' or 'max' must not be None");
        BRASA_CHECK(dtype_of(x) != DType::Bool, "clamp is not defined for bool");
        if (low) x = above(x, *low, true);
        if (high) x = below(x, *high, true);
        return x;
      })
      .samples({{floats(3, 5), -0.5, 1},
                {floats(4), ir::Arg(), 0.5},
                {ints(4).in(-5, 5), -2, 2},
                {floats(0), 0},
                {tensor(DType::UInt8, {4}).in(0, 9), -1, 300}});
  t.op("aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor")
      .out(Out::Cast)
      .doc("self limited to [min, max]; max where min > max.")
      .backward_node("ClampBackward0")
      .composed_in_opmath([](Value x, Value low, Value high) {
        BRASA_CHECK(low || high, "torch.clamp: At least one of 'min' or 'max' must not be None");
        if (low) x = maximum(x, low);
        if (high) x = minimum(x, high);
        return x;
      })
      .samples({{floats(3, 5), floats(5).in(-2, 0), floats(3, 1).in(0, 2)}, {floats(4), ir::Arg(), floats(4)}});
  t.op("aten::clamp_min(Tensor self, Scalar min) -> Tensor")
      .doc("self where it is at least min, else min.")
      .composed_in_opmath([](Value x, Number low) { return above(x, low, false); })
      .samples({{floats(3, 5), 0.5}, {ints(4).in(-5, 5), 1}});
  t.op("aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor")
      .out(Out::Cast)
      .doc("self where it is at least min, else min.")
      .composed_in_opmath([](Value x, Value low) { return maximum(x, low); })
      .samples({{floats(3, 5), floats(5)}});
  t.op("aten::clamp_max(Tensor self, Scalar max) -> Tensor")
      .doc("self where it is at most max, else max.")
      .composed_in_opmath([](Value x, Number high) { return below(x, high, false); })
      .samples({{floats(3, 5), 0.5}, {ints(4).in(-5, 5), 1}});
  t.op("aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor")
      .out(Out::Cast)
      .doc("self where it is at most max, else max.")
      .composed_in_opmath([](Value x, Value high) { return minimum(x, high); })
      .samples({{floats(3, 5), floats(5)}});
  t.alias("aten::clip", "aten::clamp");
  t.alias("aten::clip.Tensor", "aten::clamp.Tensor");
}

// Of a number and a NaN the number.
template <auto extremum>
Value of_numbers(Value a, Value b) {
  auto [x, y] = promoted(a, b);
  return where(ne(x, x), y, where(ne(y, y), x, extremum(x, y)));
}

void add_pairs(Table& t) {
  t.op("aten::maximum(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The larger of two; NaN wins. Equal ones share the gradient.")
      .composed([](Value a, Value b) { return maximum(a, b); })
      .samples({{floats(3, 5), floats(3, 5)}, {floats(3, 1), floats(5)}, {ints(4), ints(1)}});
  t.op("aten::minimum(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The smaller of two; NaN wins. Equal ones share the gradient.")
      .composed([](Value a, Value b) { return minimum(a, b); })
      .samples({{floats(3, 5), floats(3, 5)}, {floats(3, 1), floats(5)}, {ints(4), ints(1)}});
  t.alias("aten::max.other", "aten::maximum");
  t.alias("aten::min.other", "aten::minimum");
  t.op("aten::fmax(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The larger of two; a NaN gives way to the other. Equal ones share the gradient.")
      .composed(of_numbers<maximum>)
      .samples({{floats(3, 5), floats(3, 5)}, {floats(3, 1), floats(5)}});
  t.op("aten::fmin(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The smaller of two; a NaN gives way to the other. Equal ones share the gradient.")
      .composed(of_numbers<minimum>)
      .samples({{floats(3, 5), floats(3, 5)}, {floats(3, 1), floats(5)}});
}

}  // namespace

void add_extrema(Table& t) {
  add_clamps(t);
  add_pairs(t);
}

}  // namespace brasa::ops
