#include "ops/resample.h"

#include "ops/search.h"

namespace brasa::ops {
namespace {

// The axes brought to indices of one shape [outs…, taps…], and where each of its dimensions stands in [result…, taps…].
struct Joint {
  std::vector<Value> indices;
  Dims dims, places;
  Shape taps;
  std::vector<std::pair<Value, Dims>> weights;
};

Joint joined(const std::vector<Resampling>& axes, int64_t rank) {
  Joint j;
  Shape shape;
  for (const Resampling& a : axes) {
    shape.push_back(size_of(a.index, a.weight ? 1 : 0));
    j.dims.push_back(a.dim);
    if (!a.weight) continue;
    j.weights.push_back({a.weight, {rank + static_cast<int64_t>(j.taps.size()), a.dim}});
    j.taps.push_back(size_of(a.index, 0));
  }
  auto n = static_cast<int64_t>(axes.size()), tap = n;
  shape.insert(shape.end(), j.taps.begin(), j.taps.end());
  for (int64_t d = 0; d < n; ++d)
    j.indices.push_back(prim::broadcast(axes[d].index, shape, axes[d].weight ? Dims{tap++, d} : Dims{d}));
  j.places = j.dims;
  for (size_t t = 0; t < j.taps.size(); ++t) j.places.push_back(rank + static_cast<int64_t>(t));
  return j;
}

Value weighted(Value v, const Joint& j) {
  Value weight;
  for (auto& [w, dims] : j.weights) {
    Value wide = prim::broadcast(convert(w, dtype_of(v)), shape_of(v), dims);
    weight = weight ? weight * wide : wide;
  }
  return weight ? v * weight : v;
}

}  // namespace

Value resampled(Value x, const std::vector<Resampling>& axes) {
  if (axes.empty()) return x;
  int64_t rank = rank_of(x);
  Joint j = joined(axes, rank);
  Value v = move_dims(prim::gather(x, j.indices, j.dims), counted(0, static_cast<int64_t>(j.places.size())), j.places);
  return sum(weighted(v, j), counted(rank, static_cast<int64_t>(j.taps.size())));
}

// Numbers of 32 bits are half as long in memory, and found from floats by one instruction.
Value index_below(Value whole, Expr size) {
  bool is_short = is_less(size, 1 << 24);
  return convert(is_short ? convert(whole, DType::Int32) : whole, DType::Int64);
}

Value resampled_transposed(Value ct, const Shape& shape, const std::vector<Resampling>& axes) {
  if (axes.empty()) return ct;
  int64_t rank = rank_of(ct);
  Joint j = joined(axes, rank);
  Shape wide = shape_of(ct);
  wide.insert(wide.end(), j.taps.begin(), j.taps.end());
  Value v = weighted(prim::broadcast(ct, wide, counted(0, rank)), j);
  v = move_dims(v, j.places, counted(0, static_cast<int64_t>(j.places.size())));
  return prim::scatter(full(0, shape, dtype_of(ct)), j.indices, v, j.dims, "add");
}

Resampling transposed(const Resampling& axis, Value last, Expr size, Expr most) {
  Value index = axis.weight ? axis.index : unsqueeze(axis.index, 0);
  Expr taps = size_of(index, 0), results = size_of(index, 1);
  // Few are asked for, as a sum of known length needs no vector of its own.
  constexpr int64_t kFew = 16;
  Expr within = ir::min(most, results);
  if (is_less(within, kFew + 1)) within = known_size(within);
  Shape shape = {within, size}, parts = {taps, shape[0], size};
  Value first = count_before(last, prim::iota({size}, 0, DType::Int64), false);
  Value of = broadcast_to(first, shape) + prim::iota(shape, 0, DType::Int64);
  Value there = lt(of, size_tensor(results, shape));
  of = minimum(of, size_tensor(results - 1, shape));
  // Of each of its parts, which results are made of: whether it is this element.
  auto part = [&](Value v) { return move_dims(prim::gather(v, {of}, {1}), {2}, {0}); };
  Value mine = logical_and(eq(part(index), prim::iota(parts, 2, DType::Int64)), broadcast_to(there, parts));
  Value weight = axis.weight ? part(axis.weight) : full(1, parts, DType::Float32);
  return {axis.dim, of, sum(prim::select(mine, weight, zeros_like(weight)), {0})};
}

Value cubic_kernel(Value distance, double a) {
  Value d = abs(distance);
  Value near = ((a + 2) * d - (a + 3)) * d * d + 1, far = ((d - 5) * d + 8) * d * a - 4 * a;
  return where(le(d, 1), near, where(lt(d, 2), far, zeros_like(d)));
}

Value cubic_kernel_slope(Value distance, double a) {
  Value d = abs(distance);
  Value near = (3 * (a + 2) * d - 2 * (a + 3)) * d, far = ((3 * d - 10) * d + 8) * a;
  Value slope = where(le(d, 1), near, where(lt(d, 2), far, zeros_like(d)));
  return where(lt(distance, 0), -slope, slope);
}

}  // namespace brasa::ops
