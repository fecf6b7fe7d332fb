#include "ops/pool_windows.h"

#include "ops/accepted.h"
#include "support/error.h"

namespace brasa::ops {

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

Expr window_count(const Window& w, size_t d, Expr size) {
  Expr span = (w.kernel[d] - 1) * w.dilation[d] + 1, padded = size + w.padding[d] * 2;
  if (!w.ceil_mode) return ir::floordiv(padded - span, w.stride[d]) + 1;
  Expr starts = ir::floordiv(size + w.padding[d] - 1, w.stride[d]) + 1;
  return ir::min(ir::ceildiv(padded - span, w.stride[d]) + 1, starts);
}

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

Value batched(const char* op, Value x, size_t n, bool& unbatched, bool needs_channels) {
  auto spatial = static_cast<int64_t>(n);
  unbatched = rank_of(x) == spatial + 1;
  BRASA_CHECK(unbatched || rank_of(x) == spatial + 2, op, ": Expected ", spatial + 1, "D or ", spatial + 2,
              "D (batch mode) tensor for input, but got ", type_of(x));
  for (int64_t d = rank_of(x) - spatial - (needs_channels ? 1 : 0); d < rank_of(x); ++d)
    BRASA_CHECK(!same_size(size_of(x, d), 0), op, ": Expected non-zero size for non-batch dimensions, but got ",
                type_of(x));
  return unbatched ? unsqueeze(x, 0) : x;
}
void check_planes(const char* op, Value g, Value x, size_t n) {
  bool same = rank_of(g) == rank_of(x);
  for (int64_t d = 0; same && d < rank_of(x) - static_cast<int64_t>(n); ++d)
    same = same_size(size_of(g, d), size_of(x, d));
  BRASA_CHECK(same, op, ": expected grad_output to have the leading sizes of the input ", type_of(x), ", but got ",
              type_of(g));
}

Expr windows_near(const Window& w, size_t d) { return ir::ceildiv((w.kernel[d] - 1) * w.dilation[d] + 1, w.stride[d]); }

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

DType dtype_of_positions(const Window& w) {
  constexpr int64_t kMost = int64_t{1} << 24;
  return is_less(ir::product(w.kernel), kMost) ? DType::Int32 : DType::Int64;
}

Value max_unpooled(Value g, Value x, Value indices, size_t n) {
  constexpr const char* op = "max_pool_backward";
  auto spatial = static_cast<int64_t>(n);
  bool unbatched;
  batched(op, x, n, unbatched);
  check_long_index(op, indices);
  check_same_shape(op, g, indices);
  check_planes(op, g, x, n);
  Shape planes(shape_of(x).begin(), shape_of(x).end() - spatial), flat = planes, picked = planes;
  Expr plane(1), windows(1);
  for (int64_t d = 0; d < spatial; ++d) {
    plane = plane * size_of(x, rank_of(x) - spatial + d);
    windows = windows * size_of(g, rank_of(g) - spatial + d);
  }
  flat.push_back(plane);
  picked.push_back(windows);
  auto last = static_cast<int64_t>(planes.size());
  Value index = checked_forward_index(prim::reshape(indices, picked), plane, op);
  Value out = prim::scatter(full(0, flat, dtype_of(g)), indices_along(picked, last, index), prim::reshape(g, picked),
                            counted(0, last + 1), "add");
  return prim::reshape(out, shape_of(x));
}

TensorSample planes_sample(std::initializer_list<int64_t> lead, int spatial, int64_t size) {
  std::vector<int64_t> shape = lead;
  shape.insert(shape.end(), spatial, size);
  return tensor(DType::Float32, shape);
}

}  // namespace brasa::ops
