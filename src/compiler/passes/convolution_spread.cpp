#include <algorithm>
#include <functional>
#include <utility>

#include "compiler/passes/contraction.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"
#include "support/checked.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

namespace {

using Convolved = std::function<Value(const Conv&)>;

// Each remainder of a place by the distance of two elements has a convolution without gaps. Channels stand before the places, or last.
class Spread {
 public:
  Spread(Conv c, const Shape& result, bool last) : c_(std::move(c)), result_(result), last_(last) {}

  // [n, c, count, distance, …], or with the channels last.
  Value value(const Convolved& convolved) const { return joined({}, convolved); }

  // The image gets the border that all of them read, in memory.
  void add_border(Primitives& out) {
    Exprs low, high;
    for (size_t d = 0; d < c_.spatial(); ++d) {
      int64_t distance = c_.x_dilation[d].constant(), below = 0, beyond = 0;
      for (int64_t r = 0; r < distance; ++r) below = std::max(below, taps(d, r).low);
      for (int64_t r = 0; r < distance; ++r) beyond = std::max(beyond, below - taps(d, r).low + taps(d, r).count - 1);
      low.push_back(below);
      high.push_back(count(d) + beyond - elements(d) - below);
      c_.low[d] = c_.low[d] - below * distance;
    }
    c_.x = in_memory(bordered(c_.x, low, high, Exprs(c_.spatial(), 1), first_place()), out);
  }

  // Neighbours are results of one place and channel, in memory: all remainders read whole vectors of them.
  void turn_weights(Primitives& out) {
    auto places = static_cast<int64_t>(c_.spatial());
    Dims last = ops::counted(2, places), back = {places + 1, places};
    last.insert(last.end(), {1, 0});
    for (int64_t d = 0; d < places; ++d) back.push_back(d);
    c_.w = prim::transpose(in_memory(prim::transpose(c_.w, last), out), back);
  }

  // Places that are not asked for are cut off.
  Value whole(Value parts) const {
    Shape places;
    for (size_t d = 0; d < c_.spatial(); ++d) places.push_back(count(d) * c_.x_dilation[d]);
    return first_of(prim::reshape(parts, shape(places)), shape({result_.begin() + 2, result_.end()}));
  }

 private:
  int64_t first_place() const { return last_ ? 1 : 2; }
  Expr count(size_t d) const { return ceildiv(result_[d + 2], c_.x_dilation[d]); }
  // Of a known number of results, later remainders may have one less.
  Expr count(size_t d, int64_t remainder) const {
    Expr results = result_[d + 2];
    return results.is_constant() ? ceildiv(results - remainder, c_.x_dilation[d]) : count(d);
  }
  Expr elements(size_t d) const { return shape_of(c_.x)[d + static_cast<size_t>(first_place())]; }
  Shape shape(const Shape& places) const {
    Shape out = {result_[0]};
    out.insert(out.end(), places.begin(), places.end());
    out.insert(last_ ? out.end() : out.begin() + 1, result_[1]);
    return out;
  }

  // The places of the kernel that meet elements, and the border below the image that they reach.
  struct Taps {
    int64_t first, count, low;
  };
  Taps taps(size_t d, int64_t remainder) const {
    int64_t distance = c_.x_dilation[d].constant(), before = c_.low[d].constant() - remainder;
    int64_t first = floor_mod(before, distance), kernel = shape_of(c_.w)[d + 2].constant();
    return {first, std::max<int64_t>((kernel - first + distance - 1) / distance, 0), (before - first) / distance};
  }

  // Those with these first remainders.
  Value joined(Dims remainders, const Convolved& convolved) const {
    size_t d = remainders.size();
    if (d == c_.spatial()) return of(remainders, convolved);
    std::vector<Value> all;
    remainders.push_back(0);
    for (; remainders.back() < c_.x_dilation[d].constant(); ++remainders.back())
      all.push_back(joined(remainders, convolved));
    return prim::concat(all, first_place() + 2 * static_cast<int64_t>(d) + 1);
  }

