// A U-Net (Ronneberger et al. 2015) that learns to segment pictures.
#include "program.h"

namespace nn = torch::nn;

nn::Sequential convolutions(int64_t in, int64_t out) {
  auto options = [](int64_t from, int64_t to) { return nn::Conv2dOptions(from, to, 3).padding(1).bias(false); };
  return nn::Sequential(nn::Conv2d(options(in, out)), nn::BatchNorm2d(out), nn::ReLU(nn::ReLUOptions(true)),
                        nn::Conv2d(options(out, out)), nn::BatchNorm2d(out), nn::ReLU(nn::ReLUOptions(true)));
}

struct UNetImpl : nn::Module {
  UNetImpl(int64_t channels, int64_t width, int levels) {
    for (int i = 0; i < levels; ++i) {
      int64_t features = width << i;
      down.push_back(register_module("down" + std::to_string(i), convolutions(i ? features / 2 : channels, features)));
      up.push_back(
          register_module("up" + std::to_string(i),
                          nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2 * features, features, 2).stride(2))));
      join.push_back(register_module("join" + std::to_string(i), convolutions(2 * features, features)));
    }
    bottom = register_module("bottom", convolutions(width << (levels - 1), width << levels));
    head = register_module("head", nn::Conv2d(nn::Conv2dOptions(width, 1, 1)));
  }

  Tensor forward(Tensor x) {
    std::vector<Tensor> skips;
    for (auto& level : down) {
      skips.push_back(level->forward(x));
      x = torch::max_pool2d(skips.back(), 2);
    }
    x = bottom->forward(x);
    for (size_t i = down.size(); i-- > 0;) x = join[i]->forward(torch::cat({up[i](x), skips[i]}, 1));
    return head(x);
  }

  std::vector<nn::Sequential> down, join;
  std::vector<nn::ConvTranspose2d> up;
  nn::Sequential bottom{nullptr};
  nn::Conv2d head{nullptr};
};
TORCH_MODULE(UNet);

int main(int argc, char** argv) {
  UNet net(3, 16, 3);
  init_weights(*net);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
  Tensor images = waves({4, 3, 96, 96});
  Tensor masks = (torch::avg_pool2d(images.sum(1, true), 5, 1, 2) > 0).to(torch::kFloat32);

  auto step = [&] {
    optimizer.zero_grad();
    Tensor logits = net(images);
    Tensor probability = torch::sigmoid(logits);
    Tensor dice = 1 - (2 * (probability * masks).sum() + 1) / (probability.sum() + masks.sum() + 1);
    Tensor loss = torch::binary_cross_entropy_with_logits(logits, masks) + dice;
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "unet", .step = step}, argc, argv);
}
