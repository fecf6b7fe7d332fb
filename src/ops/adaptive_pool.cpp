#include "ops/accepted.h"
#include "ops/combiner.h"
#include "ops/pool_windows.h"
#include "ops/rows.h"
#include "support/error.h"

// Pools of a given number of windows that cover a plane.
namespace brasa::ops {
namespace {

// Windows of an adaptive pool along a dimension: window i holds floor(i n / o) … ceil((i + 1) n / o) - 1.
struct Adaptive {
  Value index, inside;  // [windows, positions]: element (clamped), and whether it lies in the window
  Expr positions;
};

Adaptive adaptive(Expr size, Expr out) {
  Expr positions =
      same_size(ir::mod(size, out), 0) ? ir::floordiv(size, out) : ir::min(ir::ceildiv(size, out) + 1, size);
  Shape shape = {out, positions};
  Value i = prim::iota(shape, 0, DType::Int64), n = size_tensor(size, shape), o = size_tensor(out, shape);
  Value start = prim::binary("div", i * n, o), end = prim::binary("div", (i + 1) * n + o - 1, o);
  Value at = start + prim::iota(shape, 1, DType::Int64);
  return {minimum(at, n - 1), lt(at, end), positions};
}

// Dimension d becomes [windows, positions].
Value adaptive_windows(Value x, int64_t d, Expr out, const Number& fill) {
  Expr size = size_of(x, d);
  if (same_size(size, out)) return split_dim(x, d, {size, 1});
  if (same_size(ir::mod(size, out), 0)) return split_dim(x, d, {out, ir::floordiv(size, out)});
  Adaptive a = adaptive(size, out);
  Value v = move_dims(prim::gather(x, {a.index}, {d}), {0, 1}, {d, d + 1});
  Value inside = prim::broadcast(a.inside, shape_of(v), {d, d + 1});
  return prim::select(inside, v, constant_like(v, fill));
}

// The sums of the windows of rows. Each has at least ceil(n / o) elements, and one more at most, so that no element of a long sum is asked
// whether it lies inside.
Value row_sums(Value x, Expr out) {
  int64_t d = rank_of(x) - 1;
  Expr size = size_of(x, d), least = ir::ceildiv(size, out);
  if (same_size(ir::mod(size, out), 0)) return sum(split_dim(x, d, {out, least}), {d + 1});
  auto at = [&](Value from, Value places) { return move_dims(prim::gather(from, {places}, {d}), {0}, {d}); };
  Value i = prim::iota({out}, 0, DType::Int64), n = size_tensor(size, {out}), o = size_tensor(out, {out});
  Value start = prim::binary("div", i * n, o), end = prim::binary("div", (i + 1) * n + o - 1, o);
  Value all = sum(at(prim::window(x, d, least, 1, 1), start), {d + 1}), last = at(x, end - 1);
  Value longer = along(gt(end - start, size_tensor(least, {out})), d, rank_of(x));
  return all + where(expand(longer, shape_of(last)), last, zeros_like(last));
}

template <int kSpatial>
Value adaptive_avg(Value x, Shape out) {
  out = repeated(out, kSpatial, "output_size");
  bool unbatched;
  Value v = batched("adaptive_avg_pool", floating_only("adaptive_avg_pool", x), kSpatial, unbatched, kSpatial == 3);
  for (int64_t d = 2; d < kSpatial + 2; ++d) {
    Expr size = size_of(v, d), o = out[d - 2];
    BRASA_CHECK(!is_less(o, 0), "adaptive_avg_pool: elements of output_size must be greater than or equal to 0, got ",
                out);
    if (same_size(o, 0)) {
      v = narrow(v, d, 0, 0);
      continue;
    }
    Value total = kSpatial == 1 ? row_sums(v, o) : sum(adaptive_windows(v, d, o, 0), {d + 1});
    Adaptive a = adaptive(size, o);
    v = total / along(sum(convert(a.inside, dtype_of(v)), {1}), d, rank_of(v));
  }
  return restored(v, unbatched);
}

// What windows give back to the elements of a dimension: element j lies in windows floor(j o / n) … ceil((j + 1) o / n) - 1, at most two of them
// where there are no more windows than elements.
Value from_windows(Value h, int64_t d, Expr size) {
  Expr out = size_of(h, d), times = ir::ceildiv(out, size);
  if (same_size(ir::mod(size, out), 0)) return merge_dims(repeat_along(h, d + 1, ir::floordiv(size, out)), d, d + 1);
  Shape shape = {same_size(times, 1) ? Expr(2) : times + 1, size};
  Value j = prim::iota(shape, 1, DType::Int64), n = size_tensor(size, shape), o = size_tensor(out, shape);
  Value at = prim::binary("div", j * o, n) + prim::iota(shape, 0, DType::Int64);
  Value inside = lt(at, prim::binary("div", (j + 1) * o + n - 1, n));
  Value v = move_dims(prim::gather(h, {minimum(at, o - 1)}, {d}), {0, 1}, {d, d + 1});
  return sum(prim::select(prim::broadcast(inside, shape_of(v), {d, d + 1}), v, zeros_like(v)), {d});
}

template <int kSpatial>
Value adaptive_avg_backward(Value g, Value x) {
  // Each dimension's mean is linear by itself; the last taken is the first to go back.
  Value b = to_opmath(x), h = to_opmath(g);
  bool unbatched;
  constexpr const char* op = "adaptive_avg_pool_backward";
  check_planes(op, g, x, kSpatial);
  b = batched(op, b, kSpatial, unbatched);
  h = batched(op, h, kSpatial, unbatched);
  for (int64_t d = kSpatial + 1; d >= 2; --d) {
    Expr size = size_of(b, d);
    Adaptive a = adaptive(size, size_of(h, d));
    h = h / along(sum(convert(a.inside, dtype_of(h)), {1}), d, rank_of(h));
    h = from_windows(h, d, size);
  }
  return convert(restored(h, unbatched), dtype_of(x));
}

template <int kSpatial>
std::vector<Value> adaptive_avg_backward_vjp(const Saved& s) {
  if (!s.ct()) return {};
  const Shape& g = shape_of(s.in(0));
  return {adaptive_avg<kSpatial>(s.ct(), {g.end() - kSpatial, g.end()}), zeros_like(s.in(1))};
}

std::vector<Value> row_means_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return {adaptive_avg_backward<1>(s.ct(), s.in(0))};
}

// [batch, channels, windows…, positions…] for all dimensions, merged as for max_pool; and the position in the plane of each.
template <int kSpatial>
std::array<Value, 2> adaptive_max(Value x, Shape out) {
  out = repeated(out, kSpatial, "output_size");
  bool unbatched;
  Value b = batched("adaptive_max_pool", floating_only("adaptive_max_pool", x), kSpatial, unbatched), v = b;
  Dims places;
  for (int64_t d = 0; d < kSpatial; ++d) {
    BRASA_CHECK(is_less(0, out[d]), "adaptive_max_pool: elements of output_size must be greater than 0, got ", out);
    v = adaptive_windows(v, 2 + 2 * d, out[d], identity(Combiner::Max, dtype_of(x)));
    places.push_back(3 + 2 * d);
  }
  v = merge_dims(move_dims(v, places, counted(kSpatial + 2, kSpatial)), kSpatial + 2, 2 * kSpatial + 1);
  Value best = prim::arg_reduce(v, kSpatial + 2, "max"), rest = best, index, stride;
  const Shape& shape = shape_of(best);
  for (int64_t d = kSpatial - 1; d >= 0; --d) {
    Expr size = size_of(b, d + 2);
    Value positions = size_tensor(adaptive(size, out[d]).positions, shape);
    Value start = prim::binary("div", prim::iota(shape, d + 2, DType::Int64) * size_tensor(size, shape),
                               size_tensor(out[d], shape));
    Value p = start + prim::binary("rem", rest, positions);
    rest = prim::binary("div", rest, positions);
    index = index ? index + p * stride : p;
    stride = stride ? stride * size_tensor(size, shape) : size_tensor(size, shape);
  }
  return {restored(prim::reduce(v, {kSpatial + 2}, "max"), unbatched), restored(index, unbatched)};
}
template <int kSpatial>
std::vector<Value> adaptive_max_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return {max_unpooled(s.ct(), s.in(0), s.out(1), kSpatial)};
}

