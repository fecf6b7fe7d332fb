#pragma once

#include <optional>
#include <string>
#include <vector>

#include <brasa/arg.h>
#include <brasa/enum.h>
#include <brasa/expanding_array.h>
#include <brasa/tensor.h>

// LibTorch's options of the modules; those of `functional` that take the same are aliases.
namespace brasa::nn {

struct LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features) : in_features_(in_features), out_features_(out_features) {}
  BRASA_ARG(int64_t, in_features);
  BRASA_ARG(int64_t, out_features);
  BRASA_ARG(bool, bias) = true;
};

struct FlattenOptions {
  BRASA_ARG(int64_t, start_dim) = 1;
  BRASA_ARG(int64_t, end_dim) = -1;
};

template <size_t D>
struct ConvOptions {
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(std::move(kernel_size)) {}
  BRASA_ARG(int64_t, in_channels);
  BRASA_ARG(int64_t, out_channels);
  BRASA_ARG(ExpandingArray<D>, kernel_size);
  BRASA_ARG(ExpandingArray<D>, stride) = 1;
  BRASA_ARG(ExpandingArray<D>, padding) = 0;
  BRASA_ARG(ExpandingArray<D>, dilation) = 1;
  BRASA_ARG(int64_t, groups) = 1;
  BRASA_ARG(bool, bias) = true;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  BRASA_ARG(std::vector<int64_t>, normalized_shape);
  BRASA_ARG(double, eps) = 1e-5;
  BRASA_ARG(bool, elementwise_affine) = true;
};

struct BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT
  BRASA_ARG(int64_t, num_features);
  BRASA_ARG(double, eps) = 1e-5;
  /// Share of the new statistics in the running ones; nullopt: the mean over all batches.
  BRASA_ARG(std::optional<double>, momentum) = 0.1;
  BRASA_ARG(bool, affine) = true;
  BRASA_ARG(bool, track_running_stats) = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

struct EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  BRASA_ARG(int64_t, num_embeddings);
  BRASA_ARG(int64_t, embedding_dim);
  /// The row that gets no gradient and begins as zeros.
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  BRASA_ARG(Tensor, _weight) = Tensor();
};

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT
  BRASA_ARG(double, p) = 0.5;
  BRASA_ARG(bool, inplace) = false;
};

struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  BRASA_ARG(bool, inplace) = false;
};
struct GELUOptions {
  /// "none": x·Φ(x); "tanh": the cubic approximation.
  BRASA_ARG(std::string, approximate) = "none";
};
struct LeakyReLUOptions {
  BRASA_ARG(double, negative_slope) = 1e-2;
  BRASA_ARG(bool, inplace) = false;
};
struct SoftmaxOptions {
  SoftmaxOptions(int64_t dim) : dim_(dim) {}  // NOLINT
  BRASA_ARG(int64_t, dim);
};
using LogSoftmaxOptions = SoftmaxOptions;

template <size_t D>
struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  BRASA_ARG(ExpandingArray<D>, kernel_size);
  BRASA_ARG(ExpandingArray<D>, stride);
  BRASA_ARG(ExpandingArray<D>, padding) = 0;
  BRASA_ARG(ExpandingArray<D>, dilation) = 1;
  BRASA_ARG(bool, ceil_mode) = false;
};
using MaxPool2dOptions = MaxPoolOptions<2>;

template <size_t D>
struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  BRASA_ARG(ExpandingArray<D>, kernel_size);
  BRASA_ARG(ExpandingArray<D>, stride);
  BRASA_ARG(ExpandingArray<D>, padding) = 0;
  BRASA_ARG(bool, ceil_mode) = false;
  BRASA_ARG(bool, count_include_pad) = true;
  BRASA_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
using AvgPool2dOptions = AvgPoolOptions<2>;

struct AdaptiveAvgPool2dOptions {
  AdaptiveAvgPool2dOptions(ExpandingArray<2> output_size) : output_size_(output_size) {}  // NOLINT
  BRASA_ARG(ExpandingArray<2>, output_size);
};

struct CrossEntropyLossOptions {
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(int64_t, ignore_index) = -100;
  BRASA_ARG(Reduction, reduction) = kMean;
  BRASA_ARG(double, label_smoothing) = 0.0;
};
struct NLLLossOptions {
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(int64_t, ignore_index) = -100;
  BRASA_ARG(Reduction, reduction) = kMean;
};
struct MSELossOptions {
  MSELossOptions(Reduction reduction = kMean) : reduction_(reduction) {}  // NOLINT
  BRASA_ARG(Reduction, reduction);
};
using L1LossOptions = MSELossOptions;

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads) : embed_dim_(embed_dim), num_heads_(num_heads) {}
  BRASA_ARG(int64_t, embed_dim);
  BRASA_ARG(int64_t, num_heads);
  BRASA_ARG(double, dropout) = 0.0;
  BRASA_ARG(bool, bias) = true;
};

}  // namespace brasa::nn
