#include <brasa/nn/modules/embedding.h>

#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "support/error.h"

namespace brasa::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions o) : options(std::move(o)) { EmbeddingImpl::reset(); }

void EmbeddingImpl::reset() {
  int64_t n = options.num_embeddings(), d = options.embedding_dim();
  if (std::optional<int64_t>& pad = options.padding_idx()) {
    BRASA_CHECK(-n <= *pad && *pad < n, "Embedding: padding_idx ", *pad, " is not among the ", n, " embeddings");
    if (*pad < 0) pad = *pad + n;
  }
  if (!options._weight().defined()) {
    weight = register_parameter("weight", brasa::empty({n, d}));
    reset_parameters();
    return;
  }
  BRASA_CHECK(options._weight().sizes() == IntArrayRef({n, d}), "Embedding: the weight given has sizes ",
              options._weight().sizes(), ", expected [", n, ", ", d, "]");
  weight = register_parameter("weight", options._weight());
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  NoGradGuard no_grad;
  if (options.padding_idx()) weight[*options.padding_idx()].fill_(0);
}

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Embedding(num_embeddings=" << options.num_embeddings()
         << ", embedding_dim=" << options.embedding_dim();
  if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
  stream << ")";
}

Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return functional::embedding(indices, weight, functional::EmbeddingFuncOptions().padding_idx(options.padding_idx()));
}

}  // namespace brasa::nn