template <int n>
void add_adaptive_pool(Table& t) {
  constexpr Autocast kPolicy = n == 3 ? Autocast::Float32 : Autocast::None;
  std::string size = str("int[", n, "]"), d = str(n, "d");
  const std::vector<Sample> adaptives = {{planes_sample({2, 3}, n, 5), list({2})},
                                         {planes_sample({2}, n, 4), list({2})},
                                         {planes_sample({2}, n, 3), list({5})}};
  t.op(str("aten::adaptive_max_pool", d, "(Tensor self, ", size, " output_size) -> (Tensor, Tensor)"))
      .doc("The greatest elements of output_size windows that cover the plane, and where they lie in it.")
      .keeps_memory_format()
      .autocast(kPolicy, Autocast::None)
      .backward_node(n == 1 ? "SqueezeBackward1" : "")
      .composed(adaptive_max<n>)
      .vjp(own_derivative(adaptive_max_vjp<n>))
      .samples(adaptives);
  RowBuilder means = t.op(str("aten::adaptive_avg_pool", d, "(Tensor self, ", n == 1 ? "int" : "SymInt", "[", n,
                              "] output_size) -> Tensor"))
                         .doc("The means of output_size windows that cover the plane.")
                         .keeps_memory_format()
                         .autocast(kPolicy, Autocast::None)
                         .composed_in_opmath(adaptive_avg<n>)
                         .samples(adaptives);
  if constexpr (n == 1) means.vjp(own_derivative(row_means_vjp));
  if constexpr (n > 1) {
    t.op(str("aten::adaptive_max_pool", d, "_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor"))
        .doc("Each window's gradient put where its index points.")
        .composed([](Value g, Value x, Value indices) { return max_unpooled(g, x, indices, n); })
        .one_dtype({"grad_output", "self"})
        .samples({{planes_sample({2, 3}, n, 2), planes_sample({2, 3}, n, 4),
                   planes_sample({2, 3}, n, 2).of(DType::Int64).in(0, 4)}});
    t.op(str("aten::_adaptive_avg_pool", d, "(Tensor self, SymInt[", n, "] output_size) -> Tensor"))
        .doc("The means of output_size windows that cover the plane.")
        .keeps_memory_format()
        .composed_in_opmath(adaptive_avg<n>)
        .samples(adaptives);
    t.op(str("aten::_adaptive_avg_pool", d, "_backward(Tensor grad_output, Tensor self) -> Tensor"))
        .doc("Each window's gradient shared among its elements.")
        .composed(adaptive_avg_backward<n>)
        .vjp(own_derivative(adaptive_avg_backward_vjp<n>))
        .one_dtype({"grad_output", "self"})
        .samples({{planes_sample({2, 3}, n, 2), planes_sample({2, 3}, n, 5)}});
  }
}

}  // namespace

void add_adaptive_pools(Table& t) {
  add_adaptive_pool<1>(t);
  add_adaptive_pool<2>(t);
  add_adaptive_pool<3>(t);
}

}  // namespace brasa::ops
