#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

BRASA_LAYER(L1Loss, const Tensor& input, const Tensor& target);
BRASA_LAYER(MSELoss, const Tensor& input, const Tensor& target);
BRASA_LAYER(SmoothL1Loss, const Tensor& input, const Tensor& target);
BRASA_LAYER(HuberLoss, const Tensor& input, const Tensor& target);
BRASA_LAYER(KLDivLoss, const Tensor& input, const Tensor& target);
BRASA_LAYER(PoissonNLLLoss, const Tensor& log_input, const Tensor& target);
BRASA_LAYER(GaussianNLLLoss, const Tensor& input, const Tensor& target, const Tensor& var);
BRASA_LAYER(HingeEmbeddingLoss, const Tensor& input, const Tensor& target);
BRASA_LAYER(CosineEmbeddingLoss, const Tensor& input1, const Tensor& input2, const Tensor& target);
BRASA_LAYER(MarginRankingLoss, const Tensor& input1, const Tensor& input2, const Tensor& target);
BRASA_LAYER(SoftMarginLoss, const Tensor& input, const Tensor& target);
BRASA_LAYER(TripletMarginLoss, const Tensor& anchor, const Tensor& positive, const Tensor& negative);
BRASA_LAYER(MultiLabelMarginLoss, const Tensor& input, const Tensor& target);
/// Graves et al. 2006. log_probs [T, N, C], targets [N, S] or all of them in a row.
BRASA_LAYER(CTCLoss, const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
            const Tensor& target_lengths);
BRASA_LAYER(TripletMarginWithDistanceLoss, const Tensor& anchor, const Tensor& positive, const Tensor& negative);

/// A loss with a weight for each class or element, kept in a buffer.
#define BRASA_WEIGHTED_LOSS(Name)                              \
  class BRASA_API Name##Impl : public Cloneable<Name##Impl> {  \
   public:                                                     \
    explicit Name##Impl(Name##Options options = {});           \
    void reset() override;                                     \
    void pretty_print(std::ostream& stream) const override;    \
    Tensor forward(const Tensor& input, const Tensor& target); \
    Name##Options options;                                     \
    Tensor weight;                                             \
  };                                                           \
  BRASA_MODULE(Name)
/// -log softmax(input)[target], with class indices or probabilities as target. input [N, C, …] or [C].
BRASA_WEIGHTED_LOSS(CrossEntropyLoss);
BRASA_WEIGHTED_LOSS(NLLLoss);
BRASA_WEIGHTED_LOSS(BCELoss);
BRASA_WEIGHTED_LOSS(MultiLabelSoftMarginLoss);
BRASA_WEIGHTED_LOSS(MultiMarginLoss);
#undef BRASA_WEIGHTED_LOSS

class BRASA_API BCEWithLogitsLossImpl : public Cloneable<BCEWithLogitsLossImpl> {
 public:
  explicit BCEWithLogitsLossImpl(BCEWithLogitsLossOptions options = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  BCEWithLogitsLossOptions options;
  Tensor weight, pos_weight;
};
BRASA_MODULE(BCEWithLogitsLoss);

}  // namespace brasa::nn