  Value of(const Dims& remainders, const Convolved& convolved) const {
    Conv part = c_;
    Shape size = shape_of(c_.w), places, all;
    Exprs first(size.size(), 0), step(size.size(), 1);
    bool none = false;
    for (size_t d = 0; d < c_.spatial(); ++d) {
      Taps t = taps(d, remainders[d]);
      Expr results = count(d, remainders[d]);
      places.push_back(count(d));
      all.insert(all.end(), {count(d), 1});
      none = none || t.count == 0 || results.is(0);
      first[d + 2] = t.first;
      step[d + 2] = c_.x_dilation[d];
      size[d + 2] = t.count;
      part.x_dilation[d] = 1;
      part.low[d] = t.low;
      part.high[d] = results + t.count - 1 - elements(d) - t.low;
    }
    if (none) return prim::full(0, shape(all), ops::dtype_of(c_.x));
    part.w = prim::slice(c_.w, first, size, step);
    Value y = convolved(part);
    Exprs missing;
    for (size_t d = 0; d < shape_of(y).size(); ++d) missing.push_back(shape(places)[d] - shape_of(y)[d]);
    return prim::reshape(zeros_behind(y, missing), shape(all));
  }

  Conv c_;
  const Shape& result_;
  const bool last_;
};

// [n, c, count, distance, …]
Value from_each(const Conv& c, const Shape& result, Primitives& out, const PassContext& context) {
  auto spatial = static_cast<int64_t>(c.spatial());
  Shape sw = shape_of(c.w), split = {result[0], sw[0]}, counts;
  Dims places, last = {0}, order = {0, 1};
  Conv part = c;
  for (int64_t d = 0; d < spatial; ++d) {
    counts.push_back(ceildiv(result[d + 2], c.x_dilation[d]));
    places.push_back(d + 2);
    last.push_back(d + 2);
    split.push_back(sw[d + 2]);
    order.insert(order.end(), {2 + spatial + d, 2 + d});
    part.x_dilation[d] = 1;
    part.low[d] = 0;
    part.high[d] = counts.back() - shape_of(c.x)[d + 2];
  }
  last.push_back(1);
  split.insert(split.end(), counts.begin(), counts.end());
  Shape points(sw.size(), 1);
  points[0] = sw[0] * product_from(sw, 2);
  points[1] = sw[1];
  part.w = prim::reshape(prim::transpose(prim::reverse(c.w, places), last), points);
  return prim::transpose(prim::reshape(convolution_of_points(part, out, context), split), order);
}

// What all places of the kernel make of an element is clearly less than its channels, as where the result is a picture: to write and to add
// that up takes less than to read the image for each remainder.
bool makes_less_than_image(const Conv& c, const PassContext& context) {
  const Shape& w = shape_of(c.w);
  return at_least(w[1] * 3 - floordiv(w[0], c.groups) * product_from(w, 2) * 4, 0, context);
}

}  // namespace

bool has_known_spread(const Conv& c) {
  Expr remainders = product(c.x_dilation);
  return !all_one(c.x_dilation) && all_constant(c.x_dilation) && remainders.constant() <= 8 && all_constant(c.low) &&
         all_one(c.w_dilation) && all_constant({shape_of(c.w).begin() + 2, shape_of(c.w).end()});
}

Value convolution_of_spread(const Conv& c, const Shape& result, Primitives& out, const PassContext& context) {
  Spread spread(c, result, false);
  if (is_apart(c)) return spread.whole(from_each(c, result, out, context));
  if (pays_channels_last(c, context)) {
    Conv turned = c;
    turned.x = prim::transpose(c.x, channels_to_end(c.spatial() + 2));
    return prim::transpose(convolution_channels_last(turned, result, out, context), channels_to_front(c.spatial() + 2));
  }
  if (makes_less_than_image(c, context)) return convolution_of_overlaps(c, result, out);
  return spread.whole(spread.value([&](const Conv& part) { return convolution_of_neighbours(part, out, context); }));
}

Value convolution_of_spread_last(const Conv& c, const Shape& result, Primitives& out, const Convolved& convolved) {
  Spread spread(c, result, true);
  spread.add_border(out);
  spread.turn_weights(out);
  Value parts = spread.value([&](Conv part) {
    part.x = bordered(part.x, part.low, part.high, part.x_dilation, 1);
    part.low = part.high = Exprs(part.spatial(), 0);
    return in_memory(convolved(part), out);
  });
  return spread.whole(in_memory(parts, out));
}

}  // namespace brasa::compiler
