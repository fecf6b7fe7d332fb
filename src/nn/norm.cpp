#include <brasa/nn/modules/norm.h>

#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

LayerNormImpl::LayerNormImpl(std::vector<int64_t> normalized_shape)
    : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
LayerNormImpl::LayerNormImpl(LayerNormOptions o) : options(std::move(o)) { LayerNormImpl::reset(); }

void LayerNormImpl::reset() {
  bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? brasa::empty(options.normalized_shape()) : Tensor(), affine);
  bias = register_parameter("bias", affine ? brasa::empty(options.normalized_shape()) : Tensor(), affine);
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
  return functional::layer_norm(
      input, functional::LayerNormFuncOptions(options.normalized_shape()).weight(weight).bias(bias).eps(options.eps()));
}

template <size_t D, class Derived, class Options>
NormImplBase<D, Derived, Options>::NormImplBase(const Options& o) : options(o) {
  NormImplBase::reset();
}

template <size_t D, class Derived, class Options>
void NormImplBase<D, Derived, Options>::reset() {
  IntArrayRef features = options.num_features();
  weight = this->register_parameter("weight", options.affine() ? brasa::empty(features) : Tensor(), options.affine());
  bias = this->register_parameter("bias", options.affine() ? brasa::empty(features) : Tensor(), options.affine());
  bool track = options.track_running_stats();
  running_mean = this->register_buffer("running_mean", track ? brasa::empty(features) : Tensor());
  running_var = this->register_buffer("running_var", track ? brasa::empty(features) : Tensor());
  num_batches_tracked = this->register_buffer("num_batches_tracked", track ? brasa::empty({}, kInt64) : Tensor());
  reset_parameters();
}

