#include "compiler/passes/convolution.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

Value convolution_of_short_images(const Conv& c, size_t d, const Shape& result, Primitives& out,
                                  const std::function<Value(const Conv&, const Shape&)>& convolved) {
  auto at = static_cast<int64_t>(d) + 2, rank = static_cast<int64_t>(c.spatial()) + 2;
  Expr elements = shape_of(c.x)[at], results = result[at], first = (results - 1) * c.stride[d];
  Exprs low(c.spatial(), 0), high = low;
  low[d] = first - c.low[d];
  high[d] = (elements - 1) * c.x_dilation[d] + 1 + c.low[d] - shape_of(c.w)[at];
  Value w = in_memory(bordered(c.w, low, high, Exprs(c.spatial(), 1)), out);
  Shape kernel = shape_of(w);
  kernel[at] = first + (elements - 1) * c.x_dilation[d] + 1;
  w = prim::window(first_of(w, kernel), at, elements, c.stride[d], c.x_dilation[d]);
  // [outputs, results, channels, elements, …], and [n, channels, elements, …]; a dimension of one place stays.
  Dims of_w = {0, at, 1, rank}, of_x = {0, 1, at}, back;
  for (int64_t e = 2; e < rank; ++e)
    if (e != at) {
      of_w.push_back(e);
      of_x.push_back(e);
    }
  auto joined = [&](Value v, Shape front, int64_t others) {
    Shape s = shape_of(v);
    front.insert(front.end(), s.begin() + others, s.end());
    front.insert(front.begin() + at, 1);
    return prim::reshape(v, front);
  };
  Conv other = c;
  Shape sw = shape_of(c.w), sx = shape_of(c.x);
  other.w = joined(prim::transpose(w, of_w), {sw[0] * results, sw[1] * elements}, 4);
  other.x = joined(prim::transpose(c.x, of_x), {sx[0], sx[1] * elements}, 3);
  other.stride[d] = other.x_dilation[d] = 1;
  other.low[d] = other.high[d] = 0;
  Shape size = result, apart = result;
  size[1] = result[1] * results;
  size[at] = 1;
  Value y = convolved(other, size);
  apart.erase(apart.begin() + at);
  apart.insert(apart.begin() + 2, results);
  for (int64_t e = 0; e < rank; ++e) back.push_back(e < 2 || e > at ? e : e == at ? 2 : e + 1);
  return prim::reverse(prim::transpose(prim::reshape(y, apart), back), {at});
}

}  // namespace brasa::compiler
