#include <algorithm>

#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Views: each result is a chain of movement primitives from the first operand, which a tensor library follows on strides.
// Forms that end in _copy give the same values in fresh memory.
namespace brasa::ops {
namespace {

using OptExpr = std::optional<Expr>;

Value itself(Value x) { return x; }
Value real_itself(Value x) {
  BRASA_CHECK(!is_complex(dtype_of(x)), "conj: complex tensors are not supported yet, got ", type_of(x));
  return x;
}

// `size` with its -1 replaced by what is left of `numel` elements.
Shape completed(const Shape& size, Expr numel, const char* what) {
  Shape out = size;
  Expr given(1);
  int64_t open = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].is(-1)) {
      BRASA_CHECK(open < 0, "only one dimension can be inferred, got shape ", size);
      open = static_cast<int64_t>(i);
    } else {
      BRASA_CHECK(!out[i].is_constant() || out[i].constant() >= 0, "invalid shape dimension ", out[i], " in shape ",
                  size);
      given = given * out[i];
    }
  }
  if (open < 0) {
    BRASA_CHECK(given == numel || same_size(given, numel), "shape '", size, "' is invalid for ", what, " of size ",
                numel);
    return out;
  }
  BRASA_CHECK(!given.is(0), "cannot reshape ", what, " of ", numel, " elements into shape ", size,
              " because the unspecified dimension size -1 can be any value");
  Expr rest = ir::floordiv(numel, given);
  if (!(rest * given == numel)) {
    BRASA_CHECK(!same_size(given, 0) && same_size(ir::mod(numel, given), 0), "shape '", size, "' is invalid for ", what,
                " of size ", numel);
  }
  out[open] = rest;
  return out;
}

Value reshape(Value x, Shape size) { return prim::reshape(x, completed(size, type_of(x).numel(), "input")); }
Value reshape_as(Value x, Value other) { return reshape(x, shape_of(other)); }
Value reshape_alias(Value x, Shape size, Shape) { return reshape(x, size); }

DType integer_of(int64_t bytes) {
  return bytes == 1 ? DType::UInt8 : bytes == 2 ? DType::Int16 : bytes == 4 ? DType::Int32 : DType::Int64;
}

Value view_bits(Value x, DType dtype) {
  int64_t from = size_of(dtype_of(x)), to = size_of(dtype), last = rank_of(x) - 1;
  BRASA_CHECK(from <= 8 && to <= 8 && dtype != DType::Bool && dtype_of(x) != DType::Bool, "view: ", name(dtype_of(x)),
              " as ", name(dtype), " is not supported");
  if (from == to) return prim::bitcast(x, dtype);
  BRASA_CHECK(last >= 0, "self.dim() cannot be 0 to view ", name(dtype_of(x)), " as ", name(dtype),
              " (different element sizes)");
  Value bits = prim::bitcast(x, integer_of(from));
  std::vector<Value> parts;
  // Little-endian: the low bits come first.
  if (from > to) {
    for (int64_t k = 0; k < from / to; ++k)
      parts.push_back(unsqueeze(
          convert(prim::binary("shr", bits, constant_like(bits, Number(8 * to * k))), integer_of(to)), last + 1));
    return merge_dims(prim::bitcast(prim::concat(parts, last + 1), dtype), last, last + 1);
  }
  int64_t ratio = to / from;
  BRASA_CHECK(same_size(ir::mod(size_of(x, last), Expr(ratio)), 0), "self.size(-1) must be divisible by ", ratio,
              " to view ", name(dtype_of(x)), " as ", name(dtype), " (different element sizes), but got ",
              size_of(x, last));
  Value wide =
            convert(split_dim(bits, last, {ir::floordiv(size_of(x, last), Expr(ratio)), Expr(ratio)}), integer_of(to)),
        out;
  wide = pointwise("bit_and", wide, constant_like(wide, Number((int64_t{1} << (8 * from)) - 1)));
  for (int64_t k = 0; k < ratio; ++k) {
    Value part = squeeze(narrow(wide, last + 1, k, 1), last + 1);
    part = prim::binary("shl", part, constant_like(part, Number(8 * from * k)));
    out = out ? prim::binary("bit_or", out, part) : part;
  }
  return prim::bitcast(out, dtype);
}

