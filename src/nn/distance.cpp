#include <brasa/nn/modules/distance.h>

#include <brasa/nn/functional.h>

#include "nn/print.h"

namespace brasa::nn {

void CosineSimilarityImpl::pretty_print(std::ostream& s) const {
  Described(s, "CosineSimilarity").words()("dim", options.dim())("eps", options.eps());
}
Tensor CosineSimilarityImpl::forward(const Tensor& x1, const Tensor& x2) {
  return functional::cosine_similarity(x1, x2, options);
}

void PairwiseDistanceImpl::pretty_print(std::ostream& s) const {
  Described(s, "PairwiseDistance")("p", options.p())("eps", options.eps())("keepdim", options.keepdim());
}
Tensor PairwiseDistanceImpl::forward(const Tensor& x1, const Tensor& x2) {
  return functional::pairwise_distance(x1, x2, options);
}

}  // namespace brasa::nn
