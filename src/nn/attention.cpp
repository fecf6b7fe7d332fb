#include <brasa/nn/modules/attention.h>

#include <cmath>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "support/error.h"

namespace brasa::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& o) : options(o) {
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  int64_t e = options.embed_dim();
  BRASA_CHECK(options.num_heads() > 0 && e % options.num_heads() == 0, "MultiheadAttention: embed_dim ", e,
              " must be divisible by num_heads ", options.num_heads());
  head_dim = e / options.num_heads();
  in_proj_weight = register_parameter("in_proj_weight", brasa::empty({3 * e, e}));
  in_proj_bias = register_parameter("in_proj_bias", options.bias() ? brasa::empty({3 * e}) : Tensor());
  out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
  reset_parameters();
}

void MultiheadAttentionImpl::reset_parameters() {
  init::xavier_uniform_(in_proj_weight);
  if (!in_proj_bias.defined()) return;
  init::zeros_(in_proj_bias);
  init::zeros_(out_proj->bias);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask, bool average_attn_weights) {
  BRASA_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3,
              "MultiheadAttention: expected query, key and value of 3 dimensions, got ", query.sizes(), ", ",
              key.sizes(), ", ", value.sizes());
  int64_t e = options.embed_dim(), heads = options.num_heads(), length = query.size(0), batch = query.size(1),
          source = key.size(0);
  BRASA_CHECK(query.size(2) == e && key.size(2) == e && value.size(2) == e, "MultiheadAttention: expected embed_dim ",
              e, ", got ", query.size(2), ", ", key.size(2), ", ", value.size(2));
  auto project = [&](const Tensor& x, int64_t part, int64_t n) {
    Tensor bias = in_proj_bias.defined() ? in_proj_bias.slice(0, part * e, (part + 1) * e) : Tensor();
    Tensor y = functional::linear(x, in_proj_weight.slice(0, part * e, (part + 1) * e), bias);
    return y.view({n, batch, heads, head_dim}).permute({1, 2, 0, 3});
  };
  Tensor q = project(query, 0, length), k = project(key, 1, source), v = project(value, 2, source);

  auto additive = [&](const Tensor& mask) {
    if (mask.scalar_type() != kBool) return mask.to(q.scalar_type());
    return zeros(mask.sizes(), q.options()).masked_fill(mask, -HUGE_VAL);
  };
  Tensor mask;
  if (attn_mask.defined()) {
    mask = additive(attn_mask);
    if (mask.dim() == 3) mask = mask.view({batch, heads, length, source});
  }
  if (key_padding_mask.defined()) {
    Tensor padding = additive(key_padding_mask).view({batch, 1, 1, source});
    mask = mask.defined() ? mask + padding : padding;
  }

  double dropout_p = is_training() ? options.dropout() : 0.0;
  Tensor context, weights;
  if (need_weights) {
    Tensor scores = matmul(q * (1 / std::sqrt(static_cast<double>(head_dim))), k.transpose(-2, -1));
    if (mask.defined()) scores = scores + mask;
    weights = dropout(softmax(scores, -1), dropout_p, is_training());
    context = matmul(weights, v);
    if (average_attn_weights) weights = weights.mean(1);
  } else {
    context =
        scaled_dot_product_attention(q, k, v, mask.defined() ? std::optional<Tensor>(mask) : std::nullopt, dropout_p);
  }
  return {out_proj(context.permute({2, 0, 1, 3}).reshape({length, batch, e})), weights};
}

}  // namespace brasa::nn
