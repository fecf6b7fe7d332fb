#include "compiler/passes/winograd.h"

#include <array>
#include <cmath>
#include <span>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"
#include "support/lazy.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

namespace {

constexpr int64_t kTaps = 3, kResults = 4, kProducts = kResults + kTaps - 1;

// y = A (G w * B x) for so many results y of so many taps w, and six elements x, by Toom's and Cook's algorithm: polynomials are multiplied by
// their values at five points and infinity. These points, whose products are powers of 2, keep errors 1.4 times a direct sum's; whole numbers
// 2.2 times.
template <int64_t kResults, int64_t kTaps>
struct Algorithm {
  static_assert(kResults + kTaps - 1 == kProducts);
  double a[kResults][kProducts] = {}, g[kProducts][kTaps] = {}, b[kProducts][kProducts] = {};
  Algorithm() {
    const std::array<double, kProducts - 1> points = {0, M_SQRT1_2, -M_SQRT1_2, M_SQRT2, -M_SQRT2};
    constexpr size_t kInfinity = points.size();
    // The product of (z - p) over all points but one, which multiplies `v` by z - p for p in turn.
    auto times_all_but = [&](size_t but, double* v) {
      v[0] = 1;
      for (size_t j = 0; j < points.size(); ++j) {
        if (j == but) continue;
        for (size_t k = kProducts; k-- > 0;) v[k] = (k ? v[k - 1] : 0) - points[j] * v[k];
      }
    };
    for (size_t j = 0; j < points.size(); ++j) {
      double between = 1;
      for (size_t i = 0; i < points.size(); ++i)
        if (i != j) between *= points[j] - points[i];
      for (int64_t i = 0; i < kResults; ++i) a[i][j] = std::pow(points[j], i);
      for (int64_t k = 0; k < kTaps; ++k) g[j][k] = std::pow(points[j], k) / between;
      times_all_but(j, b[j]);
    }
    a[kResults - 1][kInfinity] = g[kInfinity][kTaps - 1] = 1;
    times_all_but(kInfinity, b[kInfinity]);
  }
};

template <int64_t kResults, int64_t kTaps>
const Algorithm<kResults, kTaps>& algorithm() {
  static constinit Lazy<Algorithm<kResults, kTaps>> a;
  return *a;
}

// A matrix of constants, in memory.
template <size_t kRows, size_t kColumns>
Value constants(const double (&m)[kRows][kColumns], DType t, Primitives& out) {
  Shape size = {static_cast<int64_t>(kRows * kColumns)};
  Value place = prim::iota(size, 0, DType::Int32), all = prim::full(0, size, t);
  for (size_t i = 0; i < kRows * kColumns; ++i) {
    double v = m[i / kColumns][i % kColumns];
    if (v == 0) continue;
    Value here = prim::binary("eq", place, prim::full(static_cast<int64_t>(i), size, DType::Int32));
    all = prim::select(here, prim::full(v, size, t), all);
  }
  return prim::reshape(in_memory(all, out), {static_cast<int64_t>(kRows), static_cast<int64_t>(kColumns)});
}

// The sum over j of column j of a matrix times part j: the column's elements lie along dimension `dim` of this shape, the parts' dimensions
// are the others.
Value combined(Value matrix, const std::vector<Value>& parts, const Shape& shape, int64_t dim) {
  Value sum;
  Expr rows = shape_of(matrix)[0];
  for (size_t j = 0; j < parts.size(); ++j) {
    Value column = prim::reshape(prim::slice(matrix, {0, static_cast<int64_t>(j)}, {rows, 1}, {1, 1}), {rows});
    column = prim::broadcast(column, shape, {dim});
    Value part = prim::broadcast(parts[j], shape, other_dims({dim}, static_cast<int64_t>(shape.size())));
    Value item = prim::binary("mul", column, part);
    sum = sum ? prim::binary("add", sum, item) : item;
  }
  return sum;
}

Shape with(Shape s, int64_t dim, Expr size) {
  s.insert(s.begin() + dim, size);
  return s;
}

Expr result_rows(const Conv& c) { return shape_of(c.x)[1] + c.low[0] + c.high[0] - (kTaps - 1); }

// Elements start + i * step along a dimension, for i < size.
Value every(Value x, int64_t dim, int64_t start, Expr size, int64_t step) {
  Shape s = shape_of(x);
  Exprs first(s.size(), 0), by(s.size(), 1);
  first[dim] = start;
  by[dim] = step;
  s[dim] = size;
  return prim::slice(x, first, s, by);
}
// One of them, without the dimension.
Value one_of(Value x, int64_t dim, int64_t at) {
  Value y = every(x, dim, at, 1, 1);
  Shape s = shape_of(y);
  s.erase(s.begin() + dim);
  return prim::reshape(y, s);
}

// All of them.
std::vector<Value> each_of(Value x, int64_t dim, int64_t count) {
  std::vector<Value> out;
  for (int64_t at = 0; at < count; ++at) out.push_back(one_of(x, dim, at));
  return out;
}
// Of rows in tiles of four, whose rows may reach into the tile behind: row i of each, for i < count.
std::vector<Value> rows_in_tiles(Value x, int64_t dim, Expr tiles, int64_t count) {
  std::vector<Value> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(every(x, dim, i, tiles, kResults));
  return out;
}

// Sets of weights, results, columns…, channels; made along the channels.
Value transformed_weights(const Conv& c, DType t, Primitives& out) {
  Dims last = {0};
  for (size_t d = 0; d < c.spatial(); ++d) last.push_back(static_cast<int64_t>(d) + 2);
  last.push_back(1);
  Value taps = in_memory(prim::transpose(c.w, last), out);
  std::vector<Value> parts = each_of(taps, 1, kTaps);
  Shape weights = shape_of(parts[0]);  // results, columns…, channels
  return in_memory(combined(constants(algorithm<kResults, kTaps>().g, t, out), parts, with(weights, 1, kProducts), 1),
                   out);
}

// Rows of the result from those of the products, whose dimension `dim` counts the tiles of four.
Value rows_of_tiles(const std::vector<Value>& products, int64_t dim, Expr rows, Primitives& out) {
  Shape shape = shape_of(products[0]);
  Value y = combined(constants(algorithm<kResults, kTaps>().a, ops::dtype_of(products[0]), out), products,
                     with(shape, dim + 1, kResults), dim + 1);
  shape[dim] = shape[dim] * kResults;
  y = prim::reshape(y, shape);
  shape[dim] = rows;
  return first_of(y, shape);
}

// Fewer channels or results are not worth the passes over memory, fewer places not the weights' sums.
constexpr int64_t kFewChannels = 32, kFewPlaces = 512, kFewOfLasting = 128, kFewSummed = 256;

// Whether as many rows fill most of the fours that they are cut into, so that six products for each four are two thirds of a direct sum's at
// most.
bool fills_tiles(Expr rows, const PassContext& context) {
  constexpr int64_t kMany = 6;  // and any number from here on
  return at_least(rows, kMany, context) || at_least(rows - ceildiv(rows, kResults) * 3, 0, context);
}

bool has_neighbouring_taps(const Conv& c, const PassContext& context) {
  return !context.machine.one_order && !PassRunner::switched_off("winograd") && ops::dtype_of(c.x) == DType::Float32 &&
         c.spatial() >= 2 && c.groups.is(1) && all_one(c.x_dilation) && c.w_dilation[0].is(1);
}

// What views show as it is, such as an image that one view turns and another one turns back.
Value without_detours(Value v) {
  const Shape& shape = shape_of(v);
  Index at = probe(shape);
  for (Value below = v; is_view(prim_of(below));) {
    at = view_index(below.node, at);
    below = below.node->arg<Value>(0);
    if (shape_of(below) == shape && at == probe(shape)) v = below;
  }
  return v;
}

// Of the elements six times four rows further on and so on, sums for each of the products, along a new first dimension.
Value products_of(Value x, int64_t dim, Expr tiles, Primitives& out) {
  std::vector<Value> parts = rows_in_tiles(x, dim, tiles, kProducts);
  Shape each = shape_of(parts[0]);
  const auto& b = algorithm<kResults, kTaps>().b;
  return in_memory(combined(constants(b, ops::dtype_of(x), out), parts, with(each, 0, kProducts), 0), out);
}

}  // namespace

