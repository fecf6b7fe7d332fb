#pragma once

#include <brasa/nn/cloneable.h>
#include <brasa/nn/options.h>
#include <brasa/nn/pimpl.h>

namespace brasa::nn {

/// (x - mean) / sqrt(var + eps) · weight + bias over the last dimensions, those of normalized_shape.
class BRASA_API LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  LayerNormImpl(std::vector<int64_t> normalized_shape)
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}  // NOLINT
  explicit LayerNormImpl(LayerNormOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  LayerNormOptions options;
  Tensor weight, bias;
};
BRASA_MODULE(LayerNorm);

/// (x - mean) / sqrt(var + eps) · weight + bias for each channel, over the batch while training, else with the running statistics.
template <size_t D, class Derived>
class BRASA_API BatchNormImplBase : public Cloneable<Derived> {
 public:
  explicit BatchNormImplBase(const BatchNormOptions& options);
  void reset() override;
  void reset_parameters();
  void reset_running_stats();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  BatchNormOptions options;
  Tensor weight, bias;
  Tensor running_mean, running_var;
  Tensor num_batches_tracked;  // int64, of no dimension

 protected:
  virtual void check_input_dim(const Tensor& input) = 0;
};

#define BRASA_BATCH_NORM(D)                                                                                     \
  class BRASA_API BatchNorm##D##dImpl : public BatchNormImplBase<D, BatchNorm##D##dImpl> {                      \
   public:                                                                                                      \
    explicit BatchNorm##D##dImpl(int64_t num_features) : BatchNorm##D##dImpl(BatchNormOptions(num_features)) {} \
    explicit BatchNorm##D##dImpl(const BatchNormOptions& options);                                              \
                                                                                                                \
   protected:                                                                                                   \
    void check_input_dim(const Tensor& input) override;                                                         \
  };                                                                                                            \
  BRASA_MODULE(BatchNorm##D##d)
BRASA_BATCH_NORM(1);
BRASA_BATCH_NORM(2);
BRASA_BATCH_NORM(3);
#undef BRASA_BATCH_NORM

}  // namespace brasa::nn
