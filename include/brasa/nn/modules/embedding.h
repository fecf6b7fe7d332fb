#pragma once

#include <brasa/nn/any.h>
#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

/// Rows of weight [num_embeddings, embedding_dim], which begins as N(0, 1), picked by integers of any shape.
class BRASA_API EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim);
  explicit EmbeddingImpl(EmbeddingOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& indices);

  EmbeddingOptions options;
  Tensor weight;
};

class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl = EmbeddingImpl;
  /// With the rows of `embeddings`, which are trained only if `freeze` is false.
  BRASA_API static Embedding from_pretrained(const Tensor& embeddings,
                                             const EmbeddingFromPretrainedOptions& options = {});
};

/// Sums, means or maxima over bags of rows, without the rows themselves. Indices [N, L], or all bags in a row with the position
/// where each begins.
class BRASA_API EmbeddingBagImpl : public Cloneable<EmbeddingBagImpl> {
 public:
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim);
  explicit EmbeddingBagImpl(EmbeddingBagOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});

  EmbeddingBagOptions options;
  Tensor weight;

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})
};

class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  using Impl = EmbeddingBagImpl;
  BRASA_API static EmbeddingBag from_pretrained(const Tensor& embeddings,
                                                const EmbeddingBagFromPretrainedOptions& options = {});
};

}  // namespace brasa::nn
