#include "ops/norms.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// ‖difference‖ₚ over a dimension.
Value norm_of(Value difference, const Number& p, int64_t dim) {
  Value a = abs(difference);
  Dims dims = {dim};
  if (p.is(0)) return sum(minimum(prim::unary("ceil", a), constant_like(a, 1)), dims);  // a NaN stays one
  if (is_infinite(p)) return same_size(size_of(a, dim), 0) ? sum(a, dims) : amax(a, dims);
  if (p.is(1)) return sum(a, dims);
  if (p.is(2)) return sqrt(sum(a * a, dims));
  return pow(sum(pow(a, p), dims), 1.0 / p);
}

// g ∂‖d‖ₚ/∂d for each element, and 0 where the distance is; g and the norm over this dimension broadcast along it.
Value norm_pulled(Value g, Value difference, Value norm, const Number& p, int64_t dim) {
  auto along_dim = [&](Value v) { return broadcast_to(unsqueeze(v, dim), shape_of(difference)); };
  Value apart = where(eq(norm, 0), constant_like(norm, 1), norm);
  if (p.is(2)) return along_dim(where(eq(norm, 0), zeros_like(g), g / apart)) * difference;
  Value a = abs(difference), sign = prim::unary("sign", difference), zero = zeros_like(a), pulled = along_dim(g);
  if (p.is(0)) return pulled * zero;
  if (p.is(1)) return pulled * sign;
  if (is_infinite(p)) return pulled * where(eq(a, along_dim(norm)), sign, zero);
  Value base = where(eq(a, 0), constant_like(a, 1), a);
  Value d = sign * pow(base, p - 1) / pow(along_dim(apart), p - 1);
  return pulled * where(logical_or(eq(along_dim(norm), 0), eq(a, 0)), zero, d);
}

void check_p(double p) { BRASA_CHECK(p >= 0, "distance: only supports non-negative p values, got ", p); }
void check_cdist(Value, Value, double p, std::optional<int64_t> mode) {
  check_p(p);
  int64_t m = mode.value_or(0);
  BRASA_CHECK(m >= 0 && m <= 2, "cdist: possible modes: 0, 1, 2, but was: ", m);
}

// All differences of rows: [..., P, M] and [..., R, M] as [..., P, R, M].
Value differences(Value a, Value b) { return unsqueeze(a, rank_of(a) - 1) - unsqueeze(b, rank_of(b) - 2); }

void check_rows(Value a, Value b) {
  BRASA_CHECK(rank_of(a) >= 2 && rank_of(b) >= 2, "cdist only supports at least 2D tensors, got ", type_of(a), " and ",
              type_of(b));
  BRASA_CHECK(same_size(size_of(a, rank_of(a) - 1), size_of(b, rank_of(b) - 1)),
              "X1 and X2 must have the same number of columns. X1: ", type_of(a), " X2: ", type_of(b));
  BRASA_CHECK(is_floating(dtype_of(a)) && is_floating(dtype_of(b)), "cdist only supports floating-point dtypes, got ",
              type_of(a), " and ", type_of(b));
}

Shape leading(Value x) { return {shape_of(x).begin(), shape_of(x).end() - 2}; }

std::array<Value, 2> in_one_batch(Value a, Value b) {
  Shape batch = broadcast_shapes(leading(a), leading(b));
  auto with_batch = [&](Value x) {
    Shape shape = batch;
    for (int64_t d = rank_of(x) - 2; d < rank_of(x); ++d) shape.push_back(size_of(x, d));
    return broadcast_to(x, shape);
  };
  return {with_batch(a), with_batch(b)};
}

// √(‖a‖² + ‖b‖² - 2 a·b), by a product of matrices: equal rows may be as far apart as the roundings of their squares.
Value euclidean_dist(Value x, Value y) {
  check_rows(x, y);
  auto [a, b] = in_one_batch(x, y);
  int64_t last = rank_of(a) - 1;
  Dims batched = counted(0, last - 1);
  Value product = prim::dot_general(a, b, {last}, {last}, batched, batched);
  Value square = sum(a * a, {last}, true) + unsqueeze(sum(b * b, {last}), last - 1) - 2 * product;
  return sqrt(maximum(square, zeros_like(square)));
}

// PyTorch's choices of compute_mode for p = 2, and the number of rows from which on the first one takes a product.
enum Mode : int64_t { kProductOfMany = 0, kProduct = 1, kDifferences = 2 };
constexpr int64_t kMany = 26;

bool takes_product(Value a, Value b, const Number& p, std::optional<int64_t> mode) {
  if (!p.is(2) || mode == kDifferences) return false;
  auto many = [](Value x) { return !is_less(size_of(x, rank_of(x) - 2), kMany); };
  return mode == kProduct || many(a) || many(b);
}

Value cdist(Value a, Value b, Number p, std::optional<int64_t> mode) {
  check_rows(a, b);
  if (takes_product(a, b, p, mode)) return euclidean_dist(a, b);
  Value d = differences(a, b);
  return norm_of(d, p, rank_of(d) - 1);
}

