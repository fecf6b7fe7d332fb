#include <brasa/nn/modules/attention.h>

#include <cmath>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "support/error.h"

namespace brasa::nn {

namespace functional {

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& o) {
  BRASA_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3,
              "MultiheadAttention: expected query, key and value of 3 dimensions, got ", query.sizes(), ", ",
              key.sizes(), ", ", value.sizes());
  int64_t e = query.size(2), heads = o.num_heads(), length = query.size(0), batch = query.size(1);
  BRASA_CHECK(e == o.embed_dim_to_check(), "MultiheadAttention: expected embed_dim ", o.embed_dim_to_check(), ", got ",
              e);
  BRASA_CHECK(e % heads == 0, "MultiheadAttention: embed_dim ", e, " must be divisible by num_heads ", heads);
  BRASA_CHECK(key.size(0) == value.size(0) && key.size(1) == batch && value.size(1) == batch,
              "MultiheadAttention: key ", key.sizes(), " and value ", value.sizes(),
              " do not fit together and to query ", query.sizes());
  int64_t head_dim = e / heads;

  auto project = [&](const Tensor& x, int64_t part, const Tensor& own) {
    Tensor bias = o.in_proj_bias().defined() ? o.in_proj_bias().slice(0, part * e, (part + 1) * e) : Tensor();
    Tensor weight = o.use_separate_proj_weight() ? own : o.in_proj_weight().slice(0, part * e, (part + 1) * e);
    return linear(x, weight, bias);
  };
  Tensor q = project(query, 0, o.q_proj_weight()), k = project(key, 1, o.k_proj_weight()),
         v = project(value, 2, o.v_proj_weight());

  // Both true where to attend, if both are given as bools; else numbers that are added.
  auto is_bool = [](const Tensor& m) { return m.scalar_type() == kBool || m.scalar_type() == kByte; };
  auto is_bool_or_none = [&](const Tensor& m) { return !m.defined() || is_bool(m); };
  bool bools = is_bool_or_none(o.attn_mask()) && is_bool_or_none(o.key_padding_mask());
  auto prepared = [&](const Tensor& m) {
    if (!m.defined()) return m;
    if (bools) return m.to(kBool).logical_not();
    return is_bool(m) ? zeros(m.sizes(), q.options()).masked_fill(m.to(kBool), -HUGE_VAL) : m.to(q.scalar_type());
  };
  Tensor mask = prepared(o.attn_mask()), padding = prepared(o.key_padding_mask());
  // A key that is added is never masked.
  auto extend = [&](const Tensor& more_keys, const Tensor& more_values, int64_t dim) {
    k = cat({k, more_keys.to(k.scalar_type())}, dim);
    v = cat({v, more_values.to(v.scalar_type())}, dim);
    if (mask.defined()) mask = constant_pad_nd(mask, {0, 1}, bools);
    if (padding.defined()) padding = constant_pad_nd(padding, {0, 1}, bools);
  };
  if (o.bias_k().defined()) {
    BRASA_CHECK(!o.static_k().defined() && !o.static_v().defined(),
                "MultiheadAttention: bias cannot be added to static key or value");
    extend(o.bias_k().repeat({1, batch, 1}), o.bias_v().repeat({1, batch, 1}), 0);
  }

  auto split = [&](const Tensor& x) { return x.reshape({x.size(0), batch, heads, head_dim}).permute({1, 2, 0, 3}); };
  q = split(q);
  k = o.static_k().defined() ? o.static_k().reshape({batch, heads, -1, head_dim}) : split(k);
  v = o.static_v().defined() ? o.static_v().reshape({batch, heads, -1, head_dim}) : split(v);
  if (o.add_zero_attn()) {
    Tensor none = zeros({batch, heads, 1, head_dim}, q.options());
    extend(none, none, 2);
  }
  int64_t source = k.size(2);
  if (mask.defined() && mask.dim() == 3) mask = mask.reshape({batch, heads, length, source});
  if (padding.defined()) {
    BRASA_CHECK(padding.size(0) == batch && padding.size(1) == source, "MultiheadAttention: key_padding_mask ",
                padding.sizes(), " must be [", batch, ", ", source, "]");
    padding = padding.view({batch, 1, 1, source});
    if (mask.defined())
      mask = bools ? mask.logical_and(padding) : mask + padding;
    else
      mask = padding;
  }

  double dropout_p = o.training() ? o.dropout_p() : 0.0;
  Tensor context, weights;
  if (o.need_weights()) {
    Tensor scores = matmul(q * (1 / std::sqrt(static_cast<double>(head_dim))), k.transpose(-2, -1));
    if (mask.defined()) scores = bools ? scores.masked_fill(mask.logical_not(), -HUGE_VAL) : scores + mask;
    weights = brasa::dropout(brasa::softmax(scores, -1), dropout_p, o.training());
    context = matmul(weights, v);
    if (o.average_attn_weights()) weights = weights.mean(1);
  } else {
    context =
        scaled_dot_product_attention(q, k, v, mask.defined() ? std::optional<Tensor>(mask) : std::nullopt, dropout_p);
  }
  Tensor joined = context.permute({2, 0, 1, 3}).reshape({length, batch, e});
  return {linear(joined, o.out_proj_weight(), o.out_proj_bias()), weights};
}

}  // namespace functional

MultiheadAttentionImpl::MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
    : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& o)
    : Cloneable("torch::nn::MultiheadAttention"), options(o) {
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  int64_t e = options.embed_dim();
  BRASA_CHECK(options.num_heads() > 0 && e % options.num_heads() == 0, "MultiheadAttention: embed_dim ", e,
              " must be divisible by num_heads ", options.num_heads());
  head_dim = e / options.num_heads();
  _qkv_same_embed_dim = options.kdim() == e && options.vdim() == e;
  if (_qkv_same_embed_dim) {
    in_proj_weight = register_parameter("in_proj_weight", brasa::empty({3 * e, e}));
  } else {
    q_proj_weight = register_parameter("q_proj_weight", brasa::empty({e, e}));
    k_proj_weight = register_parameter("k_proj_weight", brasa::empty({e, options.kdim()}));
    v_proj_weight = register_parameter("v_proj_weight", brasa::empty({e, options.vdim()}));
  }
  in_proj_bias = register_parameter("in_proj_bias", options.bias() ? brasa::empty({3 * e}) : Tensor(), options.bias());
  out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
  if (options.add_bias_kv()) {
    bias_k = register_parameter("bias_k", brasa::empty({1, 1, e}));
    bias_v = register_parameter("bias_v", brasa::empty({1, 1, e}));
  }
  _reset_parameters();
}

void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (w.defined()) init::xavier_uniform_(w);
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  if (bias_k.defined()) init::xavier_normal_(bias_k);
  if (bias_v.defined()) init::xavier_normal_(bias_v);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask, bool average_attn_weights) {
  auto o = functional::MultiheadAttentionForwardFuncOptions(options.embed_dim(), options.num_heads(), in_proj_weight,
                                                            in_proj_bias, bias_k, bias_v, options.add_zero_attn(),
                                                            options.dropout(), out_proj->weight, out_proj->bias)
               .training(is_training())
               .key_padding_mask(key_padding_mask)
               .need_weights(need_weights)
               .attn_mask(attn_mask)
               .average_attn_weights(average_attn_weights);
  if (!_qkv_same_embed_dim)
    o.use_separate_proj_weight(true)
        .q_proj_weight(q_proj_weight)
        .k_proj_weight(k_proj_weight)
        .v_proj_weight(v_proj_weight);
  return functional::multi_head_attention_forward(query, key, value, o);
}

}  // namespace brasa::nn
