#include "mobilenet.h"

#include <algorithm>

#include <brasa/brasa.h>

namespace models {

using namespace brasa;

namespace {

// A multiple of 8, at most a tenth less than n.
int64_t divisible(int64_t n) {
  int64_t rounded = std::max<int64_t>(8, (n + 4) / 8 * 8);
  return 10 * rounded < 9 * n ? rounded + 8 : rounded;
}

}  // namespace

NormalizedConvImpl::NormalizedConvImpl(const nn::Conv2dOptions& o, Activation activation) : activation(activation) {
  conv = register_module("0", nn::Conv2d(nn::Conv2dOptions(o).bias(false)));
  norm = register_module("1", nn::BatchNorm2d(nn::BatchNorm2dOptions(o.out_channels()).eps(1e-3).momentum(0.01)));
}
Tensor NormalizedConvImpl::forward(const Tensor& x) {
  Tensor y = norm(conv(x));
  switch (activation) {
    case Activation::None: return y;
    case Activation::Relu: return relu(y);
    default: return hardswish(y);
  }
}

SqueezeExcitationImpl::SqueezeExcitationImpl(int64_t channels, int64_t squeezed) {
  fc1 = register_module("fc1", nn::Conv2d(nn::Conv2dOptions(channels, squeezed, 1)));
  fc2 = register_module("fc2", nn::Conv2d(nn::Conv2dOptions(squeezed, channels, 1)));
}
Tensor SqueezeExcitationImpl::forward(const Tensor& x) {
  return x * hardsigmoid(fc2(relu(fc1(x.mean({2, 3}, /*keepdim=*/true)))));
}

InvertedResidualImpl::InvertedResidualImpl(const InvertedResidualOptions& o)
    : residual(o.stride == 1 && o.in == o.out) {
  auto pointwise = [](int64_t in, int64_t out) { return nn::Conv2dOptions(in, out, 1); };
  if (o.expanded != o.in) block->push_back(NormalizedConv(pointwise(o.in, o.expanded), o.activation));
  nn::Conv2dOptions each(o.expanded, o.expanded, o.kernel);
  block->push_back(NormalizedConv(each.stride(o.stride).padding(o.kernel / 2).groups(o.expanded), o.activation));
  if (o.squeeze) block->push_back(SqueezeExcitation(o.expanded, divisible(o.expanded / 4)));
  block->push_back(NormalizedConv(pointwise(o.expanded, o.out), Activation::None));
  register_module("block", block);
}
Tensor InvertedResidualImpl::forward(const Tensor& x) {
  Tensor y = block->forward(x);
  return residual ? x + y : y;
}

MobileNetV3Impl::MobileNetV3Impl(int64_t classes) {
  constexpr Activation kRelu = Activation::Relu, kSwish = Activation::HardSwish;
  const InvertedResidualOptions rows[] = {
      {16, 3, 16, 16, false, kRelu, 1},    {16, 3, 64, 24, false, kRelu, 2},    {24, 3, 72, 24, false, kRelu, 1},
      {24, 5, 72, 40, true, kRelu, 2},     {40, 5, 120, 40, true, kRelu, 1},    {40, 5, 120, 40, true, kRelu, 1},
      {40, 3, 240, 80, false, kSwish, 2},  {80, 3, 200, 80, false, kSwish, 1},  {80, 3, 184, 80, false, kSwish, 1},
      {80, 3, 184, 80, false, kSwish, 1},  {80, 3, 480, 112, true, kSwish, 1},  {112, 3, 672, 112, true, kSwish, 1},
      {112, 5, 672, 160, true, kSwish, 2}, {160, 5, 960, 160, true, kSwish, 1}, {160, 5, 960, 160, true, kSwish, 1},
  };
  features->push_back(NormalizedConv(nn::Conv2dOptions(3, 16, 3).stride(2).padding(1), kSwish));
  for (const InvertedResidualOptions& row : rows) features->push_back(InvertedResidual(row));
  features->push_back(NormalizedConv(nn::Conv2dOptions(160, 960, 1), kSwish));
  register_module("features", features);
  classifier->push_back(nn::Linear(960, 1280));
  classifier->push_back(nn::Functional([](Tensor x) { return hardswish(x); }));
  classifier->push_back(nn::Dropout(0.2));
  classifier->push_back(nn::Linear(1280, classes));
  register_module("classifier", classifier);
  apply([](nn::Module& m) {
    if (auto* c = m.as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(c->weight, 0, kFanOut);
      if (c->bias.defined()) nn::init::zeros_(c->bias);
    }
    if (auto* linear = m.as<nn::Linear>()) {
      nn::init::normal_(linear->weight, 0, 0.01);
      nn::init::zeros_(linear->bias);
    }
  });
}

Tensor MobileNetV3Impl::forward(const Tensor& images) {
  return classifier->forward(features->forward(images).mean({2, 3}));
}

}  // namespace models
