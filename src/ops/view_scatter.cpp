#include "ops/bounds.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Writing through views, as functions: each gives a new tensor. With zeros around, these are the views' gradients.
namespace brasa::ops {
namespace {

// `source` where the view `look` of a tensor of this shape lies, spread out by the view's transpose; zeros elsewhere.
template <class F>
Value put_into_zeros(Value source, const Shape& shape, F look) {
  Value start = prim::unary("bit_not", full(false, shape, DType::Bool)), view = look(start);
  check_same_shape("scatter into a view", view, source);
  // Sizes that are equal may be spelled differently.
  return prim::reshape(pulled_through(start, view, prim::reshape(source, shape_of(view))), shape);
}
// x with `source` put there.
template <class F>
Value put_through(Value x, Value source, F look) {
  Value there = put_into_zeros(full(true, shape_of(source), DType::Bool), shape_of(x), look);
  return prim::select(there, put_into_zeros(convert(source, dtype_of(x)), shape_of(x), look), x);
}

// How a slice of a tensor of this shape looks at it.
struct SliceOf {
  int64_t dim;
  Expr size, start, end, step;
  SliceOf(const Shape& shape, int64_t d, std::optional<Expr> s, std::optional<Expr> e, Expr by)
      : dim(wrap_dim(d, static_cast<int64_t>(shape.size()))), size(shape[dim]), step(checked_step(by, size)) {
    start = s ? clamped_bound(*s, size) : Expr(0);
    end = ir::max(e ? clamped_bound(*e, size) : size, start);
  }
  bool is_whole() const { return start.is(0) && end == size && step.is(1); }
  Value operator()(Value v) const { return slice(v, dim, start, end, step); }
};

Value slice_scatter(Value x, Value source, int64_t dim, std::optional<Expr> start, std::optional<Expr> end, Expr step) {
  BRASA_CHECK(rank_of(x) > 0, "slice_scatter: expected at least one dimension, got ", type_of(x));
  SliceOf look(shape_of(x), dim, start, end, step);
  if (!look.is_whole()) return put_through(x, source, look);
  check_same_shape("slice_scatter", x, source);
  return convert(source, dtype_of(x));
}
auto selects(int64_t dim, Expr index) {
  return [=](Value v) { return call("aten::select.int", {v, dim, index}); };
}
Value select_scatter(Value x, Value source, int64_t dim, Expr index) {
  return put_through(x, source, selects(wrap_dim(dim, rank_of(x)), index));
}
auto takes_diagonal(Expr offset, int64_t dim1, int64_t dim2) {
  return [=](Value v) { return diagonal(v, offset, dim1, dim2); };
}
Value diagonal_scatter(Value x, Value source, Expr offset, int64_t dim1, int64_t dim2) {
  return put_through(x, source, takes_diagonal(offset, dim1, dim2));
}

Value diagonal_backward(Value g, Shape sizes, Expr offset, int64_t dim1, int64_t dim2) {
  return put_into_zeros(g, sizes, takes_diagonal(offset, dim1, dim2));
}
Value select_backward(Value g, Shape sizes, int64_t dim, Expr index) {
  return put_into_zeros(g, sizes, selects(dim, index));
}
Value slice_backward(Value g, Shape sizes, int64_t dim, Expr start, Expr end, Expr step) {
  BRASA_CHECK(!sizes.empty(), "slice_backward: expected sizes of at least one dimension");
  return put_into_zeros(g, sizes, SliceOf(sizes, dim, start, end, step));
}
Value unfold_backward(Value g, Shape sizes, int64_t dim, int64_t size, int64_t step) {
  if (sizes.empty()) return prim::reshape(sum(g, all_dims(g)), {});
  dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  BRASA_CHECK(step > 0 && size >= 0 && !is_less(sizes[dim], size), "unfold_backward: windows of size ", size,
              " at step ", step, " do not lie in dimension ", dim, " of ", sizes);
  Value start = full(0, sizes, dtype_of(g)), view = prim::window(start, dim, Expr(size), Expr(step), 1);
  check_same_shape("unfold_backward", view, g);
  return pulled_through(start, view, g);
}

}  // namespace

void add_view_scatter(Table& t) {
  t.op("aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
      .doc("self with src written through slice.")
      .composed(slice_scatter)
      .special("step", short_steps())
      .samples({{floats(5, 2), floats(2, 2), 0, 1, 5, 2}, {floats(3), floats(3)}});
  t.op("aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
      .doc("self with src written through select.")
      .composed(select_scatter)
      .samples({{floats(3, 2), floats(2), 0, -1}});
  t.op("aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
      .doc("self with src written through diagonal.")
      .composed(diagonal_scatter)
      .samples({{floats(3, 4), floats(3), 1}});
  t.op("aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor")
      .doc("The gradient of diagonal's input.")
      .composed(diagonal_backward)
      .samples({{floats(3), list({3, 4}), 1, 0, 1}});
  t.op("aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor")
      .doc("The gradient of select's input.")
      .composed(select_backward)
      .samples({{floats(2), list({3, 2}), 0, 1}});
  t.op("aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor")
      .doc("The gradient of slice's input.")
      .composed(slice_backward)
      .special("step", short_steps())
      .samples({{floats(2, 2), list({5, 2}), 0, 1, 5, 2}});
  t.op("aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor")
      .doc("The gradient of unfold's input.")
      .composed(unfold_backward)
      .samples({{floats(3, 3), list({7}), 0, 3, 2}});
}

}  // namespace brasa::ops
