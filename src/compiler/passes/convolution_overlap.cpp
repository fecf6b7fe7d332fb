#include "compiler/passes/convolution.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::rank_of;
using ops::shape_of;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

namespace {

// The dimensions in order, but with these before dimension `at` of the others.
Dims with_moved(int64_t rank, const Dims& moved, int64_t at) {
  Dims out;
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(moved.begin(), moved.end(), d) == moved.end()) out.push_back(d);
  out.insert(out.begin() + at, moved.begin(), moved.end());
  return out;
}

// [batch…, rows, length, …]: row i begins i places behind row 0, and they add up where they overlap: [batch…, total, …]. In memory there
// are as many zeros behind a row that the elements of one place of the total stand at even steps.
Value overlapping(Value v, int64_t rows, Primitives& out) {
  Shape s = shape_of(v);
  Expr count = s[rows], total = max(count - 1, 0) + s[rows + 1];
  Exprs behind(s.size(), 0);
  behind[rows + 1] = total + 1 - s[rows + 1];
  v = in_memory(zeros_behind(v, behind), out);
  s.erase(s.begin() + rows);
  s[rows] = count * (total + 1);
  v = prim::reshape(v, s);
  s[rows] = count * total;
  v = first_of(v, s);
  s[rows] = total;
  s.insert(s.begin() + rows, count);
  return reduced(prim::reshape(v, s), {rows}, "add");
}

// [g, n, o, k0…kd, i0…id, y…] -> [g, n, o, k0…, i0…, yd, y…]: what the places of a kernel make of each element. Those at a distance of two
// elements are rows that begin one element apart.
Value added_along(Value y, int64_t d, Expr distance, Primitives& out) {
  int64_t kernel = 3 + d, element = 4 + 2 * d;
  Shape s = shape_of(y);
  Expr rows = ceildiv(s[kernel], distance);
  Exprs behind(s.size(), 0);
  behind[kernel] = rows * distance - s[kernel];
  y = zeros_behind(y, behind);
  s[kernel] = rows;
  s.insert(s.begin() + kernel + 1, distance);
  y = prim::reshape(y, s);
  y = prim::transpose(y, with_moved(rank_of(y), {kernel + 1, kernel, element + 1}, element - 1));
  y = overlapping(y, element, out);
  y = prim::transpose(y, with_moved(rank_of(y), {element, element - 1}, element - 1));
  s = shape_of(y);
  s[element - 1] = s[element - 1] * distance;
  s.erase(s.begin() + element);
  return prim::reshape(y, s);
}

// [g, n, o, k…, i…]: each element of the image with each place of the flipped kernel.
Value products_of_places(const Conv& c) {
  auto n = static_cast<int64_t>(c.spatial());
  DType acc = accumulator_of(ops::dtype_of(c.x));
  Shape sx = shape_of(c.x), sw = shape_of(c.w);
  sx.insert(sx.begin() + 1, c.groups);
  sx[2] = sw[1];
  sw.insert(sw.begin() + 1, floordiv(sw[0], c.groups));
  sw[0] = c.groups;
  Dims flipped, order = {0, n + 2, 1};
  for (int64_t d = 0; d < n; ++d) flipped.push_back(d + 2);
  for (int64_t from : {int64_t{2}, n + 3})
    for (int64_t d = 0; d < n; ++d) order.push_back(from + d);
  Value x = prim::reshape(prim::convert(c.x, acc), sx);
  Value w = prim::reshape(prim::reverse(prim::convert(c.w, acc), flipped), sw);
  return prim::transpose(prim::dot_general(w, x, {2}, {2}, {0}, {1}), order);
}

}  // namespace

Value convolution_of_overlaps(const Conv& c, const Shape& result, Primitives& out) {
  Value y = products_of_places(c);
  for (auto d = static_cast<int64_t>(c.spatial()); d-- > 0;) y = added_along(y, d, c.x_dilation[d], out);
  Dims order = {1, 0, 2};
  Shape size(result.begin(), result.begin() + 2);
  Exprs low, high;
  for (size_t d = 0; d < c.spatial(); ++d) {
    order.push_back(static_cast<int64_t>(d) + 3);
    size.push_back(shape_of(y)[d + 3]);
    low.push_back(c.low[d] - shape_of(c.w)[d + 2] + 1);
    high.push_back(result[d + 2] - size.back() - low.back());
  }
  y = bordered(prim::reshape(prim::transpose(y, order), size), low, high, Exprs(low.size(), 1));
  return prim::convert(y, ops::dtype_of(c.x));
}

}  // namespace brasa::compiler
