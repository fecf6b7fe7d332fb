#include <algorithm>

#include "ops/accepted.h"
#include "ops/rows.h"
#include "ops/search.h"
#include "ops/shapes.h"
#include "support/error.h"

// Reading by index tensors, and sorting. Writing by index tensors is in scatter.cpp.
namespace brasa::ops {
namespace {

bool is_index(DType t) { return t == DType::Int64 || t == DType::Int32; }

void check_index(const char* op, Value index) {
  BRASA_CHECK(is_index(dtype_of(index)), op, ": Expected dtype int32 or int64 for index, got ", type_of(index));
}

// Results in the place of dimension `dim` that stand in front.
Value put_back(Value v, int64_t index_rank, int64_t dim) {
  return move_dims(v, counted(0, index_rank), counted(dim, index_rank));
}

Value index_select(Value x, int64_t dim, Value index) {
  check_index("index_select()", index);
  BRASA_CHECK(rank_of(index) <= 1, "index_select(): Index is supposed to be a vector, got ", type_of(index));
  bool scalar = rank_of(x) == 0;
  x = at_least_1d(x);
  dim = wrap_dim(dim, rank_of(x));
  Value i = checked_forward_index(at_least_1d(index), size_of(x, dim), "index_select()");
  Value out = put_back(prim::gather(x, {i}, {dim}), 1, dim);
  return scalar ? prim::reshape(out, {}) : out;
}

Value index_select_backward(Value g, Shape sizes, int64_t dim, Value index) {
  check_index("index_select_backward", index);
  if (sizes.empty()) {
    BRASA_CHECK(rank_of(g) <= 1, "index_select_backward(): expected grad of at most one dimension, got ", type_of(g));
    return prim::reshape(sum(g, all_dims(g)), {});
  }
  dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  BRASA_CHECK(rank_of(index) <= 1, "index_select_backward(): expected a vector of indices, got ", type_of(index));
  Value i = checked_forward_index(at_least_1d(index), sizes[dim], "index_select_backward()");
  Shape shape = sizes;
  shape[dim] = size_of(i, 0);
  check_shape("index_select_backward()", "grad", g, shape);
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin(), size_of(i, 0));
  Value slices = prim::reshape(move_dims(g, {dim}, {0}), shape);
  return prim::scatter(full(0, sizes, dtype_of(g)), {i}, slices, {dim}, "add");
}

Value gather(Value x, int64_t dim, Value index, bool) {
  Shape shape = shape_of(index);
  x = at_least_1d(x);
  index = at_least_1d(index);
  dim = wrap_dim(dim, rank_of(x));
  if (same_size(type_of(index).numel(), 0)) return full(0, shape, dtype_of(x));
  check_index("gather()", index);
  BRASA_CHECK(rank_of(x) == rank_of(index),
              "Index tensor must have the same number of dimensions as input tensor, got ", type_of(index), " and ",
              type_of(x));
  for (int64_t d = 0; d < rank_of(x); ++d)
    BRASA_CHECK(d == dim || !is_less(size_of(x, d), size_of(index, d)), "Size does not match at dimension ", d,
                " expected index ", shape, " to be no larger than self ", shape_of(x), " apart from dimension ", dim);
  return prim::reshape(gather_along(x, dim, checked_forward_index(index, size_of(x, dim), "gather()")), shape);
}

Value take(Value x, Value index) {
  check_long_index("take()", index);
  return prim::gather(flattened(x), {checked_index(index, type_of(x).numel(), "take()")}, {0});
}

Value take_along_dim(Value x, Value index, std::optional<int64_t> dim) {
  check_long_index("take_along_dim()", index);
  if (!dim) return gather(flattened(x), 0, flattened(index), false);
  BRASA_CHECK(rank_of(x) == rank_of(index),
              "torch.take_along_dim(): input and indices should have the same number of dimensions, but got ",
              rank_of(x), " dimensions for input, and ", rank_of(index), " dimensions for indices");
  int64_t d = wrap_dim(*dim, rank_of(x));
  Shape own = shape_of(x), other = shape_of(index);
  own[d] = other[d] = Expr(1);
  Shape shape = broadcast_shapes(own, other), wide = shape;
  shape[d] = size_of(x, d);
  wide[d] = size_of(index, d);
  Value i = checked_index(broadcast_to(index, wide), size_of(x, d), "take_along_dim()");
  return gather_along(broadcast_to(x, shape), d, i);
}

// --- advanced indexing ---

template <bool kChecked>
Value indexed(Value x, std::vector<Value> indices) {
  Picks p = picks(x, indices, kChecked ? "index" : nullptr);
  return p.in_place(prim::gather(p.x, p.indices, p.dims));
}

Value masked_index(Value x, Value mask, std::vector<Value> indices, Number fill) {
  constexpr const char* op = "_unsafe_masked_index";
  BRASA_CHECK(dtype_of(mask) == DType::Bool, op, ": expected a bool mask, got ", type_of(mask));
  // One more place before the elements keeps an empty dimension readable; what is out of range reads any.
  Shape none(rank_of(x), Expr(0)), one = none;
  for (size_t d = 0; d < indices.size() && d < one.size(); ++d) {
    if (!indices[d]) continue;
    one[d] = 1;
    Value i = convert(indices[d], DType::Int64), n = size_tensor(size_of(x, static_cast<int64_t>(d)), {});
    indices[d] = maximum(minimum(where(lt(i, 0), i, i + 1), n), -n);
  }
  Value out = indexed<false>(prim::pad(x, scalar(fill, dtype_of(x)), one, none, none), indices);
  return where(mask, out, constant_like(out, fill));
}

// --- embedding ---

Value embedding(Value weight, Value indices, Expr, bool, bool) {
  check_rank("embedding", "weight", weight, 2);
  check_index("embedding", indices);
  return prim::gather(weight, {checked_forward_index(indices, size_of(weight, 0), "embedding")}, {0});
}

Value embedding_dense_backward(Value g, Value indices, Expr rows, Expr padding, bool scale_by_frequency) {
  check_integer_index("embedding_dense_backward", indices);
  Value i = checked_forward_index(indices, rows, "embedding_dense_backward");
  auto n = rank_of(i);
  Shape shape = shape_of(i);
  shape.push_back(size_of(g, n));
  check_shape("embedding_dense_backward", "grad_output", g, shape);
  Value wide = prim::reshape(to_opmath(g), shape);
  auto beside = [&](Value v) { return prim::broadcast(v, shape, counted(0, n)); };
  if (!is_less(padding, 0))
    wide = prim::select(beside(eq(i, size_tensor(padding, shape_of(i)))), zeros_like(wide), wide);
  if (scale_by_frequency) {
    Value counts =
        prim::scatter(full(0, {rows}, dtype_of(wide)), {i}, full(1, shape_of(i), dtype_of(wide)), {0}, "add");
    wide = wide / beside(prim::gather(counts, {i}, {0}));
  }
  return convert(prim::scatter(full(0, {rows, shape.back()}, dtype_of(wide)), {i}, wide, {0}, "add"), dtype_of(g));
}

std::vector<Value> embedding_vjp(const Saved& s) {
  Value weight = s.in(0);
  return {embedding_dense_backward(s.ct(), s.in(1), size_of(weight, 0), s.arg<Expr>(2), s.arg<bool>(3))};
}

void check_classes(Value x) {
  BRASA_CHECK(dtype_of(x) == DType::Int64, "one_hot is only applicable to index tensor of type LongTensor, got ",
              type_of(x));
  check_values(ge(x, 0), "one_hot: class values must be non-negative");
}

Value one_hot(Value x, Expr, Expr classes) {
  check_classes(x);
  check_values(lt(x, size_tensor(classes, {})),
               str("one_hot: class values must be smaller than num_classes, which is ", classes));
  Value wide = repeat_along(x, rank_of(x), classes);
  return convert(eq(wide, prim::iota(shape_of(wide), rank_of(x), DType::Int64)), DType::Int64);
}

// num_classes, or one more than the greatest.
Value one_hot_classes(Value x, Expr classes) {
  if (!is_less(classes, 0)) return size_tensor(classes, {});
  check_classes(x);
  BRASA_CHECK(!same_size(type_of(x).numel(), 0), "one_hot: can not infer total number of classes from empty tensor");
  return amax(x, all_dims(x)) + 1;
}

int64_t given_classes(Value, int64_t classes) {
  BRASA_CHECK(classes == -1 || classes > 0,
              "one_hot: expected num_classes of 1 or more, or -1 for one more than the greatest class, got ", classes);
  return classes;
}

// --- sorting ---

std::array<Value, 2> sorted(Value x, int64_t dim, bool descending) {
  if (rank_of(x) == 0) {
    wrap_dim(dim, 0);
    return {x, full(0, {}, DType::Int64)};
  }
  return prim::sort(x, wrap_dim(dim, rank_of(x)), descending);
}
std::array<Value, 2> sorted_stable(Value x, std::optional<bool>, int64_t dim, bool descending) {
  return sorted(x, dim, descending);
}

std::array<Value, 2> topk(Value x, Expr k, int64_t dim, bool largest, bool) {
  bool scalar = rank_of(x) == 0;
  Value v = at_least_1d(x);
  dim = wrap_dim(dim, rank_of(v));
  BRASA_CHECK(!is_less(k, 0) && !is_less(size_of(v, dim), k), "selected index k out of range: k is ", k, ", dimension ",
              dim, " has size ", size_of(v, dim));
  auto [values, indices] = prim::sort(v, dim, largest, 0, k);
  if (scalar && is_one(k)) return {prim::reshape(values, {}), prim::reshape(indices, {})};
  return {values, indices};
}

// --- searching ---

// How many boundaries lie before each value: before an equal one too if `right`.
Value searched(Value boundaries, Value x, bool right) {
  BRASA_CHECK(rank_of(boundaries) > 0, "torch.searchsorted(): boundaries tensor should have positive dimension, got ",
              type_of(boundaries));
  if (int64_t last = rank_of(boundaries) - 1; last > 0) {
    bool fits = rank_of(x) == rank_of(boundaries);
    for (int64_t d = 0; fits && d < last; ++d) fits = same_size(size_of(x, d), size_of(boundaries, d));
    BRASA_CHECK(
        fits,
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
        "tensor must match, but we got boundaries tensor ",
        shape_of(boundaries), " and input value tensor ", shape_of(x));
  }
  return count_before(boundaries, x, right);
}

Value counted_as(Value count, bool out_int32) { return out_int32 ? convert(count, DType::Int32) : count; }

Value searchsorted(Value sequence, Value x, bool out_int32, bool right, std::optional<std::string> side, Value sorter) {
  BRASA_CHECK(!side || *side == "left" || *side == "right",
              "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
  BRASA_CHECK(!side || *side == "right" || !right, "torch.searchsorted(): side and right can't be set to opposites");
  if (sorter) {
    check_long_index("torch.searchsorted()", sorter);
    check_same_shape("torch.searchsorted(): sorter", sequence, sorter);
  }
  if (sorter && rank_of(sorter) > 0)
    sequence =
        gather_along(sequence, rank_of(sequence) - 1,
                     checked_forward_index(sorter, size_of(sequence, rank_of(sequence) - 1), "torch.searchsorted()"));
  return counted_as(searched(sequence, x, right || (side && *side == "right")), out_int32);
}

void add_picks(Table& t) {
  t.op("aten::index_select(Tensor self, int dim, Tensor index) -> Tensor")
      .doc("The slices that a vector of indices names along a dimension.")
      .sparse(Sparse::IndexSelect)
      .packed({{floats(8, 8), 0, ints(8)}})
      .composed(index_select)
      .samples({{floats(3, 4), 0, ints(2)}, {floats(2, 3), -1, ints(4)}});
  t.op("aten::index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor")
      .doc("The gradient of index_select's input.")
      .composed(index_select_backward)
      .samples({{floats(2, 4), list({3, 4}), 0, ints(2)}});
  t.op("aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor")
      .doc("out[i][j] = self[index[i][j]][j] for dim 0, and so on.")
      .composed(gather)
      .samples({{floats(3, 4), 0, ints(2, 4)}, {floats(2, 3), 1, ints(2, 1)}, {floats(), 0, ints().in(0, 1)}});
  t.op("aten::take(Tensor self, Tensor index) -> Tensor")
      .doc("Elements by their position in row-major order.")
      .composed(take)
      .samples({{floats(2, 3), ints(4)}});
  t.op("aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
      .doc("gather, with all other dimensions broadcast.")
      .composed(take_along_dim)
      .samples({{floats(3, 4), ints(1, 4), 0}, {floats(2, 3), ints(4)}});
  const std::vector<Sample> indices = {{floats(3, 4), std::vector<TensorSample>{ints(2)}},
                                       {floats(3, 4), std::vector<TensorSample>{ints(2, 1), ints(3)}}};
  t.op("aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
      .doc("Advanced indexing as in NumPy: index tensors broadcast together; an absent one takes the whole dimension.")
      .masks()
      .composed(indexed<true>)
      .samples(indices);
  t.op("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
      .doc("index: PyTorch's decompositions ask for it by this name. The range is checked here, too.")
      .composed(indexed<true>)
      .samples(indices);
  t.op("aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor")
      .doc("index where the mask holds, `fill` elsewhere, where indices may be out of range.")
      .composed(masked_index)
      .samples({{floats(3, 4), bools(2), std::vector<TensorSample>{ints(2), ints(2)}, 0.5},
                {floats(3, 4), bools(2, 4), std::vector<TensorSample>{ints(2)}, 2}});
  t.op("aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor")
      .doc("Rows of the weight by index; padding_idx's row gets no gradient.")
      .sparse(Sparse::Embedding)
      .packed({{floats(8, 8), ints(8)}})
      .composed(embedding)
      .vjp(own_derivative(embedding_vjp))
      .samples({{floats(4, 3), ints(2, 2)}, {floats(4, 1), ints(3), 3}});
  t.op("aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor")
      .doc("The gradient of embedding's weight.")
      .composed(embedding_dense_backward)
      .samples({{floats(2, 3), ints(2), 4, -1, false}, {floats(2, 3), ints(2), 4, 0, true}});
  t.op("aten::embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor")
      .doc("The gradient of embedding's weight.")
      .composed([](Value g, Value i, Expr rows, Expr padding, bool scale, bool) {
        return embedding_dense_backward(g, i, rows, padding, scale);
      })
      .samples({{floats(2, 3), ints(2), 4, -1, false, false}});
  t.op("aten::one_hot(Tensor self, int num_classes=-1) -> Tensor")
      .doc(
          "1 at each index, 0 elsewhere, along a new last dimension of num_classes; of -1, one more than the greatest index.")
      .sized(one_hot_classes, one_hot)
      .counted(given_classes, one_hot)
      .no_gradient()
      .samples({{ints(3), 4}, {ints(2, 3)}, {ints(0), 2}, {ints()}});
}

void add_sorts(Table& t) {
  const std::vector<Sample> lines = {{floats(3, 5)}, {floats(4, 2), 0, true}, {floats()}};
  const std::vector<Sample> stable = {{floats(3, 5), true}, {floats(4, 2), true, 0, true}};
  t.op("aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
      .doc("In order along a dimension, and where each element was; stable; NaN is the greatest.")
      .keeps_memory_format()
      .composed(sorted)
      .samples(lines);
  t.op("aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)")
      .doc("As sort.")
      .keeps_memory_format()
      .composed(sorted_stable)
      .samples(stable);
  t.op("aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
      .doc("Where each element of the sorted line was.")
      .no_gradient()
      .composed([](Value x, int64_t dim, bool descending) { return sorted(x, dim, descending)[1]; })
      .samples(lines);
  t.op("aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor")
      .doc("As argsort.")
      .no_gradient()
      .composed([](Value x, bool, int64_t dim, bool descending) { return sorted(x, dim, descending)[1]; })
      .samples(stable);
  t.op("aten::msort(Tensor self) -> Tensor")
      .doc("In order along the first dimension.")
      .composed([](Value x) { return sorted(x, 0, false)[0]; })
      .samples({{floats(3, 2)}});
  t.op("aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)")
      .doc("The k greatest or smallest elements of each line in order, and where they were.")
      .composed(topk)
      .samples({{floats(3, 5), 2}, {floats(4, 2), 4, 0, false}});
  const std::vector<Sample> searches = {{floats(5), floats(2, 3)}, {floats(2, 5), floats(2, 3)}};
  t.op("aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor")
      .doc("Where each value would go in a sorted line: before equal elements, or after them if right.")
      .no_gradient()
      .composed(searchsorted)
      .samples(searches);
  t.op("aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor")
      .doc("Where a number would go in a sorted line.")
      .no_gradient()
      .composed([](Value sequence, Number x, bool out_int32, bool right, std::optional<std::string> side,
                   Value sorter) {
        return searchsorted(
            sequence,
            scalar(x, is_floating(x.dtype()) && !is_floating(dtype_of(sequence)) ? DType::Float32 : dtype_of(sequence)),
            out_int32, right, side, sorter);
      })
      .samples({{floats(5), 0.5}});
  t.op("aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
      .doc("The bucket of each value between sorted boundaries.")
      .no_gradient()
      .composed([](Value x, Value boundaries, bool out_int32, bool right) {
        return counted_as(searched(boundaries, x, right), out_int32);
      })
      .samples({{floats(2, 3), floats(4)}});
  t.op("aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
      .doc("The bucket of a number between sorted boundaries.")
      .no_gradient()
      .composed([](Number x, Value boundaries, bool out_int32, bool right) {
        return counted_as(
            searched(boundaries,
                     scalar(x, is_floating(x.dtype()) && !is_floating(dtype_of(boundaries)) ? DType::Float32
                                                                                            : dtype_of(boundaries)),
                     right),
            out_int32);
      })
      .samples({{0.5, floats(4)}});
}

}  // namespace

Value Picks::in_place(Value gathered) const {
  return place < 0 ? gathered : move_dims(gathered, counted(0, index_rank), counted(place, index_rank));
}
Value Picks::in_front(Value values) const {
  return place < 0 ? values : move_dims(values, counted(place, index_rank), counted(0, index_rank));
}

Picks picks(Value x, const std::vector<Value>& indices, const char* checked_for) {
  BRASA_CHECK(static_cast<int64_t>(indices.size()) <= rank_of(x), "too many indices for tensor of dimension ",
              rank_of(x), " (got ", indices.size(), ")");
  Picks p;
  p.x = x;
  Shape shape;
  bool first = true;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    DType t = dtype_of(indices[d]);
    BRASA_CHECK(t != DType::Bool && t != DType::UInt8, "index: a mask (", type_of(indices[d]),
                ") gives a result whose size depends on the data: positions (nonzero) have to take its place first");
    BRASA_CHECK(is_index(t) || t == DType::Int16 || t == DType::Int8,
                "tensors used as indices must be long, int, byte or bool tensors, got ", type_of(indices[d]));
    shape = first ? shape_of(indices[d]) : broadcast_shapes(shape, shape_of(indices[d]));
    first = false;
    p.dims.push_back(static_cast<int64_t>(d));
  }
  BRASA_CHECK(!p.dims.empty(), "index: no index tensor given");
  p.index_rank = static_cast<int64_t>(shape.size());
  // Index tensors beside each other put their dimensions there; otherwise these come first.
  bool adjacent = p.dims.back() - p.dims.front() + 1 == static_cast<int64_t>(p.dims.size());
  p.place = adjacent && p.dims.front() > 0 ? p.dims.front() : -1;
  for (int64_t d : p.dims) {
    Expr n = size_of(x, d);
    Value i = indices[d];
    if (checked_for) {
      i = checked_index(i, n, checked_for);
    } else {
      i = convert(i, DType::Int64);
      i = where(lt(i, 0), i + size_tensor(n, shape_of(i)), i);
    }
    p.indices.push_back(broadcast_to(i, shape));
  }
  return p;
}

void add_indexing(Table& t) {
  add_picks(t);
  add_sorts(t);
}

}  // namespace brasa::ops
