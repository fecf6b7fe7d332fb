#include <algorithm>

#include "ops/accepted.h"
#include "ops/combiner.h"
#include "ops/pool_windows.h"
#include "ops/rows.h"
#include "support/error.h"

// The greatest elements and the means of windows over planes.
namespace brasa::ops {
namespace {

// --- max ---

template <int kSpatial>
Value max_pool_operand(Value x, bool& unbatched) {
  BRASA_CHECK(dtype_of(x) != DType::Bool, "\"max_pool\" not implemented for bool");
  return batched("max_pool", x, kSpatial, unbatched);
}

template <int kSpatial>
std::array<Value, 2> max_pool_with_positions(Value x, Shape kernel, Shape stride, Shape padding, Shape dilation,
                                             bool ceil_mode) {
  Window w = window_of(kSpatial, kernel, stride, padding, dilation, ceil_mode);
  bool unbatched;
  Value b = max_pool_operand<kSpatial>(x, unbatched);
  Value windows = windows_of(b, w, identity(Combiner::Max, dtype_of(x)));
  Value most = reduce(windows, counted(kSpatial + 2, kSpatial), false, "max");
  Value best = prim::arg_reduce(merge_dims(windows, kSpatial + 2, 2 * kSpatial + 1), kSpatial + 2, "max");
  return {restored(most, unbatched), restored(convert(best, dtype_of_positions(w)), unbatched)};
}

// What the operators of PyTorch are made of, so that their derivatives find the positions.
template <int kSpatial>
std::vector<Value> pooled(Value x, const Shape& kernel, const Shape& stride, const Shape& padding,
                          const Shape& dilation, bool ceil_mode) {
  return call_all(str("brasa::max_pool", kSpatial, "d_with_positions"),
                  {x, kernel, stride, padding, dilation, ceil_mode});
}

// The position of the maximum in its plane of the input.
Value plane_index(const Window& w, Value best, Value x) {
  auto n = static_cast<int64_t>(w.spatial());
  const Shape& shape = shape_of(best);
  Value index, rest = best;
  std::vector<Value> at(n);
  for (int64_t d = n; d-- > 0;) {
    Value size = size_tensor(w.kernel[d], shape);
    at[d] = prim::binary("rem", rest, size);
    rest = prim::binary("div", rest, size);
  }
  for (int64_t d = 0; d < n; ++d) {
    Value start =
        prim::iota(shape, d + 2, DType::Int64) * size_tensor(w.stride[d], shape) - size_tensor(w.padding[d], shape);
    Value dilation = size_tensor(w.dilation[d], shape), p = start + at[d] * dilation;
    // Only a window of nothing but -inf has its first greatest element in the padding: it stands for the first one inside.
    Value inside = prim::binary("rem", p, dilation);
    inside = where(lt(inside, 0), inside + dilation, inside);
    p = where(lt(p, 0), inside, p);
    index = index ? index * size_tensor(size_of(x, d + 2), shape) + p : p;
  }
  return index;
}

template <int kSpatial>
std::array<Value, 2> max_pool_with_indices(Value x, Shape kernel, Shape stride, Shape padding, Shape dilation,
                                           bool ceil_mode) {
  std::vector<Value> p = pooled<kSpatial>(x, kernel, stride, padding, dilation, ceil_mode);
  bool unbatched;
  Value b = max_pool_operand<kSpatial>(x, unbatched), best = convert(p[1], DType::Int64);
  if (unbatched) best = unsqueeze(best, 0);
  Window w = window_of(kSpatial, kernel, stride, padding, dilation, ceil_mode);
  return {p[0], restored(plane_index(w, best, b), unbatched)};
}

template <int kSpatial>
Value max_pool(Value x, Shape kernel, Shape stride, Shape padding, Shape dilation, bool ceil_mode) {
  return pooled<kSpatial>(x, kernel, stride, padding, dilation, ceil_mode)[0];
}

// The first maximum of each window takes the window's gradient. Each element adds up what it gets from the windows that it lies in.
template <int kSpatial>
std::vector<Value> max_pool_vjp(const Saved& s) {
  if (!s.ct()) return {};
  Window w = window_of(kSpatial, s.arg<Shape>(1), s.arg<Shape>(2), s.arg<Shape>(3), s.arg<Shape>(4), s.arg<bool>(5));
  bool unbatched;
  Value x = s.in(0), b = batched("max_pool", x, kSpatial, unbatched), best = s.out(1), g = s.ct();
  if (unbatched) best = unsqueeze(best, 0);
  g = prim::reshape(g, shape_of(best));
  Shape plane(shape_of(b).begin() + 2, shape_of(b).end());
  DType narrow = dtype_of(best);
  best = seen_from_elements(best, w, plane, size_tensor(ir::product(w.kernel), {}, narrow));
  g = seen_from_elements(g, w, plane, scalar(0, dtype_of(g)));
  Value mine =
      eq(prim::broadcast(position_in_windows(w, plane, narrow), shape_of(best), counted(2, 2 * kSpatial)), best);
  return {prim::reshape(sum(prim::select(mine, g, zeros_like(g)), counted(kSpatial + 2, kSpatial)), shape_of(x))};
}

template <int kSpatial>
Value max_pool_backward(Value g, Value x, Shape kernel, Shape stride, Shape padding, Shape dilation, bool ceil_mode,
                        Value indices) {
  Window w = window_of(kSpatial, kernel, stride, padding, dilation, ceil_mode);
  for (int64_t d = 0; d < kSpatial && rank_of(g) == rank_of(x) && rank_of(x) > kSpatial; ++d) {
    int64_t at = rank_of(x) - kSpatial + d;
    Expr count = window_count(w, static_cast<size_t>(d), size_of(x, at));
    BRASA_CHECK(same_size(size_of(g, at), count), "max_pool_backward: expected grad_output of size ", count,
                " in dimension ", at, " for the input ", type_of(x), ", got ", type_of(g));
  }
  return max_unpooled(g, x, indices, kSpatial);
}

// --- average ---

// The number of elements that each window is divided by, along dimension d of [batch, channels, windows…].
Value window_sizes(const Window& w, size_t d, Expr size, const Shape& shape, bool with_padding, DType dtype) {
  auto dim = static_cast<int64_t>(d) + 2;
  Value start = prim::iota({shape[dim]}, 0, DType::Int64) * size_tensor(w.stride[d], {shape[dim]}) -
                size_tensor(w.padding[d], {shape[dim]});
  Value end = minimum(start + size_tensor(w.kernel[d], {shape[dim]}), size_tensor(size + w.padding[d], {shape[dim]}));
  if (!with_padding) {
    end = minimum(end, size_tensor(size, {shape[dim]}));
    start = maximum(start, full(0, {shape[dim]}, DType::Int64));
  }
  return along(convert(end - start, dtype), dim, static_cast<int64_t>(shape.size()));
}

// What the sums of windows, [batch, channels, windows…], are divided by.
Value window_divisor(Value sums, Value x, const Window& w, bool count_include_pad, std::optional<Number> divisor) {
  BRASA_CHECK(!divisor || !divisor->is(0), "divisor must be not zero");
  DType t = dtype_of(sums);
  if (divisor) return scalar(*divisor, t);
  bool padded = std::any_of(w.padding.begin(), w.padding.end(), [](Expr p) { return !p.is(0); });
  if (!w.ceil_mode && (count_include_pad || !padded)) return size_tensor(ir::product(w.kernel), {}, t);
  Value size;
  for (size_t d = 0; d < w.spatial(); ++d) {
    Value s = window_sizes(w, d, size_of(x, static_cast<int64_t>(d) + 2), shape_of(sums), count_include_pad, t);
    size = size ? size * s : s;
  }
  return size;
}

Value avg_pooled(Value x, const Window& w, bool count_include_pad, std::optional<Number> divisor) {
  auto n = static_cast<int64_t>(w.spatial());
  bool unbatched;
  Value b = batched("avg_pool", x, w.spatial(), unbatched), total = sum(windows_of(b, w, 0), counted(n + 2, n));
  Value size = window_divisor(total, b, w, count_include_pad, divisor);
  // Integers are divided as integers.
  total = is_integral(dtype_of(total), true) ? pointwise("div", total, size) : total / size;
  return restored(total, unbatched);
}

template <int kSpatial>
Value avg_pool(Value x, Shape kernel, Shape stride, Shape padding, bool ceil_mode, bool count_include_pad,
               std::optional<Number> divisor) {
  if (dtype_of(x) != DType::Int64) floating_only("avg_pool", x);
  return avg_pooled(x, window_of(kSpatial, kernel, stride, padding, {Expr(1)}, ceil_mode), count_include_pad, divisor);
}
Value avg_pool1d(Value x, Shape kernel, Shape stride, Shape padding, bool ceil_mode, bool count_include_pad) {
  return avg_pool<1>(x, kernel, stride, padding, ceil_mode, count_include_pad, std::nullopt);
}

// Of windows that begin at every element, each element's sum over those that it lies in: sums of windows again, along one dimension after
// the other.
Value summed_where_windows_lie(Value share, const Window& w, const Shape& plane) {
  for (size_t d = 0; d < w.spatial(); ++d) {
    auto dim = static_cast<int64_t>(d) + 2;
    std::vector<Expr> low(rank_of(share), Expr(0)), high = low, none = low;
    low[dim] = w.kernel[d] - 1 - w.padding[d];
    high[dim] = plane[d] + w.padding[d] - size_of(share, dim);
    Value padded = prim::pad(share, scalar(0, dtype_of(share)), low, high, none);
    share = sum(prim::window(padded, dim, w.kernel[d], Expr(1), Expr(1)), {rank_of(share)});
  }
  return share;
}

// The sum of windows is linear: its transpose takes the gradient divided by each window's size.
template <int kSpatial>
Value avg_pool_backward(Value g, Value x, Shape kernel, Shape stride, Shape padding, bool ceil_mode,
                        bool count_include_pad, std::optional<Number> divisor) {
  Window w = window_of(kSpatial, kernel, stride, padding, {Expr(1)}, ceil_mode);
  bool unbatched;
  Value b = batched("avg_pool", to_opmath(x), kSpatial, unbatched), v = windows_of(b, w, 0);
  Value sums = sum(v, counted(kSpatial + 2, kSpatial));
  check_same_shape("avg_pool_backward", g, restored(sums, unbatched));
  Value share = prim::reshape(to_opmath(g), shape_of(sums));
  share = share / window_divisor(sums, b, w, count_include_pad, divisor);
  // Where windows overlap in steps, each element adds up the shares of those that it lies in; else along each dimension in turn.
  constexpr int64_t kFewWindows = 16;
  Expr near(1), steps(1);
  for (size_t d = 0; d < kSpatial; ++d) {
    near = near * windows_near(w, d);
    steps = steps * w.stride[d];
  }
  Shape plane(shape_of(b).begin() + 2, shape_of(b).end());
  Value spread;
  if (steps.is(1)) {
    spread = summed_where_windows_lie(share, w, plane);
  } else if (near.is_constant() && near.constant() > 1 && near.constant() <= kFewWindows) {
    spread = seen_from_elements(share, w, plane, scalar(0, dtype_of(share)));
    Value inside = ge(position_in_windows(w, plane, dtype_of_positions(w)), 0);
    inside = prim::broadcast(inside, shape_of(spread), counted(2, 2 * kSpatial));
    spread = sum(prim::select(inside, spread, zeros_like(spread)), counted(kSpatial + 2, kSpatial));
  } else {
    spread = pulled_through(b, v, prim::broadcast(share, shape_of(v), counted(0, kSpatial + 2)));
  }
  return convert(prim::reshape(spread, shape_of(x)), dtype_of(x));
}

template <int kSpatial>
std::vector<Value> avg_pool_vjp(const Saved& s) {
  if (!s.ct()) return {};
  constexpr bool kPlane = kSpatial > 1;  // the row along one dimension has no divisor
  std::optional<Number> divisor;
  if constexpr (kPlane) divisor = s.arg<std::optional<Number>>(6);
  return {avg_pool_backward<kSpatial>(s.ct(), s.in(0), s.arg<Shape>(1), s.arg<Shape>(2), s.arg<Shape>(3),
                                      s.arg<bool>(4), s.arg<bool>(5), divisor)};
}

// Sharing gradients is linear in them, and the transpose of a mean; of the other operand only the shape matters.
template <int kSpatial>
std::vector<Value> avg_pool_backward_vjp(const Saved& s) {
  if (!s.ct()) return {};
  Value g = avg_pool<kSpatial>(s.ct(), s.arg<Shape>(2), s.arg<Shape>(3), s.arg<Shape>(4), s.arg<bool>(5),
                               s.arg<bool>(6), s.arg<std::optional<Number>>(7));
  return {g, zeros_like(s.in(1))};
}

template <int n>
void add_max_pool(Table& t) {
  constexpr Autocast kPolicy = n == 3 ? Autocast::Float32 : Autocast::None;
  std::string size = str("int[", n, "]"), d = str(n, "d");
  std::string zero = n == 1 ? "[0]" : "0", one = n == 1 ? "[1]" : "1";
  std::string window = str("(Tensor self, ", size, " kernel_size, ", size, " stride=[], ", size, " padding=", zero);
  const std::vector<Sample> maxes = {{planes_sample({2, 3}, n, 6), list({2})},
                                     {planes_sample({2}, n, 7), list({3}), list({2}), list({1}), list({1}), true},
                                     {planes_sample({1, 2}, n, 6), list({2}), list({1}), list({1}), list({2})}};
  t.op(str("aten::max_pool", d, window, ", ", size, " dilation=", one, ", bool ceil_mode=False) -> Tensor"))
      .doc("The greatest element of each window.")
      .keeps_memory_format()
      .autocast(kPolicy, Autocast::None)
      .backward_node(n == 1 ? "" : str("MaxPool", n, "DWithIndicesBackward0"))
      .composed(max_pool<n>)
      .samples(maxes);
  t.op(str("aten::max_pool", d, "_with_indices", window, ", ", size, " dilation=", one,
           ", bool ceil_mode=False) -> (Tensor, Tensor)"))
      .doc("The greatest element of each window, and where the first such lies in its plane.")
      .keeps_memory_format()
      .composed(max_pool_with_indices<n>)
      .samples(maxes);
  t.op(str("brasa::max_pool", d, "_with_positions", window, ", ", size, " dilation=", one,
           ", bool ceil_mode=False) -> (Tensor, Tensor)"))
      .doc("The greatest element of each window, and the position of the first such in its window, a narrow integer.")
      .not_in_pytorch()
      .costly()
      .composed(max_pool_with_positions<n>)
      .vjp(own_derivative(max_pool_vjp<n>))
      .samples(maxes);
  if constexpr (n > 1)
    t.op(str("aten::max_pool", d, "_with_indices_backward(Tensor grad_output, Tensor self, ", size, " kernel_size, ",
             size, " stride, ", size, " padding, ", size, " dilation, bool ceil_mode, Tensor indices) -> Tensor"))
        .doc("Each window's gradient put where its index points.")
        .composed(max_pool_backward<n>)
        .one_dtype({"grad_output", "self"})
        .samples({{planes_sample({2, 3}, n, 2), planes_sample({2, 3}, n, 4), list({2}), list({2}), list({0}), list({1}),
                   false, planes_sample({2, 3}, n, 2).of(DType::Int64).in(0, 4)}});
}

template <int n>
void add_avg_pool(Table& t) {
  if constexpr (n == 1) {
    t.op("aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor")
        .doc("The mean of each window.")
        .composed_in_opmath(avg_pool1d)
        .vjp(own_derivative(avg_pool_vjp<n>))
        .samples({{floats(2, 3, 6), list({2})}, {floats(2, 7), list({3}), list({2}), list({1}), true, false}});
  } else {
    constexpr Autocast kPolicy = n == 3 ? Autocast::Float32 : Autocast::None;
    std::string size = str("int[", n, "]"), d = str(n, "d");
    std::string window = str("(Tensor self, ", size, " kernel_size, ", size, " stride=[], ", size, " padding=0");
    t.op(str("aten::avg_pool", d, window,
             ", bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"))
        .doc("The mean of each window.")
        .keeps_memory_format()
        .autocast(kPolicy, Autocast::None)
        .composed_in_opmath(avg_pool<n>)
        .vjp(own_derivative(avg_pool_vjp<n>))
        .special("divisor_override", {0})
        .samples({{planes_sample({2, 3}, n, 6), list({2})},
                  {planes_sample({2}, n, 7), list({3}), list({2}), list({1}), true, false}});
    t.op(str("aten::avg_pool", d, "_backward(Tensor grad_output, Tensor self, ", size, " kernel_size, ", size,
             " stride, ", size, " padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor"))
        .doc("Each window's gradient shared among its elements.")
        .composed(avg_pool_backward<n>)
        .vjp(own_derivative(avg_pool_backward_vjp<n>))
        .special("divisor_override", {0})
        .one_dtype({"grad_output", "self"})
        .samples({{planes_sample({2, 3}, n, 2), planes_sample({2, 3}, n, 4), list({2}), list({}), list({0}), false,
                   true, ir::None{}},
                  {planes_sample({2, 1}, n, 3), planes_sample({2, 1}, n, 5), list({3}), list({2}), list({1}), false,
                   false, ir::None{}}});
  }
}

}  // namespace

void add_pooling(Table& t) {
  add_max_pool<1>(t);
  add_max_pool<2>(t);
  add_max_pool<3>(t);
  add_avg_pool<1>(t);
  add_avg_pool<2>(t);
  add_avg_pool<3>(t);
  add_adaptive_pools(t);
}

}  // namespace brasa::ops
