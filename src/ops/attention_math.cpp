#include "ops/attention_math.h"

#include <cmath>

#include "ops/decompose.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "ops/softmax.h"
#include "support/error.h"

namespace brasa::ops {

bool is_mask_for(DType mask, DType query) { return mask == DType::Bool || mask == query || mask == DType::Float32; }

Value attention_scale(std::optional<double> scale, Expr features, DType dtype) {
  features = ir::max(features, 1);
  if (!scale && !features.is_constant()) return rsqrt(size_tensor(features, {}, dtype));
  return full(scale.value_or(1 / std::sqrt(static_cast<double>(features.maybe_constant().value_or(1)))), {}, dtype);
}

AttentionOperands attention_operands(const HeadAttention& a) {
  constexpr const char* op = "_scaled_dot_product_flash_attention_for_cpu";
  Value q = a.query, k = a.key, v = a.value;
  BRASA_CHECK(rank_of(q) == 4 && rank_of(k) == 4 && rank_of(v) == 4, op,
              ": Accept only 4 dims inputs shape of {B, H, T, K}, got ", type_of(q), ", ", type_of(k), " and ",
              type_of(v));
  BRASA_CHECK(is_floating(dtype_of(q)) && dtype_of(q) == dtype_of(k) && dtype_of(q) == dtype_of(v), op,
              ": expected query, key and value of one floating dtype, got ", type_of(q), ", ", type_of(k), " and ",
              type_of(v));
  bool fits = same_size(size_of(q, 3), size_of(k, 3)) && same_size(size_of(k, 2), size_of(v, 2)) &&
              same_size(size_of(k, 3), size_of(v, 3));
  for (int64_t d = 0; fits && d < 2; ++d)
    fits = same_size(size_of(q, d), size_of(k, d)) && same_size(size_of(q, d), size_of(v, d));
  BRASA_CHECK(fits, op, ": query ", type_of(q), ", key ", type_of(k), " and value ", type_of(v),
              " do not fit together");
  BRASA_CHECK(!a.mask || is_mask_for(dtype_of(a.mask), dtype_of(q)), op, ": expected a mask of dtype bool or ",
              name(dtype_of(q)), ", got ", a.mask ? type_of(a.mask) : Type{});
  BRASA_CHECK(
      !a.random || (dtype_of(a.random) == DType::Int64 && rank_of(a.random) == 1 && same_size(size_of(a.random, 0), 2)),
      op, ": expected a generator's key, two int64 numbers, got ", a.random ? type_of(a.random) : Type{});
  BRASA_CHECK(a.dropout >= 0 && a.dropout <= 1, op, ": dropout probability has to be between 0 and 1, but got ",
              a.dropout);
  AttentionOperands o{to_opmath(q),
                      to_opmath(k),
                      to_opmath(v),
                      a.mask,
                      a.causal ? std::optional(Expr(0)) : std::nullopt,
                      {},
                      {size_of(q, 0), size_of(q, 1), size_of(q, 2), size_of(k, 2)},
                      {},
                      a.dropout};
  DType t = dtype_of(o.query);
  o.scale = attention_scale(a.scale, size_of(q, 3), t);
  if (a.random) o.kept = ge(uniform(a.random, o.scores, DType::Float32), a.dropout);
  return o;
}

Value dropped(Value p, Value kept, double dropout) {
  return where(kept, p, zeros_like(p)) * (dropout < 1 ? 1 / (1 - dropout) : 0.0);
}
Value dropped(const AttentionOperands& o, Value p) { return o.kept ? dropped(p, o.kept, o.dropout) : p; }

Value attention_scores(const AttentionOperands& o) {
  Value s = prim::dot_general(o.query, o.key, {3}, {3}, {0, 1}, {0, 1}) * o.scale;
  Value never = constant_like(s, -kInfinity);
  if (o.diagonal) s = prim::select(band(o.scores, "le", *o.diagonal), s, never);
  if (!o.mask) return s;
  Value mask = broadcast_to(o.mask, o.scores);
  return dtype_of(mask) == DType::Bool ? prim::select(mask, s, never) : s + convert(mask, dtype_of(s));
}

Value by_row(Value v, const Shape& shape) { return prim::broadcast(v, shape, {0, 1, 2}); }

std::array<Value, 2> attention_by_scores(const AttentionOperands& o, Value q, Value v) {
  Value s = attention_scores(o), most = prim::reduce(s, {3}, "max");
  most = where(eq(most, -kInfinity), zeros_like(most), most);
  Value e = exp_beside_one(s - by_row(most, o.scores)), total = prim::reduce(e, {3}, "add");
  Value empty = eq(total, 0), safe = where(empty, constant_like(total, 1), total);
  Value p = convert(dropped(o, e / by_row(safe, o.scores)), dtype_of(q));
  Value out = prim::dot_general(p, v, {3}, {2}, {0, 1}, {0, 1});
  return {out, where(empty, zeros_like(total), log(safe) + most)};
}

Value attention_inner(Value g, Value g_log, Value out) {
  Value inner = prim::reduce(to_opmath(g) * to_opmath(out), {3}, "add");
  return g_log ? inner - g_log : inner;
}

// dV = D(P)ᵀ dO, dS = P (D(dO Vᵀ) - Σ dO O) scale, dQ = dS K, dK = dSᵀ Q with P = exp(S - logsumexp) and dropout D. Products are of operands that are rounded to the cotangent's dtype, as
// in PyTorch's kernels, so that those of narrow floats are multiplied as such.
std::array<Value, 4> attention_cotangents(const AttentionOperands& o, Value g, Value log_sum, Value inner) {
  auto rounded = [&](Value v) { return to_opmath(convert(v, dtype_of(g))); };
  Value wide = to_opmath(g);
  Value p = exp_beside_one(attention_scores(o) - by_row(to_opmath(log_sum), o.scores));
  Value dv = prim::dot_general(rounded(dropped(o, p)), wide, {2}, {2}, {0, 1}, {0, 1});
  Value dp = prim::dot_general(wide, o.value, {3}, {3}, {0, 1}, {0, 1});
  Value added = p * (dropped(o, dp) - by_row(inner, o.scores)), ds = rounded(added * o.scale);
  Value dq = prim::dot_general(ds, o.key, {3}, {2}, {0, 1}, {0, 1});
  Value dk = prim::dot_general(ds, o.query, {2}, {2}, {0, 1}, {0, 1});
  return {dq, dk, dv, added};
}

}  // namespace brasa::ops