template <size_t D, class Derived, class Options>
void NormImplBase<D, Derived, Options>::reset_running_stats() {
  if (!options.track_running_stats()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  init::zeros_(num_batches_tracked);
}

template <size_t D, class Derived, class Options>
void NormImplBase<D, Derived, Options>::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

template <size_t D, class Derived>
void BatchNormImplBase<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::BatchNorm" << D << "d(" << this->options.num_features() << ", eps=" << this->options.eps()
         << ", momentum=";
  if (this->options.momentum())
    stream << *this->options.momentum();
  else
    stream << "None";
  stream << ", affine=" << word(this->options.affine())
         << ", track_running_stats=" << word(this->options.track_running_stats()) << ")";
}

template <size_t D, class Derived>
Tensor BatchNormImplBase<D, Derived>::forward(const Tensor& input) {
  check_input_dim(input);
  bool training = this->is_training(), tracked = this->running_mean.defined();
  std::optional<double> momentum = this->options.momentum();
  if (training && tracked) {
    NoGradGuard no_grad;
    this->num_batches_tracked.add_(1);
    if (!momentum) momentum = 1.0 / this->num_batches_tracked.template item<double>();
  }
  return functional::batch_norm(input, this->running_mean, this->running_var,
                                functional::BatchNormFuncOptions()
                                    .weight(this->weight)
                                    .bias(this->bias)
                                    .training(training || !tracked)
                                    .momentum(momentum.value_or(0.0))
                                    .eps(this->options.eps()));
}

#define BRASA_BATCH_NORM(D, ranks, text)                                                                   \
  BatchNorm##D##dImpl::BatchNorm##D##dImpl(int64_t num_features)                                           \
      : BatchNorm##D##dImpl(BatchNormOptions(num_features)) {}                                             \
  BatchNorm##D##dImpl::BatchNorm##D##dImpl(const BatchNormOptions& o) : BatchNormImplBase(o) {}            \
  void BatchNorm##D##dImpl::check_input_dim(const Tensor& input) {                                         \
    int64_t rank = input.dim();                                                                            \
    BRASA_CHECK(ranks, "BatchNorm" #D "d: expected an input of " text " dimensions, got ", input.sizes()); \
  }                                                                                                        \
  template class NormImplBase<D, BatchNorm##D##dImpl, BatchNormOptions>;                                   \
  template class BatchNormImplBase<D, BatchNorm##D##dImpl>;
BRASA_BATCH_NORM(1, rank == 2 || rank == 3, "2 or 3")
BRASA_BATCH_NORM(2, rank == 4, "4")
BRASA_BATCH_NORM(3, rank == 5, "5")
#undef BRASA_BATCH_NORM

template <size_t D, class Derived>
void InstanceNormImplBase<D, Derived>::pretty_print(std::ostream& stream) const {
  Described(stream, "InstanceNorm" + std::to_string(D) + "d")
      .value(this->options.num_features())("eps", this->options.eps())("momentum", this->options.momentum())(
          "affine", this->options.affine())("track_running_stats", this->options.track_running_stats());
}

template <size_t D, class Derived>
Tensor InstanceNormImplBase<D, Derived>::forward(const Tensor& input) {
  BRASA_CHECK(input.dim() == static_cast<int64_t>(D) + 2, "InstanceNorm", D, "d: expected an input of ", D + 2,
              " dimensions, got ", input.sizes());
  return functional::instance_norm(input,
                                   functional::InstanceNormFuncOptions()
                                       .running_mean(this->running_mean)
                                       .running_var(this->running_var)
                                       .weight(this->weight)
                                       .bias(this->bias)
                                       .use_input_stats(this->is_training() || !this->options.track_running_stats())
                                       .momentum(this->options.momentum())
                                       .eps(this->options.eps()));
}
template class NormImplBase<1, InstanceNorm1dImpl, InstanceNormOptions>;
template class InstanceNormImplBase<1, InstanceNorm1dImpl>;
template class NormImplBase<2, InstanceNorm2dImpl, InstanceNormOptions>;
template class InstanceNormImplBase<2, InstanceNorm2dImpl>;
template class NormImplBase<3, InstanceNorm3dImpl, InstanceNormOptions>;
template class InstanceNormImplBase<3, InstanceNorm3dImpl>;

GroupNormImpl::GroupNormImpl(int64_t num_groups, int64_t num_channels)
    : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
GroupNormImpl::GroupNormImpl(const GroupNormOptions& o) : options(o) { GroupNormImpl::reset(); }
void GroupNormImpl::reset() {
  BRASA_CHECK(options.num_groups() > 0 && options.num_channels() % options.num_groups() == 0,
              "GroupNorm: num_channels ", options.num_channels(), " must be divisible by num_groups ",
              options.num_groups());
  weight = register_parameter("weight", options.affine() ? brasa::empty({options.num_channels()}) : Tensor(),
                              options.affine());
  bias = register_parameter("bias", options.affine() ? brasa::empty({options.num_channels()}) : Tensor(),
                            options.affine());
  reset_parameters();
}
void GroupNormImpl::reset_parameters() {
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}
void GroupNormImpl::pretty_print(std::ostream& stream) const {
  Described(stream, "GroupNorm")
      .value(options.num_groups())
      .value(options.num_channels())("eps", options.eps())("affine", options.affine());
}
Tensor GroupNormImpl::forward(const Tensor& input) {
  return functional::group_norm(
      input, functional::GroupNormFuncOptions(options.num_groups()).weight(weight).bias(bias).eps(options.eps()));
}

void LocalResponseNormImpl::pretty_print(std::ostream& stream) const {
  Described(stream, "LocalResponseNorm")
      .words()
      .value(options.size())("alpha", options.alpha())("beta", options.beta())("k", options.k());
}
Tensor LocalResponseNormImpl::forward(const Tensor& input) { return functional::local_response_norm(input, options); }

void CrossMapLRN2dImpl::pretty_print(std::ostream& stream) const {
  Described(stream, "CrossMapLRN2d")
      .words()
      .value(options.size())("alpha", options.alpha())("beta", options.beta())("k", options.k());
}
Tensor CrossMapLRN2dImpl::forward(const Tensor& input) {
  BRASA_CHECK(input.dim() == 4, "CrossMapLRN2d: expected an input of 4 dimensions, got ", input.sizes());
  // Its window reaches equally far to both sides: an even size counts one channel less than it divides by.
  int64_t reach = (options.size() - 1) / 2, width = 2 * reach + 1;
  double alpha = options.alpha() * static_cast<double>(width) / static_cast<double>(options.size());
  return functional::local_response_norm(
      input, LocalResponseNormOptions(width).alpha(alpha).beta(options.beta()).k(static_cast<double>(options.k())));
}

}  // namespace brasa::nn
