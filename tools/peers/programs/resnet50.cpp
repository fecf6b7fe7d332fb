// Training of a ResNet-50 (He et al. 2015) with few small pictures.
#include "program.h"

namespace nn = torch::nn;

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BottleneckImpl : nn::Module {
  BottleneckImpl(int64_t in, int64_t width, int64_t stride)
      : body(conv(in, width, 1), nn::BatchNorm2d(width), nn::ReLU(nn::ReLUOptions(true)), conv(width, width, 3, stride),
             nn::BatchNorm2d(width), nn::ReLU(nn::ReLUOptions(true)), conv(width, 4 * width, 1),
             nn::BatchNorm2d(4 * width)) {
    register_module("body", body);
    if (stride != 1 || in != 4 * width)
      shortcut =
          register_module("shortcut", nn::Sequential(conv(in, 4 * width, 1, stride), nn::BatchNorm2d(4 * width)));
  }
  Tensor forward(const Tensor& x) {
    Tensor out = body->forward(x);
    out += shortcut.is_empty() ? x : shortcut->forward(x);
    return out.relu_();
  }
  nn::Sequential body, shortcut{nullptr};
};
TORCH_MODULE(Bottleneck);

int main(int argc, char** argv) {
  const int64_t batch = 2, classes = 100;
  nn::Sequential net(conv(3, 64, 7, 2), nn::BatchNorm2d(64), nn::ReLU(nn::ReLUOptions(true)),
                     nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
  int64_t in = 64;
  const std::vector<int> depths = {3, 4, 6, 3};
  for (size_t stage = 0; stage < depths.size(); ++stage)
    for (int i = 0; i < depths[stage]; ++i) {
      int64_t width = 64 << stage;
      net->push_back(Bottleneck(in, width, i == 0 && stage > 0 ? 2 : 1));
      in = 4 * width;
    }
  net->push_back(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(in, classes));
  init_weights(*net);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(1e-5).momentum(0.9).weight_decay(1e-4));
  Tensor images = waves({batch, 3, 128, 128}), labels = torch::arange(batch, torch::kLong) * 7;

  auto step = [&] {
    optimizer.zero_grad();
    Tensor loss = torch::nn::functional::cross_entropy(net->forward(images), labels);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "resnet50", .step = step}, argc, argv);
}
