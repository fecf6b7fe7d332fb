#pragma once

#include <tuple>

#include <brasa/nn/modules/linear.h>

namespace brasa::nn {

/// Attention of several heads, Vaswani et al. 2017. query [L, N, E], key and value [S, N, E].
class BRASA_API MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  void reset() override;
  void reset_parameters();

  /// {output [L, N, E], attention weights}. key_padding_mask [N, S], true where a key is left out. attn_mask [L, S] or
  /// [N * heads, L, S], bool (true: left out) or added to the scores. Weights are [N, L, S] averaged over heads, or [N, heads, L, S].
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true);

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias;  // query, key and value below each other: [3E, E], [3E]
  Linear out_proj{nullptr};
  int64_t head_dim;
};
BRASA_MODULE(MultiheadAttention);

}  // namespace brasa::nn
