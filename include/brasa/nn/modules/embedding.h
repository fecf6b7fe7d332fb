#pragma once

#include <brasa/nn/cloneable.h>
#include <brasa/nn/options.h>
#include <brasa/nn/pimpl.h>

namespace brasa::nn {

/// Rows of weight [num_embeddings, embedding_dim], which begins as N(0, 1), picked by integers of any shape.
class BRASA_API EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(EmbeddingOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& indices);

  EmbeddingOptions options;
  Tensor weight;
};
BRASA_MODULE(Embedding);

}  // namespace brasa::nn