bool takes_winograd(const Conv& c, const PassContext& context) {
  const Shape &x = shape_of(c.x), &w = shape_of(c.w);
  if (!has_neighbouring_taps(c, context) || !w[2].is(kTaps) || !all_one(c.stride)) return false;
  // Rows of the results, and what the operand has beside them.
  Expr rows = result_rows(c), places = x[0] * rows * ir::product(std::span(x).subspan(2, c.spatial() - 1));
  return at_least(w[0], kFewChannels, context) && at_least(w[1], kFewChannels, context) && fills_tiles(rows, context) &&
         at_least(places, lasts(c.w, context) ? kFewOfLasting : kFewPlaces, context);
}

Value winograd_channels_last(const Conv& c, Primitives& out) {
  DType t = ops::dtype_of(c.x);
  Expr rows = result_rows(c), tiles = ceildiv(rows, kResults);
  auto places = static_cast<int64_t>(c.spatial());

  // products, images, tiles, columns…, channels
  Exprs high = c.high;
  high[0] = high[0] + tiles * kResults - rows;
  Value x = bordered(c.x, c.low, high, c.x_dilation, 1);
  x = products_of(x, 1, tiles, out);

  // What remains of the kernel moves along the columns.
  Value w = transformed_weights(c, t, out);
  Dims of_x, of_w;
  for (int64_t d = 1; d < places; ++d) {
    x = prim::window(x, d + 2, shape_of(c.w)[d + 2], 1, c.w_dilation[d]);
    of_x.push_back(places + 2 + d);
    of_w.push_back(d + 1);
  }
  of_x.push_back(places + 2);
  of_w.push_back(places + 1);
  Value y = prim::dot_general(x, w, of_x, of_w, {0}, {1});  // products, images, tiles, columns…, results

  return rows_of_tiles(each_of(y, 0, kProducts), 1, rows, out);
}

