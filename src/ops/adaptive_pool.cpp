#include <limits>

#include "ir/suppose.h"
#include "ops/accepted.h"
#include "ops/combiner.h"
#include "ops/pool_windows.h"
#include "ops/rows.h"
#include "support/error.h"

// Pools of a given number of windows that cover a plane.
namespace brasa::ops {
namespace {

// Windows along a dimension: window i of o holds floor(i n / o) … ceil((i + 1) n / o) - 1, which are at least ceil(n / o) elements, and one more at
// most. So no element of a long window is asked whether it lies inside.
struct Covering {
  Value start, end;  // int64 [windows]
  Expr least;
  bool even;  // side by side, and none has more
};

// Forms for sizes that are like this; the others serve all.
bool taken_for(Expr a, Expr b) { return ir::suppose(Builder::current().facts(), a, b, false); }
bool taken_for_less(Expr a, Expr b) { return ir::suppose_less(Builder::current().facts(), a, b, false); }

Covering covering(Expr size, Expr out) {
  Shape shape = {out};
  Value i = prim::iota(shape, 0, DType::Int64), n = size_tensor(size, shape), o = size_tensor(out, shape);
  Expr least = ir::ceildiv(size, out);
  return {prim::binary("div", i * n, o), prim::binary("div", (i + 1) * n + o - 1, o),
          taken_for(least, 1) ? Expr(1) : least, taken_for(ir::mod(size, out), 0)};
}
Value picked(Value x, int64_t d, Value places) { return move_dims(prim::gather(x, {places}, {d}), {0}, {d}); }
// Dimension d becomes the windows, and w.least elements of each follow it.
Value first_elements(Value x, int64_t d, const Covering& w) {
  if (w.even) return split_dim(x, d, {size_of(w.start, 0), w.least});
  if (w.least.is(1)) return unsqueeze(picked(x, d, w.start), d + 1);
  return move_dims(picked(prim::window(x, d, w.least, 1, 1), d, w.start), {rank_of(x)}, {d + 1});
}
Value last_element(Value x, int64_t d, const Covering& w) { return picked(x, d, w.end - 1); }
Value lengths(const Covering& w, int64_t d, Value like) {
  return along(convert(w.end - w.start, dtype_of(like)), d, rank_of(like));
}

Value window_sums(Value x, int64_t d, const Covering& w) {
  Value total = sum(first_elements(x, d, w), {d + 1});
  if (w.even) return total;
  Value last = last_element(x, d, w);
  Value longer = along(gt(w.end - w.start, size_tensor(w.least, shape_of(w.start))), d, rank_of(x));
  return total + where(expand(longer, shape_of(last)), last, zeros_like(last));
}

// The greatest elements of windows, and where they lie in the plane.
struct Greatest {
  Value value, place;
};

// Of windows in one dimension, whose neighbours lie `step` elements apart.
Greatest greatest(Value x, int64_t d, Expr step, const Covering& w) {
  Value all = first_elements(x, d, w), value = prim::reduce(all, {d + 1}, "max");
  auto each = [&](Value of_window) { return expand(along(of_window, d, rank_of(value)), shape_of(value)); };
  auto in_plane = [&](Value place) { return step.is(1) ? place : place * size_tensor(step, shape_of(place)); };
  Value place = prim::arg_reduce(all, d + 1, "max") + each(w.start);
  if (w.even) return {value, in_plane(place)};
  Value last = last_element(x, d, w), later = where(is_nan(last), eq(value, value), gt(last, value));
  return {where(later, last, value), in_plane(where(later, each(w.end - 1), place))};
}

// Of windows in a further dimension: of elements that are equal the first one in the order of memory.
Greatest greatest(const Greatest& before, int64_t d, Expr step, const Covering& w) {
  const Shape& shape = shape_of(before.value);
  Value places = before.place + prim::iota(shape, d, DType::Int64) * size_tensor(step, shape);
  Value all = first_elements(before.value, d, w), value = prim::reduce(all, {d + 1}, "max"), last;
  if (!w.even) {
    last = last_element(before.value, d, w);
    value = prim::binary("max", value, last);
  }
  auto chosen = [](Value x, Value most, Value place) {
    Value none = constant_like(place, std::numeric_limits<int64_t>::max());
    return where(where(is_nan(most), is_nan(x), eq(x, most)), place, none);
  };
  Value most = repeat_along(value, d + 1, w.least);
  Value place = prim::reduce(chosen(all, most, first_elements(places, d, w)), {d + 1}, "min");
  if (!w.even) place = minimum(place, chosen(last, value, last_element(places, d, w)));
  return {value, place};
}

template <int kSpatial>
Value adaptive_avg(Value x, Shape out) {
  out = repeated(out, kSpatial, "output_size");
  bool unbatched;
  Value v = batched("adaptive_avg_pool", floating_only("adaptive_avg_pool", x), kSpatial, unbatched, kSpatial == 3);
  // What becomes larger comes last.
  for (bool grows : {false, true})
    for (int64_t d = 2; d < kSpatial + 2; ++d) {
      Expr size = size_of(v, d), o = out[d - 2];
      BRASA_CHECK(!is_less(o, 0), "adaptive_avg_pool: elements of output_size must be greater than or equal to 0, got ",
                  out);
      if (taken_for_less(size, o) != grows) continue;
      if (same_size(o, 0)) {
        v = narrow(v, d, 0, 0);
        continue;
      }
      Covering w = covering(size, o);
      v = window_sums(v, d, w) / lengths(w, d, v);
    }
  return restored(v, unbatched);
}

// What windows give back to the elements of a dimension: those that hold element j are such a window of windows, one where windows are even.
Value from_windows(Value h, int64_t d, Expr size) {
  Covering w = covering(size_of(h, d), size);
  return taken_for(ir::mod(size, size_of(h, d)), 0) ? picked(h, d, w.start) : window_sums(h, d, w);
}

template <int kSpatial>
Value adaptive_avg_backward(Value g, Value x) {
  Value b = to_opmath(x), h = to_opmath(g);
  bool unbatched;
  constexpr const char* op = "adaptive_avg_pool_backward";
  check_planes(op, g, x, kSpatial);
  b = batched(op, b, kSpatial, unbatched);
  h = batched(op, h, kSpatial, unbatched);
  // The last dimension first, where elements are few yet, so that rows are copied then; but what becomes smaller comes before it.
  Dims order;
  for (bool shrinks : {true, false})
    for (int64_t d = kSpatial + 1; d >= 2; --d)
      if (taken_for_less(size_of(b, d), size_of(h, d)) == shrinks) order.push_back(d);
  for (int64_t d : order) {
    if (taken_for(size_of(b, d), size_of(h, d))) continue;
    h = h / lengths(covering(size_of(b, d), size_of(h, d)), d, h);
    h = from_windows(h, d, size_of(b, d));
  }
  return convert(restored(h, unbatched), dtype_of(x));
}

template <int kSpatial>
std::vector<Value> adaptive_avg_backward_vjp(const Saved& s) {
  if (!s.ct()) return {};
  const Shape& g = shape_of(s.in(0));
  return {adaptive_avg<kSpatial>(s.ct(), {g.end() - kSpatial, g.end()}), zeros_like(s.in(1))};
}

template <int kSpatial>
std::vector<Value> adaptive_avg_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return {adaptive_avg_backward<kSpatial>(s.ct(), s.in(0))};
}

template <int kSpatial>
std::array<Value, 2> adaptive_max(Value x, Shape out) {
  out = repeated(out, kSpatial, "output_size");
  bool unbatched;
  Value b = batched("adaptive_max_pool", floating_only("adaptive_max_pool", x), kSpatial, unbatched);
  for (Expr o : out)
    BRASA_CHECK(is_less(0, o), "adaptive_max_pool: elements of output_size must be greater than 0, got ", out);
  // Windows along rows come last, where vectors lie across short ones; long even ones leave little for the others.
  constexpr int64_t kLongRow = 16;
  Expr row = size_of(b, kSpatial + 1);
  bool rows_first =
      kSpatial > 1 && taken_for_less(out.back() * kLongRow, row) && taken_for(ir::mod(row, out.back()), 0);
  Greatest g;
  for (int64_t i = 0; i < kSpatial; ++i) {
    int64_t d = rows_first ? (i + kSpatial - 1) % kSpatial : i;
    Covering w = covering(size_of(b, d + 2), out[d]);
    Expr step = product(Shape(shape_of(b).begin() + d + 3, shape_of(b).end()));
    g = i == 0 ? greatest(b, d + 2, step, w) : greatest(g, d + 2, step, w);
  }
  return {restored(g.value, unbatched), restored(g.place, unbatched)};
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
  t.op(str("aten::adaptive_avg_pool", d, "(Tensor self, ", n == 1 ? "int" : "SymInt", "[", n,
           "] output_size) -> Tensor"))
      .doc("The means of output_size windows that cover the plane.")
      .keeps_memory_format()
      .autocast(kPolicy, Autocast::None)
      .composed_in_opmath(adaptive_avg<n>)
      .vjp(own_derivative(adaptive_avg_vjp<n>))
      .samples(adaptives);
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
        .vjp(own_derivative(adaptive_avg_vjp<n>))
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
