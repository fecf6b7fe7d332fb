#include <algorithm>

#include "ops/accepted.h"
#include "ops/combiner.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

struct Window {
  Shape kernel, stride, padding, dilation;
  bool ceil_mode = false;
  size_t spatial() const { return kernel.size(); }
};

Window window_of(size_t n, const Shape& kernel, const Shape& stride, const Shape& padding, const Shape& dilation,
                 bool ceil_mode) {
  Window w{repeated(kernel, n, "kernel_size"),
           {},
           repeated(padding, n, "padding"),
           repeated(dilation, n, "dilation"),
           ceil_mode};
  w.stride = stride.empty() ? w.kernel : repeated(stride, n, "stride");
  for (size_t d = 0; d < n; ++d) {
    BRASA_CHECK(is_less(0, w.kernel[d]) && is_less(0, w.stride[d]) && is_less(0, w.dilation[d]),
                "pooling: kernel size, stride and dilation must be greater than zero, got ", w.kernel, ", ", w.stride,
                " and ", w.dilation);
    BRASA_CHECK(!is_less(w.padding[d], 0) && !is_less(ir::floordiv(w.kernel[d], 2), w.padding[d]),
                "pad should be at most half of kernel size, but got pad=", w.padding, " and kernel_size=", w.kernel);
  }
  return w;
}

// Number of windows along a dimension. With ceil_mode the last may hang over the end, if it starts inside or in the left padding.
Expr window_count(const Window& w, size_t d, Expr size) {
  Expr span = (w.kernel[d] - 1) * w.dilation[d] + 1, padded = size + w.padding[d] * 2;
  if (!w.ceil_mode) return ir::floordiv(padded - span, w.stride[d]) + 1;
  Expr starts = ir::floordiv(size + w.padding[d] - 1, w.stride[d]) + 1;
  return ir::min(ir::ceildiv(padded - span, w.stride[d]) + 1, starts);
}

// x [batch, channels, spatial…] as [batch, channels, windows…, positions in the window…]; padded with `fill`.
Value windows_of(Value x, const Window& w, const Number& fill) {
  auto n = static_cast<int64_t>(w.spatial());
  std::vector<Expr> low(rank_of(x), Expr(0)), high = low, none = low;
  for (int64_t d = 0; d < n; ++d) {
    Expr size = size_of(x, d + 2), count = window_count(w, d, size), span = (w.kernel[d] - 1) * w.dilation[d] + 1;
    BRASA_CHECK(is_less(0, count), "pooling: given input size ", shape_of(x),
                ", the calculated output size is too small");
    low[d + 2] = w.padding[d];
    high[d + 2] = w.ceil_mode ? ir::max((count - 1) * w.stride[d] + span - size - w.padding[d], 0) : w.padding[d];
  }
  Value v = prim::pad(x, scalar(fill, dtype_of(x)), low, high, none);
  for (int64_t d = 0; d < n; ++d) v = prim::window(v, d + 2, w.kernel[d], w.stride[d], w.dilation[d]);
  return v;
}

// A batch of planes, none of them empty.
Value batched(const char* op, Value x, size_t n, bool& unbatched, bool needs_channels = true) {
  auto spatial = static_cast<int64_t>(n);
  unbatched = rank_of(x) == spatial + 1;
  BRASA_CHECK(unbatched || rank_of(x) == spatial + 2, op, ": Expected ", spatial + 1, "D or ", spatial + 2,
              "D (batch mode) tensor for input, but got ", type_of(x));
  for (int64_t d = rank_of(x) - spatial - (needs_channels ? 1 : 0); d < rank_of(x); ++d)
    BRASA_CHECK(!same_size(size_of(x, d), 0), op, ": Expected non-zero size for non-batch dimensions, but got ",
                type_of(x));
  return unbatched ? unsqueeze(x, 0) : x;
}
// A gradient has the planes that the input has.
void check_planes(const char* op, Value g, Value x, size_t n) {
  bool same = rank_of(g) == rank_of(x);
  for (int64_t d = 0; same && d < rank_of(x) - static_cast<int64_t>(n); ++d)
    same = same_size(size_of(g, d), size_of(x, d));
  BRASA_CHECK(same, op, ": expected grad_output to have the leading sizes of the input ", type_of(x), ", but got ",
              type_of(g));
}
Value restored(Value x, bool unbatched) { return unbatched ? squeeze(x, 0) : x; }

// --- max ---

struct MaxPool {
  Value windows, best;  // […, positions] with the window's dimensions merged; the first greatest one's position
};

