#include <algorithm>
#include <array>

#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Tables of indices and powers: combinations, the positions of a triangle, Vandermonde matrices.
namespace brasa::ops {
namespace {

// The positions 0 … n - 1 where `keep` holds, in order; `count` says how many these are.
Value kept(Value keep, Expr n, Expr count) {
  Value here = prim::iota({n}, 0, DType::Int64);
  if (count == n) return here;
  Value keys = where(keep, here, size_tensor(n, {n}));
  return prim::sort(keys, 0, false, 0, count)[0];
}

// How many ascending r-tuples of n things there are, with repeated ones or without.
int64_t tuples(int64_t n, int64_t r, bool repeated) {
  if (repeated) n += r - 1;
  if (r > n) return 0;
  int64_t count = 1;
  for (int64_t i = 1; i <= r; ++i) count = count * (n - r + i) / i;
  return count;
}

// The r-tuples of positions, as numbers of r digits to base n, that ascend.
Value combinations(Value x, int64_t r, bool repeated) {
  BRASA_CHECK(rank_of(x) == 1, "combinations: expected a one-dimensional tensor, got ", type_of(x));
  BRASA_CHECK(r >= 0, "combinations: expected a non-negative number of elements, got ", r);
  if (r == 0) return full(0, {Expr(0)}, dtype_of(x));
  int64_t n = known_size(size_of(x, 0)), all = 1;
  if (n == 0 || (!repeated && r > n)) return full(0, {Expr(0), Expr(r)}, dtype_of(x));
  BRASA_CHECK(r <= INT16_MAX, "combinations: at most ", INT16_MAX, " elements can be chosen, got ", r);
  for (int64_t i = 0; i < r; ++i) {
    BRASA_CHECK(all <= INT32_MAX / n, "combinations: too many combinations of ", r, " out of ", n, " elements");
    all *= n;
  }
  int64_t count = tuples(n, r, repeated);
  auto digits = [&](Value number) {
    std::vector<Value> out(r);
    for (int64_t j = r; j-- > 0;) {
      Value base = constant_like(number, n);
      out[j] = prim::binary("rem", number, base);
      number = prim::binary("div", number, base);
    }
    return out;
  };
  std::vector<Value> each = digits(prim::iota({Expr(all)}, 0, DType::Int64));
  Value ascending = full(true, {Expr(all)}, DType::Bool);
  for (int64_t j = 1; j < r; ++j)
    ascending = logical_and(ascending, repeated ? le(each[j - 1], each[j]) : lt(each[j - 1], each[j]));
  std::vector<Value> columns;
  for (Value index : digits(kept(ascending, Expr(all), count)))
    columns.push_back(unsqueeze(prim::gather(x, {index}, {0}), 1));
  return prim::concat(columns, 1);
}

const char* triangle_name(bool lower) { return lower ? "tril_indices" : "triu_indices"; }

// How many elements of a matrix lie on and below a diagonal: row i has as many as i + offset + 1 is over 0, without those that it
// is over the columns.
Expr on_and_below(Expr rows, Expr columns, Expr offset) {
  auto sum_to = [](Expr n) {  // of 1, 2, …, n
    n = ir::max(n, 0);
    return ir::floordiv(n * (n + 1), 2);
  };
  return sum_to(rows + offset) - sum_to(offset) - sum_to(rows + offset - columns) + sum_to(offset - columns);
}

void check_triangle(const char* op, int64_t rows, int64_t columns) {
  BRASA_CHECK(rows >= 0 && columns >= 0, op, ": row and col must be non-negative, got ", rows, " and ", columns);
  constexpr int64_t kMost = int64_t{1} << 31;
  BRASA_CHECK(columns == 0 || rows <= kMost / columns, op, ": a matrix of ", rows, " rows and ", columns,
              " columns is too large");
}

// Row and column of each element of a triangle, in row-major order.
template <bool lower>
Value triangle(Expr rows, Expr columns, Expr offset, std::optional<DType> dtype) {
  DType t = dtype.value_or(DType::Int64);
  BRASA_CHECK(t == DType::Int64 || t == DType::Int32, triangle_name(lower), ": expected dtype int32 or int64, got ",
              name(t));
  if (same_size(rows, 0) || same_size(columns, 0)) return full(0, {Expr(2), Expr(0)}, t);
  offset = ir::max(ir::min(offset, columns), -rows);
  Expr n = rows * columns;
  auto row_and_column = [&](Value at) {
    Value width = size_tensor(columns, shape_of(at));
    return std::array{prim::binary("div", at, width), prim::binary("rem", at, width)};
  };
  auto [row, column] = row_and_column(prim::iota({n}, 0, DType::Int64));
  Value edge = size_tensor(offset, {n});
  Value inside = lower ? le(column - row, edge) : ge(column - row, edge);
  Expr count = lower ? on_and_below(rows, columns, offset) : n - on_and_below(rows, columns, offset - 1);
  auto [r, c] = row_and_column(kept(inside, n, count));
  return convert(prim::concat({unsqueeze(r, 0), unsqueeze(c, 0)}, 0), t);
}

// 1, x, x², … along a new last dimension, n of them.
Value powers(Value x, Expr n) {
  Value wide = repeat_along(x, rank_of(x), n);
  Value first = eq(prim::iota(shape_of(wide), rank_of(x), DType::Int64), 0);
  return prim::scan(where(first, constant_like(wide, 1), wide), rank_of(x), "mul");
}

Value with_whole_powers(Value x) { return is_integral(dtype_of(x), true) ? convert(x, DType::Int64) : x; }

Value vander(Value x, std::optional<Expr> n, bool increasing) {
  BRASA_CHECK(rank_of(x) == 1, "x must be a one-dimensional tensor, got ", type_of(x));
  Expr count = n.value_or(size_of(x, 0));
  BRASA_CHECK(!is_less(count, 0), "N must be non-negative, got ", count);
  x = with_whole_powers(x);
  if (same_size(count, 0)) return full(0, {size_of(x, 0), Expr(0)}, dtype_of(x));
  Value y = powers(to_opmath(x), count);
  return convert(increasing ? y : prim::reverse(y, {1}), dtype_of(x));
}

Value linalg_vander(Value x, std::optional<Expr> n) {
  BRASA_CHECK(dtype_of(x) != DType::Bool,
              "linalg.vander supports floating point, complex, and integer tensors, but got bool");
  x = with_whole_powers(at_least_1d(x));
  Expr count = n.value_or(size_of(x, rank_of(x) - 1));
  BRASA_CHECK(is_less(1, count), "N must be greater than 1, got ", count);
  return convert(powers(to_opmath(x), count), dtype_of(x));
}

#define BRASA_OPTIONS "ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None"

template <bool lower>
void add_triangle(Table& t) {
  using Text = std::optional<std::string>;
  t.op(str("aten::", lower ? "tril" : "triu",
           "_indices(int row, int col, int offset=0, *, " BRASA_OPTIONS ") -> Tensor"))
      .doc(lower ? "Rows and columns of the elements on and below a diagonal, as two rows."
                 : "Rows and columns of the elements on and above a diagonal, as two rows.")
      .composed([](Expr rows, Expr columns, Expr offset, std::optional<DType> dtype, Text, Text, std::optional<bool>) {
        return triangle<lower>(rows, columns, offset, dtype);
      })
      .precondition([](int64_t rows, int64_t columns, Expr, std::optional<DType>, Text, Text, std::optional<bool>) {
        check_triangle(triangle_name(lower), rows, columns);
      })
      .samples({{3, 4}, {4, 3, -1, DType::Int32}, {0, 2}, {3, 3, 5}});
}

}  // namespace

void add_combinatorics(Table& t) {
  t.op("aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")
      .doc("Every ascending choice of r elements of a vector, a row each, in lexicographic order.")
      .composed(combinations)
      .samples({{floats(4)}, {floats(3), 3, true}, {floats(1)}, {floats(5), 1}});
  t.op("aten::cartesian_prod(Tensor[] tensors) -> Tensor")
      .doc("Every choice of one element of each vector, a row each; of one vector itself.")
      .composed([](std::vector<Value> xs) {
        BRASA_CHECK(!xs.empty(), "cartesian_prod: expected at least one tensor");
        for (Value x : xs) BRASA_CHECK(rank_of(x) == 1, "Expect a 1D vector, but got shape ", shape_of(x));
        for (Value x : xs)
          BRASA_CHECK(dtype_of(x) == dtype_of(xs[0]), "cartesian_prod: expected tensors of one dtype, got ",
                      type_of(xs[0]), " and ", type_of(x));
        if (xs.size() == 1) return xs[0];
        Shape grid;
        for (Value x : xs) grid.push_back(size_of(x, 0));
        std::vector<Value> columns;
        for (size_t i = 0; i < xs.size(); ++i) {
          Value wide = prim::broadcast(xs[i], grid, {static_cast<int64_t>(i)});
          columns.push_back(unsqueeze(flattened(wide), 1));
        }
        return prim::concat(columns, 1);
      })
      .samples({{std::vector<TensorSample>{floats(2), floats(3)}}, {std::vector<TensorSample>{floats(4)}}});
  add_triangle<true>(t);
  add_triangle<false>(t);
  t.op("aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor")
      .doc("Powers of each element, from N - 1 down to 0, or rising; of integers in int64.")
      .composed(vander)
      .samples({{floats(3)}, {floats(4), 3, true}, {ints(3), 4}, {floats(3), 0}});
  t.op("aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor")
      .doc("Rising powers 0 … N - 1 of each element along a new last dimension; of integers in int64.")
      .composed(linalg_vander)
      .samples({{floats(3)}, {floats(2, 3), 4}, {ints(3)}, {floats(), 2}});
}

}  // namespace brasa::ops
