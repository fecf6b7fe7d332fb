#include <optional>

#include "ops/literal.h"
#include "ops/resample.h"
#include "ops/rows.h"
#include "support/error.h"

// Sampling of an image at the places that a grid names, in [-1, 1] along each of the image's dimensions, the last one first.
namespace brasa::ops {
namespace {

enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };
constexpr double kCubic = -0.75;

struct Options {
  int64_t interpolation, padding;
  bool align_corners;
};

// A place, and its derivative by what it was computed from: places beyond the border do not move.
struct Place {
  Value at, slope;
};

Place unnormalised(Value g, Expr size, bool align_corners) {
  Value n = size_tensor(size, {}, dtype_of(g));
  if (align_corners) return {(g + 1) / 2 * (n - 1), broadcast_to((n - 1) / 2, shape_of(g))};
  return {((g + 1) * n - 1) / 2, broadcast_to(n / 2, shape_of(g))};
}

Place clipped(const Place& p, Value last) {
  Value zero = zeros_like(p.at), below = le(p.at, 0), above = ge(p.at, last);
  return {where(below, zero, where(above, last, p.at)), where(logical_or(below, above), zero, p.slope)};
}

// Mirrored at the centres of the first and last element (align_corners), or at their outer edges.
Place reflected(const Place& p, Expr size, bool align_corners) {
  DType t = dtype_of(p.at);
  if (align_corners && is_one(size)) return {zeros_like(p.at), zeros_like(p.at)};
  double low = align_corners ? 0 : -0.5;
  Value span = size_tensor(align_corners ? size - 1 : size, {}, t), shifted = p.at - low, far = abs(shifted);
  Value rest = pointwise("rem", far, span), turns = prim::unary("floor", far / span);
  Value odd = ne(pointwise("rem", turns, 2), 0), negative = lt(shifted, 0);
  Value slope = where(negative, -p.slope, p.slope);
  return {where(odd, span - rest, rest) + low, where(odd, -slope, slope)};
}

Place padded(Place p, Expr size, const Options& o) {
  if (o.padding == kZeros) return p;
  if (o.padding == kReflection) p = reflected(p, size, o.align_corners);
  return clipped(p, size_tensor(size - 1, {}, dtype_of(p.at)));
}

// Along one dimension of the image, for each place and tap: which element, is it inside, and its weight with the weight's derivative by the grid.
struct Axis {
  Value index, inside, weight, slope;
};

int64_t taps_of(const Options& o) { return o.interpolation == kNearest ? 1 : o.interpolation == kBilinear ? 2 : 4; }

// One tap of each place [N, places…], or, without a number, all of them side by side: [N, places…, taps].
Axis axis(Value g, Expr size, const Options& o, std::optional<int64_t> only) {
  DType t = dtype_of(g);
  Place p = unnormalised(g, size, o.align_corners);
  if (o.interpolation != kBicubic) p = padded(p, size, o);
  auto rank = rank_of(g);
  Shape shape = shape_of(g);
  if (!only) shape.push_back(Expr(taps_of(o)));
  auto widened = [&](Value v) { return prim::broadcast(v, shape, counted(0, rank)); };
  Value tap = only ? full(static_cast<double>(*only), shape, t) : convert(prim::iota(shape, rank, DType::Int64), t), at;
  Axis a;
  if (o.interpolation == kNearest) {
    at = widened(prim::unary("round", p.at));
  } else {
    Value low = prim::unary("floor", p.at), fraction = widened(p.at - low), slope = widened(p.slope);
    if (o.interpolation == kBicubic) tap = tap - 1;
    at = widened(low) + tap;
    if (o.interpolation == kBilinear) {
      Value first = eq(tap, 0);
      a.weight = where(first, 1 - fraction, fraction);
      a.slope = where(first, -slope, slope);
    } else {
      a.weight = cubic_kernel(fraction - tap, kCubic);
      a.slope = cubic_kernel_slope(fraction - tap, kCubic) * slope;
      at = padded({at, zeros_like(at)}, size, o).at;
    }
  }
  Value last = size_tensor(size - 1, {}, t);
  if (o.padding == kZeros) a.inside = logical_and(ge(at, 0), le(at, last));
  // Also what is not a number becomes an index.
  Value safe = where(ge(at, 0), where(le(at, last), at, last), zeros_like(at));
  a.index = index_below(safe, size);
  return a;
}

// The values under the grid before they are weighted, by the axes that say where they lie.
struct Sampled {
  std::vector<Axis> axes;
  std::vector<Dims> at;        // where the dimensions of each axis lie in `shape`
  std::vector<Value> indices;  // of `dims` of the image
  Dims dims;
  Shape shape;
};

Value coordinate(Value grid, int64_t spatial, int64_t d) {
  return squeeze(narrow(grid, spatial + 1, spatial - 1 - d, 1), spatial + 1);
}

// All taps beside each other, the channels last: [N, places…, taps…, C].
Sampled all_taps(Value x, Value grid, const Options& o) {
  Sampled s;
  int64_t spatial = rank_of(x) - 2;
  Shape joint(shape_of(grid).begin(), shape_of(grid).end() - 1);
  for (int64_t d = 0; d < spatial; ++d) {
    s.axes.push_back(axis(coordinate(grid, spatial, d), size_of(x, d + 2), o, std::nullopt));
    joint.push_back(size_of(s.axes.back().index, spatial + 1));
    s.at.push_back(counted(0, spatial + 1));
    s.at.back().push_back(spatial + 1 + d);
  }
  s.shape = joint;
  s.shape.push_back(size_of(x, 1));
  s.indices.push_back(prim::iota(joint, 0, DType::Int64));
  s.dims = {0};
  for (int64_t d = 0; d < spatial; ++d) {
    s.indices.push_back(prim::broadcast(s.axes[d].index, joint, s.at[d]));
    s.dims.push_back(d + 2);
  }
  return s;
}

// One for each combination of taps: [N, C, places…].
std::vector<Sampled> each_tap(Value x, Value grid, const Options& o) {
  int64_t spatial = rank_of(x) - 2, taps = taps_of(o), combinations = 1;
  std::vector<std::vector<Axis>> axes(spatial);
  for (int64_t d = 0; d < spatial; ++d, combinations *= taps) {
    Value g = coordinate(grid, spatial, d);
    for (int64_t k = 0; k < taps; ++k) axes[d].push_back(axis(g, size_of(x, d + 2), o, k));
  }
  Sampled s;
  s.shape.assign(shape_of(grid).begin(), shape_of(grid).end() - 1);
  s.shape.insert(s.shape.begin() + 1, size_of(x, 1));
  s.at.assign(spatial, counted(1, spatial + 1));
  for (Dims& at : s.at) at[0] = 0;
  s.dims = counted(0, spatial + 2);
  std::vector<Sampled> out;
  for (int64_t c = 0; c < combinations; ++c) {
    Sampled& part = out.emplace_back(s);
    part.indices = {prim::iota(s.shape, 0, DType::Int64), prim::iota(s.shape, 1, DType::Int64)};
    for (int64_t d = 0, rest = c; d < spatial; ++d, rest /= taps) {
      part.axes.push_back(axes[d][rest % taps]);
      part.indices.push_back(prim::broadcast(part.axes[d].index, s.shape, s.at[d]));
    }
  }
  return out;
}

// The product of the weights, with that of axis `sloped` replaced by its derivative; absent where all are 1.
Value weights(const Sampled& s, int64_t sloped = -1) {
  Value w;
  for (int64_t d = 0; d < std::ssize(s.axes); ++d) {
    Value v = d == sloped ? s.axes[d].slope : s.axes[d].weight;
    if (!v) continue;
    v = prim::broadcast(v, s.shape, s.at[d]);
    w = w ? w * v : v;
  }
  return w;
}

// Zero where the image has no element.
Value inside_only(const Sampled& s, Value v) {
  for (size_t d = 0; d < s.axes.size(); ++d)
    if (s.axes[d].inside) v = prim::select(prim::broadcast(s.axes[d].inside, s.shape, s.at[d]), v, zeros_like(v));
  return v;
}

void check(const char* op, Value x, Value grid, const Options& o, int64_t spatial) {
  BRASA_CHECK(rank_of(x) == spatial + 2 && rank_of(grid) == spatial + 2, op, ": expected input and grid of ",
              spatial + 2, " dimensions, but got input ", type_of(x), " and grid ", type_of(grid));
  BRASA_CHECK(same_size(size_of(x, 0), size_of(grid, 0)), op,
              ": expected grid and input to have same batch size, but got input with sizes ", shape_of(x),
              " and grid with sizes ", shape_of(grid));
  BRASA_CHECK(same_size(size_of(grid, spatial + 1), spatial), op, ": expected grid to have size ", spatial,
              " in last dimension, but got grid with sizes ", shape_of(grid));
  BRASA_CHECK(is_floating(dtype_of(x)) && dtype_of(x) == dtype_of(grid), op,
              ": expected input and grid to have the same floating dtype, but got ", name(dtype_of(x)), " and ",
              name(dtype_of(grid)));
  for (int64_t d = 2; d < spatial + 2; ++d)
    BRASA_CHECK(is_less(0, size_of(x, d)), op,
                ": expected input to have non-empty spatial dimensions, but input has sizes ", shape_of(x));
  BRASA_CHECK(o.interpolation >= kBilinear && o.interpolation <= kBicubic, op, ": unknown interpolation mode ",
              o.interpolation, ", expected 0 (bilinear), 1 (nearest) or 2 (bicubic)");
  BRASA_CHECK(o.padding >= kZeros && o.padding <= kReflection, op, ": unknown padding mode ", o.padding,
              ", expected 0 (zeros), 1 (border) or 2 (reflection)");
  BRASA_CHECK(spatial == 2 || o.interpolation != kBicubic, op, ": bicubic interpolation only supports 4D input, got ",
              type_of(x));
}

template <int kSpatial>
Value grid_sampler(Value x, Value grid, int64_t interpolation, int64_t padding, bool align_corners) {
  Options o{interpolation, padding, align_corners};
  check("grid_sampler", x, grid, o, kSpatial);
  auto picked = [&](const Sampled& s) {
    Value v = inside_only(s, prim::gather(x, s.indices, s.dims)), w = weights(s);
    return w ? v * w : v;
  };
  Value out;
  for (const Sampled& s : each_tap(x, grid, o)) out = out ? out + picked(s) : picked(s);
  return out;
}

template <int kSpatial>
std::array<Value, 2> grid_sampler_backward(Value ct, Value x, Value grid, int64_t interpolation, int64_t padding,
                                           bool align_corners, std::vector<bool> mask) {
  Options o{interpolation, padding, align_corners};
  check("grid_sampler_backward", x, grid, o, kSpatial);
  BRASA_CHECK(mask.size() == 2, "grid_sampler_backward: expected two flags, got ", mask.size());
  Shape results = shape_of(grid);
  results.pop_back();
  results.insert(results.begin() + 1, size_of(x, 1));
  check_shape("grid_sampler_backward", "grad_output", ct, results);
  std::array<Value, 2> out = {no_result(dtype_of(x)), no_result(dtype_of(grid))};
  if (mask[0]) {
    Sampled s = all_taps(x, grid, o);
    Dims at = counted(0, kSpatial + 1);
    at.push_back(2 * kSpatial + 1);
    Value wide = inside_only(s, prim::broadcast(move_dims(ct, {1}, {kSpatial + 1}), s.shape, at)), w = weights(s);
    out[0] = prim::scatter(zeros_like(x), s.indices, w ? wide * w : wide, s.dims, "add");
  }
  if (!mask[1]) return out;
  if (interpolation == kNearest) {
    out[1] = zeros_like(grid);
    return out;
  }
  std::array<Value, kSpatial> slopes;
  for (const Sampled& s : each_tap(x, grid, o)) {
    Value above = prim::broadcast(ct, s.shape, counted(0, kSpatial + 2));
    Value product = inside_only(s, above * prim::gather(x, s.indices, s.dims));
    for (int64_t d = 0; d < kSpatial; ++d) {
      Value part = product * weights(s, d);
      slopes[d] = slopes[d] ? slopes[d] + part : part;
    }
  }
  std::vector<Value> parts;
  for (int64_t d = kSpatial - 1; d >= 0; --d) parts.push_back(unsqueeze(sum(slopes[d], {1}), kSpatial + 1));
  out[1] = prim::concat(parts, kSpatial + 1);
  return out;
}

Arg both() { return Arg(std::vector<bool>{true, true}); }

template <int kSpatial>
std::vector<Value> grid_sampler_vjp(const Saved& s) {
  auto g = grid_sampler_backward<kSpatial>(s.ct(), s.in(0), s.in(1), s.arg<int64_t>(2), s.arg<int64_t>(3),
                                           s.arg<bool>(4), {true, true});
  return {g[0], g[1]};
}
std::vector<Value> any_grid_sampler_vjp(const Saved& s) {
  return rank_of(s.in(0)) == 5 ? grid_sampler_vjp<3>(s) : grid_sampler_vjp<2>(s);
}

Value any_grid_sampler(Value x, Value grid, int64_t interpolation, int64_t padding, bool align_corners) {
  BRASA_CHECK(rank_of(x) == 4 || rank_of(x) == 5, "grid_sampler: expected 4D or 5D input and grid, but got input ",
              type_of(x), " and grid ", type_of(grid));
  return rank_of(x) == 5 ? grid_sampler<3>(x, grid, interpolation, padding, align_corners)
                         : grid_sampler<2>(x, grid, interpolation, padding, align_corners);
}

constexpr const char* kDoc =
    "The image at the places of the grid, interpolated (0 linear, 1 nearest, 2 cubic with a = -0.75); beyond the border are "
    "zeros (0), the border (1) or its reflection (2). With align_corners -1 and 1 are the centres of the first and last "
    "elements, else their outer edges.";

template <int kSpatial>
void add_grid_samplers(Table& t) {
  std::vector<int64_t> image = {2, 3}, grid = {2};
  image.insert(image.end(), kSpatial, 4);
  grid.insert(grid.end(), kSpatial, 3);
  grid.push_back(kSpatial);
  TensorSample x = tensor(DType::Float32, image), g = tensor(DType::Float32, grid).in(-0.9, 0.9), ct = x, many = x;
  many.shape[1] = 17;
  ct.shape.assign({2, 3});
  ct.shape.insert(ct.shape.end(), kSpatial, 3);
  std::string base = str("aten::grid_sampler_", kSpatial, "d");
  t.op(str(base, "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor"))
      .doc(kDoc)
      .autocast(Autocast::Float32, Autocast::None)
      .composed_in_opmath(grid_sampler<kSpatial>)
      .vjp(own_derivative(grid_sampler_vjp<kSpatial>))
      .one_dtype({"input", "grid"})
      .samples({{x, g, 0, 0, false}, {x, g, 0, 2, true}, {x, g, 1, 1, false}, {many, g, 0, 0, true}});
  t
      .op(str(
          base,
          "_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)"))
      .doc("The derivatives of the grid sampler by image and grid.")
      .composed_in_opmath(grid_sampler_backward<kSpatial>)
      .one_dtype({"grad_output", "input", "grid"})
      .samples({{ct, x, g, 0, 1, false, both()}});
}

// --- affine grids ---

// The centres of n elements spread over [-1, 1], or n points from -1 to 1.
Value base_line(Expr n, bool align_corners, DType t) {
  Value i = convert(prim::iota({n}, 0, DType::Int64), t), size = size_tensor(n, {}, t);
  if (align_corners) return where(eq(size, 1), zeros_like(i), i * 2 / (size - 1) - 1);
  return (i * 2 + 1) / size - 1;
}

// [places…, spatial + 1]: x, y, (z,) 1 of each place.
Value base_grid(const Shape& size, bool align_corners, DType t) {
  auto spatial = static_cast<int64_t>(size.size()) - 2;
  Shape shape(size.begin() + 2, size.end());
  shape.push_back(Expr(1));
  std::vector<Value> parts;
  for (int64_t d = spatial - 1; d >= 0; --d)
    parts.push_back(prim::broadcast(base_line(size[d + 2], align_corners, t), shape, {d}));
  parts.push_back(full(1, shape, t));
  return prim::concat(parts, spatial);
}

void check_affine(const char* op, const Shape& size) {
  BRASA_CHECK(size.size() == 4 || size.size() == 5, op, ": expected a size of 4 or 5 numbers, got ", size);
  // A batch may be empty, and the channels do not count.
  for (size_t d = 0; d < size.size(); ++d)
    BRASA_CHECK(d < 2 ? !is_less(size[d], 0) : is_less(0, size[d]), op,
                ": expected non-zero, positive output size, got ", size);
}

Value affine_grid(Value theta, Shape size, bool align_corners) {
  check_affine("affine_grid_generator", size);
  auto spatial = static_cast<int64_t>(size.size()) - 2;
  BRASA_CHECK(is_floating(dtype_of(theta)),
              "affine_grid_generator: Expected theta to have floating point type, but got ", name(dtype_of(theta)));
  BRASA_CHECK(rank_of(theta) == 3 && same_size(size_of(theta, 0), size[0]) && same_size(size_of(theta, 1), spatial) &&
                  same_size(size_of(theta, 2), spatial + 1),
              "affine_grid_generator: Expected a batch of ", spatial, "D affine matrices of shape [", size[0], ", ",
              spatial, ", ", spatial + 1, "] for size ", size, ", got ", type_of(theta));
  // A product has too few terms to pay, and its results would have to be turned.
  Shape shape(size.begin() + 1, size.end());
  shape[0] = size[0];
  shape.push_back(Expr(spatial));
  auto term = [&](int64_t k) { return prim::broadcast(squeeze(narrow(theta, 2, k, 1), 2), shape, {0, spatial + 1}); };
  Value out = term(spatial);
  for (int64_t d = 0; d < spatial; ++d) {
    Value line = base_line(size[d + 2], align_corners, dtype_of(theta));
    out = out + term(spatial - 1 - d) * prim::broadcast(line, shape, {d + 1});
  }
  return out;
}

Value affine_grid_backward(Value g, Shape size, bool align_corners) {
  check_affine("affine_grid_generator_backward", size);
  auto spatial = static_cast<int64_t>(size.size()) - 2;
  Shape grid(size.begin() + 1, size.end());
  grid[0] = size[0];
  grid.push_back(Expr(spatial));
  check_shape("affine_grid_generator_backward", "grad", g, grid);
  return prim::dot_general(g, base_grid(size, align_corners, dtype_of(g)), counted(1, spatial), counted(0, spatial), {},
                           {});
}

std::vector<Value> affine_grid_vjp(const Saved& s) {
  return {affine_grid_backward(s.ct(), s.arg<Shape>(1), s.arg<bool>(2))};
}

}  // namespace

