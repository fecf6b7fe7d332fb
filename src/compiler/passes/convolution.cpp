#include "compiler/passes/convolution.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"
#include "compiler/passes/winograd.h"
#include "ir/suppose.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::rank_of;
using ops::shape_of;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

// Zeros around and between the spatial elements; a negative border cuts off.
Value bordered(Value x, const Exprs& low, const Exprs& high, const Exprs& dilation, int64_t first) {
  int64_t rank = rank_of(x);
  Exprs lo(rank, 0), hi(rank, 0), between(rank, 0), start(rank, 0), step(rank, 1);
  for (size_t d = 0; d < low.size(); ++d) {
    lo[first + d] = max(low[d], 0);
    hi[first + d] = max(high[d], 0);
    between[first + d] = dilation[d] - 1;
    start[first + d] = max(-low[d], 0);
  }
  x = prim::pad(x, ops::scalar(0, ops::dtype_of(x)), lo, hi, between);
  Shape size = shape_of(x);
  for (size_t d = 0; d < low.size(); ++d) size[first + d] = size[first + d] - start[first + d] - max(-high[d], 0);
  return prim::slice(x, start, size, step);
}

namespace {

// How many of its elements are summed in one vector.
int64_t lanes_of(const Conv& c, const Machine& machine) {
  return machine.lanes(size_of(accumulator_of(ops::dtype_of(c.x))));
}
// Spatial dimensions as one.
Value flat(Value x) {
  Shape s = shape_of(x);
  return prim::reshape(x, {s[0], s[1], product_from(s, 2)});
}
// A dimension of channels as groups, and the channels of each.
Value by_groups(Value x, size_t dim, Expr groups) {
  Shape s = shape_of(x);
  s[dim] = floordiv(s[dim], groups);
  s.insert(s.begin() + static_cast<int64_t>(dim), groups);
  return prim::reshape(x, s);
}
// Dimensions d and d + 1 as one.
Value merged(Value x, size_t d) {
  Shape s = shape_of(x);
  s[d] = s[d] * s[d + 1];
  s.erase(s.begin() + static_cast<int64_t>(d) + 1);
  return prim::reshape(x, s);
}
// A form is chosen for this call's sizes, and asks for such ones where classes are told apart; the order of strict sums must not depend on
// what is known.
bool suppose(Expr a, Expr b, bool usual, const PassContext& context) {
  return context.machine.one_order ? context.facts.equal(a, b) : ir::suppose(context.facts, a, b, usual);
}
bool is_at_most(Expr e, Expr most, bool usual, const PassContext& context) {
  return suppose(max(e, most), most, usual, context);
}

// Of a convolution's weights and result: more results than places in the kernel. For gradients of weights it is the other way round. What is
// known is a layer's kernel, and an image's size is not; where nothing is, the example decides.
bool kernel_is_small(const Shape& weights, const Shape& result, const PassContext& context) {
  Expr places = context.facts.known(product_from(weights, 2)), results = context.facts.known(product_from(result, 2)),
       fewer = min(places, results);
  bool example = context.facts.has_hint(fewer) && context.facts.hint(fewer) == context.facts.hint(places);
  return suppose(fewer, places, places.is_constant() || (!results.is_constant() && example), context);
}

// Most of what its windows cover is no element of the image.
bool has_gaps(const Conv& c, const Shape& result, const PassContext& context) {
  Expr elements = product_from(shape_of(c.x), 2) * 2, results = product_from(result, 2);
  return is_at_most(elements, results, !all_one(c.x_dilation) && !results.is_constant(), context);
}

// A kernel of more places than the image has with the gaps between its elements.
bool is_longer_than_image(const Conv& c, const PassContext& context) {
  Expr image = product_from(shape_of(c.x), 2) * product(c.x_dilation), places = product_from(shape_of(c.w), 2);
  return is_at_most(image, places, false, context);
}

// So many rows of results are computed side by side, and each element of the image is read once for all of them. Fewer are known.
constexpr int64_t kRows = 8;

// Vectors along rows have not many more lanes that nobody asks for than those that go on from the end of an image's row to the next.
bool has_wide_rows(const Conv& c, const Shape& result, const PassContext& context) {
  if (c.spatial() == 1) return false;
  Expr width = result.back(), rows = result[result.size() - 2];
  if (!rows.is_constant() && is_at_most(rows, kRows - 1, false, context)) return false;
  int64_t lanes = lanes_of(c, context.machine);
  if (width.is_constant())
    lanes = std::min(lanes, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(width.constant()))));
  Expr flat = rows * (width + shape_of(c.w).back() - 1);
  int64_t tile = contraction_tile(1, flat, ops::dtype_of(c.x), context.machine).columns();
  return is_at_most(rows * ceildiv(width, lanes) * lanes * 2, ceildiv(flat, tile) * tile * 3, true, context);
}

