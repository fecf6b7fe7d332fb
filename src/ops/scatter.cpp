#include "ops/accepted.h"
#include "ops/combiner.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Writing by index tensors and masks, as functions: each gives a new tensor.
namespace brasa::ops {
namespace {

void check_index(const char* op, Value index) {
  BRASA_CHECK(dtype_of(index) == DType::Int64 || dtype_of(index) == DType::Int32, op,
              ": Expected dtype int32 or int64 for index, got ", type_of(index));
}

void check_real(const char* op, Value x, const Number& value) {
  BRASA_CHECK(is_complex(dtype_of(x)) || !is_complex(value.dtype()), op,
              ": Converting complex Scalar to non-complex type is not supported, got ", type_of(x));
}

Value masked_fill(Value x, Value mask, Number value) {
  check_real("masked_fill", x, value);
  BRASA_CHECK(dtype_of(mask) == DType::Bool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              name(dtype_of(mask)));
  Shape shape = broadcast_shapes(shape_of(x), shape_of(mask));
  x = broadcast_to(x, shape);
  return prim::select(broadcast_to(mask, shape), constant_like(x, value), x);
}
Value masked_fill_tensor(Value x, Value mask, Value value) {
  BRASA_CHECK(rank_of(value) == 0, "masked_fill only supports a 0-dimensional value tensor, but got tensor with ",
              rank_of(value), " dimension(s).");
  return masked_fill(x, mask, Number(value));
}

Value masked_scatter(Value x, Value mask, Value source) {
  BRASA_CHECK(dtype_of(mask) == DType::Bool, "masked_scatter expects BoolTensor mask, got ", name(dtype_of(mask)));
  BRASA_CHECK(dtype_of(x) == dtype_of(source), "masked_scatter: expected self and source to have same dtypes but got ",
              name(dtype_of(x)), " and ", name(dtype_of(source)));
  Shape shape = broadcast_shapes(shape_of(x), shape_of(mask));
  x = broadcast_to(x, shape);
  mask = broadcast_to(mask, shape);
  Value counts = convert(flattened(mask), DType::Int64);
  Expr n = type_of(source).numel();
  check_values(le(prim::reduce(counts, {0}, "add"), size_tensor(n, {})),
               str("masked_scatter: Number of elements of source, ", n, ", is less than the number of ones in mask"));
  if (same_size(n, 0)) return x;
  Value which = prim::scan(counts, 0, "add") - 1;
  which = maximum(which, zeros_like(which));
  Value picked = prim::reshape(prim::gather(flattened(source), {which}, {0}), shape);
  return prim::select(mask, picked, x);
}
// The cotangent of masked_select, back where the mask is true.
Value masked_select_backward(Value g, Value x, Value mask) {
  Shape shape = broadcast_shapes(shape_of(x), shape_of(mask));
  return masked_scatter(full(0, shape, dtype_of(g)), mask, g);
}
// What masked_scatter's source gets: the gradient under the mask, in order.
Value masked_scatter_backward(Value g, Value mask, Shape sizes) {
  BRASA_CHECK(dtype_of(mask) == DType::Bool, "masked_scatter_backward: expected a bool mask, got ", type_of(mask));
  mask = flattened(broadcast_to(mask, shape_of(g)));
  Value which = prim::scan(convert(mask, DType::Int64), 0, "add") - 1;
  Expr n = ir::product(sizes);
  check_values(le(sum(convert(mask, DType::Int64), {0}), size_tensor(n, {})),
               str("masked_scatter_backward: the mask holds more often than ", sizes, " has elements"));
  // What is not under the mask goes to one place behind the end.
  which = where(mask, which, size_tensor(n, shape_of(which)));
  Value out = prim::scatter(full(0, {n + type_of(g).numel() + 1}, dtype_of(g)), {which}, flattened(g), {0}, "");
  return prim::reshape(narrow(out, 0, 0, n), sizes);
}

// --- index_put ---

// Values of which dimension `place` has one for each element where the mask holds, spread over the mask's dimensions in their order.
Value spread_under(Value mask, Value values, int64_t place) {
  Shape given = shape_of(values), shape = given;
  Value flags = convert(flattened(mask), DType::Int64);
  Expr n = size_of(values, place);
  check_values(eq(sum(flags, {0}), size_tensor(n, {})),
               str("shape mismatch: value tensor of shape ", given,
                   " cannot be broadcast to indexing result: the mask does not hold for ", n, " elements"));
  shape.erase(shape.begin() + place);
  shape.insert(shape.begin() + place, shape_of(mask).begin(), shape_of(mask).end());
  if (same_size(n, 0)) return full(0, shape, dtype_of(values));  // the mask holds nowhere
  Value which = prim::scan(flags, 0, "add") - 1;
  which = maximum(which, zeros_like(which));
  return prim::reshape(move_dims(prim::gather(values, {which}, {place}), {0}, {place}), shape);
}

// x with values where the mask among the indices holds: one for all, or one for each place.
Value masked_put(Value x, const std::vector<Value>& indices, Value values, bool accumulate) {
  Value mask;
  int64_t at = 0;
  for (Value m : indices) {
    if (!m) {
      ++at;
      continue;
    }
    BRASA_CHECK(dtype_of(m) == DType::Bool && !mask && at + rank_of(m) <= rank_of(x),
                "index_put_: only one mask, and no index tensors beside it, is supported, got ", type_of(m));
    for (int64_t d = 0; d < rank_of(m); ++d)
      BRASA_CHECK(same_size(size_of(m, d), size_of(x, at + d)), "The shape of the mask ", shape_of(m), " at index ", d,
                  " does not match the shape of the indexed tensor ", shape_of(x), " at index ", at + d);
    mask = prim::broadcast(m, shape_of(x), counted(at, rank_of(m)));
    // The masked dimensions are one dimension of the values.
    int64_t behind = rank_of(x) - at - rank_of(m), place = rank_of(values) - behind - 1;
    if (place >= 0)
      values = is_one(size_of(values, place)) ? split_dim(values, place, Shape(rank_of(m), Expr(1)))
                                              : spread_under(m, values, place);
    at += rank_of(m);
  }
  values = broadcast_to(values, shape_of(x));
  return prim::select(mask, accumulate ? x + values : values, x);
}

void check_fits(const Shape& values, const Shape& picked) {
  bool fits = values.size() <= picked.size();
  for (size_t i = 0; fits && i < values.size(); ++i) {
    Expr to = picked[i + picked.size() - values.size()];
    fits = same_size(values[i], to) || is_one(values[i]);
  }
  BRASA_CHECK(fits, "shape mismatch: value tensor of shape ", values,
              " cannot be broadcast to indexing result of shape ", picked);
}

Value index_put(Value x, std::vector<Value> indices, Value values, bool accumulate) {
  BRASA_CHECK(dtype_of(x) == dtype_of(values) || rank_of(values) == 0,
              "Index put requires the source and destination dtypes match, got ", name(dtype_of(x)),
              " for the destination and ", name(dtype_of(values)), " for the source.");
  values = convert(values, dtype_of(x));
  for (Value i : indices)
    if (i && dtype_of(i) == DType::Bool) return masked_put(x, indices, values, accumulate);
  Picks p = picks(x, indices, "index_put_");
  Value like = p.in_place(prim::gather(p.x, p.indices, p.dims));
  check_fits(shape_of(values), shape_of(like));
  values = p.in_front(broadcast_to(values, shape_of(like)));
  return prim::scatter(x, p.indices, values, p.dims, accumulate ? "add" : "");
}

Value put(Value x, Value index, Value source, bool accumulate) {
  check_long_index("put_()", index);
  BRASA_CHECK(dtype_of(x) == dtype_of(source),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", name(dtype_of(x)),
              " and source.dtype = ", name(dtype_of(source)));
  BRASA_CHECK(same_size(type_of(index).numel(), type_of(source).numel()),
              "put_(): Expected source and index to have the same number of elements, but got ", type_of(source),
              " and ", type_of(index));
  Value i = checked_index(flattened(index), type_of(x).numel(), "put_()");
  Value out = prim::scatter(flattened(x), {i}, prim::reshape(source, shape_of(i)), {0}, accumulate ? "add" : "");
  return prim::reshape(out, shape_of(x));
}

Value unsafe_masked_put_accumulate(Value x, Value mask, std::vector<Value> indices, Value values) {
  BRASA_CHECK(dtype_of(x) == dtype_of(values), "Index put requires the source and destination dtypes match, got ",
              name(dtype_of(x)), " for the destination and ", name(dtype_of(values)), " for the source.");
  // Indices that the mask leaves out may be out of range: they add zero to the first element.
  for (Value& i : indices)
    if (i) i = where(mask, i, zeros_like(i));
  values = where(mask, values, zeros_like(values));
  return index_put(x, indices, values, true);
}

// --- index_add and the like: a vector of indices along one dimension ---

struct Slices {
  Value x, index, source;  // the sources with the indexed dimension in front
  int64_t dim;
  bool scalar;
  Value result(Value v) const { return scalar ? prim::reshape(v, {}) : v; }
};

Slices slices(const char* op, Value x, int64_t dim, Value index, Value source, bool wraps = false) {
  check_index(op, index);
  BRASA_CHECK(rank_of(index) <= 1, op, ": Index is supposed to be a vector, got ", type_of(index));
  Slices s;
  s.scalar = rank_of(x) == 0;
  s.x = at_least_1d(x);
  s.dim = wrap_dim(dim, rank_of(s.x));
  index = at_least_1d(index);
  Expr n = size_of(s.x, s.dim);
  s.index = wraps ? checked_index(index, n, op) : checked_forward_index(index, n, op);
  if (!source) return s;
  BRASA_CHECK(dtype_of(source) == dtype_of(x), op, ": self and source expected to have the same dtype, but got ",
              name(dtype_of(x)), " and ", name(dtype_of(source)));
  if (rank_of(source) == 0) source = prim::reshape(source, Shape(rank_of(s.x), Expr(1)));
  bool fits = rank_of(source) == rank_of(s.x);
  for (int64_t d = 0; fits && d < rank_of(source); ++d)
    fits = same_size(size_of(source, d), d == s.dim ? size_of(index, 0) : size_of(s.x, d));
  BRASA_CHECK(fits, op, ": source ", type_of(source), " does not have self's shape ", shape_of(x), " with ",
              size_of(index, 0), " indices at dimension ", s.dim);
  Shape shape = shape_of(s.x);
  shape.erase(shape.begin() + s.dim);
  shape.insert(shape.begin(), size_of(s.index, 0));
  s.source = prim::reshape(move_dims(source, {s.dim}, {0}), shape);
  return s;
}

Value index_add(Value x, int64_t dim, Value index, Value source, Number alpha) {
  Slices s = slices("index_add()", x, dim, index, source);
  if (!alpha.is(1)) s.source = s.source * scalar(alpha, dtype_of(x));
  return s.result(prim::scatter(s.x, {s.index}, s.source, {s.dim}, "add"));
}

Value index_copy(Value x, int64_t dim, Value index, Value source) {
  check_long_index("index_copy_()", index);
  Slices s = slices("index_copy_()", x, dim, index, source);
  return s.result(prim::scatter(s.x, {s.index}, s.source, {s.dim}, ""));
}

Value index_fill(Value x, int64_t dim, Value index, Number value) {
  check_long_index("index_fill_()", index);
  check_real("index_fill_()", x, value);
  Slices s = slices("index_fill_()", x, dim, index, {}, true);
  // A mask over the dimension, so that no index is written twice.
  Expr n = size_of(s.x, s.dim);
  Value hit =
      prim::scatter(full(false, {n}, DType::Bool), {s.index}, full(true, shape_of(s.index), DType::Bool), {0}, "");
  return s.result(prim::select(prim::broadcast(hit, shape_of(s.x), {s.dim}), constant_like(s.x, value), s.x));
}
Value index_fill_tensor(Value x, int64_t dim, Value index, Value value) {
  BRASA_CHECK(rank_of(value) == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              rank_of(value), " dimension(s).");
  return index_fill(x, dim, index, Number(value));
}

// --- reductions into places ---

// Places that `indices` name reduced with the updates there ("sum", "prod", "mean", "amax", "amin"), with or without x's own value.
Value reduced_into(const char* op, Value x, const std::vector<Value>& indices, Value updates, const Dims& dims,
                   const std::string& how, bool include_self) {
  static constexpr std::pair<const char*, const char*> kCombiners[] = {
      {"sum", "add"},      {"add", "add"},  {"mean", "add"}, {"prod", "mul"},
      {"multiply", "mul"}, {"amax", "max"}, {"amin", "min"}};
  const char* combiner = nullptr;
  for (auto [name, c] : kCombiners)
    if (how == name) combiner = c;
  BRASA_CHECK(combiner, op, ": reduce argument must be either sum, prod, mean, amax or amin, got ", how, ".");
  DType t = dtype_of(x);
  Value start = x;
  if (!include_self) {
    Value hit = prim::scatter(full(false, shape_of(x), DType::Bool), indices,
                              full(true, shape_of(updates), DType::Bool), dims, "");
    start = prim::select(hit, constant_like(x, identity(combiner, t)), x);
  }
  if (how != "mean") return prim::scatter(start, indices, updates, dims, combiner);
  DType wide = opmath(t);
  Value total = prim::scatter(convert(start, wide), indices, convert(updates, wide), dims, "add");
  Value n = prim::scatter(full(include_self ? 1 : 0, shape_of(x), DType::Int64), indices,
                          full(1, shape_of(updates), DType::Int64), dims, "add");
  n = convert(maximum(n, constant_like(n, 1)), wide);
  if (!is_integral(t, true)) return convert(total / n, t);
  // Integers round down.
  Value q = prim::binary("div", total, n), r = total - q * n;
  return prim::select(lt(r, 0), q - 1, q);
}

struct Places {
  Value x, updates;
  std::vector<Value> indices;
  bool scalar;
  Value result(Value v) const { return scalar ? prim::reshape(v, {}) : v; }
  Dims dims() const { return all_dims(x); }
};

// Places of scatter: one index for each update. src may be larger than the index.
Places places(const char* op, Value x, int64_t dim, Value index, Value source) {
  Places p;
  p.scalar = rank_of(x) == 0;
  p.x = at_least_1d(x);
  index = at_least_1d(index);
  dim = wrap_dim(dim, rank_of(p.x));
  if (source) {
    BRASA_CHECK(dtype_of(x) == dtype_of(source), op, ": Expected self.dtype to be equal to src.dtype, got ",
                name(dtype_of(x)), " and ", name(dtype_of(source)));
    source = at_least_1d(source);
  }
  bool empty = same_size(type_of(index).numel(), 0);
  BRASA_CHECK(empty || (rank_of(index) == rank_of(p.x) && (!source || rank_of(source) == rank_of(p.x))), op,
              ": Index tensor must have the same number of dimensions as self and src, got index ", type_of(index),
              " and self ", type_of(x));
  if (empty) return p;
  check_index(op, index);
  for (int64_t d = 0; d < rank_of(p.x); ++d) {
    BRASA_CHECK(d == dim || !is_less(size_of(p.x, d), size_of(index, d)), op, ": Expected index ", shape_of(index),
                " to be no larger than self ", shape_of(x), " apart from dimension ", dim);
    if (!source) continue;
    BRASA_CHECK(!is_less(size_of(source, d), size_of(index, d)), op, ": Expected index ", shape_of(index),
                " to be no larger than src ", shape_of(source));
    if (!(size_of(source, d) == size_of(index, d))) source = narrow(source, d, 0, size_of(index, d));
  }
  p.updates = source;
  p.indices = indices_along(shape_of(index), dim, checked_forward_index(index, size_of(p.x, dim), op));
  return p;
}

Value scatter_src(Value x, int64_t dim, Value index, Value source) {
  Places p = places("scatter()", x, dim, index, source);
  return p.indices.empty() ? x : p.result(prim::scatter(p.x, p.indices, p.updates, p.dims(), ""));
}
Value scatter_value(Value x, int64_t dim, Value index, Number value) {
  Places p = places("scatter()", x, dim, index, {});
  return p.indices.empty()
             ? x
             : p.result(prim::scatter(p.x, p.indices, full(value, shape_of(p.indices[0]), dtype_of(x)), p.dims(), ""));
}
Value scatter_add(Value x, int64_t dim, Value index, Value source) {
  Places p = places("scatter_add()", x, dim, index, source);
  return p.indices.empty() ? x : p.result(prim::scatter(p.x, p.indices, p.updates, p.dims(), "add"));
}
Value scatter_reduced(Value x, int64_t dim, Value index, Value source, std::string how) {
  Places p = places("scatter()", x, dim, index, source);
  BRASA_CHECK(how == "add" || how == "multiply", "scatter(): reduce argument must be either add or multiply, got ", how,
              ".");
  return p.indices.empty() ? x : p.result(reduced_into("scatter()", p.x, p.indices, p.updates, p.dims(), how, true));
}
Value scatter_value_reduced(Value x, int64_t dim, Value index, Number value, std::string how) {
  Places p = places("scatter()", x, dim, index, {});
  BRASA_CHECK(how == "add" || how == "multiply", "scatter(): reduce argument must be either add or multiply, got ", how,
              ".");
  if (p.indices.empty()) return x;
  return p.result(
      reduced_into("scatter()", p.x, p.indices, full(value, shape_of(p.indices[0]), dtype_of(x)), p.dims(), how, true));
}
Value scatter_reduce(Value x, int64_t dim, Value index, Value source, std::string how, bool include_self) {
  BRASA_CHECK(how == "sum" || how == "prod" || how == "mean" || how == "amax" || how == "amin",
              "scatter_reduce(): reduce argument must be either sum, prod, mean, amax or amin, got ", how);
  Places p = places("scatter_reduce()", x, dim, index, source);
  return p.indices.empty()
             ? x
             : p.result(reduced_into("scatter_reduce()", p.x, p.indices, p.updates, p.dims(), how, include_self));
}
Value index_reduce(Value x, int64_t dim, Value index, Value source, std::string how, bool include_self) {
  BRASA_CHECK(how == "prod" || how == "mean" || how == "amax" || how == "amin",
              "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got ", how, ".");
  BRASA_CHECK(rank_of(source) == rank_of(x), "index_reduce(): source ", type_of(source),
              " does not have self's dimensions ", shape_of(x));
  Slices s = slices("index_reduce()", x, dim, index, source);
  return s.result(reduced_into("index_reduce()", s.x, {s.index}, s.source, {s.dim}, how, include_self));
}

void add_masks(Table& t) {
  t.op("aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor")
      .doc("A number where the mask is true.")
      .composed(masked_fill)
      .fits("value")
      .samples({{floats(2, 3), bools(3), 1.5}, {ints(2), bools(2), 3}});
  t.op("aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor")
      .doc("A number where the mask is true.")
      .composed(masked_fill_tensor)
      .samples({{floats(2, 3), bools(3), floats()}});
  t.op("aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor")
      .doc("The source's elements in order where the mask is true.")
      .composed(masked_scatter)
      .samples({{floats(2, 3), bools(2, 3), floats(6)}});
  t.op("aten::masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor")
      .doc("The gradient of masked_select's operand, of the shape to which the mask broadcasts it.")
      .composed(masked_select_backward)
      .samples({{floats(6), floats(2, 3), bools(2, 3)}, {floats(6), floats(3), bools(2, 1)}});
  t.op("aten::masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor")
      .doc("The gradient of masked_scatter's source.")
      .composed(masked_scatter_backward)
      .samples({{floats(2, 3), bools(2, 3), list({6})}});
}

void add_puts(Table& t) {
  const std::vector<Sample> puts = {{floats(3, 4), std::vector<TensorSample>{ints(2)}, floats(2, 4)},
                                    {floats(3, 4), std::vector<TensorSample>{ints(2, 1), ints(3)}, floats(), true},
                                    {floats(3, 4), std::vector<TensorSample>{bools(3, 4)}, floats()},
                                    {floats(3, 4), std::vector<TensorSample>{bools(3).in(1, 2)}, floats(3, 4)},
                                    {floats(4), std::vector<TensorSample>{bools(4).in(1, 2)}, floats(4), true}};
  t.op("aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
      .doc(
          "Values written, or added, where index would read: under a mask one for all, or one for each of its true elements.")
      .autocast(Autocast::None, Autocast::Widest)
      .masks()
      .composed(index_put)
      .samples(puts);
  t.op("aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
      .doc("index_put: PyTorch's decompositions ask for it by this name. The range is checked here, too.")
      .composed(index_put)
      .samples(puts);
  t.op("aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor")
      .doc("Values added where indices under the mask point.")
      .composed(unsafe_masked_put_accumulate)
      .samples({{floats(3), bools(2), std::vector<TensorSample>{ints(2)}, floats(2)}});
  t.op("aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
      .doc("Values written, or added, by their position in row-major order.")
      .composed(put)
      .samples({{floats(2, 3), ints(2), floats(2), true}});
  t.op("aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
      .doc("alpha · source added to the slices that the indices name.")
      .composed(index_add)
      .samples({{floats(3, 4), 0, ints(2), floats(2, 4)}, {floats(3, 4), 1, ints(2), floats(3, 2), 2.0}});
  t.op("aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
      .doc("The source's slices in place of those that the indices name.")
      .autocast(Autocast::Widest, Autocast::None)
      .composed(index_copy)
      .samples({{floats(3, 4), 0, ints(1), floats(1, 4)}});
  t.op("aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
      .doc("A number in the slices that the indices name.")
      .keeps_memory_format()
      .composed(index_fill)
      .fits("value")
      .samples({{floats(3, 4), 0, ints(2), 1.5}});
  t.op("aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor")
      .doc("A number in the slices that the indices name.")
      .keeps_memory_format()
      .composed(index_fill_tensor)
      .samples({{floats(3, 4), 1, ints(2), floats()}});
  t.op("aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor")
      .doc("The source's slices combined with those that the indices name.")
      .composed(index_reduce)
      .samples(
          {{floats(3, 4), 0, ints(2), floats(2, 4), "amax"}, {floats(3, 4), 0, ints(2), floats(2, 4), "mean", false}});
}

void add_scatters(Table& t) {
  t.op("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
      .doc("self[index[i][j]][j] = src[i][j] for dim 0, and so on.")
      .composed(scatter_src)
      .samples({{floats(3, 4), 0, ints(1, 4), floats(2, 4)}});
  t.op("aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
      .doc("A number at the places that scatter writes.")
      .composed(scatter_value)
      .fits("value")
      .samples({{floats(3, 4), 1, ints(3, 2), 1.5}});
  t.op("aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor")
      .doc("src added to, or multiplied with, the places that scatter writes.")
      .composed(scatter_reduced)
      .samples({{floats(3, 4), 0, ints(2, 4), floats(2, 4), "add"}});
  t.op("aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor")
      .doc("A number added to, or multiplied with, the places that scatter writes.")
      .composed(scatter_value_reduced)
      .fits("value")
      .samples({{floats(3, 4), 0, ints(2, 4), 2.0, "multiply"}});
  t.op("aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor")
      .doc("src added to the places that scatter writes.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed(scatter_add)
      .samples({{floats(3, 4), 0, ints(2, 4), floats(2, 4)}, {floats(2, 3), 1, ints(2, 5), floats(2, 5)}});
  t.op("aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor")
      .doc("src combined with the places that scatter writes: sum, prod, mean, amax or amin.")
      .composed(scatter_reduce)
      .samples({{floats(3, 4), 0, ints(2, 4), floats(2, 4), "amax"},
                {floats(3, 4), 0, ints(2, 4), floats(2, 4), "mean", false}});
}

}  // namespace

void add_scatter(Table& t) {
  add_masks(t);
  add_puts(t);
  add_scatters(t);
}

}  // namespace brasa::ops
