#include <limits>

#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Which numbers are special ones.
namespace brasa::ops {
namespace {

bool is_float(Value x) { return is_floating(dtype_of(x)); }
Value all_of(bool v, Value x) { return full(v, shape_of(x), DType::Bool); }
constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

void add_number_classes(Table& t) {
  t.op("aten::isnan(Tensor self) -> Tensor")
      .doc("Is it NaN?")
      .sparse(Sparse::Each)
      .composed([](Value x) { return is_float(x) ? is_nan(x) : all_of(false, x); })
      .samples({{floats(3, 5)}, {ints(4)}});
  t.op("aten::isinf(Tensor self) -> Tensor")
      .doc("Is it infinite?")
      .sparse(Sparse::Each)
      .composed([](Value x) { return is_float(x) ? eq(abs(x), kInf) : all_of(false, x); })
      .samples({{floats(3, 5)}, {ints(4)}});
  t.op("aten::isposinf(Tensor self) -> Tensor")
      .doc("Is it +inf?")
      .sparse(Sparse::Each)
      .composed([](Value x) {
        BRASA_CHECK(!is_complex(dtype_of(x)), "isposinf does not support complex inputs.");
        return is_float(x) ? eq(x, kInf) : all_of(false, x);
      })
      .samples({{floats(3, 5)}, {ints(4)}});
  t.op("aten::isneginf(Tensor self) -> Tensor")
      .doc("Is it -inf?")
      .sparse(Sparse::Each)
      .composed([](Value x) {
        BRASA_CHECK(!is_complex(dtype_of(x)), "isneginf does not support complex inputs.");
        return is_float(x) ? eq(x, -kInf) : all_of(false, x);
      })
      .samples({{floats(3, 5)}, {ints(4)}});
  t.op("aten::isfinite(Tensor self) -> Tensor")
      .doc("Is it neither infinite nor NaN?")
      .composed([](Value x) { return is_float(x) ? lt(abs(x), kInf) : all_of(true, x); })
      .samples({{floats(3, 5)}, {ints(4)}});
  t.op("aten::isreal(Tensor self) -> Tensor")
      .doc("Has it no imaginary part?")
      .composed([](Value x) { return is_complex(dtype_of(x)) ? eq(imag(x), 0) : all_of(true, x); })
      .samples({{floats(3, 5)}, {ints(4)}});
  t.op("aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
      .doc("NaN becomes nan (0), the infinities posinf and neginf (the dtype's limits).")
      .sparse(Sparse::Each)
      .composed([](Value x, std::optional<Number> nan, std::optional<Number> posinf, std::optional<Number> neginf) {
        if (!is_float(x)) return x;
        double limit = info_of(dtype_of(x)).largest;
        Value y = where(is_nan(x), constant_like(x, nan.value_or(0)), x);
        y = where(eq(x, kInf), constant_like(x, posinf.value_or(limit)), y);
        return where(eq(x, -kInf), constant_like(x, neginf.value_or(-limit)), y);
      })
      .samples({{floats(3, 5)}, {floats(4), 1.0, 2.0, 3.0}, {ints(4)}});
}

}  // namespace brasa::ops