// Rows of the image have many more places than those of the result, as in the gradient by weights of patches: most of what is read along
// with them would serve nothing.
bool has_long_rows(const Conv& c, const Shape& result, const PassContext& context) {
  Expr row = floordiv(shape_of(c.x).back(), c.stride.back()), wasted = result.back() * 3;
  return is_at_most(wasted, row, false, context);
}

// An image for sums over places at fixed distances. Its memory has a plane for each remainder of a place by the step, so that places
// a step apart are neighbours; a place and an offset in a plane simply add up, where rows end too: what lies behind a row's end is
// read for places that nobody asks for.
struct Planes {
  Shape size;  // of a plane
  Planes(const Shape& image, const Exprs& step) {
    for (size_t d = 0; d < step.size(); ++d) size.push_back(ceildiv(image[d + 2], step[d]));
  }
  Expr row(size_t d) const { return product_from(size, d + 1); }

  // [n, c, count, offsets…]: the element at the place `step * i + offset * dilation`, for the first `count` places i of a plane. The
  // dilation is 1 where the step is not.
  Value shifted(Value x, Expr count, const Shape& offsets, const Exprs& step, const Exprs& dilation,
                Primitives& out) const {
    size_t spatial = size.size();
    Shape in_plane, rows = size;
    Expr elements = count, planes(1);
    for (size_t d = 0; d < spatial; ++d) {
      in_plane.push_back(ceildiv(offsets[d], step[d]));
      elements = elements + (in_plane[d] - 1) * row(d) * dilation[d];
      planes = planes * step[d];
    }
    // The last rows of an image may serve no result; they have a place, too.
    rows[0] = ceildiv(elements, row(0)) + (all_one(step) ? 0 : 1);
    x = in_memory(planes_of(x, rows, step), out);
    Expr between = planes * product(rows);
    x = prim::reshape(x, {shape_of(x)[0], shape_of(x)[1], between});
    Shape read = {shape_of(x)[0], shape_of(x)[1], count}, wanted = read;
    for (size_t d = 0; d < spatial; ++d) {
      between = floordiv(between, step[d]);
      x = prim::window(x, 2, in_plane[d], 1, row(d) * dilation[d]);
      x = prim::window(x, 2, step[d], 1, between);
      read.insert(read.end(), {in_plane[d], step[d]});
      wanted.push_back(in_plane[d] * step[d]);
    }
    x = prim::reshape(first_of(x, read), wanted);
    std::copy(offsets.begin(), offsets.end(), wanted.begin() + 3);
    return first_of(x, wanted);
  }

 private:
  // [n, c, planes…, rows…], with zeros behind the image.
  static Value planes_of(Value x, const Shape& rows, const Exprs& step) {
    Shape image = shape_of(x), split = {image[0], image[1]};
    Exprs high(image.size(), 0);
    Dims order = {0, 1};
    auto spatial = static_cast<int64_t>(rows.size());
    for (int64_t d = 0; d < spatial; ++d) {
      high[d + 2] = rows[d] * step[d] - image[d + 2];
      split.insert(split.end(), {rows[d], step[d]});
      order.push_back(2 * d + 3);
    }
    for (int64_t d = 0; d < spatial; ++d) order.push_back(2 * d + 2);
    return prim::transpose(prim::reshape(zeros_behind(x, high), split), order);
  }
};