std::array<Value, 2> cdist_pulled(Value g, Value a, Value b, const Number& p, Value norm) {
  Value d = differences(a, b), each = norm_pulled(g, d, norm, p, rank_of(d) - 1);
  return {sum(each, {rank_of(d) - 2}), -sum(each, {rank_of(d) - 3})};
}
// The same of a distance by a product, by products: with w = g / distance, ∑ⱼ wᵢⱼ (aᵢ - bⱼ) = aᵢ ∑ⱼ wᵢⱼ - (w b)ᵢ.
std::array<Value, 2> euclidean_pulled(Value g, Value x, Value y, Value norm) {
  auto [a, b] = in_one_batch(x, y);
  Value zero = eq(norm, 0), w = where(zero, zeros_like(g), g / where(zero, constant_like(norm, 1), norm));
  int64_t rows = rank_of(w) - 2, last = rows + 1;
  Dims batched = counted(0, rows);
  auto half = [&](Value self, Value other, int64_t along) {
    Value sums = unsqueeze(sum(w, {along}), last);
    return self * broadcast_to(sums, shape_of(self)) - prim::dot_general(w, other, {along}, {rows}, batched, batched);
  };
  return {half(a, b, last), half(b, a, rows)};
}
Value cdist_backward(Value g, Value a, Value b, Number p, Value norm) {
  Value pulled = cdist_pulled(g, a, b, p, norm)[0];
  return same_size(type_of(pulled).numel(), 0) ? zeros_like(a) : pulled;
}
std::vector<Value> cdist_vjp(const Saved& s) {
  Value a = s.in(0), b = s.in(1);
  Number p = s.arg<Number>(2);
  bool product = takes_product(a, b, p, s.arg<std::optional<int64_t>>(3));
  auto [x, y] = product ? euclidean_pulled(s.ct(), a, b, s.out()) : cdist_pulled(s.ct(), a, b, p, s.out());
  return {x, y};
}
std::vector<Value> euclidean_vjp(const Saved& s) {
  auto [a, b] = euclidean_pulled(s.ct(), s.in(0), s.in(1), s.out());
  return {a, b};
}

// --- pairs of rows of one matrix ---

// In 32 bits, of which vectors hold more, as far as (2 n - 1)² is below 2^30.
DType index_type(int64_t n) { return n <= 1 << 14 ? DType::Int32 : DType::Int64; }
// Row i's pairs start at i (2 n - 1 - i) / 2.
Value first_pair(Value i, int64_t n) {
  return prim::binary("shr", i * (constant_like(i, 2 * n - 1) - i), constant_like(i, 1));
}

struct Pairs {
  Value first, second;  // indices of rows, in lexicographic order
};
Pairs pairs_of(int64_t n) {
  Shape shape = {Expr(n * (n - 1) / 2)};
  DType t = index_type(n), floating = t == DType::Int32 ? DType::Float32 : DType::Float64;
  Value k = prim::iota(shape, 0, t), m = constant_like(k, 2 * n - 1);
  // Pair k's row is a root of a quadratic equation, or rounded, a neighbour of it.
  Value root = (convert(m, floating) - sqrt(convert(m * m - k * 8, floating))) * 0.5;
  Value i = convert(prim::unary("floor", root), t);
  Value start = first_pair(i, n), count = constant_like(i, n - 1) - i;  // row i's pairs; the row before has one more
  Value before = lt(k, start), behind = le(start + count, k);
  start = where(before, start - count - 1, where(behind, start + count, start));
  i = i - convert(before, t) + convert(behind, t);
  return {convert(i, DType::Int64), convert(k - start + i + 1, DType::Int64)};
}

// Where an element takes no powers, a square of all rows with all rows is faster than its half: it is made of whole vectors.
bool takes_square(const Number& p) { return p.is(0) || p.is(1) || p.is(2) || is_infinite(p); }
// [columns, rows, rows]
Value square_of_differences(Value x) {
  Value columns = transpose(x, 0, 1);
  return unsqueeze(columns, 2) - unsqueeze(columns, 1);
}
Value differences_of(Value x, const Pairs& pairs) {
  return prim::gather(x, {pairs.first}, {0}) - prim::gather(x, {pairs.second}, {0});
}

Value pdist(Value x, Number p) {
  check_rank("pdist", "a matrix", x, 2);
  BRASA_CHECK(is_floating(dtype_of(x)), "pdist only supports floating-point dtypes, got ", type_of(x));
  int64_t n = known_size(size_of(x, 0));
  if (n < 2) return full(0, {Expr(0)}, dtype_of(x));
  Pairs pairs = pairs_of(n);
  // Of one column every norm is the difference itself.
  if (is_one(size_of(x, 1))) return norm_of(differences_of(x, pairs), p.is(0) ? p : Number(1), 1);
  if (!takes_square(p)) return norm_of(differences_of(x, pairs), p, 1);
  return prim::gather(norm_of(square_of_differences(x), p, 0), {pairs.first, pairs.second}, {0, 1});
}

