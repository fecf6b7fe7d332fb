#include <cmath>
#include <numbers>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "nn/optional.h"
#include "support/error.h"

namespace brasa::nn::functional {
namespace {

using enumtype::reduction_get_enum;

Tensor reduced(const Tensor& loss, const Reduction& reduction) {
  switch (reduction_get_enum(reduction)) {
    case 1: return loss.mean();
    case 2: return loss.sum();
    default: return loss;
  }
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& o) {
  return cross_entropy_loss(input, target, optional(o.weight()), reduction_get_enum(o.reduction()), o.ignore_index(),
                            o.label_smoothing());
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& o) {
  BRASA_CHECK(input.dim() > 0 && (input.dim() == 1 || input.size(0) == target.size(0)),
              "nll_loss: expected the input's batch size (", input.sizes(), ") to match the target's (", target.sizes(),
              ")");
  return nll_loss_nd(input, target, optional(o.weight()), reduction_get_enum(o.reduction()), o.ignore_index());
}
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& o) {
  return brasa::mse_loss(input, target, reduction_get_enum(o.reduction()));
}
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& o) {
  return brasa::l1_loss(input, target, reduction_get_enum(o.reduction()));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o) {
  return brasa::smooth_l1_loss(input, target, reduction_get_enum(o.reduction()), o.beta().value_or(1.0));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o, double beta) {
  BRASA_CHECK(!o.beta(), "smooth_l1_loss: beta is given both as an argument and in the options");
  return brasa::smooth_l1_loss(input, target, reduction_get_enum(o.reduction()), beta);
}
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossFuncOptions& o) {
  BRASA_CHECK(o.p() == 1 || o.p() == 2, "only p == 1 and p == 2 supported");
  return brasa::multi_margin_loss(input, target, o.p(), o.margin(), optional(o.weight()),
                                  reduction_get_enum(o.reduction()));
}
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, const MultilabelMarginLossFuncOptions& o) {
  return brasa::multilabel_margin_loss(input, target, reduction_get_enum(o.reduction()));
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& o) {
  BRASA_CHECK(is_integral(input_lengths.scalar_type()), "input_lengths must be integral");
  BRASA_CHECK(is_integral(target_lengths.scalar_type()), "target_lengths must be integral");
  return brasa::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(),
                         reduction_get_enum(o.reduction()), o.zero_infinity());
}
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  return brasa::huber_loss(input, target, reduction_get_enum(o.reduction()), o.delta());
}
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o) {
  if (!holds_alternative<enumtype::kBatchMean>(o.reduction()))
    return brasa::kl_div(input, target, reduction_get_enum(o.reduction()), o.log_target());
  Tensor sum = brasa::kl_div(input, target, 2, o.log_target());
  return input.dim() == 0 ? sum : sum / input.size(0);
}
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryCrossEntropyFuncOptions& o) {
  BRASA_CHECK(input.sizes() == target.sizes(), "binary_cross_entropy: input ", input.sizes(), " and target ",
              target.sizes(), " must have equal sizes");
  return brasa::binary_cross_entropy(input, target, optional(o.weight()), reduction_get_enum(o.reduction()));
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& o) {
  BRASA_CHECK(input.sizes() == target.sizes(), "binary_cross_entropy_with_logits: target size (", target.sizes(),
              ") must be the same as input size (", input.sizes(), ")");
  return brasa::binary_cross_entropy_with_logits(input, target, optional(o.weight()), optional(o.pos_weight()),
                                                 reduction_get_enum(o.reduction()));
}
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossFuncOptions& o) {
  return brasa::hinge_embedding_loss(input, target, o.margin(), reduction_get_enum(o.reduction()));
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossFuncOptions& o) {
  return brasa::soft_margin_loss(input, target, reduction_get_enum(o.reduction()));
}
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& o) {
  Tensor loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input));
  if (o.weight().defined()) loss = loss * o.weight();
  return reduced(loss.mean(-1), o.reduction());
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossFuncOptions& o) {
  return brasa::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(), reduction_get_enum(o.reduction()));
}
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossFuncOptions& o) {
  Tensor floor = (var.detach().clamp_min(o.eps()) - var.detach()) + var;
  Tensor loss = 0.5 * (floor.log() + (input - target).square() / floor);
  if (o.full()) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduced(loss, o.reduction());
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& o) {
  return brasa::cosine_embedding_loss(input1, input2, target, o.margin(), reduction_get_enum(o.reduction()));
}
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& o) {
  BRASA_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
              "margin_ranking_loss: all inputs should have the same number of dimensions, got ", input1.sizes(), ", ",
              input2.sizes(), " and ", target.sizes());
  return brasa::margin_ranking_loss(input1, input2, target, o.margin(), reduction_get_enum(o.reduction()));
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& o) {
  return brasa::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(),
                                    reduction_get_enum(o.reduction()));
}
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& o) {
  auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : brasa::pairwise_distance(a, b);
  };
  Tensor to_positive = distance(anchor, positive), to_negative = distance(anchor, negative);
  if (o.swap()) to_negative = minimum(to_negative, distance(positive, negative));
  return reduced((to_positive - to_negative + o.margin()).clamp_min(0), o.reduction());
}

}  // namespace brasa::nn::functional
