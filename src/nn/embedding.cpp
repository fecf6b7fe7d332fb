#include <brasa/nn/modules/embedding.h>

#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

EmbeddingImpl::EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
    : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
EmbeddingImpl::EmbeddingImpl(EmbeddingOptions o) : options(std::move(o)) { EmbeddingImpl::reset(); }

namespace {

// From the end if it is negative.
void settle(std::optional<int64_t>& pad, int64_t n) {
  if (!pad) return;
  if (*pad > 0) BRASA_CHECK(*pad < n, "Padding_idx must be within num_embeddings: got ", *pad, " of ", n);
  if (*pad < 0) BRASA_CHECK(*pad >= -n, "Padding_idx must be within num_embedding: got ", *pad, " of ", n);
  if (*pad < 0) pad = *pad + n;
}

// The table that the options give, or a random one.
template <class Impl>
void make_table(Impl& module, const char* name) {
  auto& options = module.options;
  int64_t n = options.num_embeddings(), d = options.embedding_dim();
  settle(options.padding_idx(), n);
  if (!options._weight().defined()) {
    module.weight = module.register_parameter("weight", brasa::empty({n, d}));
    module.reset_parameters();
    return;
  }
  BRASA_CHECK(options._weight().sizes() == IntArrayRef({n, d}), name, ": the weight given has sizes ",
              options._weight().sizes(), ", expected [", n, ", ", d, "]");
  module.weight = module.register_parameter("weight", options._weight());
}

void draw_table(Tensor& weight, std::optional<int64_t> padding) {
  init::normal_(weight);
  NoGradGuard no_grad;
  if (padding) weight[*padding].fill_(0);
}

}  // namespace

void EmbeddingImpl::reset() { make_table(*this, "Embedding"); }
void EmbeddingImpl::reset_parameters() { draw_table(weight, options.padding_idx()); }

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
  BRASA_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional, got ", embeddings.sizes());
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

EmbeddingBagImpl::EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim)
    : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
EmbeddingBagImpl::EmbeddingBagImpl(EmbeddingBagOptions o) : options(std::move(o)) { EmbeddingBagImpl::reset(); }

void EmbeddingBagImpl::reset() { make_table(*this, "EmbeddingBag"); }
void EmbeddingBagImpl::reset_parameters() { draw_table(weight, options.padding_idx()); }

void EmbeddingBagImpl::pretty_print(std::ostream& stream) const {
  Described d(stream, "EmbeddingBag");
  d("num_embeddings", options.num_embeddings())("embedding_dim", options.embedding_dim());
  if (options.max_norm()) d("max_norm", *options.max_norm());
  if (options.norm_type() != 2) d("norm_type", options.norm_type());
  d.flag("scale_grad_by_freq", options.scale_grad_by_freq()).flag("sparse", options.sparse());
  if (!holds_alternative<enumtype::kMean>(options.mode())) d("mode", enumtype::get_enum_name(options.mode()));
  d.flag("include_last_offset", options.include_last_offset());
  if (options.padding_idx()) d("padding_idx", *options.padding_idx());
}

Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets, const Tensor& per_sample_weights) {
  return functional::embedding_bag(input, weight,
                                   functional::EmbeddingBagFuncOptions()
                                       .offsets(offsets)
                                       .max_norm(options.max_norm())
                                       .norm_type(options.norm_type())
                                       .scale_grad_by_freq(options.scale_grad_by_freq())
                                       .mode(options.mode())
                                       .sparse(options.sparse())
                                       .per_sample_weights(per_sample_weights)
                                       .include_last_offset(options.include_last_offset())
                                       .padding_idx(options.padding_idx()));
}

EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings, const EmbeddingBagFromPretrainedOptions& options) {
  BRASA_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional, got ", embeddings.sizes());
  EmbeddingBag bag(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                       ._weight(embeddings)
                       .max_norm(options.max_norm())
                       .norm_type(options.norm_type())
                       .scale_grad_by_freq(options.scale_grad_by_freq())
                       .mode(options.mode())
                       .sparse(options.sparse())
                       .include_last_offset(options.include_last_offset())
                       .padding_idx(options.padding_idx()));
  bag->weight.set_requires_grad(!options.freeze());
  return bag;
}

}  // namespace brasa::nn