// What pairs have, for each two rows in either order; 0 for a row and itself.
Value in_square(Value of_pairs, int64_t n) {
  Shape square = {Expr(n), Expr(n)};
  Value i = prim::iota(square, 0, index_type(n)), j = prim::iota(square, 1, index_type(n));
  Value place = where(lt(i, j), first_pair(i, n) + j - i, first_pair(j, n) + i - j) - 1, itself = eq(i, j);
  Value v = prim::gather(of_pairs, {convert(where(itself, zeros_like(place), place), DType::Int64)}, {0});
  return where(itself, zeros_like(v), v);
}

Value pdist_backward(Value g, Value x, Number p, Value norm) {
  int64_t n = known_size(size_of(x, 0));
  if (n < 2) return zeros_like(x);
  if (!takes_square(p)) {
    Pairs pairs = pairs_of(n);
    Value each = norm_pulled(g, differences_of(x, pairs), norm, p, 1);
    return prim::scatter(prim::scatter(zeros_like(x), {pairs.first}, each, {0}, "add"), {pairs.second}, -each, {0},
                         "add");
  }
  Value each = norm_pulled(in_square(g, n), square_of_differences(x), in_square(norm, n), p, 0);
  return transpose(sum(each, {2}), 0, 1);
}
std::vector<Value> pdist_vjp(const Saved& s) { return {pdist_backward(s.ct(), s.in(0), s.arg<Number>(1), s.out())}; }

// x₁·x₂ / (max(‖x₁‖, ε) max(‖x₂‖, ε)).
Value cosine_similarity(Value a, Value b, int64_t dim, Number eps) {
  auto [x, y] = promoted(a, b);
  BRASA_CHECK(is_floating(dtype_of(x)), "cosine_similarity: expected a floating dtype, but got ", name(dtype_of(x)));
  Dims dims = {wrap_dim(dim, rank_of(x))};
  if (rank_of(x) == 0) dims.clear();
  auto scaled = [&](Value v) {
    Value square = sum(v * v, dims, true), small = constant_like(square, eps * eps);
    // The root of what is never 0, so that its derivative is finite.
    return v / where(gt(square, small), sqrt(where(gt(square, small), square, constant_like(square, 1))),
                     constant_like(square, eps));
  };
  return sum(scaled(x) * scaled(y), dims);
}

}  // namespace

void add_distance(Table& t) {
  const std::vector<Sample> rows = {{floats(3, 4), floats(2, 4), 2.0, ir::None{}},
                                    {floats(2, 3, 2), floats(2, 1, 2), 1.5, ir::None{}},
                                    {floats(2, 3), floats(3, 3), 1.0, ir::None{}},
                                    {floats(2, 3, 4), floats(2, 4), 2.0, 1}};
  t.op("aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor")
      .doc("The p-norm distances between all rows of two batches of matrices.")
      .autocast(Autocast::Float32)
      .composed_in_opmath(cdist)
      .precondition(check_cdist)
      .special("p", kNormOrders)
      .vjp(own_derivative(cdist_vjp))
      .samples(rows);
  t.op("aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor")
      .doc("As cdist.")
      .composed_in_opmath(cdist)
      .precondition(check_cdist)
      .special("p", kNormOrders)
      .vjp(own_derivative(cdist_vjp))
      .samples(rows);
  t.op("aten::_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor")
      .doc("The gradient of cdist's first input, of the shape to which the second one's batch broadcasts it.")
      .composed_in_opmath(cdist_backward)
      .special("p", kNormOrders)
      .one_dtype({"grad_output", "x1", "x2", "cdist"})
      .samples({{floats(3, 2), floats(3, 4), floats(2, 4), 2.0, floats(3, 2).in(1, 2)},
                {floats(2, 3, 1), floats(3, 2), floats(2, 1, 2), 1.0, floats(2, 3, 1).in(1, 2)}});
  t.op("aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor")
      .doc("Euclidean distances between all rows of two batches of matrices.")
      .composed_in_opmath(euclidean_dist)
      .one_dtype({"x1", "x2"})
      .vjp(own_derivative(euclidean_vjp))
      .samples({{floats(3, 4), floats(2, 4)}});
  t.op("aten::_pdist_forward(Tensor self, float p=2.) -> Tensor")
      .doc("The p-norm distances between all pairs of rows.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath(pdist)
      .precondition([](Value, double p) { check_p(p); })
      .special("p", kNormOrders)
      .vjp(own_derivative(pdist_vjp))
      .samples({{floats(4, 3), 2.0}, {floats(1, 2), 1.0}});
  t.alias("aten::pdist", "aten::_pdist_forward");
  t.op("aten::_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor")
      .doc("The gradient of pdist's input.")
      .composed_in_opmath(pdist_backward)
      .special("p", kNormOrders)
      .one_dtype({"grad_output", "self", "pdist"})
      .samples({{floats(3), floats(3, 2), 2.0, floats(3).in(1, 2)}});
  t.op("aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
      .doc("Products over the norms along a dimension, each norm at least eps.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath(cosine_similarity)
      .samples({{floats(3, 4), floats(3, 4)}, {floats(2, 3), floats(1, 3), 0}});
}

}  // namespace brasa::ops