void add_grid_sample(Table& t) {
  add_grid_samplers<2>(t);
  add_grid_samplers<3>(t);
  t.op("aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor")
      .doc(kDoc)
      .autocast(Autocast::Float32, Autocast::Widest)
      .composed_in_opmath(any_grid_sampler)
      .vjp(own_derivative(any_grid_sampler_vjp))
      .one_dtype({"input", "grid"})
      .samples({{floats(2, 3, 4, 5), floats(2, 3, 3, 2).in(-0.9, 0.9), 2, 0, false},
                {floats(1, 2, 3, 3, 3), floats(1, 2, 2, 2, 3).in(-0.9, 0.9), 0, 1, true}});
  t.op("aten::_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor")
      .doc(kDoc)
      .composed_in_opmath(grid_sampler<2>)
      .vjp(own_derivative(grid_sampler_vjp<2>))
      .samples({{floats(2, 3, 4, 5), floats(2, 3, 3, 2).in(-0.9, 0.9), 0, 0, false}});
  t.op("aten::_grid_sampler_2d_cpu_fallback_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> (Tensor, Tensor)")
      .doc("The derivatives of the grid sampler by image and grid.")
      .composed_in_opmath([](Value ct, Value x, Value grid, int64_t interpolation, int64_t padding, bool align) {
        return grid_sampler_backward<2>(ct, x, grid, interpolation, padding, align, {true, true});
      })
      .samples({{floats(2, 3, 3, 3), floats(2, 3, 4, 5), floats(2, 3, 3, 2).in(-0.9, 0.9), 0, 0, false}});
  t.op("aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor")
      .doc("The grid of places that an affine map of the centres of an image of this size gives, for grid_sampler.")
      .composed_in_opmath(affine_grid)
      .vjp(own_derivative(affine_grid_vjp))
      .samples({{floats(2, 2, 3), list({2, 3, 4, 5}), false}, {floats(1, 3, 4), list({1, 1, 2, 3, 1}), true}});
  t.op("aten::affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor")
      .doc("The derivative of affine_grid_generator by the maps.")
      .composed_in_opmath(affine_grid_backward)
      .samples({{floats(2, 4, 5, 2), list({2, 3, 4, 5}), false}});
}

}  // namespace brasa::ops