// One output in each group is no product of matrices.
bool has_one_output(const Conv& c, ir::Facts& facts) {
  return !c.groups.is(1) && facts.equal(floordiv(shape_of(c.w)[0], c.groups), 1);
}
// x: batch, groups, channels, places…, kernel… -> batch, groups, places…. The longer of places and kernel lies along vectors.
Value sums_of_products(Value x, Value w, int64_t places, bool long_kernel) {
  Dims kept = {0, 1}, summed = {2}, order, of_w, at, turned = {0, 1};
  for (int64_t d = 3; d < rank_of(x); ++d) (d < 3 + places ? kept : summed).push_back(d);
  // What rows of results beside each other read again is one step along the kernel's first dimension, which goes last.
  if (!long_kernel) std::reverse(summed.begin() + 1, summed.end());
  for (const Dims& part : {long_kernel ? kept : summed, long_kernel ? summed : kept})
    order.insert(order.end(), part.begin(), part.end());
  auto now_at = [&](int64_t d) { return std::find(order.begin(), order.end(), d) - order.begin(); };
  Shape s = shape_of(x), kernel = {s[1], s[2]};
  for (int64_t d = 3 + places; d < rank_of(x); ++d) kernel.push_back(s[d]);
  for (int64_t d : summed) {
    at.push_back(now_at(d));
    if (d > 2) turned.push_back(d - places - 1);
  }
  of_w = at;
  of_w.insert(of_w.begin(), now_at(1));
  DType t = ops::dtype_of(x), acc = accumulator_of(t);
  x = prim::convert(prim::transpose(x, order), acc);
  w = prim::broadcast(prim::convert(prim::transpose(prim::reshape(w, kernel), turned), acc), shape_of(x), of_w);
  return prim::convert(reduced(prim::binary("mul", x, w), at, "add"), t);
}

}  // namespace

Value convolution_by_rows(const Conv& c, Primitives& out, const PassContext& context) {
  Value x = bordered(c.x, c.low, c.high, c.x_dilation), w = c.w;
  Shape image = shape_of(x), sw = shape_of(w), kernel(sw.begin() + 2, sw.end()), wide = {image[0], sw[0]},
        result = wide;
  Planes planes(image, c.stride);
  for (size_t d = 0; d < kernel.size(); ++d) {
    result.push_back(floordiv(image[d + 2] - (kernel[d] - 1) * c.w_dilation[d] - 1, c.stride[d]) + 1);
    wide.push_back(d == 0 ? result.back() : planes.size[d]);
  }
  Expr count = product_from(wide, 2);
  int64_t tile = contraction_tile(floordiv(sw[0], c.groups), count, ops::dtype_of(x), context.machine).columns();
  Expr columns = ceildiv(count, tile) * tile;
  x = planes.shifted(x, columns, kernel, c.stride, c.w_dilation, out);
  x = by_groups(x, 1, c.groups);
  auto cut = [&](Value y) {
    y = first_of(prim::reshape(y, {image[0], sw[0], columns}), {image[0], sw[0], count});
    return first_of(prim::reshape(y, wide), result);
  };
  if (has_one_output(c, context.facts)) return cut(sums_of_products(x, w, 1, false));
  w = by_groups(w, 0, c.groups);
  Shape every = shape_of(w);
  Dims from_w, xc = {2}, wc = {3};
  for (size_t d = 0; d < every.size(); ++d) from_w.push_back(static_cast<int64_t>(d) + 1);
  every.insert(every.begin(), image[0]);
  w = prim::broadcast(w, every, from_w);
  for (size_t d = 0; d < kernel.size(); ++d) {
    xc.push_back(static_cast<int64_t>(d) + 4);
    wc.push_back(static_cast<int64_t>(d) + 4);
  }
  return cut(prim::dot_general(w, x, wc, xc, {0, 1}, {0, 1}));  // batch, groups, outputs, columns
}

