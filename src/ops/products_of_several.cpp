#include <algorithm>
#include <functional>

#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"
#include "support/str.h"

// Products of more than two operands, or not of rows and columns.
namespace brasa::ops {
namespace {

Value bilinear(Value a, Value b, Value w, Value bias) {
  check_rank("bilinear", "weight", w, 3);
  BRASA_CHECK(rank_of(a) == rank_of(b) && rank_of(a) >= 1, "bilinear(): input dimensions do not match: got ",
              type_of(a), " and ", type_of(b));
  BRASA_CHECK(
      same_size(size_of(a, rank_of(a) - 1), size_of(w, 1)) && same_size(size_of(b, rank_of(b) - 1), size_of(w, 2)),
      "bilinear(): inputs ", type_of(a), " and ", type_of(b), " do not fit weight ", type_of(w));
  Value out = call("aten::einsum", {"...i,oij,...j->...o", std::vector<Value>{a, w, b}});
  return bias ? out + bias : out;
}

// The cheapest order to multiply a chain of matrices: of products that take as long, the one more to the left goes first.
Value multi_dot(std::vector<Value> xs) {
  BRASA_CHECK(xs.size() >= 2, "multi_dot(): expected at least 2 tensors but got ", xs.size());
  bool row = rank_of(xs.front()) == 1, column = rank_of(xs.back()) == 1;
  if (row) xs.front() = unsqueeze(xs.front(), 0);
  if (column) xs.back() = unsqueeze(xs.back(), 1);
  size_t n = xs.size();
  Shape sizes;
  for (Value x : xs) {
    BRASA_CHECK(rank_of(x) == 2, "multi_dot(): expected 2-D tensors (1-D at the ends), got ", type_of(x));
    sizes.push_back(size_of(x, 0));
  }
  sizes.push_back(size_of(xs.back(), 1));
  std::vector<Shape> cost(n, Shape(n, Expr(0)));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      size_t j = i + length;
      for (size_t k = j; k-- > i;) {
        Expr c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (k + 1 < j && !is_less(c, cost[i][j])) continue;
        cost[i][j] = c;
        cut[i][j] = k;
      }
    }
  std::function<Value(size_t, size_t)> range = [&](size_t i, size_t j) {
    return i == j ? xs[i] : call("aten::mm", {range(i, cut[i][j]), range(cut[i][j] + 1, j)});
  };
  Value out = range(0, n - 1);
  if (column) out = squeeze(out, 1);
  if (row) out = squeeze(out, 0);
  return out;
}
Value chain_matmul(std::vector<Value> xs) {
  for (Value x : xs) check_rank("chain_matmul", "a matrix", x, 2);
  return xs.size() == 1 ? xs[0] : multi_dot(std::move(xs));
}

Value kron(Value a, Value b) {
  int64_t rank = std::max(rank_of(a), rank_of(b));
  Shape sa(rank - rank_of(a), Expr(1)), sb(rank - rank_of(b), Expr(1)), left, right, out;
  sa.insert(sa.end(), shape_of(a).begin(), shape_of(a).end());
  sb.insert(sb.end(), shape_of(b).begin(), shape_of(b).end());
  for (int64_t d = 0; d < rank; ++d) {
    left.insert(left.end(), {sa[d], Expr(1)});
    right.insert(right.end(), {Expr(1), sb[d]});
    out.push_back(sa[d] * sb[d]);
  }
  return prim::reshape(prim::reshape(a, left) * prim::reshape(b, right), out);
}

// Operands that get new dimensions at expand1, expand2 and expand3, multiplied and summed over sumdim.
Value trilinear(Value a, Value b, Value c, Dims expand_a, Dims expand_b, Dims expand_c, Dims summed, int64_t) {
  auto widened = [](Value v, Dims dims) {
    dims = wrap_dims(dims, rank_of(v) + static_cast<int64_t>(dims.size()));
    std::sort(dims.begin(), dims.end());
    for (int64_t d : dims) v = unsqueeze(v, d);
    return v;
  };
  a = widened(a, expand_a), b = widened(b, expand_b), c = widened(c, expand_c);
  BRASA_CHECK(rank_of(a) == rank_of(b) && rank_of(a) == rank_of(c),
              "_trilinear: expected operands of one rank with their new dimensions, got ", type_of(a), ", ", type_of(b),
              " and ", type_of(c));
  Value out = a * b * c;
  return sum(out, wrap_dims(summed, rank_of(out)));
}

// a × b of three elements along a dimension.
Value cross_along(Value a, Value b, int64_t dim) {
  auto [x, y] = promoted(a, b);
  dim = wrap_dim(dim, rank_of(x));
  BRASA_CHECK(same_size(size_of(x, dim), 3), "linalg.cross: inputs dimension ", dim, " must have length 3. Got ",
              type_of(a), " and ", type_of(b));
  auto turned = [&](Value v, int64_t by) {
    return prim::concat({narrow(v, dim, by, 3 - by), narrow(v, dim, 0, by)}, dim);
  };
  return turned(x, 1) * turned(y, 2) - turned(x, 2) * turned(y, 1);
}
Value cross(Value a, Value b, std::optional<int64_t> dim) {
  if (dim) return cross_along(a, b, *dim);
  for (int64_t d = 0; d < rank_of(a); ++d)
    if (same_size(size_of(a, d), 3)) return cross_along(a, b, d);
  fail(str("no dimension of size 3 in input ", type_of(a)));
}

}  // namespace

void add_products_of_several(Table& t) {
  t.op("aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
      .doc("Σ input1ᵢ weightₒᵢⱼ input2ⱼ + biasₒ.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed(bilinear)
      .samples({{floats(2, 3), floats(2, 4), floats(5, 3, 4), floats(5)}});
  const std::vector<Sample> chains = {{std::vector<TensorSample>{floats(2, 3), floats(3, 4), floats(4, 1)}}};
  t.op("aten::linalg_multi_dot(Tensor[] tensors) -> Tensor")
      .doc("Product of a chain of matrices in the cheapest order.")
      .autocast(Autocast::Lower)
      .composed(multi_dot)
      .samples(chains);
  t.op("aten::chain_matmul(Tensor[] matrices) -> Tensor")
      .doc("Product of a chain of matrices in the cheapest order.")
      .autocast(Autocast::Lower)
      .composed(chain_matmul)
      .samples(chains);
  t.op("aten::kron(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("Kronecker product.")
      .composed(kron)
      .samples({{floats(2, 3), floats(2)}});
  t.op("aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor")
      .doc("Three operands with new dimensions, multiplied and summed over dimensions.")
      .composed_in_opmath(trilinear)
      .one_dtype({"i1", "i2", "i3"})
      .samples({{floats(1, 3), floats(5, 3, 4), floats(1, 4), list({1, 3}), list({0}), list({1, 2}), list({2, 3})}});
  t.op("aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor")
      .doc("Vector product along a dimension of size 3, by default the first such.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed(cross)
      .one_dtype({"self", "other"})
      .samples({{floats(2, 3), floats(2, 3)}});
  t.op("aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor")
      .doc("Vector product along a dimension of size 3.")
      .composed(cross_along)
      .one_dtype({"self", "other"})
      .samples({{floats(2, 3), floats(1, 3)}});
}

}  // namespace brasa::ops
