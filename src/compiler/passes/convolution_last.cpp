#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/transform.h"
#include "compiler/passes/winograd.h"
#include "ops/shapes.h"

// Convolutions of images whose channels are neighbours in memory, [n, places…, channels]. Places are rows of a product, which may begin
// anywhere in memory, so that neither strides nor the ends of an image's rows cost anything; weights are its panels; where each channel is
// convolved alone, vectors are of channels.
namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

bool is_depthwise(const Conv& c, ir::Facts& facts) {
  return facts.known(c.groups) == facts.known(shape_of(c.w)[0]) && facts.known(shape_of(c.w)[1]).is(1);
}

// What is no view of an image in another order of dimensions.
Value in_order(Value x, Primitives& out) { return prim_of(x) == Prim::Transpose ? in_memory(x, out) : x; }

// [n, places…, channels, kernel…]
Value windows(const Conv& c, Value x) {
  for (size_t d = 0; d < c.spatial(); ++d)
    x = prim::window(x, static_cast<int64_t>(d) + 1, shape_of(c.w)[d + 2], c.stride[d], c.w_dilation[d]);
  return x;
}
// With its border in memory.
Value image_of(const Conv& c, Primitives& out) {
  Value x = bordered(c.x, c.low, c.high, c.x_dilation, 1);
  return x == c.x ? in_order(x, out) : in_memory(x, out);
}

Value depthwise(const Conv& c, Primitives& out) {
  // Beyond the border nothing is read, which a whole vector knows at once.
  Value x = windows(c, bordered(in_memory(c.x, out), c.low, c.high, c.x_dilation, 1));
  auto places = static_cast<int64_t>(c.spatial());
  Dims order = ops::counted(0, places + 1), kernel, last, at;
  for (int64_t d = 0; d < places; ++d) {
    order.push_back(places + 2 + d);
    kernel.push_back(places + 1 + d);
    last.push_back(d + 1);
  }
  order.push_back(places + 1);
  last.push_back(0);
  at = kernel;
  at.push_back(2 * places + 1);
  Shape sw = shape_of(c.w);
  sw.erase(sw.begin() + 1);
  Value w = in_memory(prim::transpose(prim::reshape(c.w, sw), last), out);
  DType t = ops::dtype_of(x), acc = accumulator_of(t);
  x = prim::convert(prim::transpose(x, order), acc);
  w = prim::broadcast(prim::convert(w, acc), shape_of(x), at);
  return prim::convert(reduced(prim::binary("mul", x, w), kernel, "add"), t);
}

Value product(const Conv& c, Primitives& out) {
  auto places = static_cast<int64_t>(c.spatial());
  bool points = product_from(shape_of(c.w), 2).is(1) && all_one(c.stride);
  if (points) {
    Value x = bordered(in_order(c.x, out), c.low, c.high, c.x_dilation, 1);
    Shape sw = shape_of(c.w);
    return prim::dot_general(x, prim::reshape(c.w, {sw[0], sw[1]}), {places + 1}, {1}, {}, {});
  }
  Dims of_x, of_w;
  for (int64_t d = 0; d < places; ++d) {
    of_x.push_back(places + 2 + d);
    of_w.push_back(d + 2);
  }
  of_x.push_back(places + 1);
  of_w.push_back(1);
  return prim::dot_general(windows(c, image_of(c, out)), c.w, of_x, of_w, {}, {});
}

Value from_each(const Conv& c, const Shape& result, Primitives& out) {
  auto places = static_cast<int64_t>(c.spatial());
  Shape sw = shape_of(c.w), sx = shape_of(c.x), split = {sx[0]}, size = {sx[0]}, wanted = {sx[0]};
  std::vector<Expr> none(c.spatial(), 0), high, ones(c.spatial(), 1);
  Dims taps, last, order = {0};
  for (int64_t d = 0; d < places; ++d) {
    Expr count = ceildiv(result[d + 2], c.x_dilation[d]);
    high.push_back(count - sx[d + 1]);
    split.push_back(count);
    size.push_back(count * c.x_dilation[d]);
    wanted.push_back(result[d + 2]);
    taps.push_back(d + 2);
    last.push_back(d + 2);
    order.insert(order.end(), {d + 1, places + 1 + d});
  }
  last.insert(last.end(), {0, 1});
  order.push_back(2 * places + 1);
  split.insert(split.end(), sw.begin() + 2, sw.end());
  for (Shape* s : {&split, &size, &wanted}) s->push_back(sw[0]);
  Value x = bordered(in_order(c.x, out), none, high, ones, 1);
  Value w = prim::reshape(prim::transpose(prim::reverse(c.w, taps), last), {product_from(sw, 2) * sw[0], sw[1]});
  Value y = prim::reshape(prim::dot_general(x, w, {places + 1}, {1}, {}, {}), split);
  return first_of(prim::reshape(prim::transpose(y, order), size), wanted);
}