namespace {

// Few results, each a sum over all places: of the kernel, with rows as long as a plane's, and the image from the result's place on.
Value convolution_of_places(const Conv& c, Primitives& out, const PassContext& context) {
  Value x = bordered(c.x, c.low, c.high, c.x_dilation), w = c.w;
  Shape image = shape_of(x), sw = shape_of(w), results;
  Planes planes(image, c.w_dilation);
  Exprs high(sw.size(), 0);
  for (size_t d = 2; d < sw.size(); ++d) {
    results.push_back(image[d] - (sw[d] - 1) * c.w_dilation[d - 2]);
    if (d > 2) high[d] = planes.size[d - 2] - sw[d];
  }
  // Whole vectors of places are summed.
  int64_t lanes = lanes_of(c, context.machine);
  Expr count = ceildiv(sw[2] * planes.row(0), lanes) * lanes;
  high[2] = ceildiv(count, planes.row(0)) - sw[2];
  w = flat(in_memory(zeros_behind(w, high), out));
  w = first_of(w, {sw[0], sw[1], count});
  x = planes.shifted(x, count, results, c.w_dilation, Exprs(results.size(), 1), out);
  if (has_one_output(c, context.facts)) {
    Dims order = {0, 1, 2};  // batch, groups, channels, results…, places
    for (size_t d = 0; d < c.spatial(); ++d) order.push_back(static_cast<int64_t>(d) + 4);
    order.push_back(3);
    x = prim::transpose(by_groups(x, 1, c.groups), order);
    results.insert(results.begin(), {image[0], sw[0]});
    return prim::reshape(sums_of_products(x, w, static_cast<int64_t>(c.spatial()), true), results);
  }
  Value y = prim::dot_general(w, x, {1, 2}, {1, 2}, {}, {});  // outputs, batch, places…
  Dims order = {1, 0};
  for (size_t d = 2; d < sw.size(); ++d) order.push_back(static_cast<int64_t>(d));
  return prim::transpose(y, order);
}

}  // namespace

Value convolution_of_points(const Conv& c, Primitives& out, const PassContext& context) {
  Value x = bordered(c.x, c.low, c.high, c.x_dilation);
  Shape taken = shape_of(x), sw = shape_of(c.w);
  Exprs step(2, 1);
  step.insert(step.end(), c.stride.begin(), c.stride.end());
  for (size_t d = 2; d < taken.size(); ++d) taken[d] = floordiv(taken[d] - 1, step[d]) + 1;
  x = prim::slice(x, Exprs(taken.size(), 0), taken, step);
  x = flat(in_memory(x, out));
  Value w = prim::reshape(c.w, {sw[0], sw[1]});
  taken[1] = sw[0];
  // Images of one place are the rows of a matrix.
  if (product_from(taken, 2).is(1) && !context.machine.orders_sums())
    return prim::reshape(prim::dot_general(prim::reshape(x, {taken[0], sw[1]}), w, {1}, {1}, {}, {}), taken);
  w = prim::broadcast(w, {taken[0], sw[0], sw[1]}, {1, 2});
  return prim::reshape(prim::dot_general(w, x, {2}, {1}, {0}, {0}), taken);
}

Value convolution_of_neighbours(const Conv& c, Primitives& out, const PassContext& context) {
  if (product_from(shape_of(c.w), 2).is(1) && c.groups.is(1)) return convolution_of_points(c, out, context);
  if (pays_channels_last(c, context)) return convolution_turned(c, out, context);
  return convolution_by_rows(c, out, context);
}

