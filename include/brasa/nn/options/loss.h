#pragma once

#include <functional>
#include <optional>

#include <brasa/arg.h>
#include <brasa/enum.h>
#include <brasa/tensor.h>

namespace brasa::nn {

// So that a word alone stands for the options: `F::l1_loss(x, y, kSum)`.
#define BRASA_FROM_REDUCTION(Name)                             \
  using reduction_t = Reduction;                               \
  Name(Reduction reduction = kMean) : reduction_(reduction) {} \
  Name(enumtype::kNone reduction) : reduction_(reduction) {}   \
  Name(enumtype::kMean reduction) : reduction_(reduction) {}   \
  Name(enumtype::kSum reduction) : reduction_(reduction) {}

struct L1LossOptions {
  BRASA_FROM_REDUCTION(L1LossOptions)
  BRASA_ARG(Reduction, reduction);
};
using MSELossOptions = L1LossOptions;
using HingeLossOptions = L1LossOptions;
using MultiLabelMarginLossOptions = L1LossOptions;
using SoftMarginLossOptions = L1LossOptions;

struct CrossEntropyLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(int64_t, ignore_index) = -100;
  BRASA_ARG(Reduction, reduction) = kMean;
  BRASA_ARG(double, label_smoothing) = 0.0;
};
struct NLLLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(int64_t, ignore_index) = -100;
  BRASA_ARG(Reduction, reduction) = kMean;
};
struct BCELossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(Reduction, reduction) = kMean;
};
using MultiLabelSoftMarginLossOptions = BCELossOptions;
struct BCEWithLogitsLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(Reduction, reduction) = kMean;
  BRASA_ARG(Tensor, pos_weight) = Tensor();
};
struct KLDivLossOptions {
  using reduction_t = Choice<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions(reduction_t reduction = kMean) : reduction_(reduction) {}  // NOLINT
  KLDivLossOptions(enumtype::kNone r) : reduction_(r) {}                      // NOLINT
  KLDivLossOptions(enumtype::kBatchMean r) : reduction_(r) {}                 // NOLINT
  KLDivLossOptions(enumtype::kSum r) : reduction_(r) {}                       // NOLINT
  KLDivLossOptions(enumtype::kMean r) : reduction_(r) {}                      // NOLINT
  BRASA_ARG(reduction_t, reduction);
  BRASA_ARG(bool, log_target) = false;
};
struct HingeEmbeddingLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(double, margin) = 1.0;
  BRASA_ARG(Reduction, reduction) = kMean;
};
struct MultiMarginLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(int64_t, p) = 1;
  BRASA_ARG(double, margin) = 1.0;
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(Reduction, reduction) = kMean;
};
struct CosineEmbeddingLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(double, margin) = 0.0;
  BRASA_ARG(Reduction, reduction) = kMean;
};
using MarginRankingLossOptions = CosineEmbeddingLossOptions;
struct SmoothL1LossOptions {
  BRASA_FROM_REDUCTION(SmoothL1LossOptions)
  BRASA_ARG(Reduction, reduction);
  BRASA_ARG(std::optional<double>, beta) = std::nullopt;
};
struct HuberLossOptions {
  BRASA_FROM_REDUCTION(HuberLossOptions)
  BRASA_ARG(Reduction, reduction);
  BRASA_ARG(double, delta) = 1.0;
};
struct TripletMarginLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(double, margin) = 1.0;
  BRASA_ARG(double, p) = 2.0;
  BRASA_ARG(double, eps) = 1e-6;
  /// Take the nearer of anchor and positive to the negative.
  BRASA_ARG(bool, swap) = false;
  BRASA_ARG(Reduction, reduction) = kMean;
};
struct TripletMarginWithDistanceLossOptions {
  using reduction_t = Reduction;
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  /// The pairwise L2 distance by default.
  BRASA_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;
  BRASA_ARG(double, margin) = 1.0;
  BRASA_ARG(bool, swap) = false;
  BRASA_ARG(Reduction, reduction) = kMean;
};
struct CTCLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(int64_t, blank) = 0;
  BRASA_ARG(Reduction, reduction) = kMean;
  BRASA_ARG(bool, zero_infinity) = false;
};
struct PoissonNLLLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(bool, log_input) = true;
  BRASA_ARG(bool, full) = false;
  BRASA_ARG(double, eps) = 1e-8;
  BRASA_ARG(Reduction, reduction) = kMean;
};
struct GaussianNLLLossOptions {
  using reduction_t = Reduction;
  BRASA_ARG(bool, full) = false;
  BRASA_ARG(double, eps) = 1e-6;
  BRASA_ARG(Reduction, reduction) = kMean;
};

struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  BRASA_ARG(int64_t, in_features);
  BRASA_ARG(int64_t, n_classes);
  BRASA_ARG(std::vector<int64_t>, cutoffs);
  BRASA_ARG(double, div_value) = 4.0;
  BRASA_ARG(bool, head_bias) = false;
};

namespace functional {

using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using GaussianNLLLossFuncOptions = GaussianNLLLossOptions;

}  // namespace functional
}  // namespace brasa::nn
