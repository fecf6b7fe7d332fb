#pragma once

#include <tuple>

#include <brasa/factories.h>
#include <brasa/nn/options.h>

/// The modules' functions without their state: `F::cross_entropy(y, target, F::CrossEntropyFuncOptions().label_smoothing(0.1))`.
namespace brasa::nn::functional {

// ---- Linear maps and lookups.
/// input · weightᵀ + bias.
BRASA_API Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
BRASA_API Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {});
/// With max_norm, the rows of `weight` that are read are renormalised in place.
BRASA_API Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});
/// Without offsets each row of input [N, L] is a bag.
BRASA_API Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options = {});
using brasa::one_hot;

// ---- Convolutions and blocks of images.
BRASA_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options = {});
BRASA_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options = {});
BRASA_API Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options = {});
BRASA_API Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                                  const ConvTranspose1dFuncOptions& options = {});
BRASA_API Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                                  const ConvTranspose2dFuncOptions& options = {});
BRASA_API Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                                  const ConvTranspose3dFuncOptions& options = {});
BRASA_API Tensor fold(const Tensor& input, const FoldFuncOptions& options);
BRASA_API Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);
BRASA_API Tensor pad(const Tensor& input, const PadFuncOptions& options);
BRASA_API Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options);
BRASA_API Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options);

// ---- Norms.
BRASA_API Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
/// While training, running_mean and running_var (where defined) are moved towards the batch's, in place.
BRASA_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                            const BatchNormFuncOptions& options = {});
BRASA_API Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
BRASA_API Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
BRASA_API Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options);
/// input / max(‖input‖_p, eps) along a dimension.
BRASA_API Tensor normalize(const Tensor& input, NormalizeFuncOptions options = {});

// ---- Distances.
BRASA_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& options = {});
BRASA_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options = {});
BRASA_API Tensor pdist(const Tensor& input, double p = 2.0);

// ---- Dropout.
BRASA_API Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});
BRASA_API Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options = {});
BRASA_API Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options = {});
BRASA_API Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options = {});
BRASA_API Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options = {});

// ---- Activations.
BRASA_API Tensor elu(Tensor input, const ELUFuncOptions& options = {});
BRASA_API Tensor selu(Tensor input, const SELUFuncOptions& options = {});
BRASA_API Tensor celu(Tensor input, const CELUFuncOptions& options = {});
BRASA_API Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
BRASA_API Tensor relu6(Tensor input, const ReLU6FuncOptions& options = {});
BRASA_API Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
BRASA_API Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});
BRASA_API Tensor prelu(const Tensor& input, const Tensor& weight);
BRASA_API Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options = {});
BRASA_API Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
BRASA_API Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
BRASA_API Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
BRASA_API Tensor threshold(Tensor input, const ThresholdFuncOptions& options);
BRASA_API Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
BRASA_API Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
BRASA_API Tensor silu(const Tensor& input);
BRASA_API Tensor mish(const Tensor& input);
BRASA_API Tensor logsigmoid(const Tensor& input);
BRASA_API Tensor softsign(const Tensor& input);
BRASA_API Tensor tanhshrink(const Tensor& input);
BRASA_API Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
BRASA_API Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);
BRASA_API Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
/// Jang et al. 2017: a differentiable sample of one of the classes.
BRASA_API Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});
/// {output, attention weights}; see MultiheadAttention.
BRASA_API std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                                  const Tensor& value,
                                                                  const MultiheadAttentionForwardFuncOptions& options);