namespace {

// Patches of the image, or all windows, are rows or columns; or each makes one result, with vectors along it or across windows.
enum class WindowsAre : uint8_t { Rows, Columns, Vectors, Lanes };
Value convolution_by_windows(const Conv& c, WindowsAre windows = WindowsAre::Columns) {
  Value x = bordered(c.x, c.low, c.high, c.x_dilation), w = c.w;
  auto spatial = static_cast<int64_t>(c.stride.size());
  bool patches = true;
  for (int64_t d = 0; d < spatial; ++d) {
    Expr size = shape_of(w)[d + 2];
    patches = patches && c.stride[d] == size && c.w_dilation[d].is(1);
    x = prim::window(x, d + 2, size, c.stride[d], c.w_dilation[d]);
  }
  // x: batch, groups, channels, positions…, kernel…; w: groups, outputs, channels, kernel….
  Shape sx = shape_of(x), sw = shape_of(w);
  x = by_groups(x, 1, c.groups);
  Shape result = {sx[0], sw[0]};
  for (int64_t d = 0; d < spatial; ++d) result.push_back(sx[2 + d]);
  if (windows == WindowsAre::Vectors || windows == WindowsAre::Lanes)
    return prim::reshape(sums_of_products(x, w, spatial, windows == WindowsAre::Vectors), result);
  w = by_groups(w, 0, c.groups);
  Dims xc = {2}, wc = {2};
  for (int64_t d = 0; d < spatial; ++d) {
    xc.push_back(3 + spatial + d);
    wc.push_back(3 + d);
  }
  if (patches ||
      windows == WindowsAre::Rows) {  // groups, batch, positions…, outputs: every element of patches is read once
    Value y = prim::dot_general(x, w, xc, wc, {1}, {0});
    Dims order = {1, 0, 2 + spatial};
    for (int64_t d = 0; d < spatial; ++d) order.push_back(2 + d);
    return prim::reshape(prim::transpose(y, order), result);
  }
  Value y = prim::dot_general(w, x, wc, xc, {0}, {1});  // groups, outputs, batch, positions…
  Dims order = {2, 0, 1};
  for (int64_t d = 0; d < spatial; ++d) order.push_back(3 + d);
  return prim::reshape(prim::transpose(y, order), result);
}

// Rows of places that are summed up fill vectors, which may be added up in an order of their own.
bool has_vectors_of_places(const Conv& c, const PassContext& context) {
  bool side_by_side = c.stride.back().is(1) && c.w_dilation.back().is(1) && c.x_dilation.back().is(1);
  return side_by_side && !context.machine.one_order &&
         at_least(shape_of(c.w).back(), 2 * lanes_of(c, context.machine), context);
}

// The kernel covers the image, as in the gradient by the weights of one place: each result is a sum over all places, which are one dimension.
bool covers_image(const Conv& c, const Shape& result) {
  return product_from(result, 2).is(1) && all_one(c.x_dilation) && all_one(c.w_dilation) &&
         std::equal(shape_of(c.x).begin() + 2, shape_of(c.x).end(), shape_of(c.w).begin() + 2);
}
Value convolution_of_image(const Conv& c, const Shape& result) {
  Value x = by_groups(flat(c.x), 1, c.groups), w = by_groups(flat(c.w), 0, c.groups);
  Value y = prim::dot_general(x, w, {2, 3}, {2, 3}, {1}, {0});  // groups, batch, outputs
  return prim::reshape(prim::transpose(y, {1, 0, 2}), result);
}

// Zeros where a kernel has no places: the gradient by the weights of an empty result. The forms above read what is beside an empty plane.
Value of_some_taps(Value y, const Shape& kernel) {
  Expr places = product_from(kernel, 2);
  if (places->min >= 1) return y;
  Value none = ops::scalar(0, DType::Int64), any = prim::binary("lt", none, prim::size_value(places));
  return prim::select(ops::broadcast_to(any, shape_of(y)), y, ops::zeros_like(y));
}

// Few elements far from each other: the flipped kernel is the image, and the flipped image the kernel.
Value exchanged(const Conv& c, const Shape& result, Primitives& out, const PassContext& context) {
  Dims places, swapped = {1, 0, 2}, back = {2, 1, 0};
  Conv other = c;
  std::swap(other.x_dilation, other.w_dilation);
  for (size_t d = 0; d < c.spatial(); ++d) {
    Expr image = (shape_of(c.x)[d + 2] - 1) * c.x_dilation[d], kernel = (shape_of(c.w)[d + 2] - 1) * c.w_dilation[d];
    other.low[d] = image - kernel + c.low[d];
    other.high[d] = result[d + 2] - 1 - kernel + image - other.low[d];
    places.push_back(static_cast<int64_t>(d) + 2);
    swapped.push_back(places.back() + 1);
    back.push_back(places.back() + 1);
  }
  // [groups · outputs, channels, …] and [images, groups · channels, …] change places.
  other.x = merged(prim::transpose(by_groups(prim::reverse(c.w, places), 0, c.groups), swapped), 1);
  other.w = merged(prim::transpose(by_groups(prim::reverse(c.x, places), 1, c.groups), swapped), 0);
  Value y = of_some_taps(convolution_of_neighbours(other, out, context), shape_of(other.w));
  return first_of(merged(prim::transpose(by_groups(y, 1, c.groups), back), 1), result);
}

// A kernel may reach far beyond a small image: its taps that meet the border alone, whatever the result, are left out.
void leave_out_border(Conv& c, const Shape& result, const PassContext& context) {
  Shape size = shape_of(c.w);
  Exprs start(size.size(), 0);
  for (size_t d = 0; d < c.spatial(); ++d) {
    Expr& taps = size[d + 2];
    // As `pad` has it, so that the result's size is the same expression as before.
    Expr elements = shape_of(c.x)[d + 2], gaps = c.x_dilation[d] - 1;
    Expr image = (gaps.is(0) ? elements : max(elements + (elements - 1) * gaps, 0)) - 1;
    Expr results = (result[d + 2] - 1) * c.stride[d];
    Expr first = min(max(ceildiv(c.low[d] - results, c.w_dilation[d]), 0), taps - 1);
    Expr kept = max(min(floordiv(c.low[d] + image, c.w_dilation[d]) + 1, taps) - first, 1);
    if (suppose(kept, taps, true, context)) continue;
    start[d + 2] = first;
    taps = kept;
    c.low[d] = c.low[d] - first * c.w_dilation[d];
    c.high[d] = results + (kept - 1) * c.w_dilation[d] - image - c.low[d];
  }
  c.w = prim::slice(c.w, start, size, Exprs(size.size(), 1));
}

// Whether image and kernel have elements; those without have no window that one could count. Where that is found for this call, it is asked of
// every other one; where not, nothing is: what serves without elements serves all.
bool has_elements(const Conv& c, ir::Facts& facts) {
  ir::Facts of_this_call = facts;
  auto none = [&](ir::Facts& known) {
    for (Value v : {c.x, c.w})
      for (Expr e : shape_of(v))
        if (known.equal(e, 0)) return true;
    return false;
  };
  return !none(of_this_call) && !none(facts);
}

// A step leads nowhere along a dimension of one result: what lies behind the only window is cut off instead.
void leave_out_steps(Conv& c, Shape& result, const PassContext& context) {
  for (size_t d = 0; d < c.spatial(); ++d) {
    Expr& results = result[d + 2];
    if (c.stride[d].is(1) || !suppose(results, 1, false, context) || !has_elements(c, context.facts)) continue;
    Expr elements = shape_of(c.x)[d + 2], image = elements + (elements - 1) * (c.x_dilation[d] - 1);
    Expr window = (shape_of(c.w)[d + 2] - 1) * c.w_dilation[d] + 1;
    results = 1;
    c.stride[d] = 1;
    c.high[d] = window - image - c.low[d];
  }
}

Value convolution(Conv c, Shape result, Primitives& out, const PassContext& context);

// A spread image and a long kernel, as for the gradient by a transposed convolution's weights: the image is a kernel with gaps, which reads
// the kernel's elements alone that meet one of its own. Results come in reverse.
Value of_spread_kernel(const Conv& c, const Shape& result, Primitives& out, const PassContext& context) {
  Dims places, swapped = {1, 0, 2}, back = {2, 1, 0};
  Conv other = c;
  std::swap(other.x_dilation, other.w_dilation);
  Shape size = {floordiv(result[1], c.groups), c.groups * result[0]};
  for (size_t d = 0; d < c.spatial(); ++d) {
    Expr image = shape_of(c.w)[d + 2], window = (shape_of(c.x)[d + 2] - 1) * c.x_dilation[d] + 1;
    other.low[d] = result[d + 2] - 1 - c.low[d];
    other.high[d] = result[d + 2] - 1 + window - image - other.low[d];
    size.push_back(result[d + 2]);
    places.push_back(static_cast<int64_t>(d) + 2);
    swapped.push_back(places.back() + 1);
    back.push_back(places.back() + 1);
  }
  other.x = merged(prim::transpose(by_groups(c.w, 0, c.groups), swapped), 1);
  other.w = merged(prim::transpose(by_groups(c.x, 1, c.groups), swapped), 0);
  Value y = of_some_taps(convolution(other, size, out, context), shape_of(other.w));
  y = prim::reverse(prim::reshape(y, size), places);
  return merged(prim::transpose(by_groups(y, 1, c.groups), back), 1);
}

// A dimension along which a third of the kernel or more lies beyond the image, whatever the result.
std::optional<size_t> short_dimension(const Conv& c, const PassContext& context) {
  for (size_t d = 0; d < c.spatial(); ++d) {
    Expr image = shape_of(c.x)[d + 2] * c.x_dilation[d], kernel = shape_of(c.w)[d + 2];
    if (c.w_dilation[d].is(1) && !kernel.is(1) && is_at_most(image * 3, kernel * 2, false, context) &&
        has_elements(c, context.facts))
      return d;
  }
  return std::nullopt;
}

Value convolution(Conv c, Shape result, Primitives& out, const PassContext& context) {
  if (!context.machine.gpu) leave_out_steps(c, result, context);
  if (context.machine.gpu || !all_constant(c.stride) || !all_constant(c.w_dilation)) return convolution_by_windows(c);
  if (std::optional<size_t> d = short_dimension(c, context))
    return convolution_of_short_images(c, *d, result, out, [&](const Conv& of_places, const Shape& size) {
      return convolution(of_places, size, out, context);
    });
  if (!kernel_is_small(shape_of(c.w), result, context)) leave_out_border(c, result, context);
  bool alone = has_one_output(c, context.facts);
  if (all_one(c.stride) && all_constant(c.x_dilation) && has_gaps(c, result, context)) {
    if (is_longer_than_image(c, context)) return exchanged(c, result, out, context);
    if (!has_known_spread(c) && all_one(c.w_dilation)) return convolution_of_overlaps(c, result, out);
  }
  if (all_one(c.stride) && all_one(c.w_dilation) && all_constant(c.x_dilation) && !all_one(c.x_dilation) &&
      !kernel_is_small(shape_of(c.w), result, context) && has_elements(c, context.facts))
    return of_spread_kernel(c, result, out, context);
  if (!c.w_dilation[0].is(1) && takes_winograd_of_places(c, result, context))
    return winograd_of_places(c, result, out, context);
  if (kernel_is_small(shape_of(c.w), result, context)) {
    if (all_one(c.stride) && has_known_spread(c)) return convolution_of_spread(c, result, out, context);
    if (has_long_rows(c, result, context) && !alone) return convolution_by_windows(c, WindowsAre::Rows);
    if (alone && all_one(c.stride) && has_wide_rows(c, result, context))
      return convolution_by_windows(c, WindowsAre::Lanes);
    if (all_one(c.stride) || (all_one(c.w_dilation) && !alone)) return convolution_of_neighbours(c, out, context);
    if (alone) return convolution_by_windows(c, WindowsAre::Lanes);
  } else if (alone) {
    return all_one(c.stride) && all_one(c.w_dilation) ? convolution_of_places(c, out, context)
                                                      : convolution_by_windows(c, WindowsAre::Vectors);
  } else if (takes_winograd_of_places(c, result, context)) {
    return winograd_of_places(c, result, out, context);
  } else if (at_least(floordiv(shape_of(c.w)[0], c.groups), lanes_of(c, context.machine), context) ||
             has_vectors_of_places(c, context)) {
    // Few results, each a sum over all places: a row's places lie at even steps.
    if (covers_image(c, result)) return convolution_of_image(c, result);
    return convolution_by_windows(c, WindowsAre::Rows);
  } else if (all_one(c.stride) && c.groups.is(1)) {
    return convolution_of_places(c, out, context);
  }
  return convolution_by_windows(c);
}

}  // namespace

