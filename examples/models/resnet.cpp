#include "resnet.h"

#include <string>

#include <brasa/brasa.h>

namespace models {

using namespace brasa;

namespace {

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

// What leads the input past the block, where their shapes differ.
nn::Sequential shortcut(int64_t in, int64_t out, int64_t stride) {
  if (stride == 1 && in == out) return nullptr;
  return nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out));
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(int64_t in, int64_t out, int64_t stride) {
  conv1 = register_module("conv1", conv(in, out, 3, stride));
  bn1 = register_module("bn1", nn::BatchNorm2d(out));
  conv2 = register_module("conv2", conv(out, out, 3, 1));
  bn2 = register_module("bn2", nn::BatchNorm2d(out));
  if (nn::Sequential s = shortcut(in, out, stride)) downsample = register_module("downsample", s);
}

Tensor BasicBlockImpl::forward(const Tensor& x) {
  Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
  return relu(y + (downsample.is_empty() ? x : downsample->forward(x)));
}

BottleneckImpl::BottleneckImpl(int64_t in, int64_t out, int64_t stride) {
  int64_t width = out / 4;
  conv1 = register_module("conv1", conv(in, width, 1, 1));
  bn1 = register_module("bn1", nn::BatchNorm2d(width));
  conv2 = register_module("conv2", conv(width, width, 3, stride));
  bn2 = register_module("bn2", nn::BatchNorm2d(width));
  conv3 = register_module("conv3", conv(width, out, 1, 1));
  bn3 = register_module("bn3", nn::BatchNorm2d(out));
  if (nn::Sequential s = shortcut(in, out, stride)) downsample = register_module("downsample", s);
}

Tensor BottleneckImpl::forward(const Tensor& x) {
  Tensor y = bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x))))))));
  return relu(y + (downsample.is_empty() ? x : downsample->forward(x)));
}

ResNetImpl::ResNetImpl(const std::vector<int64_t>& depths, bool bottlenecks, int64_t classes) {
  conv1 = register_module("conv1", conv(3, 64, 7, 2));
  bn1 = register_module("bn1", nn::BatchNorm2d(64));
  maxpool = register_module("maxpool", nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  int64_t in = 64;
  for (size_t i = 0; i < depths.size(); ++i) {
    int64_t out = int64_t{bottlenecks ? 256 : 64} << i;
    nn::Sequential layer;
    for (int64_t j = 0; j < depths[i]; ++j) {
      int64_t stride = i > 0 && j == 0 ? 2 : 1;
      if (bottlenecks)
        layer->push_back(Bottleneck(in, out, stride));
      else
        layer->push_back(BasicBlock(in, out, stride));
      in = out;
    }
    layers.push_back(register_module("layer" + std::to_string(i + 1), layer));
  }
  fc = register_module("fc", nn::Linear(in, classes));
  apply([](nn::Module& m) {
    if (auto* c = m.as<nn::Conv2d>()) nn::init::kaiming_normal_(c->weight, 0, kFanOut, kReLU);
  });
}

Tensor ResNetImpl::forward(const Tensor& images) {
  Tensor x = maxpool(relu(bn1(conv1(images))));
  for (nn::Sequential& layer : layers) x = layer->forward(x);
  return fc(x.mean({2, 3}));
}

}  // namespace models
