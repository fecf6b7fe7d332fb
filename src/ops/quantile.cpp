#include <algorithm>
#include <limits>

#include "ops/accepted.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// What lies at a place of the order: quantiles, the median without NaN, the most frequent element.
namespace brasa::ops {
namespace {

using OptDim = std::optional<int64_t>;

// a + w (b - a), from the nearer end, so that equal ends give themselves.
Value interpolated(Value a, Value b, Value w) { return where(lt(w, 0.5), a + w * (b - a), b - (b - a) * (1.0 - w)); }

Value quantile(const char* op, Value x, Value q, OptDim dim, bool keep, const std::string& interpolation,
               bool skip_nan) {
  static constexpr const char* kModes[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  BRASA_CHECK(dtype_of(x) == DType::Float32 || dtype_of(x) == DType::Float64, op,
              "() input tensor must be either float or double dtype, got ", type_of(x));
  BRASA_CHECK(rank_of(q) <= 1, op, "() q must be a scalar or 1D tensor, got ", type_of(q));
  BRASA_CHECK(dtype_of(q) == dtype_of(x), op, "() q tensor must be same dtype as the input tensor, got ", type_of(q));
  BRASA_CHECK(std::find(std::begin(kModes), std::end(kModes), interpolation) != std::end(kModes), op,
              "() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", interpolation);
  BRASA_CHECK(!same_size(type_of(x).numel(), 0), op, "() input tensor must be non-empty, got ", type_of(x));
  Value valid = logical_and(ge(q, 0), le(q, 1));
  check_values(valid, str(op, "() q values must be in the range [0, 1]"));
  int64_t rank = rank_of(x), axis = dim ? wrap_dim(*dim, rank) : 0;
  Value last = dim ? (rank == 0 ? at_least_1d(x) : move_dims(x, {axis}, {rank - 1})) : flattened(x);
  int64_t end = rank_of(last) - 1;
  Value sorted = prim::sort(last, end, false)[0];
  Expr n = size_of(sorted, end);

  // Ranks have one place for each q as their last dimension. As in PyTorch they are exact to float64: float32 has no digits left between
  // neighbours of a hundred thousand.
  Shape shape = shape_of(sorted);
  shape[end] = rank_of(q) == 0 ? Expr(1) : size_of(q, 0);
  Value wide_q = broadcast_to(at_least_1d(convert(q, DType::Float64)), shape);
  Value nan = is_nan(sorted), ranks;
  auto per_row = [&](Value r) { return broadcast_to(unsqueeze(r, end), shape); };
  if (skip_nan) {
    Value count = sum(convert(logical_not(nan), DType::Float64), {end});
    ranks = wide_q * (per_row(count) - 1.0);
    ranks = where(lt(ranks, 0), zeros_like(ranks), ranks);
  } else {
    Value greatest = size_tensor(n - 1, shape, DType::Float64);
    ranks = where(per_row(reduce(nan, {end}, false, "or")), greatest, wide_q * greatest);
  }
  if (interpolation == "lower") ranks = prim::unary("floor", ranks);
  if (interpolation == "higher") ranks = prim::unary("ceil", ranks);
  if (interpolation == "nearest") ranks = prim::unary("round", ranks);
  Value index = convert(ranks, DType::Int64), out = gather_along(sorted, end, index);
  if (interpolation == "linear" || interpolation == "midpoint") {
    Value above = gather_along(sorted, end, convert(prim::unary("ceil", ranks), DType::Int64));
    Value weight = interpolation == "midpoint" ? constant_like(out, 0.5)
                                               : convert(ranks - convert(index, DType::Float64), dtype_of(out));
    out = interpolated(out, above, weight);
  }

  if (rank_of(q) == 0)
    out = squeeze(out, end);
  else
    out = move_dims(out, {end}, {0});
  if (!keep) return rank == 0 && rank_of(q) == 1 ? prim::reshape(out, {size_of(q, 0)}) : out;
  int64_t lead = rank_of(q);
  if (dim) return rank == 0 ? out : unsqueeze(out, axis + lead);
  for (int64_t d = 0; d < rank; ++d) out = unsqueeze(out, lead);
  return out;
}

template <bool skip_nan>
void add_quantile_row(Table& t) {
  static constexpr const char* op = skip_nan ? "nanquantile" : "quantile";
  const char* doc =
      skip_nan
          ? "As quantile, of what is not NaN."
          : "The q-quantiles along dim, or of all elements; between two neighbours as `interpolation` says. NaN wins.";
  t.op(str("aten::", op,
           "(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"))
      .doc(doc)
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, Value q, OptDim dim, bool keep, std::string interpolation) {
        return quantile(op, x, q, dim, keep, interpolation, skip_nan);
      })
      .samples({{floats(3, 5), floats(2).in(0.1, 0.9)},
                {floats(3, 5), floats(2).in(0.1, 0.9), 1, true, "midpoint"},
                {floats(4), floats().in(0.3, 0.6), 0, false, "nearest"}});
  t.op(str("aten::", op,
           ".scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"))
      .doc(doc)
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, Number q, OptDim dim, bool keep, std::string interpolation) {
        return quantile(op, x, scalar(q, dtype_of(x)), dim, keep, interpolation, skip_nan);
      })
      .precondition([](Value, double q, OptDim, bool, std::string) {
        BRASA_CHECK(q >= 0 && q <= 1, op, "() q must be in the range [0, 1] but got ", q);
      })
      .samples({{floats(3, 5), 0.3}, {floats(3, 5), 0.5, 0, true, "lower"}, {floats(4), 0.7, 0, false, "higher"}});
}

