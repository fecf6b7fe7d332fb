#pragma once

#include <brasa/nn.h>

namespace models {

enum class Activation : uint8_t { None, Relu, HardSwish };

/// A convolution, batch norm and an activation.
struct NormalizedConvImpl : brasa::nn::Module {
  NormalizedConvImpl(const brasa::nn::Conv2dOptions& options, Activation activation);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::Conv2d conv{nullptr};
  brasa::nn::BatchNorm2d norm{nullptr};
  Activation activation;
};
BRASA_MODULE(NormalizedConv);

/// A row of Howard et al. 2019, table 1.
struct InvertedResidualOptions {
  int64_t in, kernel, expanded, out;
  bool squeeze;
  Activation activation;
  int64_t stride;
};

/// Scales channels by what two 1 x 1 convolutions make of their means.
struct SqueezeExcitationImpl : brasa::nn::Module {
  SqueezeExcitationImpl(int64_t channels, int64_t squeezed);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::Conv2d fc1{nullptr}, fc2{nullptr};
};
BRASA_MODULE(SqueezeExcitation);

/// Expands by 1 x 1, convolves each channel alone, projects by 1 x 1; a residual where the shapes agree.
struct InvertedResidualImpl : brasa::nn::Module {
  explicit InvertedResidualImpl(const InvertedResidualOptions& options);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::Sequential block;
  bool residual;
};
BRASA_MODULE(InvertedResidual);

/// MobileNetV3-Large with torchvision's parameter names. [n, 3, h, w] -> [n, classes].
struct MobileNetV3Impl : brasa::nn::Module {
  explicit MobileNetV3Impl(int64_t classes = 1000);
  brasa::Tensor forward(const brasa::Tensor& images);
  brasa::nn::Sequential features, classifier;
};
BRASA_MODULE(MobileNetV3);

}  // namespace models
