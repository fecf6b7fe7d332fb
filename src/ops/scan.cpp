#include <algorithm>
#include <limits>

#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/literal.h"
#include "ops/rows.h"
#include "ops/running.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using Dims = std::optional<std::vector<int64_t>>;
constexpr double kInf = std::numeric_limits<double>::infinity();

Value running(Value x, int64_t dim, std::optional<DType> dtype, const char* combiner) {
  DType t = dtype ? *dtype : is_integral(dtype_of(x), true) ? DType::Int64 : dtype_of(x);
  dim = wrap_dim(dim, rank_of(x));
  Value y = convert(x, t);
  return rank_of(x) == 0 ? y : convert(prim::scan(to_opmath(y), dim, combiner), t);
}

// A NaN or an infinity must not meet its own negative.
Value finite_or_zero(Value m) { return where(eq(abs(m), kInf), zeros_like(m), m); }

template <Literal which>
std::array<Value, 2> running_extremum(Value x, int64_t dim) {
  dim = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return {x, full(0, {}, DType::Int64)};
  Value values = prim::scan(x, dim, which.text);
  Value here = prim::iota(shape_of(x), dim, DType::Int64);
  Value mine = eq(x, values);
  if (is_floating(dtype_of(x))) mine = logical_or(mine, is_nan(x));
  return {values, prim::scan(where(mine, here, zeros_like(here)), dim, "max")};
}

// The cotangents added where the extrema were.
Value to_places(Value ct, Value indices, int64_t dim) {
  if (rank_of(ct) == 0) return ct;
  std::vector<int64_t> dims = reduced_dims(std::nullopt, rank_of(ct));
  std::vector<Value> at = indices_along(shape_of(ct), wrap_dim(dim, rank_of(ct)), indices);
  return prim::scatter(zeros_like(ct), at, ct, dims, "add");
}

std::vector<Value> running_extremum_derivative(const Saved& s) {
  Value ct = s.ct();
  return {ct ? to_places(ct, s.out(1), s.arg<int64_t>(1)) : ct};
}

Value running_extremum_backward(Value ct, Value x, Value indices, int64_t dim) {
  constexpr const char* op = "cummaxmin_backward";
  check_same_shape(op, ct, x);
  check_same_shape(op, indices, x);
  int64_t wrapped = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return ct;
  return to_places(ct, prim::reshape(checked_index(indices, size_of(x, wrapped), op), shape_of(ct)), dim);
}

Value product_backward(Value ct, Value x, int64_t dim, Value) {
  check_same_shape("cumprod_backward", ct, x);
  dim = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return ct;
  Value y = prim::scan(to_opmath(x), dim, "mul");
  return convert(row_of(*y.node).vjp(*y.node, std::array{to_opmath(ct)}, {true})[0], dtype_of(x));
}

Value detached(Value v) { return call("aten::detach", {v}); }

// 2π times how often the angle of y, the running log Σ exp(x), goes around on its way from those of x: that of a sum is near that of what
// is greater of the sum before and the new element.
Value turns(Value y, Value x, int64_t dim) {
  constexpr double kTurn = 6.28318530717958647692;
  Value angle = imag(y), before = previous(angle, dim, 0), size = previous(real(y), dim, -kInf);
  Value stays = lt(real(x), size), from = where(stays, before, imag(x)), change = angle - from;
  Value near = change - kTurn * prim::unary("round", change / kTurn), step = where(stays, near, imag(x) + near);
  Value whole = prim::recurrence(step, convert(stays, dtype_of(angle)), dim) - angle;
  return kTurn * prim::unary("round", whole / kTurn);
}