// The one of these elements at its place gets all of the gradient.
std::vector<Value> picked_derivative(Value x, Value ct, Value index, int64_t dim) {
  if (rank_of(x) == 0 || !ct) return {ct};
  dim = wrap_dim(dim, rank_of(x));
  Value chosen = eq(prim::iota(shape_of(x), dim, DType::Int64), keep_dims(index, shape_of(x), {dim}));
  Value wide = broadcast_to(keep_dims(ct, shape_of(x), {dim}), shape_of(x));
  return {where(chosen, wide, zeros_like(wide))};
}

Value without_dim(Value v, int64_t dim, bool keep) { return keep ? v : squeeze(v, dim); }

std::vector<Value> nanmedian(Value x, int64_t dim, bool keep) {
  DType t = dtype_of(real_only("nanmedian", x));
  dim = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return {x, full(0, {}, DType::Int64)};
  if (!is_floating(t)) return call_all("aten::median.dim", {x, dim, keep});
  if (same_size(size_of(x, dim), 0))
    fail_index(str("nanmedian(): Expected reduction dim ", dim, " to have non-zero size, got ", type_of(x)));
  auto [values, indices] = prim::sort(x, dim, false);  // NaN comes last
  Value count = sum(convert(logical_not(is_nan(x)), DType::Int64), {dim}, true);
  Value place = prim::binary("div", maximum(count - 1, zeros_like(count)), constant_like(count, 2));
  return {without_dim(gather_along(values, dim, place), dim, keep),
          without_dim(gather_along(indices, dim, place), dim, keep)};
}

// Of all elements the median has a place that no element decides, once as many NaN as shift it count as the smallest: choosing takes less
// time than sorting.
Value nanmedian_of_all(Value x) {
  DType t = dtype_of(real_only("nanmedian", x));
  if (!is_floating(t) || same_size(type_of(x).numel(), 0)) return call("aten::median", {x});
  x = flattened(x);
  Expr n = size_of(x, 0), middle = ir::floordiv(n - 1, 2);
  Value nan = convert(is_nan(x), DType::Int64), rest = size_tensor(n, {}) - sum(nan, {0});
  Value place = prim::binary("div", maximum(rest - 1, zeros_like(rest)), constant_like(rest, 2));
  Value shift = broadcast_to(size_tensor(middle, {}) - place, {n});
  Value smallest = logical_and(is_nan(x), le(prim::scan(nan, 0, "add"), shift));
  x = where(smallest, constant_like(x, -std::numeric_limits<double>::infinity()), x);
  return squeeze(prim::sort(x, 0, false, middle, 1)[0], 0);
}

// In the sorted row, how long the run of equal elements is so far; its first maximum is the end of the longest run of the
// smallest such element.
std::vector<Value> mode(Value x, int64_t dim, bool keep) {
  dim = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return {x, full(0, {}, DType::Int64)};
  if (same_size(size_of(x, dim), 0))
    fail_index(str("mode(): Expected reduction dim ", dim, " to have non-zero size, got ", type_of(x)));
  auto [values, indices] = prim::sort(x, dim, false);
  Value here = prim::iota(shape_of(x), dim, DType::Int64);
  Expr rest = size_of(x, dim) - 1;
  Value before = prim::concat({narrow(values, dim, 0, 1), narrow(values, dim, 0, rest)}, dim);
  Value same = eq(values, before);
  if (is_floating(dtype_of(x))) same = logical_or(same, logical_and(is_nan(values), is_nan(before)));
  Value start = prim::scan(where(same, zeros_like(here), here), dim, "max");
  Value best = unsqueeze(prim::arg_reduce(here - start, dim, "max"), dim);
  return {without_dim(gather_along(values, dim, best), dim, keep),
          without_dim(gather_along(indices, dim, best), dim, keep)};
}

}  // namespace

void add_quantile(Table& t) {
  add_quantile_row<false>(t);
  add_quantile_row<true>(t);
  t.op("aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .doc("The lower median of what is not NaN along dim, and its index; NaN if all are.")
      .composed(nanmedian)
      .vjp(own_derivative(
          [](const Saved& s) { return picked_derivative(s.in(0), s.ct(), s.out(1), s.arg<int64_t>(1)); }))
      .samples({{floats(3, 5), 1}, {floats(4, 2), 0, true}, {ints(4), 0}});
  t.op("aten::nanmedian(Tensor self) -> Tensor")
      .doc("The lower median of all elements that are not NaN. Equal ones share the gradient.")
      .composed(nanmedian_of_all)
      .vjp(own_derivative([](const Saved& s) {
        Value x = s.in(0), y = s.out();
        Value mine = convert(logical_or(eq(x, y), logical_and(is_nan(x), is_nan(y))), dtype_of(s.ct()));
        return std::vector{mine * (s.ct() / sum(mine, all_dims(mine)))};
      }))
      .samples({{floats(3, 5)}, {ints(4)}});
  t.op("aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .doc("The most frequent element along dim, the smallest of several, and the last index where it stands.")
      .composed(mode)
      .vjp(own_derivative(
          [](const Saved& s) { return picked_derivative(s.in(0), s.ct(), s.out(1), s.arg<int64_t>(1)); }))
      .samples({{floats(3, 5)}, {ints(4, 3), 0, true}, {floats(), 0}});
}

}  // namespace brasa::ops
