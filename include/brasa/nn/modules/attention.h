#pragma once

#include <tuple>

#include <brasa/nn/any.h>
#include <brasa/nn/modules/linear.h>

namespace brasa::nn {

/// Attention of several heads, Vaswani et al. 2017. query [L, N, E], key [S, N, kdim], value [S, N, vdim].
class BRASA_API MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads);
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  void reset() override;
  void _reset_parameters();

  /// {output [L, N, E], attention weights}. key_padding_mask [N, S], true where a key is left out. attn_mask [L, S] or
  /// [N * heads, L, S], bool (true: left out) or added to the scores. Weights are [N, L, S] averaged over heads, or [N, heads, L, S].
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true);

  MultiheadAttentionOptions options;
  bool _qkv_same_embed_dim = true;
  Tensor in_proj_weight, in_proj_bias;  // query, key and value below each other: [3E, E], [3E]
  Linear out_proj{nullptr};
  Tensor bias_k, bias_v;                               // [1, 1, E], with add_bias_kv
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;  // instead of in_proj_weight where the sizes differ
  int64_t head_dim;

 protected:
  BRASA_FORWARD_DEFAULTS({3, AnyValue(Tensor())}, {4, AnyValue(true)}, {5, AnyValue(Tensor())}, {6, AnyValue(true)})
};
BRASA_MODULE(MultiheadAttention);

}  // namespace brasa::nn
