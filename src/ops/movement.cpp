#include <algorithm>

#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using OptText = std::optional<std::string>;
using OptBool = std::optional<bool>;
using OptDType = std::optional<DType>;

// --- joining ---

Value cat(std::vector<Value> xs, int64_t dim) {
  BRASA_CHECK(!xs.empty(), "torch.cat(): expected a non-empty list of Tensors");
  DType t = result_type(xs);
  // A tensor of shape [0] joins those of any rank.
  bool vectors = std::all_of(xs.begin(), xs.end(), [](Value x) { return rank_of(x) == 1; });
  std::vector<Value> parts;
  for (Value x : xs)
    if (vectors || rank_of(x) != 1 || !same_size(size_of(x, 0), 0)) parts.push_back(x);
  if (parts.empty()) return convert(xs[0], t);
  dim = wrap_dim(dim, rank_of(parts[0]));
  for (size_t i = 0; i < parts.size(); ++i) {
    BRASA_CHECK(rank_of(parts[i]) > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    BRASA_CHECK(rank_of(parts[i]) == rank_of(parts[0]), "Tensors must have same number of dimensions: got ",
                rank_of(parts[0]), " and ", rank_of(parts[i]));
    for (int64_t d = 0; d < rank_of(parts[0]); ++d)
      BRASA_CHECK(d == dim || same_size(size_of(parts[0], d), size_of(parts[i], d)),
                  "Sizes of tensors must match except in dimension ", dim, ". Expected size ", size_of(parts[0], d),
                  " but got size ", size_of(parts[i], d), " for tensor number ", i, " in the list.");
    parts[i] = convert(parts[i], t);
  }
  return prim::concat(parts, dim);
}

Value stack(std::vector<Value> xs, int64_t dim) {
  BRASA_CHECK(!xs.empty(), "stack expects a non-empty TensorList");
  dim = wrap_dim(dim, rank_of(xs[0]) + 1);
  for (size_t i = 0; i < xs.size(); ++i) {
    bool same = rank_of(xs[i]) == rank_of(xs[0]);
    for (int64_t d = 0; same && d < rank_of(xs[0]); ++d) same = same_size(size_of(xs[i], d), size_of(xs[0], d));
    BRASA_CHECK(same, "stack expects each tensor to be equal size, but got ", shape_of(xs[0]), " at entry 0 and ",
                shape_of(xs[i]), " at entry ", i);
  }
  Shape shape = shape_of(xs[0]);
  shape.insert(shape.begin() + dim, Expr(1));
  for (Value& x : xs) x = prim::reshape(x, shape);
  return cat(xs, dim);
}

template <int kRank>
std::vector<Value> at_least(std::vector<Value> xs) {
  for (Value& x : xs)
    while (rank_of(x) < kRank) x = unsqueeze(x, rank_of(x) < 2 ? 0 : 2);
  return xs;
}
Value hstack(std::vector<Value> xs) {
  xs = at_least<1>(xs);
  BRASA_CHECK(!xs.empty(), "hstack expects a non-empty TensorList");
  return cat(xs, rank_of(xs[0]) == 1 ? 0 : 1);
}
Value vstack(std::vector<Value> xs) { return cat(at_least<2>(xs), 0); }
Value dstack(std::vector<Value> xs) { return cat(at_least<3>(xs), 2); }
Value column_stack(std::vector<Value> xs) {
  for (Value& x : xs)
    if (rank_of(x) <= 1) x = prim::reshape(x, {type_of(x).numel(), Expr(1)});
  return hstack(xs);
}

Value block_diag(std::vector<Value> xs) {
  if (xs.empty()) return full(0.0, {Expr(1), Expr(0)}, DType::Float32);
  DType t = result_type(xs);
  Expr columns(0), before(0);
  for (Value& x : xs) {
    BRASA_CHECK(rank_of(x) <= 2, "block_diag: Input tensors must have 2 or fewer dimensions. Got ", rank_of(x));
    x = convert(at_least<2>({x})[0], t);
    columns = columns + size_of(x, 1);
  }
  for (Value& x : xs) {
    Expr own = size_of(x, 1);
    x = pad_dim(x, 1, before, columns - before - own);
    before = before + own;
  }
  return cat(xs, 0);
}

std::vector<Value> meshgrid(std::vector<Value> xs, std::string indexing) {
  BRASA_CHECK(indexing == "ij" || indexing == "xy",
              "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  BRASA_CHECK(!xs.empty(), "meshgrid expects a non-empty TensorList");
  for (Value x : xs)
    BRASA_CHECK(dtype_of(x) == dtype_of(xs[0]), "torch.meshgrid expects all tensors to have the same dtype, got ",
                name(dtype_of(xs[0])), " and ", name(dtype_of(x)));
  Shape shape;
  bool swapped = indexing == "xy" && xs.size() >= 2;
  if (swapped) std::swap(xs[0], xs[1]);
  for (Value& x : xs) {
    BRASA_CHECK(rank_of(x) <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", type_of(x));
    x = at_least_1d(x);
    shape.push_back(size_of(x, 0));
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    xs[i] = prim::broadcast(xs[i], shape, {static_cast<int64_t>(i)});
  }
  if (swapped) std::swap(xs[0], xs[1]);
  return xs;
}
std::vector<Value> meshgrid_ij(std::vector<Value> xs) { return meshgrid(std::move(xs), "ij"); }

// --- turning and repeating ---

Value flip(Value x, Dims dims) { return prim::reverse(x, wrap_dims(dims, rank_of(x))); }
Value fliplr(Value x) {
  BRASA_CHECK(rank_of(x) >= 2, "Input must be >= 2-d.");
  return prim::reverse(x, {1});
}
Value flipud(Value x) {
  BRASA_CHECK(rank_of(x) >= 1, "Input must be >= 1-d.");
  return prim::reverse(x, {0});
}

Value roll_dim(Value x, Expr shift, int64_t dim) {
  Expr n = size_of(x, dim), start = ir::mod(-shift, ir::max(n, 1));
  if (start.is(0)) return x;
  return prim::concat({narrow(x, dim, start, n - start), narrow(x, dim, 0, start)}, dim);
}
Value roll(Value x, Shape shifts, Dims dims) {
  if (dims.empty() && shifts.size() == 1) return prim::reshape(roll_dim(flattened(x), shifts[0], 0), shape_of(x));
  BRASA_CHECK(!shifts.empty() && shifts.size() == dims.size(),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    if (rank_of(x) > 0) x = roll_dim(x, shifts[i], wrap_dim(dims[i], rank_of(x)));
  return x;
}

Value rot90(Value x, Expr k, Dims dims) {
  BRASA_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  BRASA_CHECK(rank_of(x) >= 2, "expected total dims >= 2, but got total dims = ", rank_of(x));
  dims = wrap_dims(dims, rank_of(x));
  switch (known_size(ir::mod(k, 4))) {
    case 1: return transpose(prim::reverse(x, {dims[1]}), dims[0], dims[1]);
    case 2: return prim::reverse(x, dims);
    case 3: return transpose(prim::reverse(x, {dims[0]}), dims[0], dims[1]);
    default: return x;
  }
}

Value repeat(Value x, Shape times) {
  auto lead = static_cast<int64_t>(times.size()) - rank_of(x);
  BRASA_CHECK(lead >= 0,
              "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got ", times,
              " for ", type_of(x));
  Shape wide, out;
  Dims dims;
  for (int64_t d = 0; d < static_cast<int64_t>(times.size()); ++d) {
    BRASA_CHECK(!is_less(times[d], 0), "Trying to create tensor with negative dimension ", times[d]);
    Expr own = d < lead ? Expr(1) : size_of(x, d - lead);
    // A dimension more that has one element would be another loop around each row.
    if (!same_size(times[d], 1)) wide.push_back(times[d]);
    if (d >= lead) {
      dims.push_back(static_cast<int64_t>(wide.size()));
      wide.push_back(own);
    }
    out.push_back(times[d] * own);
  }
  return prim::reshape(prim::broadcast(x, wide, dims), out);
}
Value tile(Value x, Shape times) {
  while (static_cast<int64_t>(times.size()) < rank_of(x)) times.insert(times.begin(), Expr(1));
  return repeat(x, times);
}

Value repeat_interleave(Value x, Expr times, std::optional<int64_t> dim, std::optional<Expr>) {
  BRASA_CHECK(!is_less(times, 0), "Repeats must be non-negative, got ", times);
  if (!dim) x = flattened(x);
  x = at_least_1d(x);
  int64_t d = wrap_dim(dim.value_or(0), rank_of(x));
  return merge_dims(repeat_along(x, d + 1, times), d, d + 1);
}

// --- triangles and diagonals ---

Value matrix_part(Value x, const char* comparison, Expr diagonal) {
  BRASA_CHECK(rank_of(x) >= 2, "tril and triu: input tensor must have at least 2 dimensions, got ", type_of(x));
  // All diagonals outside of the matrix are like the first ones there, and differences of indices stay small.
  diagonal = ir::max(ir::min(diagonal, size_of(x, rank_of(x) - 1)), -size_of(x, rank_of(x) - 2));
  return prim::select(band(shape_of(x), comparison, diagonal), x, zeros_like(x));
}
Value tril(Value x, Expr diagonal) { return matrix_part(x, "le", diagonal); }
Value triu(Value x, Expr diagonal) { return matrix_part(x, "ge", diagonal); }

Value diag(Value x, Expr offset) {
  BRASA_CHECK(rank_of(x) == 1 || rank_of(x) == 2, "diag(): Supports 1D or 2D tensors. Got ", rank_of(x), "D");
  return rank_of(x) == 1 ? diagonal_embedded(x, offset, 0, 1) : diagonal(x, offset, 0, 1);
}
Value diag_embed(Value x, Expr offset, int64_t dim1, int64_t dim2) {
  return diagonal_embedded(at_least_1d(x), offset, dim1, dim2);
}
Value diagflat(Value x, Expr offset) { return diagonal_embedded(flattened(x), offset, 0, 1); }

// --- copies and conversions ---

Value converted(Value x, OptDType dtype) { return dtype ? convert(x, *dtype) : x; }

Value copy(Value x, Value source, bool) { return broadcast_to(convert(source, dtype_of(x)), shape_of(x)); }

// --- pixels and channels ---

// [.., c r², h, w] -> [.., c, h r, w r].
Value pixel_shuffle(Value x, int64_t r) {
  int64_t n = rank_of(x);
  BRASA_CHECK(n >= 3, "pixel_shuffle expects input to have at least 3 dimensions, but got input with ", n,
              " dimension(s)");
  BRASA_CHECK(r > 0 && r <= INT32_MAX, "pixel_shuffle expects a positive upscale_factor, but got ", r);
  BRASA_CHECK(
      same_size(ir::mod(size_of(x, n - 3), Expr(r) * r), 0),
      "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)=",
      size_of(x, n - 3), " is not divisible by ", r * r);
  Value v = split_dim(x, n - 3, {ir::floordiv(size_of(x, n - 3), Expr(r) * r), Expr(r), Expr(r)});
  v = move_dims(v, {n - 2, n - 1}, {n - 1, n + 1});  // [.., c, h, r, w, r]
  return merge_dims(merge_dims(v, n, n + 1), n - 2, n - 1);
}
Value pixel_unshuffle(Value x, int64_t r) {
  int64_t n = rank_of(x);
  BRASA_CHECK(n >= 3, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with ", n,
              " dimension(s)");
  BRASA_CHECK(r > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", r);
  for (int64_t d : {n - 2, n - 1})
    BRASA_CHECK(same_size(ir::mod(size_of(x, d), Expr(r)), 0),
                "pixel_unshuffle expects height and width to be divisible by downscale_factor, but ", size_of(x, d),
                " is not divisible by ", r);
  Value v = split_dim(x, n - 1, {ir::floordiv(size_of(x, n - 1), Expr(r)), Expr(r)});
  v = split_dim(v, n - 2, {ir::floordiv(size_of(x, n - 2), Expr(r)), Expr(r)});  // [.., c, h, r, w, r]
  v = move_dims(v, {n - 1, n + 1}, {n - 2, n - 1});
  return merge_dims(v, n - 3, n - 1);
}
Value channel_shuffle(Value x, Expr groups) {
  BRASA_CHECK(rank_of(x) > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", shape_of(x));
  BRASA_CHECK(is_less(0, groups) && same_size(ir::mod(size_of(x, 1), groups), 0),
              "Number of channels must be divisible by groups. Got ", size_of(x, 1), " channels and ", groups,
              " groups.");
  Value v = split_dim(x, 1, {groups, ir::floordiv(size_of(x, 1), groups)});
  return merge_dims(transpose(v, 1, 2), 1, 2);
}

void add_joins(Table& t) {
  const std::vector<Sample> lists = {{std::vector<TensorSample>{floats(2, 3), floats(1, 3), floats(0)}},
                                     {std::vector<TensorSample>{floats(2, 3), ints(2, 1)}, -1}};
  t.op("aten::cat(Tensor[] tensors, int dim=0) -> Tensor")
      .out(Out::Cast)
      .doc("Tensors one after the other along a dimension.")
      .keeps_memory_format()
      .autocast(Autocast::Widest, Autocast::None)
      .sparse(Sparse::Cat)
      .packed({{std::vector{floats(8, 8), floats(8, 8)}, 0}, {std::vector{floats(8, 8), floats(8, 8)}, 1}})
      .composed(cat)
      .samples(lists);
  t.alias("aten::concat", "aten::cat");
  t.alias("aten::concatenate", "aten::cat");
  t.op("aten::stack(Tensor[] tensors, int dim=0) -> Tensor")
      .out(Out::Cast)
      .doc("Tensors of one shape along a new dimension.")
      .autocast(Autocast::Widest, Autocast::None)
      .sparse(Sparse::Stack)
      .packed({{std::vector{floats(8, 8), floats(8, 8)}, 0}})
      .composed(stack)
      .samples({{std::vector<TensorSample>{floats(2, 3), floats(2, 3)}, -1}});
  t.alias("aten::_stack", "aten::stack");
  const std::vector<Sample> stacks = {{std::vector<TensorSample>{floats(2), floats(2)}},
                                      {std::vector<TensorSample>{floats(2, 3), floats(2, 3)}}};
  t.op("aten::hstack(Tensor[] tensors) -> Tensor")
      .out(Out::Cast)
      .doc("Joined along the second dimension, or the only one.")
      .composed(hstack)
      .samples(stacks);
  t.op("aten::vstack(Tensor[] tensors) -> Tensor")
      .out(Out::Cast)
      .doc("Joined along the first of two or more dimensions.")
      .composed(vstack)
      .samples(stacks);
  t.alias("aten::row_stack", "aten::vstack");
  t.op("aten::dstack(Tensor[] tensors) -> Tensor")
      .out(Out::Cast)
      .doc("Joined along the third dimension.")
      .composed(dstack)
      .samples(stacks);
  t.op("aten::column_stack(Tensor[] tensors) -> Tensor")
      .out(Out::Cast)
      .doc("Vectors as columns, matrices beside each other.")
      .composed(column_stack)
      .samples(stacks);
  t.op("aten::block_diag(Tensor[] tensors) -> Tensor")
      .doc("Matrices along the diagonal of one, zeros elsewhere.")
      .composed(block_diag)
      .samples({{std::vector<TensorSample>{floats(2, 3), floats(2)}}});
  const std::vector<Sample> axes = {{std::vector<TensorSample>{floats(2), floats(3)}}};
  t.op("aten::meshgrid(Tensor[] tensors) -> Tensor[]")
      .doc("Coordinates of a grid, the first tensor along the first dimension.")
      .composed(meshgrid_ij)
      .samples(axes);
  t.op("aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]")
      .doc("Coordinates of a grid; with 'xy' the first tensor runs along the second dimension.")
      .composed(meshgrid)
      .samples({{std::vector<TensorSample>{floats(2), floats(3)}, "xy"}});
}

void add_repetitions(Table& t) {
  t.op("aten::flip(Tensor self, int[] dims) -> Tensor")
      .doc("Dimensions counted from their ends.")
      .keeps_memory_format()
      .packed({{floats(8, 8), list({0})}})
      .composed(flip)
      .samples({{floats(2, 3), list({0, -1})}, {floats(0, 2), list({0})}});
  t.op("aten::fliplr(Tensor self) -> Tensor")
      .doc("The second dimension counted from its end.")
      .keeps_memory_format()
      .composed(fliplr)
      .samples({{floats(2, 3)}});
  t.op("aten::flipud(Tensor self) -> Tensor")
      .doc("The first dimension counted from its end.")
      .keeps_memory_format()
      .composed(flipud)
      .samples({{floats(2, 3)}});
  t.op("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
      .doc("Elements moved along dimensions; what leaves at the end enters at the start.")
      .keeps_memory_format()
      .composed(roll)
      .samples(
          {{floats(3, 4), list({1, -1}), list({0, 1})}, {floats(5), list({7})}, {floats(0, 2), list({1}), list({0})}});
  t.op("aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
      .doc("Turned by k quarters in the plane of two dimensions.")
      .composed(rot90)
      .samples({{floats(2, 3)}, {floats(2, 3), -1}});
  t.op("aten::repeat(Tensor self, SymInt[] repeats) -> Tensor")
      .doc("The whole repeated along each dimension.")
      .composed(repeat)
      .samples({{floats(2, 3), list({2, 1, 3})}, {floats(2), list({0})}});
  t.op("aten::tile(Tensor self, SymInt[] dims) -> Tensor")
      .doc("The whole repeated along the last dimensions.")
      .composed(tile)
      .samples({{floats(2, 3), list({2})}});
  t.op("aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
      .doc("Each element repeated along a dimension, or each of all.")
      .composed(repeat_interleave)
      .samples({{floats(2, 3), 2, 1}, {floats(2, 2), 3}});
}

void add_triangles(Table& t) {
  const std::vector<Sample> matrices = {{floats(3, 4)}, {floats(2, 3, 3), -1}, {floats(2, 0)}};
  t.op("aten::tril(Tensor self, SymInt diagonal=0) -> Tensor")
      .doc("Zeros above a diagonal of each matrix.")
      .packed({{floats(8, 8)}})
      .composed(tril)
      .samples(matrices);
  t.op("aten::triu(Tensor self, SymInt diagonal=0) -> Tensor")
      .doc("Zeros below a diagonal of each matrix.")
      .composed(triu)
      .samples(matrices);
  t.op("aten::diag(Tensor self, int diagonal=0) -> Tensor")
      .doc("The diagonal of a matrix, or a matrix with this diagonal.")
      .composed(diag)
      .samples({{floats(3), 1}, {floats(3, 4), -1}});
  t.op("aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
      .doc("The last dimension as diagonals of matrices.")
      .composed(diag_embed)
      .samples({{floats(2, 3)}, {floats(2, 3), -1, 0, 2}});
  t.op("aten::diagflat(Tensor self, int offset=0) -> Tensor")
      .doc("All elements as the diagonal of a matrix.")
      .composed(diagflat)
      .samples({{floats(2, 2), 1}});
}

template <DType to>
void add_cast(Table& t, const char* name) {
  t.op(str("aten::_cast_", name, "(Tensor self, bool non_blocking=False) -> Tensor"))
      .doc(str("The tensor in ", brasa::name(to), "."))
      .composed([](Value x, bool) { return convert(x, to); })
      .samples({{floats(2, 3)}, {ints(3)}});
}

void add_copies(Table& t) {
  const std::vector<Sample> any = {{floats(2, 3)}, {floats(2, 3).strided(2)}, {floats(0)}};
  t.op("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
      .doc("A copy.")
      .sparse(Sparse::Copy)
      .composed([](Value x, OptText) { return x; })
      .samples(any);
  t.op("aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
      .doc("The same values in row-major memory; a tensor library gives the tensor itself if it is so already.")
      .composed([](Value x, std::string) { return x; })
      .samples(any);
  t.op("aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
      .doc("src in self's shape and dtype.")
      .sparse(Sparse::CopyFrom)
      .composed(copy)
      .samples({{floats(2, 3), floats(3)}, {ints(2), floats(2)}});
  const char* doc = "The tensor in another dtype; itself if it has that already.";
  t.op("aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
       "bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor")
      .doc("A copy in another dtype.")
      .sparse(Sparse::Linear)
      .composed([](Value x, OptDType dtype, OptText, OptText, OptBool, bool, OptText) { return converted(x, dtype); })
      .samples({{floats(2, 3), DType::Float64}, {floats(2), DType::Int64}});
  t.op("aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)")
      .doc(doc)
      .composed([](Value x, DType dtype, bool, bool, OptText) { return convert(x, dtype); })
      .samples({{floats(2, 3), DType::BFloat16}, {ints(3), DType::Float32}});
  t.op("aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) -> Tensor(a)")
      .doc("The tensor in another dtype and on a device.")
      .composed([](Value x, std::string, DType dtype, bool, bool, OptText) { return convert(x, dtype); })
      .samples({{floats(2, 3), "cpu", DType::Float64}});
  t.op("aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
       "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)")
      .doc(doc)
      .composed(
          [](Value x, OptDType dtype, OptText, OptText, OptBool, bool, bool, OptText) { return converted(x, dtype); })
      .samples({{floats(2, 3), DType::Float64}});
  t.op("aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)")
      .doc("The tensor in the other's dtype.")
      .composed([](Value x, Value other, bool, bool, OptText) { return convert(x, dtype_of(other)); })
      .samples({{floats(2, 3), ints(1)}});
  t.op("aten::chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor")
      .doc("Complex numbers of half precision.")
      .composed([](Value x, OptText) { return convert(x, DType::Complex32); })
      .samples({{floats(2, 3)}, {tensor(DType::Complex64, {3})}});
  add_cast<DType::UInt8>(t, "Byte");
  add_cast<DType::Int8>(t, "Char");
  add_cast<DType::Int16>(t, "Short");
  add_cast<DType::Int32>(t, "Int");
  add_cast<DType::Int64>(t, "Long");
  add_cast<DType::Float16>(t, "Half");
  add_cast<DType::Float32>(t, "Float");
  add_cast<DType::Float64>(t, "Double");
  t.op("aten::type_as(Tensor self, Tensor other) -> Tensor")
      .doc("The tensor in the other's dtype.")
      .composed([](Value x, Value other) { return convert(x, dtype_of(other)); })
      .samples({{floats(2, 3), ints(1)}});
}

void add_pixels(Table& t) {
  t.op("aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
      .doc("[…, C r², H, W] as […, C, H r, W r] (Shi et al. 2016).")
      .keeps_memory_format()
      .composed(pixel_shuffle)
      .samples({{floats(1, 8, 2, 3), 2}});
  t.op("aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
      .doc("The inverse of pixel_shuffle.")
      .keeps_memory_format()
      .composed(pixel_unshuffle)
      .samples({{floats(1, 2, 4, 6), 2}});
  t.op("aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor")
      .doc("Channels of `groups` groups in turn (Zhang et al. 2018).")
      .keeps_memory_format()
      .composed(channel_shuffle)
      .samples({{floats(1, 6, 2), 3}});
  t.alias("aten::native_channel_shuffle", "aten::channel_shuffle");
}

}  // namespace

void add_movement(Table& t) {
  add_joins(t);
  add_repetitions(t);
  add_triangles(t);
  add_copies(t);
  add_pixels(t);
}

}  // namespace brasa::ops