// Loops over a small kernel are expanded, and steps of 1 and single groups have forms of their own.
void ask_of_convolution(const ir::Node* n, const PassContext& context) {
  constexpr int64_t kSmall = 11;
  ir::Facts& facts = context.facts;
  const Shape &w = type_of(n->arg<Value>(1)).shape, &result = n->types[0].shape;
  auto ask = [&](Expr e) {
    if (!e.is_constant() && facts.has_hint(e) && facts.hint(e) <= kSmall) facts.equal(e, Expr(facts.hint(e)));
  };
  for (size_t list : {2, 5, 6})  // strides, dilations
    for (Expr e : n->arg<Exprs>(list)) ask(e);
  // Where zeros are between elements, the border decides which places of the kernel meet which elements.
  for (size_t d = 0; d + 2 < w.size(); ++d)
    if (Expr distance = facts.known(n->arg<Exprs>(5)[d]); !distance.is(1)) {
      ask(n->arg<Exprs>(3)[d]);
      // Results of each remainder that are as many lie side by side, and none is cut off.
      Expr results = facts.known(result[d + 2]), rest = mod(results, distance);
      bool ask_rest = context.size_classes && ir::is_symbol(results) && facts.has_hint(rest);
      if (ask_rest && facts.hint(rest) == 0) facts.equal(rest, 0);
    }
  Expr groups = n->arg<Expr>(7);
  // Of each group one channel, which makes the result's shape known to be that of what is summed.
  if (!facts.equal(groups, Expr(1)) && facts.has_hint(w[0]) && facts.has_hint(groups) &&
      facts.hint(w[0]) == facts.hint(groups))
    facts.equal(w[0], groups);
  bool small = kernel_is_small(w, result, context);
  bool by_channel = !groups.is(1) && facts.known(w[0]) == facts.known(groups);
  for (size_t d = 2; d < result.size() && small && by_channel && context.size_classes; ++d)
    if (facts.has_hint(result[d]) && facts.hint(result[d]) < kRows) {
      Expr elements = facts.known(type_of(n->arg<Value>(0)).shape[d]);
      facts.equal(elements, facts.hint(elements));
    }
  for (size_t d = 2; d < w.size(); ++d) ask(small ? w[d] : result[d]);
  constexpr int64_t kPixel = 4;  // channels
  bool classes = context.machine.one_order || ir::SizeClasses::apart();
  if (small && classes && facts.has_hint(w[1]) && facts.hint(w[1]) <= kPixel) ask(w[1]);
}

void lower_convolutions(Primitives& p, const PassContext& context) {
  transform(
      p, context.facts, [](const ir::Node* n) { return prim_of(n) == Prim::Convolution; },
      [&](const ir::Node* n, ir::Args& args, Primitives& out) {
        Value y =
            of_some_taps(convolution(Conv(args), n->types[0].shape, out, context), shape_of(args[1].get<Value>()));
        return std::vector{prim::reshape(y, n->types[0].shape)};
      });
}

}  // namespace brasa::compiler
