#include <algorithm>

#include "ops/complex.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Views: each result is a chain of movement primitives from the first operand, which a tensor library follows on strides.
// Forms that end in _copy give the same values in fresh memory.
namespace brasa::ops {
namespace {

using OptExpr = std::optional<Expr>;

Value itself(Value x) { return x; }

// `size` with its -1 replaced by what is left of `numel` elements.
Shape completed(const Shape& size, Expr numel, const char* what) {
  Shape out = size;
  Expr given(1);
  int64_t open = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].is(-1)) {
      BRASA_CHECK(open < 0, "only one dimension can be inferred");
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

std::optional<Strided> strides_of_bits(const ir::Args& args, const Strided& in) {
  int64_t from = size_of(dtype_of(args[0].get<Value>())), to = size_of(args[1].get<DType>());
  Strided out = in;
  if (from == to) return out;
  if (in.strides.back() != 1) return std::nullopt;
  // Of the wider elements the numbers of the narrower ones are multiples.
  auto resize = [&](int64_t& x) {
    if (x * from % to != 0) return false;
    x = x * from / to;
    return true;
  };
  resize(out.sizes.back());
  bool fits = true;
  for (size_t d = 0; d + 1 < out.strides.size(); ++d) fits = resize(out.strides[d]) && fits;
  return fits ? std::optional(out) : std::nullopt;
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
                  ".  Target sizes: ", size, ".  Tensor sizes: ", shape_of(x));
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
Value adjoint(Value x) { return conj(rank_of(x) == 0 ? x : last_two_swapped(x)); }
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
  BRASA_CHECK(rank_of(x) > 0, "unflatten: expected at least one dimension, got ", type_of(x));
  dim = wrap_dim(dim, rank_of(x));
  BRASA_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  return split_dim(x, dim, completed(sizes, size_of(x, dim), "dimension"));
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

constexpr const char* kNoView =
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
    "subspaces). Use .reshape(...) instead.";

void add_reshapes(Table& t) {
  const std::vector<Sample> sizes = {
      {floats(2, 6), list({3, -1})}, {floats(4), list({2, 1, 2})}, {floats(0, 3), list({3, 0})}};
  t.op("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)")
      .doc("The same elements in another shape; -1 stands for what is left.")
      .view(kNoView)
      .composed(reshape)
      .samples(sizes);
  t.op("aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
      .doc("The same elements in another shape, as a view where the strides allow it, otherwise as a copy.")
      .backward_node("ViewBackward0")
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
      .over_storage()
      .composed([](Value x, Shape size, Shape stride) { return call("aten::as_strided", {x, size, stride}); })
      .samples({{floats(2, 6), list({3, 4}), list({4, 1})}, {floats(6), list({3, 2}), list({1, 3})}});
  const std::vector<Sample> likes = {{floats(2, 6), floats(3, 4)}, {floats(0, 2), floats(5, 0)}};
  t.op("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)")
      .doc("view in the other tensor's shape.")
      .backward_node("ViewBackward0")
      .view(kNoView)
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
      .view(kNoView)
      .dense()
      .view_rule(strides_of_bits)
      .transposed([](size_t, const ir::Node& n, Value bits) { return view_bits(bits, dtype_of(n.arg<Value>(0))); })
      .composed(view_bits)
      .samples({{floats(3), DType::Int32}, {floats(3), DType::BFloat16}, {ints(2, 3), DType::Int64}});
  t.op("aten::view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor")
      .doc("A copy of the same bits as another dtype.")
      .no_gradient()
      .composed(view_bits)
      .samples({{floats(3), DType::Int32}});
  t.op("aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
      .doc("Dimensions start_dim … end_dim as one.")
      .backward_node("ViewBackward0")
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
      .backward_node("ViewBackward0")
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
      .sparse(Sparse::Unsqueeze)
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
  t.op("aten::alias(Tensor(a) self) -> Tensor(a)")
      .doc(doc)
      .sparse(Sparse::Linear)
      .view()
      .composed(itself)
      .samples(kMatrix);
  t.op("aten::lift_fresh(Tensor(a) self) -> Tensor(a)").doc(doc).view().composed(itself).samples(kMatrix);
  t.op("aten::detach(Tensor(a) self) -> Tensor(a)")
      .doc("The same tensor, through which no gradient flows.")
      .view()
      .no_gradient()
      .composed(itself)
      .samples(kMatrix);
  for (const char* name : {"_conj", "conj"})
    t.op(str("aten::", name, "(Tensor(a) self) -> Tensor(a)"))
        .doc("The conjugate; a real tensor itself, of a complex one a copy.")
        .view()
        .composed(conj)
        .samples({{floats(2, 3)}, {tensor(DType::Complex64, {3})}});
  for (const char* name : {"resolve_conj", "resolve_neg"})
    t.op(str("aten::", name, "(Tensor(a) self) -> Tensor(a)"))
        .doc("The same tensor: conjugates and negatives are computed when they are made.")
        .view()
        .composed(itself)
        .samples(kMatrix);
  t.op("aten::_conj_copy(Tensor self) -> Tensor")
      .doc("The conjugate.")
      .composed(conj)
      .samples({{floats(2, 3)}, {tensor(DType::Complex64, {3})}});
  t.op("aten::_neg_view_copy(Tensor self) -> Tensor")
      .doc("The negative.")
      .composed([](Value x) { return -x; })
      .samples(kMatrix);
  for (const char* copy : {"alias_copy", "lift_fresh_copy", "lift", "_lazy_clone"})
    t.op(str("aten::", copy, "(Tensor self) -> Tensor")).doc("A copy.").composed(itself).samples(kMatrix);
  t.op("aten::detach_copy(Tensor self) -> Tensor")
      .doc("A copy through which no gradient flows.")
      .no_gradient()
      .composed([](Value x) { return call("aten::detach", {x}); })
      .samples(kMatrix);
}

void add_permutations(Table& t) {
  const std::vector<Sample> orders = {{floats(2, 3, 4), list({2, 0, -2})}, {floats(), list({})}};
  t.op("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)")
      .doc("Result dimension i is dimension dims[i].")
      .sparse(Sparse::Permute)
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
      .sparse(Sparse::Transpose)
      .view()
      .composed(swap)
      .samples(pairs);
  t.alias("aten::swapdims", "aten::transpose.int");
  t.op("aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
      .doc("Two dimensions exchanged.")
      .sparse(Sparse::Transpose)
      .view()
      .composed(swap)
      .samples(pairs);
  t.op("aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor")
      .doc("A copy of transpose's result.")
      .composed(swap)
      .samples(pairs);
  t.op("aten::t(Tensor(a) self) -> Tensor(a)")
      .doc("A matrix transposed; a vector or number itself.")
      .sparse(Sparse::MatrixTranspose)
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
      .backward_node("ExpandBackward0")
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

}  // namespace

void add_view(Table& t) {
  add_reshapes(t);
  add_identities(t);
  add_permutations(t);
  add_expansions(t);
}

}  // namespace brasa::ops
