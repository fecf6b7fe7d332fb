#pragma once

#include <brasa/nn/options/linear.h>

namespace brasa::nn::functional {

struct EmbeddingFuncOptions {
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  BRASA_ARG(std::optional<double>, max_norm) = std::nullopt;
  BRASA_ARG(double, norm_type) = 2.0;
  BRASA_ARG(bool, scale_grad_by_freq) = false;
  BRASA_ARG(bool, sparse) = false;
};
struct EmbeddingBagFuncOptions {
  BRASA_ARG(Tensor, offsets) = Tensor();
  BRASA_ARG(std::optional<double>, max_norm) = std::nullopt;
  BRASA_ARG(double, norm_type) = 2.0;
  BRASA_ARG(bool, scale_grad_by_freq) = false;
  BRASA_ARG(EmbeddingBagMode, mode) = kMean;
  BRASA_ARG(bool, sparse) = false;
  BRASA_ARG(Tensor, per_sample_weights) = Tensor();
  BRASA_ARG(bool, include_last_offset) = false;
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};
using CosineSimilarityFuncOptions = CosineSimilarityOptions;
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;

}  // namespace brasa::nn::functional
