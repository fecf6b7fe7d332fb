#include "ops/algebra.h"
#include "ops/builder.h"
#include "ops/decompose.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Operators whose results' size depends on values. Each says how to find that size, and composes its results for it.
namespace brasa::ops {
namespace {

constexpr DType kInt = DType::Int64;

Value total(Value flags) { return sum(convert(flags, kInt), all_dims(flags)); }
Value flat_index(Value x) { return prim::iota(shape_of(x), 0, kInt); }

// Positions of the first `n` true elements of a flat mask: each writes its index where the running count of true ones says. The
// others write into one place more, which is cut off. Nothing is added there: a sum of all others would be one long chain.
Value scattered_positions(Value mask, Expr n) {
  Value rank = prim::scan(convert(mask, kInt), 0, "add") - 1, end = size_tensor(n, shape_of(mask));
  Value to = where(mask, minimum(rank, end), end);
  Value out = prim::scatter(full(0, {n + Expr(1)}, kInt), {to}, flat_index(mask), {0}, "");
  return prim::slice(out, {Expr(0)}, {n}, {Expr(1)});
}

std::vector<Type> positions_type(const Args& args) {
  const Type& mask = ir::type_of(args[0].get<Value>());
  BRASA_CHECK(mask.rank() == 1 && mask.dtype == DType::Bool, "prim::positions is not defined for ", mask);
  return {{kInt, {args[1].get<Expr>()}, false}};
}

// A target that has a function for it leaves out whole pieces of the mask.
Value positions(Value mask, Expr n) { return taken_or_composed("prim::positions", {mask, n})[0]; }

Value is_set(Value x) { return dtype_of(x) == DType::Bool ? x : ne(x, 0); }

// The coordinates of flat positions in a tensor of this shape, one value a dimension.
std::vector<Value> coordinates(Value position, const Shape& shape) {
  std::vector<Value> out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    Value size = maximum(size_tensor(shape[d], shape_of(position)), full(1, shape_of(position), kInt));
    out[d] = prim::binary("rem", position, size);
    position = prim::binary("div", position, size);
  }
  return out;
}

Value nonzero_count(Value x) { return total(is_set(x)); }

std::vector<Value> nonzero_columns(Value x, Expr n) {
  return coordinates(positions(flattened(is_set(x)), n), shape_of(x));
}

Value nonzero(Value x, Expr n) {
  if (rank_of(x) == 0) return full(0, {n, Expr(0)}, kInt);
  std::vector<Value> columns;
  for (Value c : nonzero_columns(x, n)) columns.push_back(prim::reshape(c, {n, Expr(1)}));
  return prim::concat(columns, 1);
}

Value nonzero_static(Value x, Expr size, Number fill) {
  BRASA_CHECK(!is_less(size, 0), "nonzero_static: 'size' must be an non-negative integer, got ", size);
  if (rank_of(x) == 0) return full(fill, {size, Expr(0)}, kInt);
  Value mask = flattened(is_set(x)), at = positions(mask, size);
  // Behind the last place there are zeros, and only the first place may be 0.
  Value first = eq(prim::iota({size}, 0, kInt), 0);
  Value filled = logical_and(prim::gather(mask, {at}, {0}), logical_or(first, gt(at, 0)));
  std::vector<Value> columns;
  for (Value c : coordinates(at, shape_of(x)))
    columns.push_back(prim::reshape(where(filled, c, full(fill, {size}, kInt)), {size, Expr(1)}));
  return prim::concat(columns, 1);
}

std::array<Value, 2> masked(Value x, Value mask) {
  BRASA_CHECK(dtype_of(mask) == DType::Bool, "masked_select: expected BoolTensor for mask, got ", type_of(mask));
  Shape shape = broadcast_shapes(shape_of(x), shape_of(mask));
  return {broadcast_to(x, shape), broadcast_to(mask, shape)};
}

Value masked_select(Value x, Value mask, Expr n) {
  auto [values, flags] = masked(x, mask);
  return prim::gather(flattened(values), {positions(flattened(flags), n)}, {0});
}

// ---- repeat_interleave

Value checked_repeats(Value repeats) {
  BRASA_CHECK(rank_of(repeats) <= 1, "repeat_interleave: repeats must be 0-dim or 1-dim tensor, got ",
              type_of(repeats));
  BRASA_CHECK(dtype_of(repeats) == kInt || dtype_of(repeats) == DType::Int32,
              "repeat_interleave: repeats has to be Long or Int tensor, got ", type_of(repeats));
  Value r = convert(repeats, kInt);
  check_values(ge(r, 0), "repeat_interleave: repeats can not be negative");
  return r;
}

// Element i of 0 … m - 1 repeated repeats[i] times: where a new one begins, the running count goes up.
Value repeated_index(Value repeats, Expr n) {
  Value after = prim::scan(repeats, 0, "add"), before = after - repeats;
  Value marks = prim::scatter(full(0, {n + Expr(1)}, kInt), {before}, full(1, shape_of(before), kInt), {0}, "add");
  return prim::slice(prim::scan(marks, 0, "add"), {Expr(0)}, {n}, {Expr(1)}) - 1;
}

Value repeats_for(Value x, Value repeats, const std::optional<int64_t>& dim) {
  Value r = checked_repeats(repeats);
  Expr size = dim ? (rank_of(x) == 0 ? Expr(1) : size_of(x, wrap_dim(*dim, rank_of(x)))) : size_of(flattened(x), 0);
  if (rank_of(r) == 0 || is_one(size_of(r, 0))) return broadcast_to(r, {size});
  BRASA_CHECK(same_size(size_of(r, 0), size),
              "repeat_interleave: repeats must have the same size as input along dim, but got ", type_of(repeats),
              " for ", size, " elements");
  return r;
}

Value given_or(const std::optional<Expr>& size, Value counted) { return size ? size_tensor(*size, {}) : counted; }
int64_t given_or_unknown(const std::optional<Expr>& size) {
  BRASA_CHECK(!size || size->constant() >= 0, "repeat_interleave: expected a non-negative output_size, got ", *size);
  return size ? size->constant() : -1;
}

// As repeated_index for n that may be the caller's.
Value repeated_index(Value repeats, const std::optional<Expr>& given, Expr n) {
  if (given)
    check_values(eq(total(repeats), size_tensor(n, {})),
                 str("repeat_interleave: allocated size ", n, " does not match required size"));
  return repeated_index(repeats, n);
}

Value repeat_numbers(Value repeats, std::optional<Expr> given, Expr n) {
  return convert(repeated_index(checked_repeats(repeats), given, n), dtype_of(repeats));
}
Value repeat_slices(Value x, Value repeats, std::optional<int64_t> dim, std::optional<Expr> given, Expr n) {
  Value from = dim ? at_least_1d(x) : flattened(x);
  int64_t d = wrap_dim(dim.value_or(0), rank_of(from));
  return move_dims(prim::gather(from, {repeated_index(repeats_for(x, repeats, dim), given, n)}, {d}), {0}, {d});
}

// ---- unique

Value concat_first(Value first, Value rest) { return prim::concat({first, rest}, 0); }

// True at the first of each run of equal values, or rows, along dimension 0.
Value run_starts(Value sorted) {
  Expr n = size_of(sorted, 0);
  if (same_size(n, Expr(0))) return full(true, {n}, DType::Bool);
  Value before = narrow(sorted, 0, 0, n - 1), after = narrow(sorted, 0, 1, n - 1), differs = ne(after, before);
  if (rank_of(differs) > 1) differs = reduce(differs, {1}, false, "or");
  return concat_first(full(true, {Expr(1)}, DType::Bool), differs);
}

struct Groups {
  Value order;   // positions of the elements in sorted order
  Value starts;  // by place in that order: the first of a group
};

Groups sorted_groups(Value keys) {
  auto [values, order] = prim::sort(keys, 0, false);
  return {order, run_starts(values)};
}
Groups groups_as_they_stand(Value keys) { return {prim::iota({size_of(keys, 0)}, 0, kInt), run_starts(keys)}; }

// The group of each element, where the elements stood.
Value inverse_of(const Groups& g) {
  Value group = prim::scan(convert(g.starts, kInt), 0, "add") - 1;
  return prim::scatter(full(0, shape_of(group), kInt), {g.order}, group, {0}, "");
}

Value counts_of(Value inverse, Expr n) {
  return prim::scatter(full(0, {n}, kInt), {inverse}, full(1, shape_of(inverse), kInt), {0}, "add");
}

// Dense ranks of the rows of a matrix in lexicographic order, so that equal rows have equal ranks, NaN beside NaN. Columns are ranked
// one by one and then in pairs, as numbers of two digits, until one is left.
Value row_ranks(Value rows) {
  auto differ = [](Value a, Value b) {
    Value differs = ne(a, b);
    return is_floating(dtype_of(a)) ? logical_and(differs, logical_or(eq(a, a), eq(b, b))) : differs;
  };
  auto ranked = [&](Value columns) {
    auto [values, order] = prim::sort(columns, 0, false);
    Expr m = size_of(columns, 0), k = size_of(columns, 1);
    if (same_size(m, Expr(0))) return convert(columns, kInt);
    Value before = prim::slice(values, {Expr(0), Expr(0)}, {m - Expr(1), k}, {Expr(1), Expr(1)});
    Value after = prim::slice(values, {Expr(1), Expr(0)}, {m - Expr(1), k}, {Expr(1), Expr(1)});
    Value steps = concat_first(full(0, {Expr(1), k}, kInt), convert(differ(before, after), kInt));
    Value rank = prim::scan(steps, 0, "add");
    return prim::scatter(full(0, {m, k}, kInt), indices_along({m, k}, 0, order), rank, {0, 1}, "");
  };
  if (same_size(size_of(rows, 1), Expr(0))) return full(0, {size_of(rows, 0)}, kInt);
  Value ranks = ranked(rows);
  while (!is_one(size_of(ranks, 1))) {
    Expr m = size_of(ranks, 0), k = size_of(ranks, 1), half = ir::floordiv(k, Expr(2)), odd = k - half - half;
    Value high = prim::slice(ranks, {Expr(0), Expr(0)}, {m, half}, {Expr(1), Expr(2)});
    Value low = prim::slice(ranks, {Expr(0), Expr(1)}, {m, half}, {Expr(1), Expr(2)});
    Value pairs = ranked(high * size_tensor(m, {m, half}) + low);
    Value rest = prim::slice(ranks, {Expr(0), half + half}, {m, odd}, {Expr(1), Expr(1)});
    ranks = prim::concat({pairs, rest}, 1);
  }
  return prim::reshape(ranks, {size_of(rows, 0)});
}

std::array<Value, 2> row_groups_by_columns(Value rows, bool sorted) {
  Value order = sorted ? prim::sort(row_ranks(rows), 0, false)[1] : prim::iota({size_of(rows, 0)}, 0, kInt);
  return {order, run_starts(sorted ? prim::gather(rows, {order}, {0}) : rows)};
}

// A target that has a function for it compares rows only as far as they are equal.
Groups row_groups(Value rows, bool sorted) {
  std::vector<Value> r = taken_or_composed("prim::row_groups", {rows, sorted});
  return {r[0], r[1]};
}

// The slices along a dimension as rows.
Value slices_as_rows(Value x, int64_t dim) {
  Value front = move_dims(x, {dim}, {0});
  Expr m = size_of(front, 0), rest(1);
  for (int64_t d = 1; d < rank_of(front); ++d) rest = rest * size_of(front, d);
  return prim::reshape(front, {m, rest});
}

Groups groups_of(Value x, const std::optional<int64_t>& dim, bool sorted) {
  if (!dim) {
    Value keys = flattened(x);
    return sorted ? sorted_groups(keys) : groups_as_they_stand(keys);
  }
  int64_t d = wrap_dim(*dim, rank_of(x));
  int64_t empty = 0;
  for (Expr size : shape_of(x)) empty += same_size(size, 0);
  BRASA_CHECK(empty <= 1, "unique: number of zero sized dimensions is more than one, so unique cannot be applied to ",
              type_of(x));
  Value slices = at_least_1d(x);
  // Complex numbers have no order, but may be equal.
  if (is_complex(dtype_of(x)) && !sorted) slices = call("prim::as_real", {slices});
  return row_groups(slices_as_rows(slices, d), sorted);
}

// Values, the inverse, and counts; empty where they are not asked for.
std::array<Value, 3> unique(Value x, const std::optional<int64_t>& dim, bool sorted, bool inverse, bool counts,
                            Expr n) {
  Groups g = groups_of(x, dim, sorted);
  Value first = prim::gather(g.order, {positions(g.starts, n)}, {0}), back = inverse_of(g);
  Value tally = counts ? counts_of(back, n) : no_result(kInt);
  if (!dim) {
    Value values = prim::gather(flattened(x), {first}, {0});
    return {values, inverse ? prim::reshape(back, shape_of(x)) : no_result(kInt), tally};
  }
  int64_t d = wrap_dim(*dim, rank_of(x));
  Value values = prim::gather(at_least_1d(x), {first}, {d});
  return {move_dims(values, {0}, {d}), inverse ? back : no_result(kInt), tally};
}

Value unique_count(Value x, const std::optional<int64_t>& dim, bool sorted) {
  return total(groups_of(x, dim, sorted).starts);
}

// --- prim::row_groups

std::vector<Type> row_groups_type(const Args& args) {
  const Type& x = ir::type_of(args[0].get<Value>());
  BRASA_CHECK(x.rank() == 2 && !is_complex(x.dtype), "prim::row_groups is not defined for ", x);
  return {{kInt, {x.shape[0]}, false}, {DType::Bool, {x.shape[0]}, false}};
}

// ---- bincount

Value checked_bins(Value x) {
  BRASA_CHECK(rank_of(x) == 1 && is_integral(dtype_of(x), false),
              "bincount only supports 1-d non-negative integral inputs, got ", type_of(x));
  Value i = convert(x, kInt);
  check_values(ge(i, 0), "bincount only supports 1-d non-negative integral inputs.");
  return i;
}

}  // namespace

