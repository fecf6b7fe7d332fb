#pragma once

#include <string>
#include <vector>

#include <brasa/arg.h>
#include <brasa/enum.h>
#include <brasa/tensor.h>

namespace brasa::nn {

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  BRASA_ARG(int64_t, in_features);
  BRASA_ARG(int64_t, out_features);
  BRASA_ARG(bool, bias) = true;
};

struct BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  BRASA_ARG(int64_t, in1_features);
  BRASA_ARG(int64_t, in2_features);
  BRASA_ARG(int64_t, out_features);
  BRASA_ARG(bool, bias) = true;
};

struct FlattenOptions {
  BRASA_ARG(int64_t, start_dim) = 1;
  BRASA_ARG(int64_t, end_dim) = -1;
};

/// The sizes into which dimension `dim`, or the one named `dimname`, is split. Dimensions have no names here: a name is rejected
/// by forward.
struct UnflattenOptions {
  using namedshape_t = std::vector<std::pair<std::string, int64_t>>;
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  UnflattenOptions(const char* dimname, namedshape_t namedshape)
      : UnflattenOptions(std::string(dimname), std::move(namedshape)) {}
  UnflattenOptions(std::string dimname, namedshape_t namedshape)
      : dim_(0), dimname_(std::move(dimname)), namedshape_(std::move(namedshape)) {}
  BRASA_ARG(int64_t, dim);
  BRASA_ARG(std::string, dimname);
  BRASA_ARG(std::vector<int64_t>, sizes);
  BRASA_ARG(namedshape_t, namedshape);
};

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  BRASA_ARG(int64_t, num_embeddings);
  BRASA_ARG(int64_t, embedding_dim);
  /// The row that gets no gradient and begins as zeros.
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// Rows whose norm is larger are scaled down to it before they are read.
  BRASA_ARG(std::optional<double>, max_norm) = std::nullopt;
  BRASA_ARG(double, norm_type) = 2.0;
  BRASA_ARG(bool, scale_grad_by_freq) = false;
  BRASA_ARG(bool, sparse) = false;
  BRASA_ARG(Tensor, _weight) = Tensor();
};

struct EmbeddingFromPretrainedOptions {
  BRASA_ARG(bool, freeze) = true;
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  BRASA_ARG(std::optional<double>, max_norm) = std::nullopt;
  BRASA_ARG(double, norm_type) = 2.0;
  BRASA_ARG(bool, scale_grad_by_freq) = false;
  BRASA_ARG(bool, sparse) = false;
};

using EmbeddingBagMode = Choice<enumtype::kSum, enumtype::kMean, enumtype::kMax>;

struct EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  BRASA_ARG(int64_t, num_embeddings);
  BRASA_ARG(int64_t, embedding_dim);
  BRASA_ARG(std::optional<double>, max_norm) = std::nullopt;
  BRASA_ARG(double, norm_type) = 2.0;
  BRASA_ARG(bool, scale_grad_by_freq) = false;
  BRASA_ARG(EmbeddingBagMode, mode) = kMean;
  BRASA_ARG(bool, sparse) = false;
  BRASA_ARG(Tensor, _weight) = Tensor();
  BRASA_ARG(bool, include_last_offset) = false;
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

struct EmbeddingBagFromPretrainedOptions {
  BRASA_ARG(bool, freeze) = true;
  BRASA_ARG(std::optional<double>, max_norm) = std::nullopt;
  BRASA_ARG(double, norm_type) = 2.0;
  BRASA_ARG(bool, scale_grad_by_freq) = false;
  BRASA_ARG(EmbeddingBagMode, mode) = kMean;
  BRASA_ARG(bool, sparse) = false;
  BRASA_ARG(bool, include_last_offset) = false;
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

struct CosineSimilarityOptions {
  BRASA_ARG(int64_t, dim) = 1;
  BRASA_ARG(double, eps) = 1e-8;
};
struct PairwiseDistanceOptions {
  BRASA_ARG(double, p) = 2.0;
  BRASA_ARG(double, eps) = 1e-6;
  BRASA_ARG(bool, keepdim) = false;
};

}  // namespace brasa::nn
