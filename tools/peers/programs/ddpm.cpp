// Denoising diffusion (Ho et al. 2020): a small U-Net with time embeddings learns to predict noise.
#include "program.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct BlockImpl : nn::Module {
  BlockImpl(int64_t in, int64_t out, int64_t times)
      : norm1(nn::GroupNormOptions(8, in)),
        norm2(nn::GroupNormOptions(8, out)),
        conv1(nn::Conv2dOptions(in, out, 3).padding(1)),
        conv2(nn::Conv2dOptions(out, out, 3).padding(1)),
        time(times, out) {
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("time", time);
    if (in != out) shortcut = register_module("shortcut", nn::Conv2d(nn::Conv2dOptions(in, out, 1)));
  }
  Tensor forward(const Tensor& x, const Tensor& t) {
    Tensor h = conv1(torch::silu(norm1(x))) + time(torch::silu(t)).unsqueeze(-1).unsqueeze(-1);
    return conv2(torch::silu(norm2(h))) + (shortcut.is_empty() ? x : shortcut(x));
  }
  nn::GroupNorm norm1, norm2;
  nn::Conv2d conv1, conv2, shortcut{nullptr};
  nn::Linear time;
};
TORCH_MODULE(Block);

struct DenoiserImpl : nn::Module {
  explicit DenoiserImpl(int64_t width)
      : stem(nn::Conv2dOptions(3, width, 3).padding(1)),
        head(nn::Conv2dOptions(width, 3, 3).padding(1)),
        down(nn::Conv2dOptions(width, width, 3).stride(2).padding(1)),
        time(nn::Linear(width, 4 * width), nn::SiLU(), nn::Linear(4 * width, 4 * width)),
        first(width, width, 4 * width),
        middle1(width, 2 * width, 4 * width),
        middle2(2 * width, width, 4 * width),
        last(2 * width, width, 4 * width),
        features(width) {
    register_module("stem", stem);
    register_module("head", head);
    register_module("down", down);
    register_module("time", time);
    register_module("first", first);
    register_module("middle1", middle1);
    register_module("middle2", middle2);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x, const Tensor& t) {
    Tensor rates = torch::exp(torch::arange(features / 2) * (-std::log(1e4) / (features / 2 - 1)));
    Tensor angles = t.to(torch::kFloat32).unsqueeze(1) * rates.unsqueeze(0);
    Tensor embedding = time->forward(torch::cat({angles.sin(), angles.cos()}, 1));
    Tensor skip = first(stem(x), embedding);
    Tensor h = middle2(middle1(down(skip), embedding), embedding);
    h = F::interpolate(h, F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kNearest));
    return head(last(torch::cat({h, skip}, 1), embedding));
  }
  nn::Conv2d stem, head, down;
  nn::Sequential time;
  Block first, middle1, middle2, last;
  int64_t features;
};
TORCH_MODULE(Denoiser);

int main(int argc, char** argv) {
  torch::manual_seed(0);
  const int64_t batch = 8, steps = 1000;
  Denoiser net(32);
  init_weights(*net);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(2e-4));
  Tensor images = waves({batch, 3, 32, 32});
  Tensor signal = torch::cumprod(1 - torch::linspace(1e-4, 0.02, steps), 0);

  auto step = [&] {
    optimizer.zero_grad();
    Tensor t = torch::randint(0, steps, {batch}, torch::kLong);
    Tensor noise = torch::randn_like(images);
    Tensor kept = signal.index({t}).view({-1, 1, 1, 1});
    Tensor noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise;
    Tensor loss = torch::mse_loss(net(noisy, t), noise);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "ddpm", .step = step, .tolerance = 0.3}, argc, argv);
}
