#include <limits>

#include "ops/algebra.h"
#include "ops/literal.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

template <Literal primitive>
void comparison(Table& t, const char* doc, const char* alias) {
  t.op(str("aten::", primitive.text, ".Tensor(Tensor self, Tensor other) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed([](Value a, Value b) { return pointwise(primitive.text, a, b); })
      .samples({{floats(3, 5), floats(5)}, {ints(4), floats(1)}, {bools(3), bools(3)}, {floats(0), floats(0)}});
  t.op(str("aten::", primitive.text, ".Scalar(Tensor self, Scalar other) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed([](Value a, Number b) { return pointwise(primitive.text, a, b); })
      .samples({{floats(3, 5), 0.5}, {ints(4), 1}, {ints(4), 0.5}});
  for (const char* overload : {".Tensor", ".Scalar"})
    t.alias(str("aten::", alias, overload), str("aten::", primitive.text, overload));
}

void check_tolerances(Value, Value, double rtol, double atol, bool) {
  BRASA_CHECK(rtol >= 0 && atol >= 0, "isclose: rtol and atol must be at least 0, got ", rtol, " and ", atol);
}

Value isclose(Value a, Value b, const Number& rtol, const Number& atol, bool equal_nan) {
  BRASA_CHECK(dtype_of(a) == dtype_of(b), name(dtype_of(a)), " did not match ", name(dtype_of(b)));
  Value close = eq(a, b);
  bool exact = !is_floating(dtype_of(a));
  if (!exact && equal_nan) close = logical_or(close, logical_and(is_nan(a), is_nan(b)));
  if (rtol.is(0) && atol.is(0)) return close;
  Value x = exact ? convert(a, DType::Float64) : a, y = exact ? convert(b, DType::Float64) : b;
  Value error = abs(x - y), allowed = atol + abs(rtol * y);
  Value finite = lt(error, std::numeric_limits<double>::infinity());
  return logical_or(close, logical_and(finite, le(error, allowed)));
}

}  // namespace

void add_comparison(Table& t) {
  comparison<"lt">(t, "self < other.", "less");
  comparison<"le">(t, "self <= other.", "less_equal");
  comparison<"gt">(t, "self > other.", "greater");
  comparison<"ge">(t, "self >= other.", "greater_equal");
  comparison<"ne">(t, "self != other; true for NaN.", "not_equal");
  t.op("aten::eq.Tensor(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("self == other; false for NaN.")
      .composed([](Value a, Value b) { return eq(a, b); })
      .samples({{floats(3, 5), floats(5)}, {ints(4), ints(1)}, {bools(3), bools(3)}});
  t.op("aten::eq.Scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc("self == other; false for NaN.")
      .composed([](Value a, Number b) { return eq(a, b); })
      .samples({{floats(3, 5), 0.5}, {ints(4), 1}});

  t.op("aten::isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
      .doc("|self - other| <= atol + rtol * |other|; equal infinities are close.")
      .sparse(Sparse::Densified)
      .composed([](Value a, Value b, Number rtol, Number atol, bool equal_nan) {
        return isclose(a, b, rtol, atol, equal_nan);
      })
      .precondition(check_tolerances)
      .special("rtol", {0})
      .special("atol", {0})
      .samples({{floats(3, 5), floats(5)}, {ints(4), ints(4)}, {floats(2), floats(2), 1.0, 1.0, true}});
  t.op("aten::allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool")
      .doc("Is every element close, as isclose has it?")
      .composed([](Value a, Value b, Number rtol, Number atol, bool equal_nan) {
        Value close = isclose(a, b, rtol, atol, equal_nan);
        return reduce(close, reduced_dims(std::nullopt, rank_of(close)), false, "and");
      })
      .precondition(check_tolerances)
      .special("rtol", {0})
      .special("atol", {0})
      .samples({{floats(3, 5), floats(5)}, {floats(0), floats(1)}, {floats(2), floats(2), 5.0}});
}

}  // namespace brasa::ops
