#include "compiler/passes/winograd.h"

#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;
using Exprs = std::vector<Expr>;

namespace {

// So many results of so many taps by one product less than both together.
struct Form {
  int64_t results, taps;
  int64_t products() const { return results + taps - 1; }
};

// y = A (G w * B x) for the results y, the taps w and as many elements x as products, by Toom's and Cook's algorithm: polynomials are multiplied
// by their values at some points and infinity. These points keep errors at most 1.4 times a direct sum's; whole numbers 2.2 times.
struct Algorithm {
  using Matrix = std::vector<std::vector<double>>;
  Matrix a, g, b;
  explicit Algorithm(Form form) {
    static constexpr std::array<double, 5> kPoints[] = {
        {0, -1}, {0, 1, -1}, {0, 0.5, -1, 1.5}, {0, M_SQRT1_2, -M_SQRT1_2, M_SQRT2, -M_SQRT2}};
    const auto products = static_cast<size_t>(form.products()), kInfinity = products - 1;
    const std::span points(kPoints[products - 3].data(), kInfinity);
    auto zeros = [&](int64_t rows, size_t columns) {
      return Matrix(static_cast<size_t>(rows), std::vector<double>(columns));
    };
    a = zeros(form.results, products);
    g = zeros(form.products(), static_cast<size_t>(form.taps));
    b = zeros(form.products(), products);
    // The product of (z - p) over all points but one, which multiplies `v` by z - p for p in turn.
    auto times_all_but = [&](size_t but, std::vector<double>& v) {
      v[0] = 1;
      for (size_t j = 0; j < points.size(); ++j) {
        if (j == but) continue;
        for (size_t k = products; k-- > 0;) v[k] = (k ? v[k - 1] : 0) - points[j] * v[k];
      }
    };
    for (size_t j = 0; j < points.size(); ++j) {
      double between = 1;
      for (size_t i = 0; i < points.size(); ++i)
        if (i != j) between *= points[j] - points[i];
      for (size_t i = 0; i < a.size(); ++i) a[i][j] = std::pow(points[j], i);
      for (size_t k = 0; k < g[j].size(); ++k) g[j][k] = std::pow(points[j], k) / between;
      times_all_but(j, b[j]);
    }
    a.back()[kInfinity] = g[kInfinity].back() = 1;
    times_all_but(kInfinity, b[kInfinity]);
  }
};

// A matrix of constants, in memory.
Value constants(const Algorithm::Matrix& m, DType t, Primitives& out) {
  const size_t columns = m[0].size(), all_of_them = m.size() * columns;
  Shape size = {static_cast<int64_t>(all_of_them)};
  Value place = prim::iota(size, 0, DType::Int32), all = prim::full(0, size, t);
  for (size_t i = 0; i < all_of_them; ++i) {
    double v = m[i / columns][i % columns];
    if (v == 0) continue;
    Value here = prim::binary("eq", place, prim::full(static_cast<int64_t>(i), size, DType::Int32));
    all = prim::select(here, prim::full(v, size, t), all);
  }
  return prim::reshape(in_memory(all, out), {static_cast<int64_t>(m.size()), static_cast<int64_t>(columns)});
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
// Of rows in tiles of so many, whose rows may reach into the tile behind: row i of each, for i < count.
std::vector<Value> rows_in_tiles(Value x, int64_t dim, Expr tiles, int64_t tile, int64_t count) {
  std::vector<Value> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(every(x, dim, i, tiles, tile));
  return out;
}

// Neighbours along a dimension at this distance, whose remainders stand behind it.
Value apart(Value x, int64_t dim, int64_t distance) {
  if (distance == 1) return x;
  return ops::split_dim(x, dim, {floordiv(shape_of(x)[dim], distance), distance});
}

// Whether neighbours along the first dimension lie beside each other in memory.
bool lies_along_first(Value v, const Primitives& p) {
  std::vector<Link> chain = chain_of(v, [&](Value below) { return p.in_memory.count(below) > 0; });
  auto step = coefficient(linearise(chain.back().at, shape_of(chain.back().value)), chain.front().at[0]);
  return step && step->is(1);
}

// Results, sets of weights, remainders by the step, columns…, channels; made along the results where they lie so, else along the channels.
Value transformed_weights(const Conv& c, Form form, Primitives& out) {
  auto places = static_cast<int64_t>(c.spatial());
  const bool results_last = lies_along_first(c.w, out);
  const int64_t at = !results_last, remainders = !c.stride[0].is(1);  // where the taps stand
  Dims order = ops::counted(2, places);
  order.push_back(1);
  order.insert(results_last ? order.end() : order.begin(), 0);
  Value taps = prim::transpose(c.w, order);
  if (!results_last) taps = in_memory(taps, out);
  std::vector<Value> parts = each_of(apart(taps, at, c.stride[0].constant()), at, form.taps);
  Value g = constants(Algorithm(form).g, ops::dtype_of(c.w), out);
  Value sets = in_memory(combined(g, parts, with(shape_of(parts[0]), at, form.products()), at), out);
  if (!results_last) return sets;
  Dims first = ops::counted(0, places + remainders + 1);
  first.insert(first.begin(), places + remainders + 1);
  return prim::transpose(sets, first);
}

// Rows of the result from those of the products, whose dimension `dim` counts the tiles.
Value rows_of_tiles(const std::vector<Value>& products, Form form, int64_t dim, Expr rows, Primitives& out) {
  Shape shape = shape_of(products[0]);
  Value y = combined(constants(Algorithm(form).a, ops::dtype_of(products[0]), out), products,
                     with(shape, dim + 1, form.results), dim + 1);
  shape[dim] = shape[dim] * form.results;
  y = prim::reshape(y, shape);
  shape[dim] = rows;
  return first_of(y, shape);
}

// Fewer channels or results are not worth the passes over memory, fewer places not the weights' sums.
constexpr int64_t kFewChannels = 32, kFewPlaces = 512, kFewOfTwoTaps = 256, kFewOfLasting = 128, kFewSummed = 256;

// A tile for so many rows of results, or of taps where these are many, if they fill the tiles that they are cut into: the products are three
// quarters of a direct sum's at most.
std::optional<int64_t> tile_for(Expr rows, int64_t few, const PassContext& context) {
  constexpr int64_t kTile = 4, kMany = 6;  // and any number of them from here on
  if (few == 3 && (at_least(rows, kMany, context) || at_least(rows - ceildiv(rows, kTile) * 3, 0, context)))
    return kTile;
  if (few != 2 || !rows.is_constant()) return std::nullopt;
  auto products = [&](int64_t tile) { return ceildiv(rows, tile).constant() * (tile + 1); };
  int64_t best = kTile;
  for (int64_t tile : {3, 2})
    if (products(tile) < products(best)) best = tile;
  return products(best) * 4 <= rows.constant() * few * 3 ? std::optional(best) : std::nullopt;
}

// Taps of the convolution, whose results are at steps from each other: neighbours are taps of one remainder by the step.
struct Rows {
  Expr count;       // of results
  int64_t few = 0;  // taps of each remainder; 0: they differ
};
Rows rows_of(const Conv& c) {
  Expr taps = shape_of(c.w)[2], step = c.stride[0];
  if (!taps.is_constant() || !step.is_constant() || taps.constant() % step.constant() != 0) return {};
  return {floordiv(shape_of(c.x)[1] + c.low[0] + c.high[0] - taps, step) + 1, taps.constant() / step.constant()};
}

bool is_plain(const Conv& c, const PassContext& context) {
  return !context.machine.one_order && !PassRunner::switched_off("winograd") && ops::dtype_of(c.x) == DType::Float32 &&
         c.spatial() >= 2 && c.groups.is(1) && all_one(c.x_dilation);
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

// Of as many elements as products at each tile's begin, sums for each of the products, along a new first dimension.
Value products_of(Value x, Form form, int64_t dim, Expr tiles, int64_t tile, Primitives& out) {
  std::vector<Value> parts = rows_in_tiles(x, dim, tiles, tile, form.products());
  Value b = constants(Algorithm(form).b, ops::dtype_of(x), out);
  return in_memory(combined(b, parts, with(shape_of(parts[0]), 0, form.products()), 0), out);
}

}  // namespace

bool takes_winograd(const Conv& c, const PassContext& context) {
  const Shape &x = shape_of(c.x), &w = shape_of(c.w);
  if (!is_plain(c, context) || !c.w_dilation[0].is(1)) return false;
  auto [rows, few] = rows_of(c);
  if (few != 2 && few != 3) return false;
  // Rows of the results, and what the operand has beside them.
  Expr places = x[0] * rows;
  for (size_t d = 1; d < c.spatial(); ++d) places = places * floordiv(x[d + 1], c.stride[d]);
  return at_least(w[0], kFewChannels, context) && at_least(w[1], kFewChannels, context) &&
         tile_for(rows, few, context) &&
         at_least(places,
                  lasts(c.w, context) ? kFewOfLasting
                  : few == 2          ? kFewOfTwoTaps
                                      : kFewPlaces,
                  context);
}

Value winograd_channels_last(const Conv& c, Primitives& out, const PassContext& context) {
  auto [rows, few] = rows_of(c);
  const Form form = {*tile_for(rows, few, context), few};
  const int64_t step = c.stride[0].constant();
  Expr tiles = ceildiv(rows, form.results);
  auto places = static_cast<int64_t>(c.spatial());

  // products, images, tiles, remainders, columns…, channels
  Exprs high = c.high;
  high[0] = (tiles * form.results + few - 1) * step - shape_of(c.x)[1] - c.low[0];
  Value x = bordered(c.x, c.low, high, c.x_dilation, 1);
  x = products_of(apart(x, 1, step), form, 1, tiles, form.results, out);

  // What remains of the kernel moves along the columns.
  Value w = transformed_weights(c, form, out);
  const int64_t remainders = step > 1;
  Dims of_x, of_w;
  if (remainders) {
    of_x.push_back(3);
    of_w.push_back(2);
  }
  for (int64_t d = 1; d < places; ++d) {
    x = prim::window(x, d + 2 + remainders, shape_of(c.w)[d + 2], c.stride[d], c.w_dilation[d]);
    of_x.push_back(places + 2 + remainders + d);
    of_w.push_back(d + 1 + remainders);
  }
  of_x.push_back(places + 2 + remainders);
  of_w.push_back(places + 1 + remainders);
  Value y = prim::dot_general(x, w, of_x, of_w, {0}, {1});  // products, images, tiles, columns…, results

  return rows_of_tiles(each_of(y, 0, form.products()), form, 1, rows, out);
}

bool takes_winograd_of_places(const Conv& c, const Shape& result, const PassContext& context) {
  const Shape& w = shape_of(c.w);
  if (!is_plain(c, context) || !all_one(c.stride) || !all_constant(c.w_dilation) || !result[2].is_constant())
    return false;
  const int64_t step = c.w_dilation[0].constant(), few = result[2].constant() / step;
  return result[2].is(few * step) && (few == 2 || few == 3) && at_least(result[0], kFewChannels, context) &&
         at_least(result[1], kFewChannels, context) && tile_for(w[2], few, context) &&
         at_least(w[1] * product_from(w, 2), kFewSummed, context);
}

Value winograd_of_places(const Conv& c, const Shape& result, Primitives& out, const PassContext& context) {
  // Of some taps at a time the few results; their products are summed up over all of these. Results at steps from each other, of one remainder,
  // are neighbours among the elements of that one.
  const int64_t step = c.w_dilation[0].constant(), few = result[2].constant() / step;
  DType t = ops::dtype_of(c.x);
  auto places = static_cast<int64_t>(c.spatial());
  Expr taps = shape_of(c.w)[2];
  const int64_t tile = *tile_for(taps, few, context), remainders = step > 1;
  const Form form = {few, tile};
  Expr tiles = ceildiv(taps, tile);

  // Channels last, as the convolution itself has it: in a graph of both it is one value. Rows of the product are columns of its memory then,
  // which the parts of a long sum keep near; sums of unknown length are not made in parts.
  Exprs none(c.spatial(), 0), high = c.high, behind = none;
  behind[0] = tiles * tile - taps;
  high[0] = (tiles * tile + few - 1) * step - shape_of(c.x)[2] - c.low[0];
  Dims first_last = ops::counted(1, places + 1);
  first_last.push_back(0);
  const bool last = all_constant(shape_of(c.x)) && all_constant(shape_of(c.w));
  const int64_t rows = last ? 1 : 2;  // the dimension, behind the images'
  Value x = c.x;
  if (last) {
    x = without_detours(prim::transpose(x, first_last));
    if (is_view(prim_of(x))) x = in_memory(x, out);
  }
  x = bordered(x, c.low, high, c.x_dilation, rows);
  x = products_of(apart(last ? x : in_memory(x, out), rows, step), form, rows, tiles, tile, out);

  Value w = in_memory(bordered(prim::transpose(c.w, first_last), none, behind, c.x_dilation, 1), out);
  std::vector<Value> parts = rows_in_tiles(w, 1, tiles, tile, tile);
  Value g = constants(Algorithm(form).g, t, out);
  w = in_memory(combined(g, parts, with(shape_of(parts[0]), 0, form.products()), 0), out);

  Dims of_x = {rows, rows + 1}, of_w = {1, 2};
  for (int64_t d = 1; d < places; ++d) {
    x = prim::window(x, rows + 1 + remainders + d, shape_of(c.w)[d + 2], c.stride[d], c.w_dilation[d]);
    of_x.push_back(places + 2 + remainders + d);
    of_w.push_back(d + 2);
  }
  Value y = prim::dot_general(x, w, of_x, of_w, {0}, {0});
  // The channels of each product stand behind the columns, or before them: they come first, and the few rows behind them.
  parts = each_of(y, 0, form.products());
  const int64_t channels = last ? places - 1 + remainders : 0;
  for (Value& part : parts) {
    Dims order = other_dims({channels}, places + 1 + remainders);
    order.insert(order.begin(), channels);
    part = prim::transpose(part, order);
  }
  y = in_memory(combined(constants(Algorithm(form).a, t, out), parts, with(shape_of(parts[0]), 1, few), 1), out);
  if (remainders) y = ops::merge_dims(y, 1, 2);
  return prim::transpose(y, channels_to_front(c.spatial() + 2));
}

}  // namespace brasa::compiler
