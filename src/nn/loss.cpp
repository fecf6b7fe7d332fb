#include <brasa/nn/modules/loss.h>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "nn/print.h"

namespace brasa::nn {

namespace F = functional;
using std::ostream;

#define BRASA_LOSS(Name, function)                                         \
  void Name##Impl::pretty_print(ostream& s) const { Described(s, #Name); } \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) { return F::function(input, target, options); }
BRASA_LOSS(L1Loss, l1_loss)
BRASA_LOSS(MSELoss, mse_loss)
BRASA_LOSS(KLDivLoss, kl_div)
BRASA_LOSS(PoissonNLLLoss, poisson_nll_loss)
BRASA_LOSS(SoftMarginLoss, soft_margin_loss)
BRASA_LOSS(MultiLabelMarginLoss, multilabel_margin_loss)
#undef BRASA_LOSS

void CTCLossImpl::pretty_print(ostream& s) const { Described(s, "CTCLoss"); }
Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                            const Tensor& target_lengths) {
  return F::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}

// Without parentheses, as LibTorch has it.
void SmoothL1LossImpl::pretty_print(ostream& s) const { s << "torch::nn::SmoothL1Loss"; }
Tensor SmoothL1LossImpl::forward(const Tensor& input, const Tensor& target) {
  return F::smooth_l1_loss(input, target, options);
}
void HuberLossImpl::pretty_print(ostream& s) const { s << "torch::nn::HuberLoss"; }
Tensor HuberLossImpl::forward(const Tensor& input, const Tensor& target) {
  return F::huber_loss(input, target, options);
}

void GaussianNLLLossImpl::pretty_print(ostream& s) const { Described(s, "GaussianNLLLoss"); }
Tensor GaussianNLLLossImpl::forward(const Tensor& input, const Tensor& target, const Tensor& var) {
  return F::gaussian_nll_loss(input, target, var, options);
}

void HingeEmbeddingLossImpl::pretty_print(ostream& s) const {
  Described(s, "HingeEmbeddingLoss")("margin", options.margin());
}
Tensor HingeEmbeddingLossImpl::forward(const Tensor& input, const Tensor& target) {
  return F::hinge_embedding_loss(input, target, options);
}

void CosineEmbeddingLossImpl::pretty_print(ostream& s) const {
  Described(s, "CosineEmbeddingLoss")("margin", options.margin());
}
Tensor CosineEmbeddingLossImpl::forward(const Tensor& input1, const Tensor& input2, const Tensor& target) {
  return F::cosine_embedding_loss(input1, input2, target, options);
}

void MarginRankingLossImpl::pretty_print(ostream& s) const { Described(s, "MarginRankingLoss"); }
Tensor MarginRankingLossImpl::forward(const Tensor& input1, const Tensor& input2, const Tensor& target) {
  return F::margin_ranking_loss(input1, input2, target, options);
}

void TripletMarginLossImpl::pretty_print(ostream& s) const {
  Described(s, "TripletMarginLoss")("margin", options.margin())("p", options.p())("eps", options.eps())("swap",
                                                                                                        options.swap());
}
Tensor TripletMarginLossImpl::forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  return F::triplet_margin_loss(anchor, positive, negative, options);
}

void TripletMarginWithDistanceLossImpl::pretty_print(ostream& s) const {
  Described(s, "TripletMarginWithDistanceLoss")("margin", options.margin())("swap", options.swap());
}
Tensor TripletMarginWithDistanceLossImpl::forward(const Tensor& anchor, const Tensor& positive,
                                                  const Tensor& negative) {
  return F::triplet_margin_with_distance_loss(anchor, positive, negative, options);
}

#define BRASA_WEIGHTED_LOSS(Name, function)                                                \
  Name##Impl::Name##Impl(Name##Options o) : options(std::move(o)) { Name##Impl::reset(); } \
  void Name##Impl::reset() { weight = register_buffer("weight", options.weight()); }       \
  Tensor Name##Impl::forward(const Tensor& input, const Tensor& target) {                  \
    return F::function(input, target, Name##Options(options).weight(weight));              \
  }
BRASA_WEIGHTED_LOSS(CrossEntropyLoss, cross_entropy)
BRASA_WEIGHTED_LOSS(NLLLoss, nll_loss)
BRASA_WEIGHTED_LOSS(BCELoss, binary_cross_entropy)
BRASA_WEIGHTED_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss)
BRASA_WEIGHTED_LOSS(MultiMarginLoss, multi_margin_loss)
#undef BRASA_WEIGHTED_LOSS
void CrossEntropyLossImpl::pretty_print(ostream& s) const { Described(s, "CrossEntropyLoss"); }
void NLLLossImpl::pretty_print(ostream& s) const { Described(s, "NLLLoss"); }
void BCELossImpl::pretty_print(ostream& s) const { Described(s, "BCELoss"); }
void MultiLabelSoftMarginLossImpl::pretty_print(ostream& s) const { Described(s, "MultiLabelSoftMarginLoss"); }
void MultiMarginLossImpl::pretty_print(ostream& s) const {
  Described(s, "MultiMarginLoss")("p", options.p())("margin", options.margin())("weight", options.weight())(
      "reduction", enumtype::get_enum_name(options.reduction()));
}
BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(BCEWithLogitsLossOptions o) : options(std::move(o)) {
  BCEWithLogitsLossImpl::reset();
}
void BCEWithLogitsLossImpl::reset() {
  weight = register_buffer("weight", options.weight());
  pos_weight = register_buffer("pos_weight", options.pos_weight());
}
void BCEWithLogitsLossImpl::pretty_print(ostream& s) const { Described(s, "BCEWithLogitsLoss"); }
Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  return F::binary_cross_entropy_with_logits(input, target,
                                             BCEWithLogitsLossOptions(options).weight(weight).pos_weight(pos_weight));
}

}  // namespace brasa::nn
