#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/attention_math.h"
#include "ops/random_key.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::ops {
namespace {

struct Attention {
  Value query, key, value;  // [batch…, heads, length, features]
  Value mask;
  bool causal;
  Value scale;
  double dropout = 0;
  Value random;
  Value dropout_mask;

  int64_t rank() const { return rank_of(query); }
  Expr length() const { return size_of(query, rank() - 2); }
  Expr sources() const { return size_of(key, rank() - 2); }
};

// Operands of equal batch dimensions; queries of several heads that share a key head stay side by side.
struct Grouped {
  Value query, key, value;
  Shape scores;  // [batch…, heads, length, sources]
};

Grouped grouped(const Attention& a, bool grouped_heads) {
  int64_t rank = a.rank(), n = rank - 2;
  Shape batch(shape_of(a.query).begin(), shape_of(a.query).end() - 2), scores;
  Grouped g{a.query, a.key, a.value, {}};
  auto with_batch = [&](Value v, const Shape& b) {
    Shape shape = b;
    shape.insert(shape.end(), shape_of(v).end() - 2, shape_of(v).end());
    return broadcast_to(v, shape);
  };
  Expr heads = n > 0 ? size_of(a.query, n - 1) : Expr(1), own = n > 0 ? size_of(a.key, n - 1) : Expr(1);
  bool folds = grouped_heads && n > 0 && !same_size(heads, own);
  if (folds) {
    BRASA_CHECK(
        same_size(own, size_of(a.value, n - 1)) && !same_size(own, 0) && same_size(ir::mod(heads, own), 0),
        "scaled_dot_product_attention: with enable_gqa the number of query heads must be a multiple of the number of key and "
        "value heads, got ",
        type_of(a.query), ", ", type_of(a.key), " and ", type_of(a.value));
    batch[n - 1] = own;
    Shape folded = batch;
    folded.push_back(ir::floordiv(heads, own) * a.length());
    folded.push_back(size_of(a.query, rank - 1));
    g.query = prim::reshape(a.query, folded);
  }
  for (Value v : {a.key, a.value}) batch = broadcast_shapes(batch, Shape(shape_of(v).begin(), shape_of(v).end() - 2));
  g.query = with_batch(g.query, batch);
  g.key = with_batch(a.key, batch);
  g.value = with_batch(a.value, batch);
  g.scores = batch;
  if (folds) g.scores[n - 1] = heads;
  g.scores.push_back(a.length());
  g.scores.push_back(a.sources());
  return g;
}

// Several query heads' key and value as one for each.
Value repeated(Value v, Expr heads) {
  int64_t n = rank_of(v) - 3;
  Expr own = size_of(v, n);
  if (same_size(own, heads)) return v;
  Shape shape = shape_of(v), each = shape;
  shape[n] = heads;
  each.insert(each.begin() + n + 1, ir::floordiv(heads, own));
  return prim::reshape(broadcast_to(unsqueeze(v, n + 1), each), shape);
}

// As heads of four dimensions, which targets take: batches as one, and one batch where there is none.
Value as_heads(Value v, const Shape& batch) {
  Shape shape = batch, own(shape_of(v).end() - 2, shape_of(v).end());
  shape.insert(shape.end(), own.begin(), own.end());
  v = broadcast_to(v, shape);
  while (rank_of(v) < 4) v = unsqueeze(v, 0);
  return rank_of(v) > 4 ? merge_dims(v, 0, rank_of(v) - 4) : v;
}

std::optional<Value> of_heads(const HeadAttention& a, bool repeated) {
  static constinit Lazy<const Row&> without(
      []() -> auto& { return at("aten::_scaled_dot_product_flash_attention_for_cpu"); });
  static constinit Lazy<const Row&> with([]() -> auto& { return at("brasa::attention_with_dropout"); });
  Arg mask = a.mask ? Arg(a.mask) : Arg(), scale = a.scale ? Arg(*a.scale) : Arg();
  auto fits = [&] {
    return same_size(size_of(a.query, 3), size_of(a.value, 3)) && !same_size(size_of(a.query, 3), 0) &&
           (!a.mask || (rank_of(a.mask) <= 4 && is_mask_for(dtype_of(a.mask), dtype_of(a.query))));
  };
  if (Builder::current().keeps(a.random ? *with : *without)) {
    if (!fits()) return std::nullopt;
    if (!a.random) return Builder::current().call(*without, {a.query, a.key, a.value, 0.0, a.causal, mask, scale})[0];
    return Builder::current().call(*with, {a.query, a.key, a.value, mask, a.random, a.dropout, a.causal, scale})[0];
  }
  if (auto whole = attention_of_target(a)) return (*whole)[0];
  if (a.mask && !a.random)
    if (auto masked = masked_attention_of_target(a.query, a.key, a.value, a.mask, a.scale)) return masked;
  // As that row computes it, so that a graph of a call and of its derivative has each value once. Repeated heads would be copied.
  if (repeated || !fits()) return std::nullopt;
  return attention_by_scores(attention_operands(a), a.query, a.value)[0];
}

// By a kernel of the target, where it has one; or as the row whose derivative reads its results, where rows with derivatives stay.
std::optional<Value> whole(const Attention& a, bool grouped_heads, std::optional<double> scale) {
  int64_t n = a.rank() - 2;
  Value k = a.key, v = a.value, mask = a.mask;
  bool repeats = false;
  if (grouped_heads && n > 0) {
    Expr heads = size_of(a.query, n - 1), own = size_of(k, n - 1);
    repeats = !same_size(heads, own);
    if (!same_size(own, size_of(v, n - 1)) || same_size(own, 0) || !same_size(ir::mod(heads, own), 0))
      return std::nullopt;
    k = repeated(k, heads);
    v = repeated(v, heads);
  }
  auto batch_of = [](Value x) { return Shape(shape_of(x).begin(), shape_of(x).end() - 2); };
  Shape batch = batch_of(a.query);
  for (Value x : {k, v}) batch = broadcast_shapes(batch, batch_of(x));
  if (mask && rank_of(mask) > 3 && n > 2) {
    Shape all = batch;
    all.insert(all.end(), {a.length(), a.sources()});
    mask = merge_dims(broadcast_to(mask, all), 0, n - 2);
  }
  HeadAttention heads{as_heads(a.query, batch), as_heads(k, batch), as_heads(v, batch), mask, a.causal, scale};
  if (a.dropout > 0) {
    heads.random = derived_key(a.random);
    heads.dropout = a.dropout;
  }
  auto out = of_heads(heads, repeats);
  if (!out) return out;
  Shape shape = batch;
  shape.insert(shape.end(), {a.length(), size_of(a.value, a.rank() - 1)});
  return prim::reshape(*out, shape);
}

// {output, probabilities}.
std::array<Value, 2> attend(const Attention& a, bool grouped_heads) {
  int64_t rank = a.rank(), n = rank - 2;
  Grouped g = grouped(a, grouped_heads);
  DType t = dtype_of(a.query);
  Value s = call("aten::_attention_scores", {g.query, g.key});
  s = prim::reshape(s, g.scores) * a.scale;
  if (a.causal) s = prim::select(band(g.scores, "le", 0), s, constant_like(s, -kInfinity));
  if (a.mask) {
    Value mask = broadcast_to(a.mask, g.scores);
    s = dtype_of(mask) == DType::Bool ? prim::select(mask, s, constant_like(s, -kInfinity))
                                      : s + convert(mask, dtype_of(s));
  }
  Value p = call(a.mask ? "aten::_safe_softmax" : "aten::softmax.int", {s, -1, Arg()});
  if (a.dropout_mask)
    p = where(a.dropout_mask, p, zeros_like(p)) * (1 / (1 - a.dropout));
  else if (a.dropout > 0) {
    Value kept = ge(uniform(derived_key(a.random), g.scores, DType::Float32), a.dropout);
    p = prim::select(kept, p, zeros_like(p)) * (a.dropout < 1 ? 1 / (1 - a.dropout) : 0.0);
  }
  p = convert(p, t);
  Shape folded(shape_of(g.query).begin(), shape_of(g.query).end() - 1), shape(g.scores.begin(), g.scores.end() - 1);
  folded.push_back(a.sources());
  Value out = prim::dot_general(prim::reshape(p, folded), g.value, {rank - 1}, {n}, counted(0, n), counted(0, n));
  shape.push_back(size_of(a.value, rank - 1));
  return {prim::reshape(out, shape), p};
}

Attention checked(Value q, Value k, Value v, Value mask, double dropout, bool causal, std::optional<double> scale) {
  BRASA_CHECK(rank_of(q) >= 2 && rank_of(k) >= 2 && rank_of(v) >= 2,
              "scaled_dot_product_attention: expected query, key and value with two dimensions or more, got ",
              type_of(q), ", ", type_of(k), " and ", type_of(v));
  int64_t rank = std::max({rank_of(q), rank_of(k), rank_of(v)});
  for (Value* operand : {&q, &k, &v})
    while (rank_of(*operand) < rank) *operand = unsqueeze(*operand, 0);
  BRASA_CHECK(
      dtype_of(q) == dtype_of(k) && dtype_of(q) == dtype_of(v) && is_floating(dtype_of(q)),
      "Expected query, key, and value to have the same floating dtype, but got query.dtype: ", name(dtype_of(q)),
      " key.dtype: ", name(dtype_of(k)), " and value.dtype: ", name(dtype_of(v)), " instead.");
  BRASA_CHECK(
      same_size(size_of(q, rank - 1), size_of(k, rank - 1)) && same_size(size_of(k, rank - 2), size_of(v, rank - 2)),
      "scaled_dot_product_attention: query ", type_of(q), " and key ", type_of(k),
      " must agree in their last size, key and value ", type_of(v), " in their length");
  BRASA_CHECK(!mask || dtype_of(mask) == DType::Bool || is_floating(dtype_of(mask)),
              "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
              name(dtype_of(mask)), " and query.dtype: ", name(dtype_of(q)), " instead.");
  BRASA_CHECK(!mask || !causal, "Explicit attn_mask should not be set when is_causal=True");
  BRASA_CHECK(dropout >= 0 && dropout <= 1, "dropout probability has to be between 0 and 1, but got ", dropout);
  Value factor = attention_scale(scale, size_of(q, rank - 1), opmath(dtype_of(q)));
  return {q, k, v, mask, causal, factor, dropout, {}, {}};
}

// Products of reduced floats are exact in float32, so this is one contraction of the narrow operands that is not rounded.
Value scores(Value q, Value k) {
  BRASA_CHECK(rank_of(q) >= 2 && rank_of(k) == rank_of(q),
              "_attention_scores: query and key must have as many dimensions, at least 2, got ", type_of(q), " and ",
              type_of(k));
  int64_t n = rank_of(q) - 2;
  return prim::dot_general(to_opmath(q), to_opmath(k), {n + 1}, {n + 1}, counted(0, n), counted(0, n));
}
// The cotangent is rounded to the operands' dtype, as PyTorch's kernels do, so that the products are of narrow operands.
std::vector<Value> scores_vjp(const Node& call, std::span<const Value> cts, const std::vector<bool>&) {
  Value q = call.arg<Value>(0), k = call.arg<Value>(1), g = convert(cts[0], dtype_of(q));
  int64_t n = rank_of(q) - 2;
  Dims batch = counted(0, n);
  return {prim::dot_general(g, k, {n + 1}, {n}, batch, batch), prim::dot_general(g, q, {n}, {n}, batch, batch)};
}

Value attention(Value q, Value k, Value v, Value mask, double dropout, bool causal, std::optional<double> scale,
                bool gqa, Value key) {
  Attention a = checked(q, k, v, mask, dropout, causal, scale);
  a.random = key;
  BRASA_CHECK(dropout == 0 || key, "scaled_dot_product_attention: dropout needs a generator");
  if (auto out = whole(a, gqa, scale)) return *out;
  return attend(a, gqa)[0];
}

std::array<Value, 2> attention_math(Value q, Value k, Value v, Value mask, double dropout, bool causal,
                                    Value dropout_mask, std::optional<double> scale, bool gqa, Value key) {
  Attention a = checked(q, k, v, mask, dropout, causal, scale);
  a.random = key;
  a.dropout_mask = dropout_mask;
  return attend(a, gqa);
}

}  // namespace

void add_attention(Table& t) {
  t.op("aten::_attention_scores(Tensor query, Tensor key) -> Tensor")
      .doc("query · keyᵀ of equal batch dimensions; of reduced floats in float32.")
      .not_in_pytorch()
      .composed(scores)
      .vjp(scores_vjp)
      .samples({{floats(2, 3, 4), floats(2, 5, 4)}, {floats(3, 4), floats(0, 4)}});
  t.op("aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor")
      .doc(
          "softmax(query · keyᵀ · scale + mask) · value (Vaswani et al. 2017); scale is 1/√features if not given. A bool mask is true where "
          "to attend. With enable_gqa several query heads share a key head.")
      .autocast(Autocast::Lower)
      .random()
      .composed(attention)
      .samples({{floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 3)},
                {floats(2, 4, 3, 4), floats(2, 2, 3, 4), floats(2, 2, 3, 4), ir::None{}, 0.0, true, ir::None{}, true},
                {floats(1, 3, 4), floats(1, 5, 4), floats(1, 5, 4), bools(3, 5)}});
  t.op("aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)")
      .doc("scaled_dot_product_attention, with the probabilities.")
      .random()
      .composed(attention_math)
      .samples({{floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 3)}});
}

}  // namespace brasa::ops
