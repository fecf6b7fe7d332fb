#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

/// (x - mean) / sqrt(var + eps) · weight + bias over the last dimensions, those of normalized_shape.
class BRASA_API LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  LayerNormImpl(std::vector<int64_t> normalized_shape);  // NOLINT
  explicit LayerNormImpl(LayerNormOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  LayerNormOptions options;
  Tensor weight, bias;
};
BRASA_MODULE(LayerNorm);

/// What norms of channels share: weight and bias if they are affine, and running statistics if these are tracked.
template <size_t D, class Derived, class Options>
class BRASA_API NormImplBase : public Cloneable<Derived> {
 public:
  explicit NormImplBase(const Options& options);
  void reset() override;
  void reset_parameters();
  void reset_running_stats();

  Options options;
  Tensor weight, bias;
  Tensor running_mean, running_var;
  Tensor num_batches_tracked;  // int64, of no dimension
};

/// (x - mean) / sqrt(var + eps) · weight + bias for each channel, over the batch while training, else with the running statistics.
template <size_t D, class Derived>
class BRASA_API BatchNormImplBase : public NormImplBase<D, Derived, BatchNormOptions> {
 public:
  using NormImplBase<D, Derived, BatchNormOptions>::NormImplBase;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

 protected:
  virtual void check_input_dim(const Tensor& input) = 0;
};

#define BRASA_BATCH_NORM(D)                                                                \
  class BRASA_API BatchNorm##D##dImpl : public BatchNormImplBase<D, BatchNorm##D##dImpl> { \
   public:                                                                                 \
    explicit BatchNorm##D##dImpl(int64_t num_features);                                    \
    explicit BatchNorm##D##dImpl(const BatchNormOptions& options);                         \
                                                                                           \
   protected:                                                                              \
    void check_input_dim(const Tensor& input) override;                                    \
  };                                                                                       \
  BRASA_MODULE(BatchNorm##D##d)
BRASA_BATCH_NORM(1);
BRASA_BATCH_NORM(2);
BRASA_BATCH_NORM(3);
#undef BRASA_BATCH_NORM

/// As batch norm for each sample by itself; the input's statistics count unless running ones are tracked and it is in eval mode.
#define BRASA_INSTANCE_NORM(D)                                                                      \
  class BRASA_API InstanceNorm##D##dImpl : public InstanceNormImplBase<D, InstanceNorm##D##dImpl> { \
   public:                                                                                          \
    using InstanceNormImplBase<D, InstanceNorm##D##dImpl>::InstanceNormImplBase;                    \
  };                                                                                                \
  BRASA_MODULE(InstanceNorm##D##d)
template <size_t D, class Derived>
class BRASA_API InstanceNormImplBase : public NormImplBase<D, Derived, InstanceNormOptions> {
 public:
  using NormImplBase<D, Derived, InstanceNormOptions>::NormImplBase;
  explicit InstanceNormImplBase(int64_t num_features) : InstanceNormImplBase(InstanceNormOptions(num_features)) {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
};
BRASA_INSTANCE_NORM(1);
BRASA_INSTANCE_NORM(2);
BRASA_INSTANCE_NORM(3);
#undef BRASA_INSTANCE_NORM

/// Statistics over groups of channels (Wu & He 2018).
class BRASA_API GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels);
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  GroupNormOptions options;
  Tensor weight, bias;
};
BRASA_MODULE(GroupNorm);

/// x / (k + alpha · mean of x² over `size` neighbouring channels)^beta (Krizhevsky et al. 2012).
BRASA_LAYER(LocalResponseNorm, const Tensor& input);
BRASA_LAYER(CrossMapLRN2d, const Tensor& input);

}  // namespace brasa::nn