Value running_log_sum(Value x, int64_t dim) {
  if (rank_of(x) == 0) return x;
  // exp(x - m) is summed up by the greatest m of what came; where that grows, the sum shrinks. The result does not depend on m, so that
  // derivatives leave it out.
  Value m = detached(prim::scan(real(x), dim, "max")), before = previous(m, dim, -kInf);
  Value same = eq(m, before), none = zeros_like(m), less = before - m, finite = finite_or_zero(m);
  Value shrinks = exp(where(same, none, less)), part = exp(x - finite);
  Value y = log(prim::recurrence(part, shrinks, dim)) + finite;
  if (!is_complex(dtype_of(x))) return y;
  Value around = detached(turns(y, x, dim));
  return y + complex(zeros_like(around), around);
}

template <Literal which>
void add_running_extremum(Table& t) {
  t.op(str("aten::cum", which.text, "(Tensor self, int dim) -> (Tensor values, Tensor indices)"))
      .doc(str("The running ", which.text, " along dim, and the index where it last was reached."))
      .composed([](Value x, int64_t dim) { return running_extremum<which>(x, dim); })
      .vjp(own_derivative(running_extremum_derivative))
      .samples({{floats(3, 5), 1}, {ints(4), 0}});
}

}  // namespace

void add_scan(Table& t) {
  t.op("aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
      .doc("Running sums along dim; of integers in int64.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .packed({{floats(8, 8), 1}})
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) { return running(x, dim, dtype, "add"); })
      .samples({{floats(3, 5), 1}, {ints(4), 0}, {floats(0, 3), 0}});
  t.op("aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
      .doc("Running products along dim; of integers in int64.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) { return running(x, dim, dtype, "mul"); })
      .samples({{floats(3, 5), 1}, {ints(4).in(1, 3), 0}});
  t.op("aten::cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor")
      .doc("The derivative of cumprod; its result is not used.")
      .composed(product_backward)
      .samples({{floats(3, 5), floats(3, 5), 1, floats(3, 5)}});
  t.op("aten::cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor")
      .doc("The derivative of cummax and cummin.")
      .composed(running_extremum_backward)
      .samples({{floats(3, 5), floats(3, 5), ints(3, 5), 1}, {floats(4), floats(4), ints(4), 0}});
  add_running_extremum<"max">(t);
  add_running_extremum<"min">(t);
  t.op("aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
      .out(Out::Cast)
      .doc("log Σ exp(x) along dim.")
      .autocast(Autocast::None, Autocast::Float32)
      .packed({{floats(8, 8), list({1})}})
      .composed_in_opmath([](Value v, std::vector<int64_t> dim, bool keep) {
        Value x = to_float(v);
        std::vector<int64_t> dims = reduced_dims(dim, rank_of(x));
        Value m = finite_or_zero(amax(real(x), dims, true));
        Value y = log(sum(exp(x - m), dims, true)) + m;
        if (keep) return y;
        Shape shape;
        for (int64_t d = 0; d < rank_of(x); ++d)
          if (std::find(dims.begin(), dims.end(), d) == dims.end()) shape.push_back(size_of(x, d));
        return prim::reshape(y, shape);
      })
      .vjp(own_derivative([](const Saved& s) {
        Value x = s.in(0);
        std::vector<int64_t> dims = reduced_dims(s.arg<std::vector<int64_t>>(1), rank_of(x));
        Value y = keep_dims(s.out(), shape_of(x), dims);
        return std::vector{keep_dims(s.ct(), shape_of(x), dims) * conj(exp(x - y))};
      }))
      .samples({{floats(3, 5), list({1})}, {floats(2, 3, 4), list({0, 2}), true}, {ints(3), list({0})}});
  t.alias("aten::special_logsumexp", "aten::logsumexp");
  t.op("aten::logcumsumexp(Tensor self, int dim) -> Tensor")
      .doc("Running log Σ exp(x) along dim.")
      .composed_in_opmath([](Value v, int64_t dim) {
        BRASA_CHECK(!is_integral(dtype_of(v), true), "\"logcumsumexp\" not implemented for ", name(dtype_of(v)));
        return running_log_sum(v, wrap_dim(dim, rank_of(v)));
      })
      .samples({{floats(3, 5), 1}});
}

}  // namespace brasa::ops