MaxPool max_pooled(Value x, const Window& w) {
  auto n = static_cast<int64_t>(w.spatial());
  Value v = merge_dims(windows_of(x, w, identity(Combiner::Max, dtype_of(x))), n + 2, 2 * n + 1);
  return {v, prim::arg_reduce(v, n + 2, "max")};
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
  Window w = window_of(kSpatial, kernel, stride, padding, dilation, ceil_mode);
  bool unbatched;
  BRASA_CHECK(dtype_of(x) != DType::Bool, "\"max_pool\" not implemented for bool");
  Value b = batched("max_pool", x, kSpatial, unbatched);
  MaxPool p = max_pooled(b, w);
  Value out = prim::reduce(p.windows, {kSpatial + 2}, "max");
  return {restored(out, unbatched), restored(plane_index(w, p.best, b), unbatched)};
}

template <int kSpatial>
Value max_pool(Value x, Shape kernel, Shape stride, Shape padding, Shape dilation, bool ceil_mode) {
  Window w = window_of(kSpatial, kernel, stride, padding, dilation, ceil_mode);
  bool unbatched;
  BRASA_CHECK(dtype_of(x) != DType::Bool, "\"max_pool\" not implemented for bool");
  Value b = batched("max_pool", x, kSpatial, unbatched);
  return restored(
      reduce(windows_of(b, w, identity(Combiner::Max, dtype_of(x))), counted(kSpatial + 2, kSpatial), false, "max"),
      unbatched);
}

// How many windows along a dimension may hold an element.
Expr windows_near(const Window& w, size_t d) { return ir::ceildiv((w.kernel[d] - 1) * w.dilation[d] + 1, w.stride[d]); }

// A value of each window, [batch, channels, windows…], for the elements of a plane, as [batch, channels, elements…, near…]: along each
// dimension of the windows that may hold the element, the earliest first; `none` where there is no window.
Value seen_from_elements(Value v, const Window& w, const Shape& plane, Value none) {
  std::vector<Expr> low(rank_of(v), Expr(0)), high = low, between = low;
  for (size_t d = 0; d < w.spatial(); ++d) {
    // The last window that begins before element i is (i + padding) / stride.
    Expr last = ir::floordiv(plane[d] + w.padding[d] - 1, w.stride[d]);
    low[d + 2] = windows_near(w, d) - 1;
    high[d + 2] = ir::max(last + 1 - shape_of(v)[d + 2], 0);
  }
  v = prim::pad(v, none, low, high, between);
  for (size_t d = 0; d < w.spatial(); ++d) {
    auto dim = static_cast<int64_t>(d) + 2;
    v = merge_dims(repeat_along(v, dim + 1, w.stride[d]), dim, dim + 1);
    v = narrow(prim::window(v, dim, windows_near(w, d), 1, w.stride[d]), dim, w.padding[d], plane[d]);
  }
  return v;
}

// The position of an element in each of these windows, [elements…, near…], their dimensions merged; a negative number where the window does
// not hold the element.
Value position_in_windows(const Window& w, const Shape& plane, DType dtype) {
  auto n = static_cast<int64_t>(w.spatial());
  Shape all = plane;
  Expr inner(1), positions(1);
  for (int64_t d = 0; d < n; ++d) {
    all.push_back(windows_near(w, d));
    positions = positions * w.kernel[d];
  }
  Value out;
  for (int64_t d = n; d-- > 0;) {
    Shape shape = {plane[d], all[n + d]};
    auto number = [&](Expr e) { return size_tensor(e, shape); };
    Value step = number(w.stride[d]), dilation = number(w.dilation[d]), kernel = number(w.kernel[d]);
    Value weight = number(inner), nowhere = number(positions * -1), last = number(shape[1] - 1);
    Value behind = number(w.padding[d]), earlier = last - prim::iota(shape, 1, DType::Int64);
    behind = prim::binary("rem", behind + prim::iota(shape, 0, DType::Int64), step);
    earlier = earlier * step;
    Value from_start = behind + earlier, at = prim::binary("div", from_start, dilation);
    Value inside = lt(at, kernel);
    inside = logical_and(inside, eq(at * dilation, from_start));
    at = convert(prim::select(inside, at * weight, nowhere), dtype);
    at = prim::broadcast(at, all, {d, n + d});
    out = out ? out + at : at;
    inner = inner * w.kernel[d];
  }
  return out;
}

// Positions need few bits: they go to memory, and are compared, as narrow numbers.
DType dtype_of_positions(Expr count) {
  constexpr int64_t kMost = int64_t{1} << 24;
  return is_less(count, kMost) ? DType::Int32 : DType::Int64;
}