Value expand_to(Value x, Shape size, bool) {
  auto lead = static_cast<int64_t>(size.size()) - rank_of(x);
  BRASA_CHECK(lead >= 0, "expand: the number of sizes provided (", size.size(),
              ") must be greater or equal to the number of dimensions in the tensor (", rank_of(x), ")");
  for (int64_t d = 0; d < static_cast<int64_t>(size.size()); ++d) {
    if (d >= lead && size[d].is(-1)) size[d] = size_of(x, d - lead);
    BRASA_CHECK(!size[d].is_constant() || size[d].constant() >= 0, "expand: size ", size[d],
                " is not allowed in a leading, non-existing dimension ", d);
    if (d >= lead) {
      Expr from = size_of(x, d - lead);
      BRASA_CHECK(from == size[d] || same_size(from, size[d]) || is_one(from), "The expanded size of the tensor (",
                  size[d], ") must match the existing size (", from, ") at non-singleton dimension ", d,
                  ". Target sizes: ", size, ". Tensor sizes: ", shape_of(x));
    }
  }
  return broadcast_to(x, size);
}
Value expand_as(Value x, Value other) { return expand_to(x, shape_of(other), false); }
Value broadcast_to_size(Value x, Shape size) { return expand_to(x, size, false); }

std::vector<Value> broadcast_tensors(std::vector<Value> xs) {
  if (xs.empty()) return xs;
  Shape shape = shape_of(xs[0]);
  for (Value x : xs) shape = broadcast_shapes(shape, shape_of(x));
  for (Value& x : xs) x = broadcast_to(x, shape);
  return xs;
}

