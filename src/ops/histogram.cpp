#include <array>
#include <limits>

#include "ops/positions.h"
#include "ops/rows.h"
#include "ops/search.h"
#include "ops/shapes.h"
#include "support/error.h"

// Counts of elements in bins. The last bin has both its edges, the others their left one.
namespace brasa::ops {
namespace {

using Range = std::optional<std::vector<double>>;
constexpr double kInf = std::numeric_limits<double>::infinity();

void check_finite(const char* op, Value low, Value high) {
  Value ok = logical_and(lt(abs(low), kInf), lt(abs(high), kInf));
  check_values(ok, str(op, ": the range is not finite"));
}

struct Limits {
  Number low, high;
  bool equal_are_none = false;
  bool are_none() const { return equal_are_none && low.is_known() && high.is_known() && high.is(low.as_double()); }
  bool may_be_none() const { return equal_are_none && !(low.is_known() && high.is_known()); }
};

void check_limits(const char* op, double low, double high) {
  BRASA_CHECK(low <= high, op, ": max must not be smaller than min, got [", low, ", ", high, "]");
}

// The outermost edges: those given, or the extrema of a column; equal ones are moved apart by `apart`.
std::array<Value, 2> outer_edges(const char* op, Value column, const std::optional<Limits>& limits, double apart) {
  DType t = dtype_of(column);
  bool empty = same_size(size_of(column, 0), 0);
  auto extremum = [&](const char* which) { return reduce(column, {0}, false, which); };
  Value low, high;
  if (limits && !limits->are_none()) {
    low = scalar(limits->low, t);
    high = scalar(limits->high, t);
    if (limits->may_be_none() && !empty) {
      Value none = eq(scalar(limits->low, DType::Float64), scalar(limits->high, DType::Float64));
      low = where(none, extremum("min"), low);
      high = where(none, extremum("max"), high);
    }
  } else if (empty) {
    return {scalar(0, t), scalar(1, t)};
  } else {
    low = extremum("min");
    high = extremum("max");
  }
  check_finite(op, low, high);
  Value same = eq(low, high);
  return {where(same, low - apart, low), where(same, high + apart, high)};
}

// `bins` equal bins, from both ends as linspace does.
Value even_edges(Value low, Value high, Expr bins) {
  Shape shape{bins + 1};
  auto wide = [&](Expr e) { return size_tensor(e, shape, dtype_of(low)); };
  Value i = prim::iota(shape, 0, dtype_of(low)), step = (high - low) / size_tensor(bins, {}, dtype_of(low));
  Value up = broadcast_to(low, shape) + i * step, down = broadcast_to(high, shape) - (wide(bins) - i) * step;
  return where(lt(i, wide(ir::floordiv(bins + 1, 2))), up, down);
}

// The bin of each element of a column among ascending edges; what lies outside gets one that is not there.
Value bins_of(Value column, Value edges) {
  Expr n = size_of(edges, 0);
  Value bin = count_before(edges, column, true) - 1;
  Value last = size_tensor(n - 1, shape_of(bin));
  Value end = broadcast_to(narrow(edges, 0, n - 1, 1), shape_of(column));
  return where(logical_and(eq(bin, last), eq(column, end)), last - 1,
               where(eq(bin, last), constant_like(bin, -1), bin));
}

// The same among even edges: where the element lies between the outermost ones says which bin it is, or a neighbour of it.
Value even_bins_of(Value column, Value edges) {
  Value x = to_opmath(column);
  edges = to_opmath(edges);
  const Shape& shape = shape_of(x);
  Expr n = size_of(edges, 0) - 1;
  Value low = broadcast_to(narrow(edges, 0, 0, 1), shape), high = broadcast_to(narrow(edges, 0, n, 1), shape);
  Value share = (x - low) / (high - low) * size_tensor(n, shape, dtype_of(x));
  Value inside = logical_and(ge(x, low), le(x, high));
  // A range beyond the largest number has no shares.
  Value known = logical_and(inside, le(share, size_tensor(n, shape, dtype_of(x))));
  Value last = size_tensor(n - 1, shape);
  Value bin = minimum(convert(where(known, share, zeros_like(share)), DType::Int64), last);
  Value before = lt(x, prim::gather(edges, {bin}, {0})), behind = ge(x, prim::gather(edges, {bin + 1}, {0}));
  bin = minimum(bin + convert(behind, DType::Int64) - convert(before, DType::Int64), last);
  return where(inside, bin, constant_like(bin, -1));
}

// Sums of weights (or 1) by bin; `bins` has a vector for each dimension of the result.
Value counts(const std::vector<Value>& bins, const Shape& shape, Value weight, DType t) {
  Value at = zeros_like(bins[0]), inside = full(true, shape_of(bins[0]), DType::Bool);
  for (size_t d = 0; d < bins.size(); ++d) {
    Value size = size_tensor(shape[d], shape_of(at));
    inside = logical_and(inside, logical_and(ge(bins[d], 0), lt(bins[d], size)));
    at = at * size + bins[d];
  }
  Value w = weight ? with_sizes(convert(flattened(weight), t), shape_of(at)) : full(1, shape_of(at), t);
  Expr n = ir::product(shape);
  Value flat = full(0, {n}, t);
  if (same_size(size_of(at, 0), 0) || same_size(n, 0)) return prim::reshape(flat, shape);
  // The place alone says what is left out: it is all that goes to memory.
  at = where(inside, at, constant_like(at, -1));
  flat = prim::scatter(flat, {at}, where(ge(at, 0), w, zeros_like(w)), {0}, "add");
  return prim::reshape(flat, shape);
}

Value as_density(Value hist, const std::vector<Value>& edges) {
  hist = hist / sum(hist, all_dims(hist));
  for (size_t d = 0; d < edges.size(); ++d) {
    Expr n = size_of(edges[d], 0) - 1;
    Value length = narrow(edges[d], 0, 1, n) - narrow(edges[d], 0, 0, n);
    hist = hist / along(length, static_cast<int64_t>(d), rank_of(hist));
  }
  return hist;
}

void check_input(const char* op, Value x) {
  BRASA_CHECK(is_floating(dtype_of(x)), op, ": expected a floating tensor, got ", type_of(x));
}
void check_weight(const char* op, Value x, Value weight, int64_t rank) {
  if (!weight) return;
  BRASA_CHECK(dtype_of(weight) == dtype_of(x), op,
              ": if weight tensor is provided, input tensor and weight tensor should have the ", "same dtype, got ",
              type_of(x), " and ", type_of(weight));
  bool fits = rank_of(weight) == rank;
  for (int64_t d = 0; fits && d < rank; ++d) fits = same_size(size_of(weight, d), size_of(x, d));
  BRASA_CHECK(fits, op, ": if weight tensor is provided it should have the same shape as the input tensor, got ",
              type_of(x), " and ", type_of(weight));
}
void check_bins(const char* op, Expr bins) { BRASA_CHECK(is_less(0, bins), op, ": bins must be > 0, but got ", bins); }

// --- histc: an element's bin from its distance to the lowest edge.

Value histc(Value self, Expr bins, Number lowest, Number highest) {
  check_input("histc", self);
  Value x = to_opmath(flattened(self));
  auto [low, high] = outer_edges("torch.histc", x, Limits{lowest, highest, true}, 1);
  Value wide_low = broadcast_to(low, shape_of(x)), wide_high = broadcast_to(high, shape_of(x));
  Value inside = logical_and(ge(x, wide_low), le(x, wide_high));
  Value place = (x - wide_low) / (wide_high - wide_low) * size_tensor(bins, shape_of(x), dtype_of(x));
  Value bin = convert(where(inside, place, zeros_like(place)), DType::Int64);
  Value last = size_tensor(bins - 1, shape_of(bin));
  bin = where(gt(bin, last), last, bin);
  bin = where(inside, bin, constant_like(bin, -1));
  return convert(counts({bin}, {bins}, Value{}, dtype_of(x)), dtype_of(self));
}

// --- histogram and histogramdd: points are the rows of a matrix.

struct Points {
  Value rows;  // [points, dimensions]
  Value column(int64_t d) const { return squeeze(narrow(rows, 1, d, 1), 1); }
};

Points points_of(const char* op, Value x) {
  check_input(op, x);
  BRASA_CHECK(rank_of(x) >= 2, op, ": input tensor should have at least 2 dimensions, got ", type_of(x));
  int64_t last = rank_of(x) - 1;
  BRASA_CHECK(known_size(size_of(x, last)) > 0, op, ": the points have no coordinates, got ", type_of(x));
  Value rows = rank_of(x) == 2 ? x : merge_dims(x, 0, last - 1);
  return {rows};
}

std::vector<Value> edges_of(const char* op, const Points& p, const Shape& bins, const Range& range) {
  auto n = static_cast<int64_t>(bins.size());
  BRASA_CHECK(same_size(size_of(p.rows, 1), Expr(n)), op, ": expected ", size_of(p.rows, 1),
              " sequences of bin edges for a tensor whose innermost dimension has this size, got ", n);
  BRASA_CHECK(!range || static_cast<int64_t>(range->size()) == 2 * n, op, ": expected range to hold ", 2 * n,
              " numbers, got ", range ? range->size() : 0);
  std::vector<Value> out;
  for (int64_t d = 0; d < n; ++d) {
    check_bins(op, bins[d]);
    std::optional<Limits> own;
    if (range) {
      check_limits(op, (*range)[2 * d], (*range)[2 * d + 1]);
      own = Limits{(*range)[2 * d], (*range)[2 * d + 1]};
    }
    auto [low, high] = outer_edges(op, p.column(d), own, 0.5);
    out.push_back(even_edges(low, high, bins[d]));
  }
  return out;
}

Value hist_of(const char* op, const Points& p, const std::vector<Value>& edges, bool even, Value weight, bool density) {
  BRASA_CHECK(!edges.empty(), op, ": points must have at least one coordinate, got ", type_of(p.rows));
  BRASA_CHECK(same_size(size_of(p.rows, 1), Expr(static_cast<int64_t>(edges.size()))), op, ": expected ",
              size_of(p.rows, 1), " sequences of bin edges, got ", edges.size());
  std::vector<Value> bins;
  Shape shape;
  for (size_t d = 0; d < edges.size(); ++d) {
    BRASA_CHECK(rank_of(edges[d]) == 1 && !is_less(size_of(edges[d], 0), 2) && dtype_of(edges[d]) == dtype_of(p.rows),
                op, ": expected a vector of at least two edges of the input's dtype, got ", type_of(edges[d]));
    bins.push_back((even ? even_bins_of : bins_of)(p.column(static_cast<int64_t>(d)), edges[d]));
    shape.push_back(size_of(edges[d], 0) - 1);
  }
  Value hist = counts(bins, shape, weight, dtype_of(p.rows));
  return density ? as_density(hist, edges) : hist;
}

std::vector<Value> with_edges(Value hist, const std::vector<Value>& edges) {
  std::vector<Value> out{hist};
  out.insert(out.end(), edges.begin(), edges.end());
  return out;
}

std::vector<Value> histogramdd(Value x, const Shape& bins, const Range& range, Value weight, bool density) {
  Points p = points_of("torch.histogramdd", x);
  check_weight("torch.histogramdd", x, weight, rank_of(x) - 1);
  std::vector<Value> edges = edges_of("torch.histogramdd", p, bins, range);
  return with_edges(hist_of("torch.histogramdd", p, edges, true, weight, density), edges);
}

Value from_edges(Value x, const std::vector<Value>& edges, Value weight, bool density) {
  Points p = points_of("torch.histogramdd", x);
  check_weight("torch.histogramdd", x, weight, rank_of(x) - 1);
  return hist_of("torch.histogramdd", p, edges, false, weight, density);
}

Points single(const char* op, Value x, Value weight) {
  check_input(op, x);
  check_weight(op, x, weight, rank_of(x));
  return {prim::reshape(x, {type_of(x).numel(), Expr(1)})};
}

void add_one_dimension(Table& t) {
  t.op("aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor")
      .doc(
          "How many elements lie in each of `bins` equal bins of [min, max], or of the elements' range if both are equal.")
      .composed(histc)
      .precondition([](Value, int64_t bins, const Number& min, const Number& max) {
        check_bins("histc", bins);
        check_limits("torch.histc", min.as_double(), max.as_double());
      })
      .no_gradient()
      .samples({{floats(3, 5), 4}, {floats(7), 3, -1, 1}, {floats(0), 2}});
  t.op("aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)")
      .doc(
          "How many elements, or how much weight, lies between neighbours of a vector of ascending edges; as a density if asked for.")
      .composed([](Value x, Value edges, Value weight, bool density) {
        Points p = single("torch.histogram", x, weight);
        return std::vector{hist_of("torch.histogram", p, {edges}, false, weight, density), edges};
      })
      .no_gradient()
      .samples({{floats(3, 5), floats(3)}, {floats(4), floats(2), floats(4), true}});
  t.op("aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)")
      .doc("histogram with equal bins over range, or over the range of the elements.")
      .composed([](Value x, Expr bins, Range range, Value weight, bool density) {
        Points p = single("torch.histogram", x, weight);
        std::vector<Value> edges = edges_of("torch.histogram", p, {bins}, range);
        return with_edges(hist_of("torch.histogram", p, edges, true, weight, density), edges);
      })
      .no_gradient()
      .samples({{floats(3, 5), 4}, {floats(4), 2, std::vector<double>{-1, 1}, floats(4), true}, {floats(0), 3}});
}

void add_many_dimensions(Table& t) {
  const char* doc =
      "The histogram of points, the last dimension of self, in as many dimensions; the edges of the bins follow.";
  t.op("aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
      .doc(doc)
      .composed([](Value x, Shape bins, Range range, Value weight, bool density) {
        return histogramdd(x, bins, range, weight, density);
      })
      .no_gradient()
      .samples({{floats(5, 2), list({2, 3})}, {floats(4, 1), list({2}), std::vector<double>{-1, 1}, floats(4), true}});
  t.op("aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
      .doc(doc)
      .composed([](Value x, Expr bins, Range range, Value weight, bool density) {
        BRASA_CHECK(rank_of(x) >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, got ",
                    type_of(x));
        Shape each(known_size(size_of(x, rank_of(x) - 1)), bins);
        return histogramdd(x, each, range, weight, density);
      })
      .no_gradient()
      .samples({{floats(5, 2), 3}});
  t.op("aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
      .doc(doc)
      .composed([](Value x, std::vector<Value> edges, Range, Value weight, bool density) {
        return with_edges(from_edges(x, edges, weight, density), edges);
      })
      .no_gradient()
      .samples({{floats(5, 2), std::vector<TensorSample>{floats(2), floats(3)}}});
  t.op("aten::_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]")
      .doc("The edges of histogramdd's bins.")
      .composed([](Value x, Shape bins, Range range, Value, bool) {
        return edges_of("torch.histogramdd", points_of("torch.histogramdd", x), bins, range);
      })
      .no_gradient()
      .samples({{floats(5, 2), list({2, 3})}});
  t.op("aten::_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor")
      .doc("histogramdd without the edges.")
      .composed([](Value x, Shape bins, Range range, Value weight, bool density) {
        return histogramdd(x, bins, range, weight, density)[0];
      })
      .no_gradient()
      .samples({{floats(5, 2), list({2, 3})}});
  t.op("aten::_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor")
      .doc("histogramdd with given edges, without giving them back.")
      .composed([](Value x, std::vector<Value> edges, Value weight, bool density) {
        return from_edges(x, edges, weight, density);
      })
      .no_gradient()
      .samples({{floats(5, 2), std::vector<TensorSample>{floats(2), floats(3)}}});
}

}  // namespace

void add_histogram(Table& t) {
  add_one_dimension(t);
  add_many_dimensions(t);
}

}  // namespace brasa::ops