bool takes_winograd_of_places(const Conv& c, const Shape& result, const PassContext& context) {
  const Shape& w = shape_of(c.w);
  return has_neighbouring_taps(c, context) && result[2].is(kTaps) && all_one(c.stride) && all_one(c.w_dilation) &&
         at_least(result[0], kFewChannels, context) && at_least(result[1], kFewChannels, context) &&
         fills_tiles(w[2], context) && at_least(w[1] * product_from(w, 2), kFewSummed, context);
}

Value winograd_of_places(const Conv& c, Primitives& out) {
  // Of four taps at a time the three results; their products are summed up over all of these.
  constexpr int64_t kPieces = kResults;
  const auto& [to_results, of_taps, of_elements] = algorithm<kTaps, kPieces>();
  DType t = ops::dtype_of(c.x);
  auto places = static_cast<int64_t>(c.spatial());
  Expr taps = shape_of(c.w)[2], tiles = ceildiv(taps, kPieces);

  // Channels last, as the convolution itself has it: in a graph of both it is one value. Rows of the product are columns of its memory then,
  // which the parts of a long sum keep near; sums of unknown length are not made in parts.
  Exprs none(c.spatial(), 0), high = c.high, behind = none;
  behind[0] = tiles * kPieces - taps;
  high[0] = high[0] + behind[0];
  Dims first_last = ops::counted(1, places + 1);
  first_last.push_back(0);
  const bool last = all_constant(shape_of(c.x)) && all_constant(shape_of(c.w));
  const int64_t images = last ? 1 : 2;  // the dimension behind the products'
  Value x = c.x;
  if (last) {
    x = without_detours(prim::transpose(x, first_last));
    if (is_view(prim_of(x))) x = in_memory(x, out);
  }
  x = bordered(x, c.low, high, c.x_dilation, images);
  x = products_of(last ? x : in_memory(x, out), images, tiles, out);

  Value w = in_memory(bordered(prim::transpose(c.w, first_last), none, behind, c.x_dilation, 1), out);
  std::vector<Value> parts = rows_in_tiles(w, 1, tiles, kPieces);
  w = in_memory(combined(constants(of_taps, t, out), parts, with(shape_of(parts[0]), 0, kProducts), 0), out);

  Dims of_x = {images, images + 1}, of_w = {1, 2};
  for (int64_t d = 1; d < places; ++d) {
    x = prim::window(x, images + 1 + d, shape_of(c.w)[d + 2], c.stride[d], c.w_dilation[d]);
    of_x.push_back(places + 2 + d);
    of_w.push_back(d + 2);
  }
  Value y = prim::dot_general(x, w, of_x, of_w, {0}, {0});
  // The channels of each product stand behind the columns, or before them: they come first, and the three rows behind them.
  parts = each_of(y, 0, kProducts);
  const int64_t channels = last ? places - 1 : 0;
  for (Value& part : parts) {
    Dims order = other_dims({channels}, places + 1);
    order.insert(order.begin(), channels);
    part = prim::transpose(part, order);
  }
  y = in_memory(combined(constants(to_results, t, out), parts, with(shape_of(parts[0]), 1, kTaps), 1), out);
  return prim::transpose(y, channels_to_front(c.spatial() + 2));
}

}  // namespace brasa::compiler
