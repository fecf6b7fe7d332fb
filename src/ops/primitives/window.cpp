#include "ops/algebra.h"
#include "ops/index.h"
#include "ops/overlap.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "ops/shapes.h"
#include "support/checked.h"
#include "support/error.h"

// Sliding windows, as pooling and convolutions read them.
namespace brasa::ops {

void add_window(Table& t) {
  t.prim("window(Tensor x, int dim, SymInt size, SymInt step, SymInt dilation) -> Tensor")
      .kind(Kind::Window)
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr) {
        return std::vector{
            prim::window(in[0], n.arg<Expr>(1).constant() + 1, n.arg<Expr>(2), n.arg<Expr>(3), n.arg<Expr>(4))};
      })
      .doc("Sliding windows along a dimension, as a new last dimension.")
      .known({"size", "step", "dilation"})
      .type([](const Args& args) {
        Shape shape = operand(args).shape;
        size_t dim = args[1].get<Expr>().constant();
        Expr size = args[2].get<Expr>();
        Expr step = args[3].get<Expr>(), dilation = args[4].get<Expr>();
        auto least = [](Expr e) { return e.is_constant() ? e.constant() : 1; };
        BRASA_CHECK(least(step) >= 1 && least(dilation) >= 0,
                    "window: expected a step of at least 1 and a dilation of at least 0, got ", step, " and ",
                    dilation);
        shape[dim] = ir::floordiv(shape[dim] - dilation * (size - 1) - 1, step) + 1;
        shape.push_back(size);
        return typed(operand(args), std::move(shape));
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        int64_t dim = n.arg<Expr>(1).constant(), step = n.arg<Expr>(3).constant(), dilation = n.arg<Expr>(4).constant();
        std::vector<int64_t> strides = row_major(in[0]->shape);
        return std::vector{rearranged(n, *in[0], [&](const std::vector<int64_t>& at) {
          int64_t s = at.back() * dilation * strides[dim];
          for (size_t d = 0; d < strides.size(); ++d)
            s += at[d] * (static_cast<int64_t>(d) == dim ? step : 1) * strides[d];
          return s;
        })};
      })
      // Element i gets ct[o, k] of every window with o * step + k * dilation = i. Without dilation these are the last windows that begin
      // at i or before: o = i / step - j. Else o is read as (i - k * dilation) / step where that divides.
      .transposed([](size_t, const Node& n, Value ct) {
        int64_t dim = n.arg<Expr>(1).constant();
        Expr size = n.arg<Expr>(2), step = n.arg<Expr>(3), dilation = n.arg<Expr>(4);
        Shape space = shape_of(n.arg<Value>(0));
        Expr windows = n.types[0].shape[dim];
        auto last = static_cast<int64_t>(space.size());
        bool dense = dilation.is(1);
        constexpr int64_t kFew = 4, kLong = 4096;  // one element may be padded to a whole step
        if (size.is(0)) return full(0, space, dtype_of(ct));
        bool constant = size.is_constant() && step.is_constant() && step.constant() <= kLong;
        if (dense && constant && size.constant() <= kFew * step.constant())
          return overlapped(ct, {{dim}, {size.constant()}, {step.constant()}, {1}}, {space[dim]});
        space.push_back(dense ? ir::ceildiv(size, step) : size);
        auto number = [&](Expr e) { return full(Number(Arg(prim::size_value(e))), space, DType::Int64); };
        auto literal = [&](Expr e) {
          return e.is_constant() ? full(Number(e.constant()), space, DType::Int64) : number(e);
        };
        Value i = prim::iota(space, dim, DType::Int64), j = prim::iota(space, last, DType::Int64);
        Value from = dense ? i : i - j * literal(dilation), o = prim::binary("div", from, literal(step)), k = j;
        if (dense) o = o - j, k = i - o * literal(step);
        Value valid = logical_and(ge(dense ? o : from, 0), lt(o, literal(windows)));
        valid = logical_and(valid, dense ? lt(k, literal(size)) : eq(o * literal(step), from));
        auto within = [&](Value v, Expr end) {
          return prim::binary("max", prim::binary("min", v, literal(end - 1)), zeros_like(v));
        };
        std::vector<Value> index;
        std::vector<int64_t> dims;
        for (int64_t d = 0; d <= last; ++d) {
          index.push_back(d == dim    ? within(o, windows)
                          : d == last ? within(k, size)
                                      : prim::iota(space, d, DType::Int64));
          dims.push_back(d);
        }
        return sum(where(valid, prim::gather(ct, index, dims), full(0, space, dtype_of(ct))), {last});
      })
      .index_rule([](const Node& n, const Index& index) {
        Index out(index.begin(), index.end() - 1);
        int64_t d = n.arg<Expr>(1).constant();
        out[d] = index[d] * n.arg<Expr>(3) + index.back() * n.arg<Expr>(4);
        return out;
      })
      .view_rule([](const Args& args, const Strided& in) -> std::optional<Strided> {
        int64_t dim = args[1].get<Expr>().constant(), size = args[2].get<Expr>().constant(),
                step = args[3].get<Expr>().constant(), dilation = args[4].get<Expr>().constant();
        Strided out = in;
        out.sizes[dim] =
            checked_sub(in.sizes[dim], checked_add(checked_mul(dilation, checked_sub(size, 1)), 1)) / step + 1;
        out.strides[dim] = checked_mul(out.strides[dim], step);
        out.sizes.push_back(size);
        out.strides.push_back(checked_mul(in.strides[dim], dilation));
        return out;
      });
}

namespace prim {

Value window(Value x, int64_t dim, Expr size, Expr step, Expr dilation) {
  return call("prim::window", {x, dim, size, step, dilation});
}

}  // namespace prim
}  // namespace brasa::ops
