#include <algorithm>

#include "ops/bounds.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Views of a part: ranges, splits, diagonals, windows.
namespace brasa::ops {
namespace {

using OptExpr = std::optional<Expr>;
constexpr int64_t kMostPieces = 1 << 20;

struct Range {
  Expr start, end;
};
Range slice_range(Expr size, OptExpr start, OptExpr end) {
  Range r{start ? clamped_bound(*start, size) : Expr(0), end ? clamped_bound(*end, size) : size};
  r.end = ir::max(r.end, r.start);
  return r;
}

Value slice_tensor(Value x, int64_t dim, OptExpr start, OptExpr end, Expr step) {
  BRASA_CHECK(rank_of(x) > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, rank_of(x));
  Range r = slice_range(size_of(x, dim), start, end);
  return slice(x, dim, r.start, r.end, checked_step(step, size_of(x, dim)));
}

Value narrowed(Value x, int64_t dim, Expr start, Expr length) {
  BRASA_CHECK(rank_of(x) > 0, "narrow() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, rank_of(x));
  Expr size = size_of(x, dim);
  BRASA_CHECK(!is_less(length, 0), "narrow(): length must be non-negative, got ", length);
  Expr given = start;
  if (is_less(start, 0)) start = start + size;
  BRASA_CHECK(!is_less(start, 0) && !is_less(size, start + length), "narrow(): start (", given, ") + length (", length,
              ") exceeds dimension size (", size, ")");
  return narrow(x, dim, start, length);
}

Expr selected(Value x, int64_t dim, Expr index) {
  Expr size = size_of(x, dim), i = is_less(index, 0) ? index + size : index;
  if (is_less(i, 0) || !is_less(i, size))
    fail_index(str("select(): index ", index, " out of range for tensor of size ", shape_of(x), " at dimension ", dim));
  return i;
}

Value select(Value x, int64_t dim, Expr index) {
  if (rank_of(x) == 0) fail_index("select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, rank_of(x));
  return squeeze(narrow(x, dim, selected(x, dim, index), 1), dim);
}

// Pieces of these sizes, one behind the other.
std::vector<Value> pieces(Value x, const Shape& sizes, int64_t dim) {
  std::vector<Value> out;
  Expr start(0);
  for (Expr s : sizes) {
    out.push_back(narrow(x, dim, start, s));
    start = start + s;
  }
  return out;
}

std::vector<Value> split_sizes(Value x, Shape sizes, int64_t dim) {
  BRASA_CHECK(rank_of(x) > 0, "split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, rank_of(x));
  Expr total(0);
  for (Expr s : sizes) {
    BRASA_CHECK(!is_less(s, 0), "split_with_sizes expects split_sizes have only non-negative entries, but got ", sizes);
    total = total + s;
  }
  BRASA_CHECK(same_size(total, size_of(x, dim)), "split_with_sizes expects split_sizes to sum exactly to ",
              size_of(x, dim), " (input tensor's size at dimension ", dim, "), but got split_sizes=", sizes);
  return pieces(x, sizes, dim);
}

std::vector<Value> split(Value x, Expr each, int64_t dim) {
  BRASA_CHECK(rank_of(x) > 0, "split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, rank_of(x));
  Expr size = size_of(x, dim);
  BRASA_CHECK(!is_less(each, 0), "split expects split_size be non-negative, but got split_size=", each);
  if (!is_less(0, each)) {
    BRASA_CHECK(same_size(size, 0), "split_size can only be 0 if dimension size is 0, but got dimension size of ",
                size);
    return {x};
  }
  if (each.is_constant() && is_less(size, each)) return {x};  // each may be as large as integers are
  int64_t n = std::max<int64_t>(known_size(ir::ceildiv(size, each)), 1);
  std::vector<Value> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(narrow(x, dim, each * i, i + 1 < n ? each : size - each * i));
  return out;
}

std::vector<Value> chunk(Value x, int64_t chunks, int64_t dim) {
  BRASA_CHECK(rank_of(x) > 0, "chunk expects at least a 1-dimensional tensor");
  BRASA_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  dim = wrap_dim(dim, rank_of(x));
  Expr size = size_of(x, dim);
  bool empty = same_size(size, 0);  // then there are as many pieces as asked for
  BRASA_CHECK(!empty || chunks <= kMostPieces, "chunk: at most ", kMostPieces, " pieces are supported, got ", chunks);
  if (empty) return split_sizes(x, Shape(chunks, Expr(0)), dim);
  return split(x, ir::ceildiv(size, Expr(chunks)), dim);
}

std::vector<Value> split_at(Value x, Shape indices, int64_t dim) {
  dim = wrap_dim(dim, rank_of(x));
  std::vector<Value> out;
  Expr start(0);
  for (Expr end : indices) {
    out.push_back(slice_tensor(x, dim, start, end, 1));
    start = end;
  }
  out.push_back(slice_tensor(x, dim, start, std::nullopt, 1));
  return out;
}

std::vector<Value> split_evenly(Value x, Expr sections, int64_t dim) {
  BRASA_CHECK(rank_of(x) > 0, "tensor_split expected at least a 1-dimensional tensor");
  dim = wrap_dim(dim, rank_of(x));
  int64_t n = known_size(sections);
  BRASA_CHECK(n > 0, "number of sections must be larger than 0, got ", n);
  BRASA_CHECK(n <= kMostPieces, "tensor_split: at most ", kMostPieces, " pieces are supported, got ", n);
  Expr size = size_of(x, dim), each = ir::floordiv(size, Expr(n)), longer = ir::mod(size, Expr(n));
  Shape sizes;
  for (int64_t i = 0; i < n; ++i) sizes.push_back(each + ir::max(ir::min(longer - i, 1), 0));
  return pieces(x, sizes, dim);
}

Value split_places(Value, Value places, int64_t) {
  BRASA_CHECK(rank_of(places) <= 1 && dtype_of(places) == DType::Int64,
              "tensor_split: expected tensor_indices_or_sections to be an int64 tensor of 0 or 1 dimensions, got ",
              type_of(places));
  return places;
}
std::vector<Value> split_by_tensor(Value x, Value places, int64_t dim, Shape values) {
  BRASA_CHECK(rank_of(x) > 0, "tensor_split expected at least a 1-dimensional tensor, got ", type_of(x));
  return rank_of(places) == 0 ? split_evenly(x, values.at(0), dim) : split_at(x, values, dim);
}

// hsplit, vsplit and dsplit: along `dim` of a tensor with at least that rank; hsplit of one dimension splits that.
template <int kDim>
int64_t split_axis(Value x) {
  constexpr const char* kNames[] = {"vsplit", "hsplit", "dsplit"};
  int64_t least = kDim == 1 ? 1 : kDim + 1 + (kDim == 0);
  BRASA_CHECK(rank_of(x) >= least, "torch.", kNames[kDim], " requires a tensor with at least ", least,
              " dimensions, but got a tensor with ", rank_of(x), " dimensions!");
  return kDim == 1 && rank_of(x) == 1 ? 0 : kDim;
}
template <int kDim>
std::vector<Value> axis_split_at(Value x, Shape indices) {
  return split_at(x, indices, split_axis<kDim>(x));
}
template <int kDim>
std::vector<Value> axis_split(Value x, int64_t sections) {
  int64_t dim = split_axis<kDim>(x);
  BRASA_CHECK(sections > 0 && same_size(ir::mod(size_of(x, dim), Expr(sections)), 0),
              "split attempted along dimension ", dim, ", but the size of the dimension ", size_of(x, dim),
              " is not divisible by the split_size ", sections, "!");
  return split_evenly(x, Expr(sections), dim);
}

std::vector<Value> unbind(Value x, int64_t dim) {
  BRASA_CHECK(rank_of(x) > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  dim = wrap_dim(dim, rank_of(x));
  int64_t n = known_size(size_of(x, dim));
  std::vector<Value> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(squeeze(narrow(x, dim, i, 1), dim));
  return out;
}

Value unfold(Value x, int64_t dim, int64_t size, int64_t step) {
  bool scalar = rank_of(x) == 0;
  x = at_least_1d(x);
  dim = wrap_dim(dim, rank_of(x));
  BRASA_CHECK(size >= 0 && !is_less(size_of(x, dim), Expr(size)), "maximum size for tensor at dimension ", dim, " is ",
              size_of(x, dim), " but size is ", size);
  BRASA_CHECK(step > 0, "step is ", step, " but must be > 0");
  Value w = prim::window(x, dim, Expr(size), Expr(step), 1);
  return scalar ? squeeze(w, 0) : w;
}

// Windows step through the part of a flat tensor that the view reaches, by any stride, one for each dimension; the view is the only one
// that is as long as the part.
Value as_strided(Value x, Shape size, Shape stride, OptExpr offset) {
  BRASA_CHECK(size.size() == stride.size(), "as_strided: got ", size.size(), " sizes and ", stride.size(), " strides");
  Value v = flattened(x);
  Expr start = offset.value_or(Expr(0)), end = start + 1;
  bool empty = false;
  for (size_t d = 0; d < size.size(); ++d) {
    BRASA_CHECK(!is_less(stride[d], 0) && !is_less(size[d], 0),
                "as_strided: Negative strides are not supported at the moment, got strides: ", stride);
    empty = empty || same_size(size[d], 0);
    end = end + (size[d] - 1) * stride[d];
  }
  if (empty) return prim::reshape(narrow(v, 0, 0, 0), size);
  BRASA_CHECK(!is_less(start, 0) && !is_less(size_of(v, 0), end), "as_strided: sizes ", size, ", strides ", stride,
              " and offset ", start, " need ", end, " elements, but the tensor has ", size_of(v, 0));
  v = narrow(v, 0, start, end - start);
  for (size_t d = 0; d < size.size(); ++d) v = prim::window(v, 0, size[d], 1, stride[d]);
  return squeeze(v, 0);
}

void add_slices(Table& t) {
  const std::vector<Sample> selects = {{floats(3, 4), 0, 1}, {floats(3, 4), -1, -2}, {floats(1), 0, 0}};
  t.op("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
      .doc("x[index] along a dimension, which goes away.")
      .sparse(Sparse::Select)
      .view()
      .composed(select)
      .samples(selects);
  t.op("aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor")
      .doc("A copy of select's result.")
      .composed(select)
      .samples(selects);
  const std::vector<Sample> slices = {
      {floats(5, 4), 0, 1, 4, 2}, {floats(3, 7), 1, -3}, {floats(3), 0, 5}, {floats(0)}};
  t.op("aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)")
      .doc("x[start:end:step] along a dimension, bounds clamped as in Python.")
      .sparse(Sparse::Slice)
      .view()
      .composed(slice_tensor)
      .special("step", short_steps())
      .samples(slices);
  t.op("aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
      .doc("A copy of slice's result.")
      .composed(slice_tensor)
      .special("step", short_steps())
      .samples(slices);
  const std::vector<Sample> narrows = {{floats(5, 4), 0, 1, 3}, {floats(5), -1, -2, 2}, {floats(3), 0, 3, 0}};
  t.op("aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
      .doc("`length` elements from `start` on along a dimension.")
      .sparse(Sparse::Narrow)
      .backward_node("SliceBackward0")
      .view()
      .composed(narrowed)
      .samples(narrows);
  t.op("aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
      .doc("A copy of narrow's result.")
      .sparse(Sparse::Narrow)
      .composed(narrowed)
      .samples(narrows);

  const std::vector<Sample> splits = {{floats(5, 2), 2}, {floats(2, 4), 4, 1}, {floats(1), 3}};
  t.op("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
      .doc("Pieces of split_size along a dimension; the last may be shorter.")
      .view()
      .composed(split)
      .samples(splits);
  t.op("aten::unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
      .doc("As split.")
      .view()
      .composed(split)
      .samples(splits);
  t.op("aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
      .doc("Copies of split's results.")
      .composed(split)
      .samples(splits);
  const std::vector<Sample> sizes = {{floats(5, 2), list({2, 0, 3})}, {floats(2, 4), list({1, 3}), -1}};
  t.op("aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
      .doc("Pieces of these sizes along a dimension.")
      .view()
      .composed(split_sizes)
      .samples(sizes);
  t.op("aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
      .doc("Pieces of these sizes along a dimension.")
      .view()
      .composed(split_sizes)
      .samples(sizes);
  t.op("aten::unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
      .doc("As split_with_sizes.")
      .view()
      .composed(split_sizes)
      .samples(sizes);
  t.op("aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
      .doc("Copies of split_with_sizes's results.")
      .composed(split_sizes)
      .samples(sizes);
  const std::vector<Sample> chunks = {{floats(5, 2), 3}, {floats(2, 4), 2, 1}, {floats(0, 2), 2}};
  t.op("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
      .doc("At most `chunks` pieces of equal size; the last may be shorter.")
      .backward_node("SplitBackward0")
      .view()
      .composed(chunk)
      .samples(chunks);
  t.op("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
      .doc("As chunk.")
      .view()
      .composed(chunk)
      .samples(chunks);
  t.op("aten::tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
      .doc("Exactly `sections` pieces; the first ones are longer by one where it does not come out even.")
      .view()
      .composed(split_evenly)
      .samples({{floats(7, 2), 3}, {floats(1), 2}});
  t.op("aten::tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
      .doc("The pieces between these indices.")
      .view()
      .composed(split_at)
      .samples({{floats(7, 2), list({2, 5})}, {floats(2, 3), list({1}), 1}});
  t.op("aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]")
      .doc("The pieces between the indices in a vector, or as many pieces as a tensor without dimensions says.")
      .view()
      .sized(split_places, split_by_tensor)
      .samples({{floats(5, 2), ints(1)}, {floats(4, 3), tensor(DType::Int64, {}).in(2, 3), 1}});
  t.op("aten::hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .doc("Equal pieces along the second dimension, or the only one.")
      .view()
      .composed(axis_split<1>)
      .samples({{floats(2, 4), 2}, {floats(4), 2}});
  t.op("aten::vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .doc("Equal pieces along the first dimension.")
      .view()
      .composed(axis_split<0>)
      .samples({{floats(4, 2), 2}});
  t.op("aten::dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
      .doc("Equal pieces along the third dimension.")
      .view()
      .composed(axis_split<2>)
      .samples({{floats(2, 1, 4), 2}});
  t.op("aten::hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .doc("The pieces between indices of the second dimension, or the only one.")
      .view()
      .composed(axis_split_at<1>)
      .samples({{floats(2, 4), list({1})}});
  t.op("aten::vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .doc("The pieces between indices of the first dimension.")
      .view()
      .composed(axis_split_at<0>)
      .samples({{floats(4, 2), list({1})}});
  t.op("aten::dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
      .doc("The pieces between indices of the third dimension.")
      .view()
      .composed(axis_split_at<2>)
      .samples({{floats(2, 1, 4), list({1})}});
  const std::vector<Sample> binds = {{floats(3, 2)}, {floats(2, 3), -1}};
  t.op("aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
      .doc("The slices along a dimension, which goes away.")
      .view()
      .composed(unbind)
      .samples(binds);
  t.op("aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]")
      .doc("Copies of unbind's results.")
      .composed(unbind)
      .samples(binds);
}

void add_sliding_windows(Table& t) {
  const std::vector<Sample> diagonals = {
      {floats(3, 5)}, {floats(2, 3, 4), 1, 0, 2}, {floats(3, 3), -1}, {floats(2, 0), 1}};
  t.op("aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
      .doc("x[…, i, i + offset] of two dimensions, as the last dimension.")
      .view()
      .composed(diagonal)
      .samples(diagonals);
  t.op("aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor")
      .doc("A copy of diagonal's result.")
      .composed(diagonal)
      .samples(diagonals);
  t.op("aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
      .doc("The diagonals of a batch of matrices.")
      .view()
      .composed(diagonal)
      .samples({{floats(2, 3, 4)}, {floats(2, 3), 1}});
  const std::vector<Sample> unfolds = {{floats(7, 2), 0, 3, 2}, {floats(4), -1, 4, 1}, {floats(3), 0, 0, 1}};
  t.op("aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
      .doc("Sliding windows along a dimension, as a new last dimension.")
      .view()
      .composed(unfold)
      .samples(unfolds);
  t.op("aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor")
      .doc("A copy of unfold's result.")
      .composed(unfold)
      .samples(unfolds);
  const std::vector<Sample> strides = {{floats(12), list({2, 3}), list({3, 1}), 2},
                                       {floats(6), list({3, 2}), list({0, 2})},
                                       {floats(2), list({0}), list({1})}};
  t.op("aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)")
      .doc(
          "Elements offset + Σ index · stride of the tensor's memory. Defined on contiguous tensors; a tensor library sets the "
          "strides of any.")
      .view()
      .over_storage()
      .composed(as_strided)
      .samples(strides);
}

}  // namespace

void add_slicing(Table& t) {
  add_slices(t);
  add_sliding_windows(t);
}

}  // namespace brasa::ops
