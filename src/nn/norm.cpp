#include <brasa/nn/modules/norm.h>

#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

LayerNormImpl::LayerNormImpl(LayerNormOptions o) : options(std::move(o)) { LayerNormImpl::reset(); }

void LayerNormImpl::reset() {
  bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? brasa::empty(options.normalized_shape()) : Tensor());
  bias = register_parameter("bias", affine ? brasa::empty(options.normalized_shape()) : Tensor());
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (!options.elementwise_affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::LayerNorm(" << IntArrayRef(options.normalized_shape()) << ", eps=" << options.eps()
         << ", elementwise_affine=" << word(options.elementwise_affine()) << ")";
}

Tensor LayerNormImpl::forward(const Tensor& input) {
  return layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}

template <size_t D, class Derived>
BatchNormImplBase<D, Derived>::BatchNormImplBase(const BatchNormOptions& o) : options(o) {
  BatchNormImplBase::reset();
}

template <size_t D, class Derived>
void BatchNormImplBase<D, Derived>::reset() {
  IntArrayRef features = options.num_features();
  weight = this->register_parameter("weight", options.affine() ? brasa::empty(features) : Tensor());
  bias = this->register_parameter("bias", options.affine() ? brasa::empty(features) : Tensor());
  bool track = options.track_running_stats();
  running_mean = this->register_buffer("running_mean", track ? brasa::empty(features) : Tensor());
  running_var = this->register_buffer("running_var", track ? brasa::empty(features) : Tensor());
  num_batches_tracked = this->register_buffer("num_batches_tracked", track ? brasa::empty({}, kInt64) : Tensor());
  reset_parameters();
}

template <size_t D, class Derived>
void BatchNormImplBase<D, Derived>::reset_running_stats() {
  if (!options.track_running_stats()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  init::zeros_(num_batches_tracked);
}

template <size_t D, class Derived>
void BatchNormImplBase<D, Derived>::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

template <size_t D, class Derived>
void BatchNormImplBase<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::BatchNorm" << D << "d(" << options.num_features() << ", eps=" << options.eps() << ", momentum=";
  if (options.momentum())
    stream << *options.momentum();
  else
    stream << "None";
  stream << ", affine=" << word(options.affine()) << ", track_running_stats=" << word(options.track_running_stats())
         << ")";
}

template <size_t D, class Derived>
Tensor BatchNormImplBase<D, Derived>::forward(const Tensor& input) {
  check_input_dim(input);
  bool training = this->is_training(), tracked = running_mean.defined();
  std::optional<double> momentum = options.momentum();
  if (training && tracked) {
    NoGradGuard no_grad;
    num_batches_tracked.add_(1);
    if (!momentum) momentum = 1.0 / num_batches_tracked.template item<double>();
  }
  return functional::batch_norm(input, running_mean, running_var,
                                functional::BatchNormFuncOptions()
                                    .weight(weight)
                                    .bias(bias)
                                    .training(training || !tracked)
                                    .momentum(momentum.value_or(0.0))
                                    .eps(options.eps()));
}

#define BRASA_BATCH_NORM(D, ranks, text)                                                                   \
  BatchNorm##D##dImpl::BatchNorm##D##dImpl(const BatchNormOptions& o) : BatchNormImplBase(o) {}            \
  void BatchNorm##D##dImpl::check_input_dim(const Tensor& input) {                                         \
    int64_t rank = input.dim();                                                                            \
    BRASA_CHECK(ranks, "BatchNorm" #D "d: expected an input of " text " dimensions, got ", input.sizes()); \
  }                                                                                                        \
  template class BatchNormImplBase<D, BatchNorm##D##dImpl>;
BRASA_BATCH_NORM(1, rank == 2 || rank == 3, "2 or 3")
BRASA_BATCH_NORM(2, rank == 4, "4")
BRASA_BATCH_NORM(3, rank == 5, "5")
#undef BRASA_BATCH_NORM

}  // namespace brasa::nn
