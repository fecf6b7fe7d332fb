#include "compiler/passes/convolution.h"
#include "compiler/passes/transform.h"
#include "support/checked.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

namespace {

class Spread {
 public:
  Spread(const Conv& c, const Shape& result) : c_(c), result_(result) {}

  Value value(Primitives& out, const PassContext& context) const {
    Shape size(result_.begin(), result_.begin() + 2);
    for (size_t d = 0; d < c_.spatial(); ++d) size.insert(size.end(), {count(d), c_.x_dilation[d]});
    Value y = apart() ? from_each(size, out) : joined({}, out, context);
    for (size_t d = 0; d < c_.spatial(); ++d) size[2 + d] = count(d) * c_.x_dilation[d];
    size.resize(2 + c_.spatial());
    return first_of(prim::reshape(y, size), result_);
  }

 private:
  Expr count(size_t d) const { return ceildiv(result_[d + 2], c_.x_dilation[d]); }

  // A kernel as long as the distance: each element makes results of its own.
  bool apart() const {
    for (size_t d = 0; d < c_.spatial(); ++d) {
      Expr distance = c_.x_dilation[d];
      if (!(shape_of(c_.w)[d + 2] == distance) || !(c_.low[d] == distance - 1)) return false;
    }
    return c_.groups.is(1);
  }
  Value from_each(const Shape& size, Primitives& out) const {
    auto spatial = static_cast<int64_t>(c_.spatial());
    Shape sw = shape_of(c_.w), split = {result_[0], sw[0]};
    Dims places, last = {0}, order = {0, 1};
    Conv part = c_;
    for (int64_t d = 0; d < spatial; ++d) {
      places.push_back(d + 2);
      last.push_back(d + 2);
      split.push_back(sw[d + 2]);
      order.insert(order.end(), {2 + spatial + d, 2 + d});
      part.x_dilation[d] = 1;
      part.low[d] = 0;
      part.high[d] = count(d) - shape_of(c_.x)[d + 2];
    }
    last.push_back(1);
    for (int64_t d = 0; d < spatial; ++d) split.push_back(count(d));
    Shape points(sw.size(), 1);
    points[0] = sw[0] * product_from(sw, 2);
    points[1] = sw[1];
    part.w = prim::reshape(prim::transpose(prim::reverse(c_.w, places), last), points);
    return prim::reshape(prim::transpose(prim::reshape(convolution_of_points(part, out), split), order), size);
  }

  // [n, c, count, remainder, …] with these first remainders.
  Value joined(Dims remainders, Primitives& out, const PassContext& context) const {
    size_t d = remainders.size();
    if (d == c_.spatial()) return of(remainders, out, context);
    std::vector<Value> all;
    remainders.push_back(0);
    for (; remainders.back() < c_.x_dilation[d].constant(); ++remainders.back())
      all.push_back(joined(remainders, out, context));
    return prim::concat(all, static_cast<int64_t>(2 * d + 3));
  }

  Value of(const Dims& remainders, Primitives& out, const PassContext& context) const {
    Conv part = c_;
    Shape size = shape_of(c_.w), split(result_.begin(), result_.begin() + 2);
    Exprs first(size.size(), 0), step(size.size(), 1);
    bool none = false;
    for (size_t d = 0; d < c_.spatial(); ++d) {
      split.insert(split.end(), {count(d), 1});
      int64_t distance = c_.x_dilation[d].constant(), before = c_.low[d].constant() - remainders[d];
      int64_t start = floor_mod(before, distance), kernel = size[d + 2].constant();
      none = none || start >= kernel;
      first[d + 2] = start;
      step[d + 2] = distance;
      size[d + 2] = (kernel - start + distance - 1) / distance;
      part.x_dilation[d] = 1;
      part.low[d] = (before - start) / distance;
      part.high[d] = count(d) + size[d + 2] - 1 - shape_of(c_.x)[d + 2] - part.low[d];
    }
    if (none) return prim::full(0, split, ops::dtype_of(c_.x));
    part.w = prim::slice(c_.w, first, size, step);
    return prim::reshape(convolution_of_neighbours(part, out, context), split);
  }

  const Conv& c_;
  const Shape& result_;
};

}  // namespace

bool has_known_spread(const Conv& c) {
  Expr remainders = product(c.x_dilation);
  return !all_one(c.x_dilation) && all_constant(c.x_dilation) && remainders.constant() <= 8 && all_constant(c.low) &&
         all_one(c.w_dilation) && all_constant({shape_of(c.w).begin() + 2, shape_of(c.w).end()});
}

Value convolution_of_spread(const Conv& c, const Shape& result, Primitives& out, const PassContext& context) {
  return Spread(c, result).value(out, context);
}

}  // namespace brasa::compiler