// The first maximum of each window takes the window's gradient. Each element adds up what it gets from the windows that it lies in.
template <int kSpatial>
std::vector<Value> max_pool_vjp(const Saved& s) {
  if (!s.ct()) return {};
  Window w = window_of(kSpatial, s.arg<Shape>(1), s.arg<Shape>(2), s.arg<Shape>(3), s.arg<Shape>(4), s.arg<bool>(5));
  bool unbatched;
  Value x = s.in(0), b = batched("max_pool", x, kSpatial, unbatched);
  MaxPool p = max_pooled(b, w);
  Shape plane(shape_of(b).begin() + 2, shape_of(b).end());
  Expr positions = size_of(p.windows, kSpatial + 2);
  DType narrow = dtype_of_positions(positions);
  Value nowhere = size_tensor(positions, {}, narrow), zero = scalar(0, dtype_of(s.ct()));
  Value best = seen_from_elements(convert(p.best, narrow), w, plane, nowhere);
  Value g = seen_from_elements(prim::reshape(s.ct(), shape_of(p.best)), w, plane, zero);
  Value mine =
      eq(prim::broadcast(position_in_windows(w, plane, narrow), shape_of(best), counted(2, 2 * kSpatial)), best);
  return {prim::reshape(sum(prim::select(mine, g, zeros_like(g)), counted(kSpatial + 2, kSpatial)), shape_of(x))};
}

// Gradients put back where the indices point in each plane.
template <int kSpatial>
Value max_unpooled(Value g, Value x, Value indices) {
  constexpr const char* op = "max_pool_backward";
  bool unbatched;
  batched(op, x, kSpatial, unbatched);
  check_long_index(op, indices);
  check_same_shape(op, g, indices);
  check_planes(op, g, x, kSpatial);
  Shape planes(shape_of(x).begin(), shape_of(x).end() - kSpatial), flat = planes, picked = planes;
  Expr plane(1), windows(1);
  for (int64_t d = 0; d < kSpatial; ++d) {
    plane = plane * size_of(x, rank_of(x) - kSpatial + d);
    windows = windows * size_of(g, rank_of(g) - kSpatial + d);
  }
  flat.push_back(plane);
  picked.push_back(windows);
  auto last = static_cast<int64_t>(planes.size());
  Value index = checked_forward_index(prim::reshape(indices, picked), plane, op);
  Value out = prim::scatter(full(0, flat, dtype_of(g)), indices_along(picked, last, index), prim::reshape(g, picked),
                            counted(0, last + 1), "add");
  return prim::reshape(out, shape_of(x));
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
  return max_unpooled<kSpatial>(g, x, indices);
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
  Value spread;
  if (near.is_constant() && near.constant() > 1 && near.constant() <= kFewWindows && !steps.is(1)) {
    Shape plane(shape_of(b).begin() + 2, shape_of(b).end());
    spread = seen_from_elements(share, w, plane, scalar(0, dtype_of(share)));
    Value inside = ge(position_in_windows(w, plane, dtype_of_positions(ir::product(w.kernel))), 0);
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

// --- adaptive ---

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
  if (same_size(ir::mod(size, out), 0)) return split_dim(x, d, {out, ir::floordiv(size, out)});
  Adaptive a = adaptive(size, out);
  Value v = move_dims(prim::gather(x, {a.index}, {d}), {0, 1}, {d, d + 1});
  Value inside = prim::broadcast(a.inside, shape_of(v), {d, d + 1});
  return prim::select(inside, v, constant_like(v, fill));
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
    Value total = sum(adaptive_windows(v, d, o, 0), {d + 1});
    Adaptive a = adaptive(size, o);
    v = total / along(sum(convert(a.inside, dtype_of(v)), {1}), d, rank_of(v));
  }
  return restored(v, unbatched);
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
    Expr size = size_of(b, d), o = size_of(h, d);
    Adaptive a = adaptive(size, o);
    h = h / along(sum(convert(a.inside, dtype_of(h)), {1}), d, rank_of(h));
    Shape shape = shape_of(h);
    shape[d] = size;
    Value like = full(0, shape, dtype_of(h));
    // A distinct constant, so that the chain below starts at a node of its own.
    Value start = prim::unary("neg", like), v = adaptive_windows(start, d, o, 0);
    Value wide = repeat_along(h, d + 1, size_of(v, d + 1));
    if (v.node->op == &at("prim::select")) {
      wide = prim::select(v.node->arg<Value>(0), wide, zeros_like(wide));
      v = v.node->arg<Value>(1);
    }
    h = pulled_through(start, v, wide);
  }
  return convert(restored(h, unbatched), dtype_of(x));
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
  return {max_unpooled<kSpatial>(s.ct(), s.in(0), s.out(1))};
}

TensorSample sample(std::initializer_list<int64_t> lead, int spatial, int64_t size) {
  std::vector<int64_t> shape = lead;
  shape.insert(shape.end(), spatial, size);
  return tensor(DType::Float32, shape);
}

