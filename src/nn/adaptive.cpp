#include <brasa/nn/modules/adaptive.h>

#include <cmath>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes,
                                                               std::vector<int64_t> cutoffs)
    : AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(cutoffs))) {}
AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions o)
    : options(std::move(o)) {
  AdaptiveLogSoftmaxWithLossImpl::reset();
}

void AdaptiveLogSoftmaxWithLossImpl::reset() {
  cutoffs = options.cutoffs();
  bool rising = !cutoffs.empty();
  for (size_t i = 0; i < cutoffs.size(); ++i)
    rising = rising && cutoffs[i] > (i ? cutoffs[i - 1] : 0) && cutoffs[i] <= options.n_classes() - 1;
  BRASA_CHECK(rising,
              "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
              "value is between 1 and n_classes-1, got ",
              IntArrayRef(options.cutoffs()));
  cutoffs.push_back(options.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = static_cast<int64_t>(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head", Linear(LinearOptions(options.in_features(), head_size).bias(options.head_bias())));
  tail = register_module("tail", ModuleList());
  for (int64_t i = 0; i < n_clusters; ++i) {
    auto at = static_cast<size_t>(i);
    auto hidden = static_cast<int64_t>(
        std::floor(static_cast<double>(options.in_features()) / std::pow(options.div_value(), i + 1)));
    tail->push_back(Sequential(Linear(LinearOptions(options.in_features(), hidden).bias(false)),
                               Linear(LinearOptions(hidden, cutoffs[at + 1] - cutoffs[at]).bias(false))));
  }
}

void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (auto& cluster : *tail)
    for (auto& layer : cluster->children()) layer->as<Linear>()->reset_parameters();
}

void AdaptiveLogSoftmaxWithLossImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::AdaptiveLogSoftmaxWithLoss";
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const Tensor& input, const Tensor& target) {
  BRASA_CHECK(target.dim() == 1 && input.dim() == 2 && input.size(0) == target.size(0),
              "Input and target should have the same size in the batch dimension, got ", input.sizes(), " and ",
              target.sizes());
  if (target.numel() > 0) {
    int64_t low = target.min().item<int64_t>(), high = target.max().item<int64_t>();
    BRASA_CHECK(low >= 0 && high < options.n_classes(), "Target values should be in [0, ", options.n_classes() - 1,
                "], but values in range [", low, ", ", high, "] were found.");
  }
  // A target of cluster i is class shortlist_size + i in the head.
  Tensor head_output = brasa::log_softmax(head(input), 1), head_target = target,
         local = zeros_like(target, input.options());
  for (int64_t i = 0; i < n_clusters; ++i) {
    auto at = static_cast<size_t>(i);
    int64_t low = cutoffs[at], high = cutoffs[at + 1];
    Tensor here = target.ge(low).logical_and(target.lt(high));
    head_target = where(here, full_like(target, shortlist_size + i), head_target);
    Tensor cluster = brasa::log_softmax(tail->at<SequentialImpl>(at).forward(input), 1);
    Tensor within = (target - low).clamp(0, high - low - 1);
    Tensor picked = cluster.gather(1, within.unsqueeze(1)).squeeze(1);
    local = local + where(here, picked, zeros_like(picked));
  }
  Tensor output = head_output.gather(1, head_target.unsqueeze(1)).squeeze(1) + local;
  return ASMoutput(output, (-output).mean().item<double>());
}

Tensor AdaptiveLogSoftmaxWithLossImpl::_get_full_log_prob(const Tensor& input, const Tensor& head_output) {
  Tensor head_log = brasa::log_softmax(head_output, 1);
  std::vector<Tensor> parts{head_log.slice(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; ++i) {
    Tensor cluster = brasa::log_softmax(tail->at<SequentialImpl>(static_cast<size_t>(i)).forward(input), 1);
    parts.push_back(cluster + head_log.slice(1, shortlist_size + i, shortlist_size + i + 1));
  }
  return cat(parts, 1);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const Tensor& input) { return _get_full_log_prob(input, head(input)); }
Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const Tensor& input) { return log_prob(input).argmax(1); }

}  // namespace brasa::nn
