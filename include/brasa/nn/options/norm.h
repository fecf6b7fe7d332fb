#pragma once

#include <optional>
#include <vector>

#include <brasa/arg.h>
#include <brasa/tensor.h>

namespace brasa::nn {

struct LayerNormOptions {
  LayerNormOptions(std::vector<int64_t> normalized_shape) : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  BRASA_ARG(std::vector<int64_t>, normalized_shape);
  BRASA_ARG(double, eps) = 1e-5;
  BRASA_ARG(bool, elementwise_affine) = true;
};

struct BRASA_API BatchNormOptions {
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

struct BRASA_API InstanceNormOptions {
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT
  BRASA_ARG(int64_t, num_features);
  BRASA_ARG(double, eps) = 1e-5;
  BRASA_ARG(double, momentum) = 0.1;
  BRASA_ARG(bool, affine) = false;
  BRASA_ARG(bool, track_running_stats) = false;
};
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

struct GroupNormOptions {
  GroupNormOptions(int64_t num_groups, int64_t num_channels) : num_groups_(num_groups), num_channels_(num_channels) {}
  BRASA_ARG(int64_t, num_groups);
  BRASA_ARG(int64_t, num_channels);
  BRASA_ARG(double, eps) = 1e-5;
  BRASA_ARG(bool, affine) = true;
};

struct LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}  // NOLINT
  BRASA_ARG(int64_t, size);
  BRASA_ARG(double, alpha) = 1e-4;
  BRASA_ARG(double, beta) = 0.75;
  BRASA_ARG(double, k) = 1.0;
};
struct CrossMapLRN2dOptions {
  CrossMapLRN2dOptions(int64_t size) : size_(size) {}  // NOLINT
  BRASA_ARG(int64_t, size);
  BRASA_ARG(double, alpha) = 1e-4;
  BRASA_ARG(double, beta) = 0.75;
  BRASA_ARG(int64_t, k) = 1;
};

namespace functional {

struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)  // NOLINT
      : normalized_shape_(std::move(normalized_shape)) {}
  BRASA_ARG(std::vector<int64_t>, normalized_shape);
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(Tensor, bias) = Tensor();
  BRASA_ARG(double, eps) = 1e-5;
};
struct BatchNormFuncOptions {
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(Tensor, bias) = Tensor();
  BRASA_ARG(bool, training) = false;
  BRASA_ARG(std::optional<double>, momentum) = 0.1;
  BRASA_ARG(double, eps) = 1e-5;
};
struct InstanceNormFuncOptions {
  BRASA_ARG(Tensor, running_mean) = Tensor();
  BRASA_ARG(Tensor, running_var) = Tensor();
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(Tensor, bias) = Tensor();
  BRASA_ARG(bool, use_input_stats) = true;
  BRASA_ARG(double, momentum) = 0.1;
  BRASA_ARG(double, eps) = 1e-5;
};
struct GroupNormFuncOptions {
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}  // NOLINT
  BRASA_ARG(int64_t, num_groups);
  BRASA_ARG(Tensor, weight) = Tensor();
  BRASA_ARG(Tensor, bias) = Tensor();
  BRASA_ARG(double, eps) = 1e-5;
};
struct NormalizeFuncOptions {
  BRASA_ARG(double, p) = 2.0;
  BRASA_ARG(int64_t, dim) = 1;
  BRASA_ARG(double, eps) = 1e-12;
  BRASA_ARG(std::optional<Tensor>, out) = std::nullopt;
};
using LocalResponseNormFuncOptions = LocalResponseNormOptions;

}  // namespace functional
}  // namespace brasa::nn