template <int kSpatial>
void add_pools(Table& t) {
  constexpr int n = kSpatial;
  constexpr Autocast kPolicy = n == 3 ? Autocast::Float32 : Autocast::None;
  std::string size = str("int[", n, "]"), d = str(n, "d");
  std::string zero = n == 1 ? "[0]" : "0", one = n == 1 ? "[1]" : "1";
  std::string window = str("(Tensor self, ", size, " kernel_size, ", size, " stride=[], ", size, " padding=", zero);
  const std::vector<Sample> maxes = {{sample({2, 3}, n, 6), list({2})},
                                     {sample({2}, n, 7), list({3}), list({2}), list({1}), list({1}), true},
                                     {sample({1, 2}, n, 6), list({2}), list({1}), list({1}), list({2})}};
  t.op(str("aten::max_pool", d, window, ", ", size, " dilation=", one, ", bool ceil_mode=False) -> Tensor"))
      .doc("The greatest element of each window.")
      .keeps_memory_format()
      .autocast(kPolicy, Autocast::None)
      .backward_node(n == 1 ? "" : str("MaxPool", n, "DWithIndicesBackward0"))
      .composed(max_pool<n>)
      .vjp(own_derivative(max_pool_vjp<n>))
      .samples(maxes);
  t.op(str("aten::max_pool", d, "_with_indices", window, ", ", size, " dilation=", one,
           ", bool ceil_mode=False) -> (Tensor, Tensor)"))
      .doc("The greatest element of each window, and where the first such lies in its plane.")
      .keeps_memory_format()
      .composed(max_pool_with_indices<n>)
      .vjp(own_derivative(max_pool_vjp<n>))
      .samples(maxes);
  const std::vector<Sample> adaptives = {{sample({2, 3}, n, 5), list({2})}, {sample({2}, n, 4), list({2})}};
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
      .samples(adaptives);
  if constexpr (n > 1) {
    t.op(str("aten::max_pool", d, "_with_indices_backward(Tensor grad_output, Tensor self, ", size, " kernel_size, ",
             size, " stride, ", size, " padding, ", size, " dilation, bool ceil_mode, Tensor indices) -> Tensor"))
        .doc("Each window's gradient put where its index points.")
        .composed(max_pool_backward<n>)
        .one_dtype({"grad_output", "self"})
        .samples({{sample({2, 3}, n, 2), sample({2, 3}, n, 4), list({2}), list({2}), list({0}), list({1}), false,
                   sample({2, 3}, n, 2).of(DType::Int64).in(0, 4)}});
    t.op(str("aten::adaptive_max_pool", d, "_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor"))
        .doc("Each window's gradient put where its index points.")
        .composed(max_unpooled<n>)
        .one_dtype({"grad_output", "self"})
        .samples({{sample({2, 3}, n, 2), sample({2, 3}, n, 4), sample({2, 3}, n, 2).of(DType::Int64).in(0, 4)}});
    t.op(str("aten::avg_pool", d, window,
             ", bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor"))
        .doc("The mean of each window.")
        .keeps_memory_format()
        .autocast(kPolicy, Autocast::None)
        .composed_in_opmath(avg_pool<n>)
        .vjp(own_derivative(avg_pool_vjp<n>))
        .special("divisor_override", {0})
        .samples(
            {{sample({2, 3}, n, 6), list({2})}, {sample({2}, n, 7), list({3}), list({2}), list({1}), true, false}});
    t.op(str("aten::avg_pool", d, "_backward(Tensor grad_output, Tensor self, ", size, " kernel_size, ", size,
             " stride, ", size, " padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor"))
        .doc("Each window's gradient shared among its elements.")
        .composed(avg_pool_backward<n>)
        .special("divisor_override", {0})
        .one_dtype({"grad_output", "self"})
        .samples(
            {{sample({2, 3}, n, 2), sample({2, 3}, n, 4), list({2}), list({}), list({0}), false, true, ir::None{}}});
    t.op(str("aten::_adaptive_avg_pool", d, "(Tensor self, SymInt[", n, "] output_size) -> Tensor"))
        .doc("The means of output_size windows that cover the plane.")
        .keeps_memory_format()
        .composed_in_opmath(adaptive_avg<n>)
        .samples(adaptives);
    t.op(str("aten::_adaptive_avg_pool", d, "_backward(Tensor grad_output, Tensor self) -> Tensor"))
        .doc("Each window's gradient shared among its elements.")
        .composed(adaptive_avg_backward<n>)
        .one_dtype({"grad_output", "self"})
        .samples({{sample({2, 3}, n, 2), sample({2, 3}, n, 5)}});
  } else {
    t.op("aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor")
        .doc("The mean of each window.")
        .composed_in_opmath(avg_pool1d)
        .vjp(own_derivative(avg_pool_vjp<n>))
        .samples({{floats(2, 3, 6), list({2})}, {floats(2, 7), list({3}), list({2}), list({1}), true, false}});
  }
}

}  // namespace

void add_pooling(Table& t) {
  add_pools<1>(t);
  add_pools<2>(t);
  add_pools<3>(t);
}

}  // namespace brasa::ops
