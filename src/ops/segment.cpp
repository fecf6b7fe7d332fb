#include <limits>

#include "ops/linear_algebra.h"
#include "ops/positions.h"
#include "ops/rows.h"
#include "support/error.h"

// Reductions of consecutive segments along a dimension. The dimensions before it are those of lengths or offsets too. Then products of
// consecutive groups of rows, each with a matrix of its own: the experts of a mixture. Where groups end is data.
namespace brasa::ops {
namespace {

struct Segments {
  int64_t axis;
  Value id;       // [outer…, size]: the segment of each position, `count` behind the last
  Value lengths;  // [outer…, count]
  Expr count;
};

Segments segments_of(const char* op, Value x, Value lengths, Value offsets, int64_t axis) {
  BRASA_CHECK(rank_of(x) > 0, op, ": expected data of at least 1 dimension, got ", type_of(x));
  Segments s;
  s.axis = wrap_dim(axis, rank_of(x));
  BRASA_CHECK(static_cast<bool>(lengths) != static_cast<bool>(offsets), op,
              ": Either lengths or offsets must be defined, and not both");
  Value given = lengths ? lengths : offsets;
  BRASA_CHECK(is_integral(dtype_of(given)) && rank_of(given) == s.axis + 1, op, ": expected ",
              lengths ? "lengths" : "offsets", " of ", s.axis + 1, " dimensions and an integer dtype for axis ", s.axis,
              ", got ", type_of(given));
  for (int64_t d = 0; d < s.axis; ++d)
    BRASA_CHECK(same_size(size_of(given, d), size_of(x, d)), op, ": expected sizes before axis ", s.axis,
                " to be equal, got ", type_of(x), " and ", type_of(given));
  Shape shape(shape_of(x).begin(), shape_of(x).begin() + s.axis);
  shape.push_back(size_of(given, s.axis));
  (lengths ? lengths : offsets) = with_sizes(given, shape);
  Value starts = lengths ? segment_starts(lengths) : convert(offsets, DType::Int64);
  s.count = size_of(starts, s.axis) - 1;
  s.lengths = narrow(starts, s.axis, 1, s.count) - narrow(starts, s.axis, 0, s.count);
  s.id = segment_of(starts, size_of(x, s.axis));
  Value inside = ge(s.id, 0);
  s.id = where(inside, s.id, size_tensor(s.count, shape_of(s.id)));
  return s;
}

// Indices of x's elements that name the segment of each instead of the position.
std::vector<Value> by_segment(const Segments& s) { return indices_along(shape_of(s.id), s.axis, s.id); }
Dims leading(const Segments& s) { return counted(0, s.axis + 1); }

Value combined(Value x, const Segments& s, const Number& initial, const char* combine) {
  Shape shape = shape_of(x);
  // A place behind the last segment takes what belongs to none.
  shape[s.axis] = s.count + 1;
  Value all = prim::scatter(full(initial, shape, dtype_of(x)), by_segment(s), x, leading(s), combine);
  return narrow(all, s.axis, 0, s.count);
}
// A value of each segment beside its elements; zero behind the last segment.
Value spread(Value v, const Segments& s) { return prim::gather(pad_dim(v, s.axis, 0, 1), by_segment(s), leading(s)); }
Value beside(Value lengths, Value like) {
  return prim::broadcast(convert(lengths, dtype_of(like)), shape_of(like), counted(0, rank_of(lengths)));
}

const char* combiner(const std::string& reduce) {
  if (reduce == "sum" || reduce == "mean") return "add";
  if (reduce == "prod") return "mul";
  if (reduce == "max" || reduce == "min") return reduce == "max" ? "max" : "min";
  fail(str("segment_reduce: expected reduce to be sum, mean, prod, max or min, got '", reduce, "'"));
}

Value segment_reduce(Value x, std::string reduce, Value lengths, Value indices, Value offsets, int64_t axis,
                     bool unsafe, std::optional<Number> initial) {
  BRASA_CHECK(!indices, "segment_reduce: indices based reduction is not supported, use lengths or offsets");
  BRASA_CHECK(is_floating(dtype_of(x)), "segment_reduce: not implemented for ", name(dtype_of(x)), " tensors");
  const char* combine = combiner(reduce);
  Segments s = segments_of("segment_reduce", x, lengths, offsets, axis);
  if (!unsafe && lengths)
    check_values(
        eq(sum(s.lengths, {rank_of(s.lengths) - 1}), size_tensor(size_of(x, s.axis), {})),
        "segment_reduce: Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
  double infinity = std::numeric_limits<double>::infinity();
  Number start = initial           ? *initial
                 : reduce == "max" ? Number(-infinity)
                 : reduce == "min" ? Number(infinity)
                                   : Number(reduce == "prod" ? 1 : 0);
  Value out = combined(x, s, start, combine);
  if (reduce != "mean") return out;
  // An empty segment gives the initial value, or 0/0 if there is none.
  Value n = beside(s.lengths, out);
  return initial ? out / maximum(n, constant_like(n, 1)) : out / n;
}

Value segment_pullback(Value g, Value out, Value x, const std::string& reduce, Value lengths, Value offsets,
                       int64_t axis, std::optional<Number> initial) {
  combiner(reduce);
  Segments s = segments_of("_segment_reduce_backward", x, lengths, offsets, axis);
  check_same_shape("_segment_reduce_backward", g, out);
  Shape results = shape_of(x);
  results[s.axis] = s.count;
  BRASA_CHECK(rank_of(g) == rank_of(x), "_segment_reduce_backward: expected a gradient of shape ", results, ", got ",
              type_of(g));
  g = with_sizes(g, results);
  out = with_sizes(out, results);
  if (reduce == "sum") return spread(g, s);
  if (reduce == "mean") {
    Value n = beside(s.lengths, g);
    return spread(g / maximum(n, constant_like(n, 1)), s);
  }
  Value wide = spread(g, s), zero = zeros_like(x);
  if (reduce == "prod") {
    // Where one factor is zero, the product of the others is left; where more are, nothing.
    Value is_zero = eq(x, 0);
    Value others = combined(where(is_zero, constant_like(x, 1), x), s, initial ? *initial : Number(1), "mul");
    Value zeros = combined(convert(is_zero, dtype_of(x)), s, 0, "add");
    Value share = spread(where(eq(zeros, 1), g * others, zeros_like(g)), s);
    return where(is_zero, share, wide * spread(out, s) / x);
  }
  Value best = logical_or(eq(x, spread(out, s)), is_nan(x));
  Value n = combined(convert(best, dtype_of(x)), s, 0, "add");
  return where(best, spread(g / maximum(n, constant_like(n, 1)), s), zero);
}

std::vector<Value> segment_vjp(const Saved& s) {
  return {segment_pullback(s.ct(), s.out(), s.in(0), s.arg<std::string>(1), s.in(2), s.in(4), s.arg<int64_t>(5),
                           s.arg<std::optional<Number>>(7))};
}

// Rows of a block. Each block is of one group, so that there are as many blocks at most as rows, and as whole blocks of rows and groups.
// A product packs the matrix of each block, so small ones cost memory, and large ones products of rows that are not there.
constexpr int64_t kBlock = 32;

struct Groups {
  Value starts, ends;         // [groups]: of their rows
  Value first_block, inside;  // [groups]: their blocks begin there; [blocks, kBlock]: whether there is a row
  Value group, row;           // [blocks]: of each; [blocks, kBlock]: its rows, in range where there is none
  Expr rows, blocks;
};

Value quotient(Value v) { return prim::binary("div", v, constant_like(v, kBlock)); }
Value pick(Value v, Value i) { return prim::gather(v, {i}, {0}); }
Value at_most(Value v, Expr n) { return minimum(v, size_tensor(n, shape_of(v))); }
Value beside(Value v, const Shape& shape) { return prim::broadcast(v, shape, counted(0, rank_of(v))); }

Groups groups_of(Value offs, Expr rows) {
  check_rank("_grouped_mm", "offs", offs, 1);
  BRASA_CHECK(is_integral(dtype_of(offs)), "_grouped_mm: expected integer offs, got ", type_of(offs));
  Groups g;
  Expr n = size_of(offs, 0);
  BRASA_CHECK(is_less(0, n), "_grouped_mm: expected offs of a group at least");
  g.rows = rows;
  g.ends = convert(offs, DType::Int64);
  g.starts = prim::pad(narrow(g.ends, 0, 0, n - 1), scalar(0, DType::Int64), {Expr(1)}, {Expr(0)}, {Expr(0)});
  check_values(logical_and(ge(g.ends, g.starts), le(g.ends, size_tensor(rows, shape_of(g.ends)))),
               str("_grouped_mm: offs have to ascend, to ", rows, " at most"));
  g.blocks = ir::min(rows, ir::floordiv(rows, kBlock) + n);
  Value starts = segment_starts(quotient(g.ends - g.starts + (kBlock - 1)));
  g.first_block = narrow(starts, 0, 0, n);
  g.group = segment_of(g.first_block, g.blocks);
  Shape shape = {g.blocks, kBlock};
  Value number = prim::iota({g.blocks}, 0, DType::Int64);
  Value first = pick(g.starts, g.group) + (number - pick(g.first_block, g.group)) * kBlock;
  Value row = beside(first, shape) + prim::iota(shape, 1, DType::Int64);
  g.inside = lt(row, beside(pick(g.ends, g.group), shape));
  g.row = at_most(row, rows - 1);
  return g;
}

// [blocks, kBlock, …]: zeros where there is no row.
Value in_blocks(Value x, const Groups& g) {
  Value rows = pick(x, g.row);
  return prim::select(beside(g.inside, shape_of(rows)), rows, zeros_like(rows));
}

// Rows [n, k] by matrices [groups, k, m]; those behind the last group are 0.
Value rows_by_matrices(Value x, Value w, Value offs) {
  BRASA_CHECK(same_size(size_of(x, 1), size_of(w, 1)) && same_size(size_of(offs, 0), size_of(w, 0)),
              "_grouped_mm: expected rows, a matrix for each group and the end of each group's rows, got ", type_of(x),
              ", ", type_of(w), " and ", type_of(offs));
  Groups g = groups_of(offs, size_of(x, 0));
  Value products = mm(in_blocks(x, g), pick(w, g.group));
  Value number = prim::iota({g.rows}, 0, DType::Int64), group = segment_of(g.starts, g.rows);
  Value place = number - pick(g.starts, group), block = quotient(place);
  Value rows = prim::gather(
      products, {at_most(pick(g.first_block, group) + block, g.blocks - 1), place - block * kBlock}, {0, 1});
  Value used = lt(number, pick(g.ends, group));
  return prim::select(beside(used, shape_of(rows)), rows, zeros_like(rows));
}

// [groups, k, m] of x [n, k] and y [n, m]: xᵀ y of each group's rows.
Value products_of_rows(Value x, Value y, Value offs) {
  BRASA_CHECK(same_size(size_of(x, 0), size_of(y, 0)), "_grouped_mm: expected as many columns as rows, got ",
              type_of(mt(x)), " and ", type_of(y));
  Groups g = groups_of(offs, size_of(x, 0));
  Value products = mm(mt(in_blocks(x, g)), in_blocks(y, g));
  Value none = full(0, {size_of(offs, 0), size_of(x, 1), size_of(y, 1)}, dtype_of(products));
  return prim::scatter(none, {g.group}, products, {0}, "add");
}

Value grouped_mm(Value a, Value b, Value offs, Value bias, const std::optional<DType>& dtype) {
  int64_t ranks = 10 * rank_of(a) + rank_of(b);
  BRASA_CHECK(rank_of(a) >= 2 && rank_of(a) <= 3 && rank_of(b) >= 2 && rank_of(b) <= 3 && dtype_of(a) == dtype_of(b) &&
                  is_floating(dtype_of(a)),
              "_grouped_mm: expected matrices, or one for each group, of one floating dtype, got ", type_of(a), " and ",
              type_of(b));
  BRASA_CHECK(!bias, "_grouped_mm: Bias not supported yet");
  BRASA_CHECK(ranks == 33 ? !offs : static_cast<bool>(offs),
              "_grouped_mm: expected offs if and only if an operand has two dimensions");
  Value out = ranks == 33   ? mm(a, b)
              : ranks == 23 ? rows_by_matrices(a, b, offs)
              : ranks == 32 ? mt(rows_by_matrices(mt(b), mt(a), offs))
                            : products_of_rows(mt(a), b, offs);
  return convert(out, dtype.value_or(dtype_of(a)));
}

}  // namespace

void add_segment(Table& t) {
  t.op("aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor")
      .doc("The sum, mean, prod, max or min of each segment along axis, together with the initial value.")
      .composed_in_opmath(segment_reduce)
      .vjp(own_derivative(segment_vjp))
      .samples({{floats(3, 2), "sum", ints(3).in(1, 2)},
                {floats(2, 2), "mean", ints(2, 2).in(1, 2), ir::None{}, ir::None{}, 1, true, 0.5},
                {floats(2), "max", ints(2).in(1, 2)},
                {floats(2), "prod", ints(2).in(1, 2)}});
  t.op("aten::_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor")
      .doc("The derivative of segment_reduce; elements that share an extremum share its gradient.")
      .composed_in_opmath([](Value g, Value out, Value x, std::string reduce, Value lengths, Value offsets,
                             int64_t axis, std::optional<Number> initial) {
        return segment_pullback(g, out, x, reduce, lengths, offsets, axis, initial);
      })
      .one_dtype({"grad", "output", "data"})
      .samples({{floats(3, 2), floats(3, 2), floats(3, 2), "sum", ints(3).in(1, 2)}});
  t.op("aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) "
       "-> Tensor")
      .doc(
          "Group i ends at offs[i] and begins where the one before it ends. self [n, k] and mat2 [groups, k, m]: its rows by its matrix, zeros "
          "behind the last group. Groups of mat2's columns, where self has the matrices; two matrices: the products of self's columns and mat2's "
          "rows of each group, [groups, …]; two batches: their products.")
      .composed(grouped_mm)
      .samples({{floats(5, 3), floats(2, 3, 4), tensor(DType::Int64, {2}).in(2, 3)},
                {floats(0, 3), floats(2, 3, 4), tensor(DType::Int64, {2}).in(0, 1)},
                {floats(2, 4, 3), floats(3, 5), tensor(DType::Int64, {2}).in(2, 3)},
                {floats(3, 5), floats(5, 2), tensor(DType::Int64, {2}).in(2, 3)},
                {floats(2, 3, 4), floats(2, 4, 3)}});
}

}  // namespace brasa::ops
