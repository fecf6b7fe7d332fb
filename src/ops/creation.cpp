#include <cmath>

#include "ops/algebra.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// `layout`, `device` and `pin_memory` say where a tensor lies, which is no part of its value: the dispatcher reads them.
namespace brasa::ops {
namespace {

// A number of elements that was computed in floating point.
int64_t count_of(double n) {
  BRASA_CHECK(n >= 0 && n < 0x1p53, "a range of ", n, " elements is too long");
  return static_cast<int64_t>(n);
}

using OptDType = std::optional<DType>;
using Text = std::optional<std::string>;
using Flag = std::optional<bool>;
constexpr DType kDefault = DType::Float32;

#define BRASA_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define BRASA_LIKE_OPTIONS BRASA_OPTIONS ", MemoryFormat? memory_format=None"

const Shape& checked(const Shape& size) {
  for (Expr e : size)
    BRASA_CHECK(!e.is_constant() || e.constant() >= 0, "Trying to create tensor with negative dimension ", e, ": ",
                size);
  return size;
}

DType inferred(const Number& n) { return is_floating(n.dtype()) ? kDefault : n.dtype(); }

template <int value>
void add_constant(Table& t, const char* name, const char* doc) {
  t.op(str("aten::", name, "(SymInt[] size, *, " BRASA_OPTIONS ") -> Tensor"))
      .doc(doc)
      .sparse(value == 0 ? Sparse::Zeros : Sparse::None)
      .composed([](Shape size, OptDType dtype, Text, Text, Flag) {
        return full(value, checked(size), dtype.value_or(kDefault));
      })
      .samples({{list({3, 5})}, {list({0}), DType::Int64}, {list({})}});
  t.op(str("aten::", name, "_like(Tensor self, *, " BRASA_LIKE_OPTIONS ") -> Tensor"))
      .no_gradient()
      .doc(doc)
      .sparse(value == 0 ? Sparse::Zeros : Sparse::None)
      .composed([](Value x, OptDType dtype, Text, Text, Flag, Text) {
        return full(value, shape_of(x), dtype.value_or(dtype_of(x)));
      })
      .samples({{floats(3, 5)}, {ints(4), DType::Float32}});
  t.op(str("aten::new_", name, "(Tensor self, SymInt[] size, *, " BRASA_OPTIONS ") -> Tensor"))
      .no_gradient()
      .doc(doc)
      .sparse(value == 0 ? Sparse::Zeros : Sparse::None)
      .composed([](Value x, Shape size, OptDType dtype, Text, Text, Flag) {
        return full(value, checked(size), dtype.value_or(dtype_of(x)));
      })
      .samples({{floats(3, 5), list({2, 2})}});
}

void add_filled(Table& t) {
  add_constant<0>(t, "zeros", "All 0.");
  add_constant<1>(t, "ones", "All 1.");
  t.op("aten::empty.memory_format(SymInt[] size, *, " BRASA_LIKE_OPTIONS ") -> Tensor")
      .sparse(Sparse::Zeros)
      .doc("Values are arbitrary (here 0).")
      .composed([](Shape size, OptDType dtype, Text, Text, Flag, Text) {
        return full(0, checked(size), dtype.value_or(kDefault));
      })
      .samples({{list({3, 5})}});
  t.op("aten::empty_like(Tensor self, *, " BRASA_LIKE_OPTIONS ") -> Tensor")
      .memory(Memory::EmptyLike)
      .no_gradient()
      .doc("Values are arbitrary (here 0).")
      .composed([](Value x, OptDType dtype, Text, Text, Flag, Text) {
        return full(0, shape_of(x), dtype.value_or(dtype_of(x)));
      })
      .samples({{floats(3, 5)}});
  t.op("aten::new_empty(Tensor self, SymInt[] size, *, " BRASA_OPTIONS ") -> Tensor")
      .sparse(Sparse::Zeros)
      .no_gradient()
      .doc("Values are arbitrary (here 0).")
      .composed([](Value x, Shape size, OptDType dtype, Text, Text, Flag) {
        return full(0, checked(size), dtype.value_or(dtype_of(x)));
      })
      .samples({{floats(3, 5), list({2})}});
  t.op("aten::empty_strided(SymInt[] size, SymInt[] stride, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("Values are arbitrary (here 0); the dispatcher gives the strides.")
      .memory(Memory::EmptyStrided)
      .composed([](Shape size, Shape, OptDType dtype, Text, Text, Flag) {
        return full(0, checked(size), dtype.value_or(kDefault));
      })
      .samples({{list({3, 5}), list({5, 1})}});
  t.op("aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " BRASA_OPTIONS ") -> Tensor")
      .memory(Memory::NewEmptyStrided)
      .no_gradient()
      .doc("Values are arbitrary (here 0); the dispatcher gives the strides.")
      .composed([](Value x, Shape size, Shape, OptDType dtype, Text, Text, Flag) {
        return full(0, checked(size), dtype.value_or(dtype_of(x)));
      })
      .samples({{floats(2), list({3, 5}), list({5, 1})}});
  t.op("aten::empty_permuted(SymInt[] size, int[] physical_layout, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("Values are arbitrary (here 0); the dispatcher gives the strides.")
      .memory(Memory::EmptyPermuted)
      .composed([](Shape size, std::vector<int64_t>, OptDType dtype, Text, Text, Flag) {
        return full(0, checked(size), dtype.value_or(kDefault));
      })
      .samples({{list({3, 5}), list({1, 0})}});

  t.op("aten::full(SymInt[] size, Scalar fill_value, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("All fill_value, whose kind gives the dtype if none is given.")
      .composed([](Shape size, Number v, OptDType dtype, Text, Text, Flag) {
        return full(v, checked(size), dtype.value_or(inferred(v)));
      })
      .fits("fill_value")
      .samples({{list({3, 5}), 2.5}, {list({4}), 7}, {list({}), true}});
  t.op("aten::full_like(Tensor self, Scalar fill_value, *, " BRASA_LIKE_OPTIONS ") -> Tensor")
      .no_gradient()
      .doc("All fill_value, in self's shape and dtype.")
      .composed([](Value x, Number v, OptDType dtype, Text, Text, Flag, Text) {
        return full(v, shape_of(x), dtype.value_or(dtype_of(x)));
      })
      .fits("fill_value")
      .samples({{floats(3, 5), 2.5}, {ints(4), 7}});
  t.op("aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " BRASA_OPTIONS ") -> Tensor")
      .no_gradient()
      .doc("All fill_value, in self's dtype.")
      .composed([](Value x, Shape size, Number v, OptDType dtype, Text, Text, Flag) {
        return full(v, checked(size), dtype.value_or(dtype_of(x)));
      })
      .fits("fill_value")
      .samples({{floats(3), list({2, 2}), 2.5}});
  t.op("aten::scalar_tensor(Scalar s, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("A number as a tensor without dimensions.")
      .composed([](Number v, OptDType dtype, Text, Text, Flag) { return scalar(v, dtype.value_or(kDefault)); })
      .fits("s")
      .samples({{2.5}, {7, DType::Int64}});
  t.op("aten::zero(Tensor self) -> Tensor")
      .doc("Zeros like self.")
      .sparse(Sparse::Zeros)
      .composed([](Value x) { return zeros_like(x); })
      .samples({{floats(3, 5)}});
  t.op("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor")
      .doc("All value, like self.")
      .composed([](Value x, Number v) { return constant_like(x, v); })
      .fits("value")
      .samples({{floats(3, 5), 2.5}});
  t.op("aten::fill.Tensor(Tensor self, Tensor value) -> Tensor")
      .doc("All value, like self.")
      .composed([](Value x, Value v) {
        BRASA_CHECK(rank_of(v) == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", rank_of(v),
                    " dimensions.");
        return broadcast_to(convert(v, dtype_of(x)), shape_of(x));
      })
      .samples({{floats(3, 5), floats()}});
}

bool is_integer(const Number& n) { return is_integral(n.dtype(), true); }

Expr integer(const Number& n) {
  if (auto* e = n.arg().get_if<Expr>()) return *e;
  return Expr(static_cast<int64_t>(n.as_double()));
}

DType dtype_of_range(const Number& start, const Number& end, const Number& step, OptDType dtype) {
  bool integers = is_integer(start) && is_integer(end) && is_integer(step);
  return dtype.value_or(integers ? DType::Int64 : kDefault);
}

// How many values `arange` gives, whatever their dtype; for integers that may be symbols.
Expr length_of_integers(Expr first, Expr last, Expr by) {
  BRASA_CHECK(by.is_constant() && by.constant() != 0, "arange: step must be a nonzero constant, got ", by);
  bool up = by.constant() > 0;
  Expr length = up ? last - first : first - last;
  BRASA_CHECK(!length.is_constant() || length.constant() >= 0,
              "upper bound and lower bound inconsistent with step sign: from ", first, " to ", last, " by ", by);
  return ir::max(ir::ceildiv(length, up ? by : -by), 0);
}

Expr length_of_arange(const Number& start, const Number& end, const Number& step) {
  BRASA_CHECK(!start.is_value() && !end.is_value() && !step.is_value(),
              "arange: the size is only known when the graph runs");
  BRASA_CHECK(!step.is(0), "step must be nonzero");
  bool integers = is_integer(start) && is_integer(end) && is_integer(step);
  if (integers) return length_of_integers(integer(start), integer(end), integer(step));
  double length = end.as_double() - start.as_double(), by = step.as_double();
  BRASA_CHECK(std::isfinite(length), "unsupported range: ", start.as_double(), " -> ", end.as_double());
  BRASA_CHECK(length == 0 || (length > 0) == (by > 0), "upper bound and lower bound inconsistent with step sign: from ",
              start.as_double(), " to ", end.as_double(), " by ", by);
  return Expr(count_of(std::ceil(length / by)));
}

// start, start + step, …, n of them.
Value arange(const Number& start, const Number& step, Expr n, DType dtype) {
  DType wide = is_integral(dtype, true) ? DType::Int64 : DType::Float64;
  auto number = [&](const Number& v) {
    if (wide != DType::Int64) return v;
    return v.is_value() ? Number(convert(to_value(v), DType::Int64)) : Number(Arg(integer(v)));
  };
  Value i = prim::iota({n}, 0, wide);
  if (!step.is(1)) i = i * number(step);
  if (!start.is(0)) i = i + number(start);
  return convert(i, dtype);
}

Value arange(const Number& start, const Number& end, const Number& step, OptDType dtype) {
  DType t = dtype_of_range(start, end, step, dtype);
  return arange(start, step, length_of_arange(start, end, step), t);
}

int64_t count_of_arange(const Number& start, const Number& end, const Number& step) {
  return length_of_arange(start, end, step).constant();
}

int64_t count_of_range(double start, double end, double step) {
  BRASA_CHECK(step != 0, "step must be nonzero");
  double n = std::floor((end - start) / step) + 1;
  BRASA_CHECK(n >= 1, "upper bound and lower bound inconsistent with step sign: from ", start, " to ", end);
  return count_of(n);
}

Value range(const Number& start, const Number& step, Expr n, OptDType dtype) {
  return convert(prim::iota({n}, 0, DType::Float64) * step + start, dtype.value_or(kDefault));
}

void add_ranges(Table& t) {
  t.op("aten::arange(Scalar end, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("0, 1, … below end.")
      .composed([](Number end, OptDType dtype, Text, Text, Flag) { return arange(0, end, 1, dtype); })
      .counted([](Number end, OptDType, Text, Text, Flag) { return count_of_arange(0, end, 1); },
               [](Number end, OptDType dtype, Text, Text, Flag, Expr n) {
                 return arange(0, 1, n, dtype_of_range(0, end, 1, dtype));
               })
      .samples({{5}, {2.5}, {0}});
  t.op("aten::arange.start(Scalar start, Scalar end, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("start, start + 1, … below end.")
      .composed([](Number start, Number end, OptDType dtype, Text, Text, Flag) { return arange(start, end, 1, dtype); })
      .counted([](Number start, Number end, OptDType, Text, Text, Flag) { return count_of_arange(start, end, 1); },
               [](Number start, Number end, OptDType dtype, Text, Text, Flag, Expr n) {
                 return arange(start, 1, n, dtype_of_range(start, end, 1, dtype));
               })
      .samples({{2, 5}, {-0.5, 2, DType::Float64}});
  t.op("aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("start, start + step, … short of end.")
      .composed([](Number start, Number end, Number step, OptDType dtype, Text, Text, Flag) {
        return arange(start, end, step, dtype);
      })
      .counted([](Number start, Number end, Number step, OptDType, Text, Text,
                  Flag) { return count_of_arange(start, end, step); },
               [](Number start, Number end, Number step, OptDType dtype, Text, Text, Flag, Expr n) {
                 return arange(start, step, n, dtype_of_range(start, end, step, dtype));
               })
      .samples({{2, 11, 3}, {1, -1, -0.25}});
  t.op("aten::range.step(Scalar start, Scalar end, Scalar step=1, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("start, start + step, … up to and with end; floating unless dtype says otherwise.")
      .composed([](Number start, Number end, Number step, OptDType dtype, Text, Text, Flag) {
        return range(start, step, count_of_range(start.as_double(), end.as_double(), step.as_double()), dtype);
      })
      .counted([](Number start, Number end, Number step, OptDType, Text, Text,
                  Flag) { return count_of_range(start.as_double(), end.as_double(), step.as_double()); },
               [](Number start, Number, Number step, OptDType dtype, Text, Text, Flag, Expr n) {
                 return range(start, step, n, dtype);
               })
      .samples({{1, 4, 1}});
  t.op("aten::range(Scalar start, Scalar end, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("start, start + 1, … up to and with end; floating unless dtype says otherwise.")
      .composed([](Number start, Number end, OptDType dtype, Text, Text, Flag) {
        return range(start, 1, count_of_range(start.as_double(), end.as_double(), 1), dtype);
      })
      .counted([](Number start, Number end, OptDType, Text, Text,
                  Flag) { return count_of_range(start.as_double(), end.as_double(), 1); },
               [](Number start, Number, OptDType dtype, Text, Text, Flag, Expr n) { return range(start, 1, n, dtype); })
      .samples({{1, 4}, {-0.5, 2, DType::Float64}});
  t.op("aten::_dim_arange(Tensor like, int dim) -> Tensor")
      .doc("0, 1, … below the size of a dimension.")
      .composed(
          [](Value x, int64_t dim) { return prim::iota({size_of(x, wrap_dim(dim, rank_of(x)))}, 0, DType::Int64); })
      .samples({{floats(3, 5), 1}, {ints(0), -1}});
  t.op("aten::eye(SymInt n, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("1 on the diagonal, 0 elsewhere.")
      .composed([](Expr n, OptDType dtype, Text, Text, Flag) {
        Shape shape = checked({n, n});
        return convert(eq(prim::iota(shape, 0, DType::Int64), prim::iota(shape, 1, DType::Int64)),
                       dtype.value_or(kDefault));
      })
      .samples({{3}, {0}});
  t.op("aten::eye.m(SymInt n, SymInt m, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("1 on the diagonal, 0 elsewhere.")
      .composed([](Expr n, Expr m, OptDType dtype, Text, Text, Flag) {
        Shape shape = checked({n, m});
        return convert(eq(prim::iota(shape, 0, DType::Int64), prim::iota(shape, 1, DType::Int64)),
                       dtype.value_or(kDefault));
      })
      .samples({{3, 5}});
}

// From the nearer end, so that both ends are exact and the values symmetric.
Value linspace(const Number& start, const Number& end, Expr steps, DType dtype) {
  BRASA_CHECK(!steps.is_constant() || steps.constant() >= 0, "number of steps must be non-negative, got ", steps);
  DType wide = is_integral(dtype, true) ? DType::Float64 : opmath(dtype);
  // Integers are first rounded to the result's dtype, as PyTorch does.
  Value a = convert(scalar(start, dtype), wide), b = convert(scalar(end, dtype), wide);
  Value last = size_tensor(ir::max(steps - 1, 1), {}, wide);
  Value at = prim::iota({steps}, 0, DType::Int64), i = convert(at, wide), step = (b - a) / last;
  Value low = a + step * i, high = b - step * (last - i);
  return convert(where(lt(at, size_tensor(ir::max(ir::floordiv(steps, 2), 1), {})), low, high), dtype);
}

Value logspace(const Number& start, const Number& end, Expr steps, const Number& base, DType dtype) {
  DType wide = is_integral(dtype, true) ? DType::Float64 : opmath(dtype);
  Value e = linspace(start, end, steps, wide);
  return convert(prim::binary("pow", constant_like(e, base), e), dtype);
}

// Of a range between these ends.
DType dtype_of_range(const char* op, const Number& a, const Number& b, OptDType dtype) {
  if (!is_complex(a.dtype()) && !is_complex(b.dtype())) return dtype.value_or(kDefault);
  BRASA_CHECK(!dtype || is_complex(*dtype), "torch.", op,
              "(): inferred dtype of complex ends can't be safely cast to passed dtype ", name(*dtype));
  return dtype.value_or(DType::Complex64);
}

Number number_of(Value v) {
  BRASA_CHECK(rank_of(v) == 0, "expected a 0-dimensional tensor as an end of the range, got ", type_of(v));
  return Number(v);
}

void add_spaces(Table& t) {
  t.op("aten::linspace(Scalar start, Scalar end, int steps, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("`steps` evenly spaced values from start to end.")
      .composed([](Number a, Number b, Expr n, OptDType dtype, Text, Text, Flag) {
        Number from = a, to = b;
        return linspace(from, to, n, dtype_of_range("linspace", from, to, dtype));
      })
      .samples({{0, 1, 5}, {-1.5, 2, 4, DType::Float64}, {0, 10, 1}});
  t.op("aten::linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("`steps` evenly spaced values from start to end.")
      .composed([](Value a, Number b, Expr n, OptDType dtype, Text, Text, Flag) {
        Number from = number_of(a), to = b;
        return linspace(from, to, n, dtype_of_range("linspace", from, to, dtype));
      })
      .no_gradient()
      .samples({{floats(), 3, 5}});
  t.op("aten::linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("`steps` evenly spaced values from start to end.")
      .composed([](Number a, Value b, Expr n, OptDType dtype, Text, Text, Flag) {
        Number from = a, to = number_of(b);
        return linspace(from, to, n, dtype_of_range("linspace", from, to, dtype));
      })
      .no_gradient()
      .samples({{-3, floats(), 5}});
  t.op("aten::linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("`steps` evenly spaced values from start to end.")
      .composed([](Value a, Value b, Expr n, OptDType dtype, Text, Text, Flag) {
        Number from = number_of(a), to = number_of(b);
        return linspace(from, to, n, dtype_of_range("linspace", from, to, dtype));
      })
      .no_gradient()
      .samples({{floats(), floats(), 5}});
  t.op("aten::logspace(Scalar start, Scalar end, int steps, float base=10.0, *, " BRASA_OPTIONS ") -> Tensor")
      .doc("base to the power of linspace.")
      .composed([](Number a, Number b, Expr n, Number base, OptDType dtype, Text, Text, Flag) {
        Number from = a, to = b;
        return logspace(from, to, n, base, dtype_of_range("logspace", from, to, dtype));
      })
      .samples({{0, 1, 5}, {0, 3, 4, 2.0}});
  t.op("aten::logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, " BRASA_OPTIONS
       ") -> Tensor")
      .doc("base to the power of linspace.")
      .composed([](Value a, Number b, Expr n, Number base, OptDType dtype, Text, Text, Flag) {
        Number from = number_of(a), to = b;
        return logspace(from, to, n, base, dtype_of_range("logspace", from, to, dtype));
      })
      .no_gradient()
      .samples({{floats(), 1, 5}});
  t.op("aten::logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, " BRASA_OPTIONS
       ") -> Tensor")
      .doc("base to the power of linspace.")
      .composed([](Number a, Value b, Expr n, Number base, OptDType dtype, Text, Text, Flag) {
        Number from = a, to = number_of(b);
        return logspace(from, to, n, base, dtype_of_range("logspace", from, to, dtype));
      })
      .no_gradient()
      .samples({{0, floats(), 5}});
  t.op("aten::logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, " BRASA_OPTIONS
       ") -> Tensor")
      .doc("base to the power of linspace.")
      .composed([](Value a, Value b, Expr n, Number base, OptDType dtype, Text, Text, Flag) {
        Number from = number_of(a), to = number_of(b);
        return logspace(from, to, n, base, dtype_of_range("logspace", from, to, dtype));
      })
      .no_gradient()
      .samples({{floats(), floats(), 5}});
}

}  // namespace

void add_creation(Table& t) {
  add_filled(t);
  add_ranges(t);
  add_spaces(t);
}

}  // namespace brasa::ops