// ---- Pooling. `…_with_indices`: {values, positions in each input plane}.
#define BRASA_POOL(name, Name) BRASA_API Tensor name(const Tensor& input, const Name##FuncOptions& options);
BRASA_POOL(avg_pool1d, AvgPool1d)
BRASA_POOL(avg_pool2d, AvgPool2d)
BRASA_POOL(avg_pool3d, AvgPool3d)
BRASA_POOL(adaptive_avg_pool1d, AdaptiveAvgPool1d)
BRASA_POOL(adaptive_avg_pool2d, AdaptiveAvgPool2d)
BRASA_POOL(adaptive_avg_pool3d, AdaptiveAvgPool3d)
BRASA_POOL(lp_pool1d, LPPool1d)
BRASA_POOL(lp_pool2d, LPPool2d)
BRASA_POOL(lp_pool3d, LPPool3d)
#undef BRASA_POOL
#define BRASA_MAX_POOL(name, Name)                                              \
  BRASA_API Tensor name(const Tensor& input, const Name##FuncOptions& options); \
  BRASA_API std::tuple<Tensor, Tensor> name##_with_indices(const Tensor& input, const Name##FuncOptions& options);
BRASA_MAX_POOL(max_pool1d, MaxPool1d)
BRASA_MAX_POOL(max_pool2d, MaxPool2d)
BRASA_MAX_POOL(max_pool3d, MaxPool3d)
BRASA_MAX_POOL(adaptive_max_pool1d, AdaptiveMaxPool1d)
BRASA_MAX_POOL(adaptive_max_pool2d, AdaptiveMaxPool2d)
BRASA_MAX_POOL(adaptive_max_pool3d, AdaptiveMaxPool3d)
BRASA_MAX_POOL(fractional_max_pool2d, FractionalMaxPool2d)
BRASA_MAX_POOL(fractional_max_pool3d, FractionalMaxPool3d)
#undef BRASA_MAX_POOL
BRASA_API Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& options);
BRASA_API Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& options);
BRASA_API Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& options);

// ---- Images.
/// Resamples [N, C, spatial…] to sizes or by factors.
BRASA_API Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});
/// The positions that theta [N, 2, 3] or [N, 3, 4] gives the elements of an output of `size`.
BRASA_API Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);
/// input at the positions of a grid, which run from -1 to 1.
BRASA_API Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options = {});

// ---- Losses.
#define BRASA_LOSS(name, Name) \
  BRASA_API Tensor name(const Tensor& input, const Tensor& target, const Name##FuncOptions& options = {});
BRASA_LOSS(cross_entropy, CrossEntropy)
BRASA_LOSS(nll_loss, NLLLoss)
BRASA_LOSS(mse_loss, MSELoss)
BRASA_LOSS(l1_loss, L1Loss)
BRASA_LOSS(smooth_l1_loss, SmoothL1Loss)
BRASA_LOSS(huber_loss, HuberLoss)
BRASA_LOSS(kl_div, KLDiv)
BRASA_LOSS(binary_cross_entropy, BinaryCrossEntropy)
BRASA_LOSS(binary_cross_entropy_with_logits, BinaryCrossEntropyWithLogits)
BRASA_LOSS(hinge_embedding_loss, HingeEmbeddingLoss)
BRASA_LOSS(multilabel_soft_margin_loss, MultilabelSoftMarginLoss)
BRASA_LOSS(soft_margin_loss, SoftMarginLoss)
BRASA_LOSS(poisson_nll_loss, PoissonNLLLoss)
BRASA_LOSS(multi_margin_loss, MultiMarginLoss)
BRASA_LOSS(multilabel_margin_loss, MultilabelMarginLoss)
#undef BRASA_LOSS
BRASA_API Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options,
                                double beta);
BRASA_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                          const Tensor& target_lengths, const CTCLossFuncOptions& options = {});
BRASA_API Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                                   const GaussianNLLLossFuncOptions& options = {});
BRASA_API Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                       const CosineEmbeddingLossFuncOptions& options = {});
BRASA_API Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                     const MarginRankingLossFuncOptions& options = {});
BRASA_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                     const TripletMarginLossFuncOptions& options = {});
BRASA_API Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                                   const TripletMarginWithDistanceLossFuncOptions& options = {});

namespace detail {
// With every option as an argument.
inline Tensor dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::dropout(std::move(input), DropoutFuncOptions().p(p).training(training).inplace(inplace));
}
inline Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::alpha_dropout(std::move(input),
                                   AlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
inline Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return functional::feature_alpha_dropout(std::move(input),
                                           FeatureAlphaDropoutFuncOptions().p(p).training(training).inplace(inplace));
}
}  // namespace detail

}  // namespace brasa::nn::functional
