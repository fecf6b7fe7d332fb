#pragma once

#include <vector>

#include <brasa/nn.h>

namespace models {

struct BasicBlockImpl : brasa::nn::Module {
  BasicBlockImpl(int64_t in, int64_t out, int64_t stride);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  brasa::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
  brasa::nn::Sequential downsample{nullptr};
};
BRASA_MODULE(BasicBlock);

/// A 3 x 3 convolution between two of 1 x 1 that narrow and widen again by a factor of 4.
struct BottleneckImpl : brasa::nn::Module {
  BottleneckImpl(int64_t in, int64_t out, int64_t stride);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  brasa::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  brasa::nn::Sequential downsample{nullptr};
};
BRASA_MODULE(Bottleneck);

/// He et al. 2016; the defaults are ResNet-18, {3, 4, 6, 3} of bottlenecks ResNet-50. [n, 3, h, w] -> [n, classes].
struct ResNetImpl : brasa::nn::Module {
  explicit ResNetImpl(const std::vector<int64_t>& depths = {2, 2, 2, 2}, bool bottlenecks = false,
                      int64_t classes = 1000);
  brasa::Tensor forward(const brasa::Tensor& images);
  brasa::nn::Conv2d conv1{nullptr};
  brasa::nn::BatchNorm2d bn1{nullptr};
  brasa::nn::MaxPool2d maxpool{nullptr};
  std::vector<brasa::nn::Sequential> layers;
  brasa::nn::Linear fc{nullptr};
};
BRASA_MODULE(ResNet);

}  // namespace models