void add_counted(Table& t) {
  t.op("aten::nonzero(Tensor self) -> Tensor")
      .doc("Positions of the elements that are not zero, one a row, in row-major order.")
      .sized(nonzero_count, nonzero)
      .no_gradient()
      .samples({{ints(3, 4)}, {floats(0, 2)}, {bools(5).strided(2)}, {floats()}});
  t.op("aten::argwhere(Tensor self) -> Tensor")
      .doc("As nonzero.")
      .sized(nonzero_count, nonzero)
      .no_gradient()
      .samples({{ints(3, 4)}, {floats(2, 0)}});
  t.op("aten::nonzero_numpy(Tensor self) -> Tensor[]")
      .doc("The columns of nonzero, one for each dimension.")
      .sized(nonzero_count, [](Value x, Expr n) { return nonzero_columns(at_least_1d(x), n); })
      .no_gradient()
      .samples({{ints(3, 4)}, {ints()}});
  t.op("aten::where(Tensor condition) -> Tensor[]")
      .doc("As nonzero_numpy.")
      .sized(nonzero_count, [](Value x, Expr n) { return nonzero_columns(at_least_1d(x), n); })
      .no_gradient()
      .samples({{bools(3, 4)}, {bools()}});
  t.prim("positions(Tensor mask, SymInt count) -> Tensor")
      .doc("The places of a vector's first `count` true elements; behind the last one 0.")
      .kind(Kind::Whole)
      .no_gradient()
      .type(positions_type)
      .composed(scattered_positions)
      .samples({{bools(9), 3}, {bools(4), 6}, {bools(0), 2}});
  t.op("aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
      .doc("nonzero's first `size` rows, filled up with fill_value.")
      .composed(nonzero_static)
      .no_gradient()
      .samples({{ints(3, 4), 5}, {ints(2), 4, 7}, {ints(3, 4), 2}});
  t.op("aten::masked_select(Tensor self, Tensor mask) -> Tensor")
      .doc("The elements where the mask holds, in row-major order of the broadcast shape.")
      .sized([](Value x, Value mask) { return total(masked(x, mask)[1]); }, masked_select)
      .samples(
          {{floats(3, 4), bools(3, 4)}, {floats(3, 4), bools(4)}, {floats(1, 3), bools(2, 1)}, {floats(0), bools(0)}});

  t.op("aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
      .doc("i repeated repeats[i] times.")
      .sized([](Value r, std::optional<Expr> size) { return given_or(size, total(checked_repeats(r))); },
             repeat_numbers)
      .counted([](Value, std::optional<Expr> size) { return given_or_unknown(size); }, repeat_numbers)
      .no_gradient()
      .samples({{ints(5)}, {ints(0)}});
  t.op("aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
      .doc("Each slice along dim (element, without dim) as often as `repeats` says.")
      .sized([](Value x, Value r, std::optional<int64_t> dim,
                std::optional<Expr> size) { return given_or(size, total(repeats_for(x, r, dim))); },
             repeat_slices)
      .counted([](Value, Value, std::optional<int64_t>, std::optional<Expr> size) { return given_or_unknown(size); },
               repeat_slices)
      .samples({{floats(3, 4), ints(4), 1}, {floats(2, 2), ints(4)}, {floats(3), ints(1)}});

  t.prim("row_groups(Tensor rows, bool sorted) -> (Tensor order, Tensor starts)")
      .doc(
          "The order of a matrix' rows, lexicographic if sorted (stable; NaN is the greatest), else as they stand, and which rows of "
          "that order differ from the one before.")
      .kind(Kind::Whole)
      .no_gradient()
      .type(row_groups_type)
      .composed(row_groups_by_columns)
      .samples({{ints(5, 2), true}, {ints(4, 3), false}});
  t.op("aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
       "(Tensor values, Tensor inverse, Tensor counts)")
      .doc(
          "The distinct values in ascending order, the place of each element's value among them, and how often each comes. A NaN "
          "differs from every other.")
      .sized([](Value x, bool, bool, bool) { return unique_count(x, std::nullopt, true); },
             [](Value x, bool, bool inverse, bool counts, Expr n) {
               return unique(x, std::nullopt, true, inverse, counts, n);
             })
      .no_gradient()
      .samples({{ints(3, 4), true, true, true}, {floats(5)}, {ints(0), true, true, true}});
  t.op("aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor values, Tensor inverse)")
      .doc("As _unique2, without counts.")
      .sized([](Value x, bool, bool) { return unique_count(x, std::nullopt, true); },
             [](Value x, bool, bool inverse, Expr n) {
               std::array<Value, 3> r = unique(x, std::nullopt, true, inverse, false, n);
               return std::array<Value, 2>{r[0], r[1]};
             })
      .no_gradient()
      .samples({{ints(3, 4), true, true}});
  t.op("aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
       "(Tensor values, Tensor inverse, Tensor counts)")
      .doc("The distinct slices along dim, in lexicographic order. The inverse and the counts always come.")
      .sized([](Value x, int64_t dim, bool, bool, bool) { return unique_count(x, dim, true); },
             [](Value x, int64_t dim, bool, bool, bool, Expr n) { return unique(x, dim, true, true, true, n); })
      .no_gradient()
      .samples({{ints(5, 2), 0}, {ints(2, 6), -1}, {ints(3, 2, 3), 1}});
  t.op("aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
       "(Tensor values, Tensor inverse, Tensor counts)")
      .doc(
          "The first of each run of equal values (slices, with dim), its run of each element, and the lengths of the runs.")
      .sized([](Value x, bool, bool, std::optional<int64_t> dim) { return unique_count(x, dim, false); },
             [](Value x, bool inverse, bool counts, std::optional<int64_t> dim, Expr n) {
               // A vector with dim 0 is taken as one without dim, as PyTorch does.
               bool slices = dim && (*dim != 0 || rank_of(x) != 1);
               return unique(x, dim, false, inverse || slices, counts || slices, n);
             })
      .no_gradient()
      .samples({{ints(12), true, true}, {ints(2, 5)}, {ints(5, 2), false, false, 0}});
  t.op("aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> "
       "(Tensor values, Tensor inverse, Tensor counts)")
      .doc("As unique_consecutive with a dim.")
      .sized([](Value x, int64_t dim, bool, bool) { return unique_count(x, dim, false); },
             [](Value x, int64_t dim, bool, bool, Expr n) { return unique(x, dim, false, true, true, n); })
      .no_gradient()
      .samples({{ints(5, 2), 0}});

  t.op("aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
      .doc("How often each number from 0 comes, or the sum of its weights.")
      .sized(
          [](Value x, Value, Expr minlength) {
            BRASA_CHECK(!is_less(minlength, 0), "bincount: minlength should be >= 0, got ", minlength);
            Value least = size_tensor(minlength, {Expr(1)});
            return amax(prim::concat({checked_bins(x) + 1, least}, 0), {0});
          },
          [](Value x, Value weights, Expr, Expr n) {
            Value at = checked_bins(x);
            if (!weights) return counts_of(at, n);
            BRASA_CHECK(rank_of(weights) == 1 && same_size(size_of(weights, 0), size_of(x, 0)),
                        "bincount: weights should be 1-d and have the same length as input, got ", type_of(weights),
                        " for ", type_of(x));
            DType type = dtype_of(weights) == DType::Float32 ? DType::Float32 : DType::Float64;
            return prim::scatter(full(0, {n}, type), {at}, prim::reshape(convert(weights, type), shape_of(at)), {0},
                                 "add");
          })
      .no_gradient()
      .samples({{ints(6)}, {ints(5), floats(5), 4}, {ints(0)}});
}

}  // namespace brasa::ops