Value permute(Value x, Dims dims) {
  BRASA_CHECK(static_cast<int64_t>(dims.size()) == rank_of(x), "permute: got ", dims.size(),
              " dimensions for a tensor of ", rank_of(x));
  return prim::transpose(x, wrap_dims(dims, rank_of(x)));
}
Value swap(Value x, int64_t a, int64_t b) {
  a = wrap_dim(a, rank_of(x));
  b = wrap_dim(b, rank_of(x));
  return a == b ? x : transpose(x, a, b);
}
Value t_(Value x) {
  BRASA_CHECK(rank_of(x) <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", rank_of(x), "D");
  return rank_of(x) < 2 ? x : transpose(x, 0, 1);
}
Value numpy_T(Value x) {
  Dims dims = all_dims(x);
  std::reverse(dims.begin(), dims.end());
  return prim::transpose(x, dims);
}
Value last_two_swapped(Value x) {
  BRASA_CHECK(rank_of(x) >= 2, "tensor.mT is only supported on matrices or batches of matrices. Got ", rank_of(x),
              "-D tensor.");
  return transpose(x, rank_of(x) - 2, rank_of(x) - 1);
}
Value adjoint(Value x) { return rank_of(real_itself(x)) == 0 ? x : last_two_swapped(x); }
Value matrix_H(Value x) {
  BRASA_CHECK(rank_of(x) == 0 || rank_of(x) == 2, "tensor.H is only supported on matrices (2-D tensors). Got ",
              rank_of(x), "-D tensor.");
  return adjoint(x);
}
Value movedim(Value x, int64_t from, int64_t to) { return move_dims(x, {from}, {to}); }

Value squeezed(Value x, const Dims& dims) {
  Shape shape;
  for (int64_t d = 0; d < rank_of(x); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end() || !is_one(size_of(x, d))) shape.push_back(size_of(x, d));
  return prim::reshape(x, shape);
}
Value squeeze_all(Value x) { return squeezed(x, all_dims(x)); }
Value squeeze_dims(Value x, Dims dims) { return squeezed(x, wrap_dims(dims, rank_of(x))); }
Value squeeze_dim(Value x, int64_t dim) { return squeeze_dims(x, {dim}); }
Value unsqueeze_dim(Value x, int64_t dim) { return unsqueeze(x, wrap_dim(dim, rank_of(x) + 1)); }

Value flatten(Value x, int64_t first, int64_t last) {
  if (rank_of(x) == 0) return at_least_1d(x);
  first = wrap_dim(first, rank_of(x));
  last = wrap_dim(last, rank_of(x));
  BRASA_CHECK(first <= last, "flatten() has invalid args: start_dim cannot come after end_dim, got ", first, " and ",
              last);
  return first == last ? x : merge_dims(x, first, last);
}
Value unflatten(Value x, int64_t dim, Shape sizes) {
  dim = wrap_dim(dim, rank_of(x));
  BRASA_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  return split_dim(x, dim, completed(sizes, size_of(x, dim), "dimension"));
}

// An index counted from the start; clamped to [0, size] as a slice's bounds are.
Expr clamped(Expr i, Expr size) {
  if (i.is_constant() && i.constant() >= INT64_MAX / 2) return size;
  if (is_less(i, 0)) return ir::max(i + size, 0);
  return ir::min(i, size);
}

struct Range {
  Expr start, end;
};
Range slice_range(Expr size, OptExpr start, OptExpr end, Expr step) {
  BRASA_CHECK(is_less(0, step), "slice step must be positive, got ", step);
  Range r{start ? clamped(*start, size) : Expr(0), end ? clamped(*end, size) : size};
  r.end = ir::max(r.end, r.start);
  return r;
}

Value slice_tensor(Value x, int64_t dim, OptExpr start, OptExpr end, Expr step) {
  BRASA_CHECK(rank_of(x) > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, rank_of(x));
  Range r = slice_range(size_of(x, dim), start, end, step);
  return slice(x, dim, r.start, r.end, step);
}

Value narrowed(Value x, int64_t dim, Expr start, Expr length) {
  BRASA_CHECK(rank_of(x) > 0, "narrow() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, rank_of(x));
  Expr size = size_of(x, dim);
  BRASA_CHECK(!is_less(length, 0), "narrow(): length must be non-negative, got ", length);
  if (is_less(start, 0)) start = start + size;
  BRASA_CHECK(!is_less(start, 0) && !is_less(size, start + length), "narrow(): start (", start, ") + length (", length,
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
  BRASA_CHECK(rank_of(x) > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, rank_of(x));
  return squeeze(narrow(x, dim, selected(x, dim, index), 1), dim);
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
  std::vector<Value> out;
  Expr start(0);
  for (Expr s : sizes) {
    out.push_back(narrow(x, dim, start, s));
    start = start + s;
  }
  return out;
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
  if (same_size(size, 0)) return split_sizes(x, Shape(chunks, Expr(0)), dim);
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
  Expr size = size_of(x, dim), each = ir::floordiv(size, Expr(n)), longer = ir::mod(size, Expr(n));
  Shape sizes;
  for (int64_t i = 0; i < n; ++i) sizes.push_back(each + ir::max(ir::min(longer - i, 1), 0));
  std::vector<Value> out;
  Expr start(0);
  for (Expr s : sizes) {
    out.push_back(narrow(x, dim, start, s));
    start = start + s;
  }
  return out;
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

// Windows of a flat tensor step through it by any stride, one for each dimension; the one that starts at the offset is the view.
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
  for (size_t d = 0; d < size.size(); ++d) v = prim::window(v, 0, size[d], 1, stride[d]);
  return squeeze(narrow(v, 0, start, 1), 0);
}

template <int kRank>
Value at_least(Value x) {
  while (rank_of(x) < kRank) x = unsqueeze(x, rank_of(x) < 2 ? 0 : 2);
  return x;
}
template <int kRank>
std::vector<Value> all_at_least(std::vector<Value> xs) {
  for (Value& x : xs) x = at_least<kRank>(x);
  return xs;
}

const std::vector<Sample> kMatrix = {{floats(3, 5)}, {floats(1, 2).strided(2)}, {floats(0, 4)}};

void add_reshapes(Table& t) {
  const std::vector<Sample> sizes = {
      {floats(2, 6), list({3, -1})}, {floats(4), list({2, 1, 2})}, {floats(0, 3), list({3, 0})}};
  t.op("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)")
      .doc("The same elements in another shape; -1 stands for what is left.")
      .view()
      .composed(reshape)
      .samples(sizes);
  t.op("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
      .doc("The same elements in another shape, as a view where the strides allow it, otherwise as a copy.")
      .view()
      .composed(reshape)
      .samples(sizes);
  t.op("aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor")
      .doc("As view, where nobody else holds the input.")
      .composed(reshape)
      .samples(sizes);
  t.op("aten::view_copy(Tensor self, SymInt[] size) -> Tensor")
      .doc("A copy of view's result.")
      .composed(reshape)
      .samples(sizes);
  t.op("aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)")
      .doc("reshape, by a caller who knows the strides that it gives.")
      .view()
      .composed(reshape_alias)
      .samples({{floats(2, 6), list({3, 4}), list({4, 1})}});
  const std::vector<Sample> likes = {{floats(2, 6), floats(3, 4)}, {floats(0, 2), floats(5, 0)}};
  t.op("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)")
      .doc("view in the other tensor's shape.")
      .view()
      .composed(reshape_as)
      .samples(likes);
  t.op("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)")
      .doc("reshape to the other tensor's shape.")
      .view()
      .composed(reshape_as)
      .samples(likes);
  t.op("aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)")
      .doc("The same bits as another dtype; one of another width changes the last size.")
      .no_gradient()
      .composed(view_bits)
      .samples({{floats(3), DType::Int32}, {floats(3), DType::BFloat16}, {ints(2, 3), DType::Int64}});
  t.op("aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
      .doc("Dimensions start_dim … end_dim as one.")
      .view()
      .composed(flatten)
      .samples({{floats(2, 3, 4), 1, 2}, {floats()}, {floats(0, 3)}});
  t.op("aten::ravel(Tensor(a) self) -> Tensor(a)")
      .doc("All elements in one dimension.")
      .view()
      .composed(flattened)
      .samples(kMatrix);
  t.op("aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
      .doc("One dimension as several; -1 stands for what is left.")
      .view()
      .composed(unflatten)
      .samples({{floats(2, 6), 1, list({2, -1})}, {floats(4), 0, list({4, 1})}});
  t.op("aten::squeeze(Tensor(a) self) -> Tensor(a)")
      .doc("Without the dimensions of size 1.")
      .view()
      .composed(squeeze_all)
      .samples({{floats(1, 3, 1)}, {floats(2)}});
  t.op("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
      .doc("Without this dimension if its size is 1.")
      .view()
      .composed(squeeze_dim)
      .samples({{floats(1, 3), 0}, {floats(1, 3), 1}});
  t.op("aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)")
      .doc("Without those of these dimensions that have size 1.")
      .view()
      .composed(squeeze_dims)
      .samples({{floats(1, 3, 1), list({0, 1})}});
  t.op("aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
      .doc("With a dimension of size 1 put in before `dim`.")
      .view()
      .composed(unsqueeze_dim)
      .samples({{floats(3), 0}, {floats(3), -1}, {floats(2, 0), 1}});
  t.op("aten::squeeze_copy(Tensor self) -> Tensor")
      .doc("A copy of squeeze's result.")
      .composed(squeeze_all)
      .samples({{floats(1, 3)}});
  t.op("aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor")
      .doc("A copy of squeeze's result.")
      .composed(squeeze_dim)
      .samples({{floats(1, 3), 0}});
  t.op("aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor")
      .doc("A copy of squeeze's result.")
      .composed(squeeze_dims)
      .samples({{floats(1, 3), list({0})}});
  t.op("aten::unsqueeze_copy(Tensor self, int dim) -> Tensor")
      .doc("A copy of unsqueeze's result.")
      .composed(unsqueeze_dim)
      .samples({{floats(3), 0}});
  t.op("aten::atleast_1d(Tensor self) -> Tensor")
      .doc("With one dimension or more.")
      .view()
      .composed(at_least<1>)
      .samples({{floats()}, {floats(2)}});
  t.op("aten::atleast_2d(Tensor self) -> Tensor")
      .doc("With two dimensions or more.")
      .view()
      .composed(at_least<2>)
      .samples({{floats()}, {floats(2)}});
  t.op("aten::atleast_3d(Tensor self) -> Tensor")
      .doc("With three dimensions or more.")
      .view()
      .composed(at_least<3>)
      .samples({{floats(2)}, {floats(2, 3)}});
  const std::vector<Sample> lists = {{std::vector<TensorSample>{floats(), floats(2), floats(2, 3)}}};
  t.op("aten::atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]")
      .doc("Each with one dimension or more.")
      .composed(all_at_least<1>)
      .samples(lists);
  t.op("aten::atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]")
      .doc("Each with two dimensions or more.")
      .composed(all_at_least<2>)
      .samples(lists);
  t.op("aten::atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]")
      .doc("Each with three dimensions or more.")
      .composed(all_at_least<3>)
      .samples(lists);
}

void add_identities(Table& t) {
  const char* doc = "The same tensor.";
  t.op("aten::alias(Tensor(a) self) -> Tensor(a)").doc(doc).view().composed(itself).samples(kMatrix);
  t.op("aten::lift_fresh(Tensor(a) self) -> Tensor(a)").doc(doc).view().composed(itself).samples(kMatrix);
  t.op("aten::detach(Tensor(a) self) -> Tensor(a)")
      .doc("The same tensor, through which no gradient flows.")
      .view()
      .no_gradient()
      .composed(itself)
      .samples(kMatrix);
  for (const char* conj : {"_conj", "conj", "resolve_conj", "resolve_neg"})
    t.op(str("aten::", conj, "(Tensor(a) self) -> Tensor(a)"))
        .doc("The same tensor, as a real one is its own conjugate.")
        .view()
        .composed(real_itself)
        .samples(kMatrix);
  for (const char* conj : {"conj_physical", "_conj_physical"})
    t.op(str("aten::", conj, "(Tensor self) -> Tensor"))
        .doc("A copy, as a real tensor is its own conjugate.")
        .composed(real_itself)
        .samples(kMatrix);
  for (const char* copy : {"alias_copy", "lift_fresh_copy"})
    t.op(str("aten::", copy, "(Tensor self) -> Tensor")).doc("A copy.").composed(itself).samples(kMatrix);
  t.op("aten::detach_copy(Tensor self) -> Tensor")
      .doc("A copy through which no gradient flows.")
      .no_gradient()
      .composed(itself)
      .samples(kMatrix);
}

void add_permutations(Table& t) {
  const std::vector<Sample> orders = {{floats(2, 3, 4), list({2, 0, -2})}, {floats(), list({})}};
  t.op("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)")
      .doc("Result dimension i is dimension dims[i].")
      .view()
      .composed(permute)
      .samples(orders);
  t.op("aten::permute_copy(Tensor self, int[] dims) -> Tensor")
      .doc("A copy of permute's result.")
      .composed(permute)
      .samples(orders);
  const std::vector<Sample> pairs = {{floats(2, 3, 4), 0, -1}, {floats(), 0, -1}, {floats(2, 0), 0, 1}};
  t.op("aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
      .doc("Two dimensions exchanged.")
      .view()
      .composed(swap)
      .samples(pairs);
  t.alias("aten::swapdims", "aten::transpose.int");
  t.op("aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
      .doc("Two dimensions exchanged.")
      .view()
      .composed(swap)
      .samples(pairs);
  t.op("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor")
      .doc("A copy of transpose's result.")
      .composed(swap)
      .samples(pairs);
  t.op("aten::t(Tensor(a) self) -> Tensor(a)")
      .doc("A matrix transposed; a vector or number itself.")
      .view()
      .composed(t_)
      .samples(kMatrix);
  t.op("aten::t_copy(Tensor self) -> Tensor").doc("A copy of t's result.").composed(t_).samples(kMatrix);
  t.op("aten::numpy_T(Tensor(a) self) -> Tensor(a)")
      .doc("All dimensions in reverse order.")
      .view()
      .composed(numpy_T)
      .samples({{floats(2, 3, 4)}, {floats()}});
  t.op("aten::mT(Tensor(a) self) -> Tensor(a)")
      .doc("The last two dimensions exchanged.")
      .view()
      .composed(last_two_swapped)
      .samples(kMatrix);
  t.op("aten::mH(Tensor(a) self) -> Tensor(a)")
      .doc("The last two dimensions exchanged, conjugated.")
      .view()
      .composed(adjoint)
      .samples(kMatrix);
  t.alias("aten::adjoint", "aten::mH");
  t.op("aten::matrix_H(Tensor(a) self) -> Tensor(a)")
      .doc("A matrix transposed and conjugated.")
      .view()
      .composed(matrix_H)
      .samples(kMatrix);
  t.op("aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)")
      .doc("One dimension moved; the others keep their order.")
      .view()
      .composed(movedim)
      .samples({{floats(2, 3, 4), 0, -1}, {floats(2), 0, 0}});
  t.op("aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
      .doc("Dimensions moved; the others keep their order.")
      .view()
      .composed(move_dims)
      .samples({{floats(2, 3, 4), list({0, 1}), list({2, 0})}});
  t.alias("aten::moveaxis.int", "aten::movedim.int");
  t.alias("aten::moveaxis.intlist", "aten::movedim.intlist");
}

void add_expansions(Table& t) {
  const std::vector<Sample> sizes = {{floats(3, 1), list({2, -1, 4})}, {floats(), list({3})}, {floats(1), list({0})}};
  t.op("aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)")
      .doc("Dimensions of size 1 repeated, and new ones in front; -1 keeps a size.")
      .view()
      .composed(expand_to)
      .samples(sizes);
  t.op("aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor")
      .doc("A copy of expand's result.")
      .composed(expand_to)
      .samples(sizes);
  t.op("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)")
      .doc("expand to the other tensor's shape.")
      .view()
      .composed(expand_as)
      .samples({{floats(3, 1), floats(2, 3, 4)}});
  t.op("aten::broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
      .doc("Broadcast to a shape.")
      .view()
      .composed(broadcast_to_size)
      .samples({{floats(3, 1), list({2, 3, 4})}});
  t.op("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]")
      .doc("All broadcast to one shape.")
      .composed(broadcast_tensors)
      .samples({{std::vector<TensorSample>{floats(3, 1), floats(4), floats()}}});
}

void add_slices(Table& t) {
  const std::vector<Sample> selects = {{floats(3, 4), 0, 1}, {floats(3, 4), -1, -2}, {floats(1), 0, 0}};
  t.op("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
      .doc("x[index] along a dimension, which goes away.")
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
      .view()
      .composed(slice_tensor)
      .samples(slices);
  t.op("aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
      .doc("A copy of slice's result.")
      .composed(slice_tensor)
      .samples(slices);
  const std::vector<Sample> narrows = {{floats(5, 4), 0, 1, 3}, {floats(5), -1, -2, 2}, {floats(3), 0, 3, 0}};
  t.op("aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
      .doc("`length` elements from `start` on along a dimension.")
      .view()
      .composed(narrowed)
      .samples(narrows);
  t.op("aten::narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
      .doc("A copy of narrow's result.")
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

void add_windows(Table& t) {
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
      .composed(as_strided)
      .samples(strides);
}

}  // namespace

void add_view(Table& t) {
  add_reshapes(t);
  add_identities(t);
  add_permutations(t);
  add_expansions(t);
  add_slices(t);
  add_windows(t);
}

}  // namespace brasa::ops
