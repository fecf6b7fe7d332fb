#include <brasa/nn/modules/embedding.h>

#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "nn/print.h"
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
  Described d(stream, "Embedding");
  d("num_embeddings", options.num_embeddings())("embedding_dim", options.embedding_dim());
  if (options.padding_idx()) d("padding_idx", *options.padding_idx());
  if (options.max_norm()) d("max_norm", *options.max_norm());
  if (options.norm_type() != 2) d("norm_type", options.norm_type());
  d.flag("scale_grad_by_freq", options.scale_grad_by_freq()).flag("sparse", options.sparse());
}

Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return functional::embedding(indices, weight,
                               functional::EmbeddingFuncOptions()
                                   .padding_idx(options.padding_idx())
                                   .max_norm(options.max_norm())
                                   .norm_type(options.norm_type())
                                   .scale_grad_by_freq(options.scale_grad_by_freq())
                                   .sparse(options.sparse()));
}

Embedding Embedding::from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& options) {
  BRASA_CHECK(embeddings.dim() == 2, "Embedding: expected pretrained weights of 2 dimensions, got ",
              embeddings.sizes());
  Embedding embedding(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                          ._weight(embeddings)
                          .padding_idx(options.padding_idx())
                          .max_norm(options.max_norm())
                          .norm_type(options.norm_type())
                          .scale_grad_by_freq(options.scale_grad_by_freq())
                          .sparse(options.sparse()));
  embedding->weight.set_requires_grad(!options.freeze());
  return embedding;
}

}  // namespace brasa::nn
