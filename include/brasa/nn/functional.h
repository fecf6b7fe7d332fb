#pragma once

#include <brasa/nn/options.h>

/// The modules' functions without their state: `F::cross_entropy(y, target, F::CrossEntropyFuncOptions().label_smoothing(0.1))`.
namespace brasa::nn::functional {

using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using MSELossFuncOptions = MSELossOptions;
using L1LossFuncOptions = L1LossOptions;
using GELUFuncOptions = GELUOptions;
using ReLUFuncOptions = ReLUOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using SoftmaxFuncOptions = SoftmaxOptions;
using LogSoftmaxFuncOptions = LogSoftmaxOptions;
using MaxPool2dFuncOptions = MaxPool2dOptions;
using AvgPool2dFuncOptions = AvgPool2dOptions;
using AdaptiveAvgPool2dFuncOptions = AdaptiveAvgPool2dOptions;

template <size_t D>
struct ConvFuncOptions {
  BRASA_ARG(Tensor, bias) = Tensor();
  BRASA_ARG(ExpandingArray<D>, stride) = 1;
  BRASA_ARG(ExpandingArray<D>, padding) = 0;
  BRASA_ARG(ExpandingArray<D>, dilation) = 1;
  BRASA_ARG(int64_t, groups) = 1;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;

struct LayerNormFuncOptions {
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
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

struct EmbeddingFuncOptions {
  BRASA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

struct DropoutFuncOptions {
  BRASA_ARG(double, p) = 0.5;
  BRASA_ARG(bool, training) = false;
  BRASA_ARG(bool, inplace) = false;
};

/// input · weightᵀ + bias.
BRASA_API Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
BRASA_API Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options = {});
BRASA_API Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options = {});
BRASA_API Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options = {});
BRASA_API Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
/// While training, running_mean and running_var (where defined) are moved towards the batch's, in place.
BRASA_API Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                            const BatchNormFuncOptions& options = {});
BRASA_API Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});
BRASA_API Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});

BRASA_API Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
BRASA_API Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
BRASA_API Tensor silu(const Tensor& input);
BRASA_API Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
BRASA_API Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
BRASA_API Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);

BRASA_API Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& options);
BRASA_API Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& options);
BRASA_API Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& options);

BRASA_API Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
BRASA_API Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
BRASA_API Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
BRASA_API Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});

}  // namespace brasa::nn::functional
