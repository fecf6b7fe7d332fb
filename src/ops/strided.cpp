#include "ops/positions.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Copies whose elements are named by strides or by a position that is only known when the graph runs, and other sizes for the same
// elements.
namespace brasa::ops {
namespace {

using OptExpr = std::optional<Expr>;
using Text = std::optional<std::string>;

// x with src's elements where as_strided would find them, x being contiguous.
Value as_strided_scatter(Value x, Value src, Shape size, Shape stride, OptExpr offset) {
  BRASA_CHECK(size.size() == stride.size(), "as_strided_scatter: got ", size.size(), " sizes and ", stride.size(),
              " strides");
  bool fits = rank_of(src) == static_cast<int64_t>(size.size());
  for (size_t d = 0; fits && d < size.size(); ++d) fits = same_size(size_of(src, d), size[d]);
  BRASA_CHECK(fits, "as_strided_scatter: expected src to have the shape ", size, " of the slice of self, got ",
              type_of(src));
  Expr start = offset.value_or(Expr(0)), end = start + 1;
  BRASA_CHECK(!is_less(start, 0), "as_strided_scatter: invalid storage offset ", start);
  Value at = size_tensor(start, size);
  for (size_t d = 0; d < size.size(); ++d) {
    BRASA_CHECK(!is_less(stride[d], 0),
                "as_strided_scatter: Negative strides are not supported at the moment, got strides: ", stride);
    end = end + ir::max(size[d] - 1, 0) * stride[d];
    at = at + prim::iota(size, d, DType::Int64) * size_tensor(stride[d], size);
  }
  Value flat = flattened(x);
  bool empty = same_size(type_of(src).numel(), 0);
  BRASA_CHECK(empty || !is_less(size_of(flat, 0), end), "as_strided_scatter: sizes ", size, " and strides ", stride,
              " reach beyond the ", size_of(flat, 0), " elements of self");
  if (empty) return x;
  return prim::reshape(prim::scatter(flat, {at}, with_sizes(convert(src, dtype_of(x)), size), {0}, ""), shape_of(x));
}

// The first elements in row-major order; PyTorch leaves further ones arbitrary, here they are 0.
Value resized(Value x, const Shape& size) {
  for (Expr e : size)
    BRASA_CHECK(!is_less(e, 0), "resize: Trying to create tensor with negative dimension ", e, ": ", size);
  Value flat = flattened(x);
  Expr have = size_of(flat, 0), want = ir::product(size);
  if (is_less(have, want))
    flat = pad_dim(flat, 0, 0, want - have);
  else
    flat = narrow(flat, 0, 0, want);
  return prim::reshape(flat, size);
}

Value narrowed_at(Value x, int64_t dim, Value start, Expr length) {
  BRASA_CHECK(rank_of(start) == 0 && is_integral(dtype_of(start), false),
              "start must be an 0-dim integral Tensor, got ", type_of(start));
  BRASA_CHECK(rank_of(x) > 0, "narrow() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, rank_of(x));
  Expr size = size_of(x, dim);
  BRASA_CHECK(!is_less(length, 0) && !is_less(size, length), "narrow(): length ", length, " must be within [0, ", size,
              "]");
  Value first = convert(start, DType::Int64), n = size_tensor(size, {}), count = size_tensor(length, {});
  first = where(lt(first, 0), first + n, first);
  check_values(logical_and(ge(first, 0), le(first + count, n)),
               str("narrow(): start + length exceeds dimension size (", size, ")"));
  Shape shape = shape_of(x);
  shape[dim] = length;
  return gather_along(x, dim, prim::iota(shape, dim, DType::Int64) + broadcast_to(first, shape));
}

}  // namespace

void add_strided(Table& t) {
  t.op("aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor")
      .doc("A copy of what as_strided gives, self being contiguous.")
      .memory(Memory::AsStridedCopy)
      .composed([](Value x, Shape size, Shape stride, Number offset) {
        return call("aten::as_strided", {x, size, stride, offset.arg()});
      })
      .samples({{floats(3, 4), list({2, 2}), list({4, 1}), 1}, {floats(16), list({2, 2, 2}), list({1, 1, 1})}});
  t.op("aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor")
      .doc("self with src in the place of what as_strided names; these elements must be different ones.")
      .composed(as_strided_scatter)
      .samples(
          {{floats(3, 4), floats(2, 2), list({2, 2}), list({4, 1}), 1}, {floats(4), floats(), list({}), list({})}});
  t.op("aten::resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor")
      .doc("The same elements in row-major order with other sizes; further ones are arbitrary (here 0).")
      .composed([](Value x, Shape size, Text) { return resized(x, size); })
      .no_gradient()
      .samples({{floats(3, 4), list({2, 3})}, {floats(2), list({3, 1})}, {floats(4), list({0})}});
  t.op("aten::resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor")
      .doc("resize to the sizes of a template.")
      .composed([](Value x, Value like, Text) { return resized(x, shape_of(like)); })
      .no_gradient()
      .samples({{floats(3, 4), floats(2, 2)}, {floats(2), floats(3)}});
  t.op("aten::narrow.Tensor(Tensor self, int dim, Tensor start, SymInt length) -> Tensor")
      .doc("self[start : start + length] along dim, for a start that is only known when it runs; a copy.")
      .composed(narrowed_at)
      .samples({{floats(5, 3), 0, ints(), 2}, {floats(2, 4), -1, ints(), 0}});
}

}  // namespace brasa::ops