Value without_gaps(const Conv& c, Primitives& out, const PassContext& context) {
  if (!takes_winograd(c, context)) return product(c, out);
  in_order(c.x, out);
  return winograd_channels_last(c, out, context);
}

// Weights become panels, which few places do not pay for.
bool has_places(const Conv& c, int64_t least, const PassContext& context) {
  const Shape& x = shape_of(c.x);
  Expr places = x[0];
  for (size_t d = 0; d < c.spatial(); ++d) places = places * floordiv(x[d + 2], c.stride[d]);
  return at_least(places, least, context);
}

}  // namespace

bool is_apart(const Conv& c) {
  for (size_t d = 0; d < c.spatial(); ++d)
    if (!(shape_of(c.w)[d + 2] == c.x_dilation[d]) || !(c.low[d] == c.x_dilation[d] - 1)) return false;
  return c.groups.is(1) && all_one(c.stride) && all_one(c.w_dilation) && all_constant(c.x_dilation);
}

bool takes_channels_last(const Conv& c, const PassContext& context) {
  const Shape& w = shape_of(c.w);
  DType t = ops::dtype_of(c.x);
  if (context.machine.gpu || context.machine.one_order) return false;
  if (!is_floating(t) || !all_constant(c.stride) || !all_constant(c.w_dilation)) return false;
  int lanes = context.machine.lanes(size_of(accumulator_of(t)));
  if (!all_one(c.x_dilation)) {
    if (is_apart(c)) return at_least(w[0] * product_from(w, 2), lanes, context);
    // Each remainder has panels of its own, of few places of the kernel.
    constexpr int64_t kFewPlaces = 256;
    return has_known_spread(c) && all_one(c.stride) && c.groups.is(1) && at_least(w[0], lanes, context) &&
           has_places(c, kFewPlaces, context);
  }
  return is_depthwise(c, context.facts) || (c.groups.is(1) && at_least(w[0], lanes, context));
}

Value convolution_channels_last(const Conv& c, const Shape& result, Primitives& out, const PassContext& context) {
  if (is_depthwise(c, context.facts) && all_one(c.x_dilation)) return depthwise(c, out);
  if (all_one(c.x_dilation)) return without_gaps(c, out, context);
  if (is_apart(c)) return from_each(c, result, out);
  return convolution_of_spread_last(c, result, out, [&](const Conv& part) { return without_gaps(part, out, context); });
}

bool lasts(Value w, const PassContext& context) {
  int input = ops::Builder::current().graph().input_index(below_views(w));
  return input >= 0 && static_cast<size_t>(input) < context.lasting.size() && context.lasting[input];
}

bool pays_channels_last(const Conv& c, const PassContext& context) {
  // An element that is copied takes part in so many products; with steps, rows would be copied in any case.
  constexpr int64_t kFewChannels = 16, kFewPlaces = 32;
  const Shape& w = shape_of(c.w);
  if (!c.groups.is(1) || !takes_channels_last(c, context)) return false;
  return at_least(w[0], kFewChannels, context) && (!all_one(c.stride) || at_least(w[1], kFewChannels, context)) &&
         (lasts(c.w, context) || has_places(c, kFewPlaces, context));
}

Dims channels_to_end(size_t rank) {
  Dims order = {0};
  for (size_t d = 2; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
  order.push_back(1);
  return order;
}
Dims channels_to_front(size_t rank) {
  Dims order = {0, static_cast<int64_t>(rank) - 1};
  for (size_t d = 1; d + 1 < rank; ++d) order.push_back(static_cast<int64_t>(d));
  return order;
}

Value convolution_turned(const Conv& c, Primitives& out, const PassContext& context) {
  Conv last = c;
  size_t rank = c.spatial() + 2;
  last.x = prim::transpose(c.x, channels_to_end(rank));
  return prim::transpose(in_memory(without_gaps(last, out, context), out), channels_to_front(rank));
}

}  // namespace brasa::compiler
