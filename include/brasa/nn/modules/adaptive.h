#pragma once

#include <brasa/nn/modules/container.h>
#include <brasa/nn/modules/linear.h>

namespace brasa::nn {

/// The log-probability of each target [N], and the mean of their negatives.
struct ASMoutput {
  ASMoutput(Tensor output, double loss) : output(std::move(output)), loss(loss) {}
  Tensor output;
  double loss;
};

/// Grave et al. 2017: frequent classes in a head, the others in clusters behind smaller and smaller projections.
class BRASA_API AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs);
  explicit AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions options);
  /// input [N, in_features], target [N].
  ASMoutput forward(const Tensor& input, const Tensor& target);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// [N, n_classes].
  Tensor log_prob(const Tensor& input);
  Tensor _get_full_log_prob(const Tensor& input, const Tensor& head_output);
  /// The likeliest class [N].
  Tensor predict(const Tensor& input);

  AdaptiveLogSoftmaxWithLossOptions options;
  std::vector<int64_t> cutoffs;
  int64_t shortlist_size, n_clusters, head_size;
  Linear head{nullptr};
  ModuleList tail{nullptr};
};
BRASA_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace brasa::nn
