// A generative adversarial network of transposed convolutions for digits (Radford et al. 2015): both networks' steps.
#include "program.h"

namespace nn = torch::nn;

nn::ConvTranspose2dOptions up(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding) {
  return nn::ConvTranspose2dOptions(in, out, kernel).stride(stride).padding(padding).bias(false);
}
nn::Conv2dOptions down(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding) {
  return nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding).bias(false);
}
nn::LeakyReLU leaky() { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)); }

int main(int argc, char** argv) {
  torch::manual_seed(0);
  const int64_t batch = 32, noise = 100;
  nn::Sequential generator(nn::ConvTranspose2d(up(noise, 256, 4, 1, 0)), nn::BatchNorm2d(256), nn::ReLU(),
                           nn::ConvTranspose2d(up(256, 128, 3, 2, 1)), nn::BatchNorm2d(128), nn::ReLU(),
                           nn::ConvTranspose2d(up(128, 64, 4, 2, 1)), nn::BatchNorm2d(64), nn::ReLU(),
                           nn::ConvTranspose2d(up(64, 1, 4, 2, 1)), nn::Tanh());
  nn::Sequential discriminator(nn::Conv2d(down(1, 64, 4, 2, 1)), leaky(), nn::Conv2d(down(64, 128, 4, 2, 1)),
                               nn::BatchNorm2d(128), leaky(), nn::Conv2d(down(128, 256, 4, 2, 1)), nn::BatchNorm2d(256),
                               leaky(), nn::Conv2d(down(256, 1, 3, 1, 0)), nn::Sigmoid());
  init_weights(*generator);
  init_weights(*discriminator);
  auto adam = [](nn::Sequential& net) {
    return torch::optim::Adam(net->parameters(), torch::optim::AdamOptions(2e-4).betas({0.5, 0.999}));
  };
  torch::optim::Adam generator_optimizer = adam(generator), discriminator_optimizer = adam(discriminator);
  Tensor images = waves({batch, 1, 28, 28});

  auto step = [&] {
    discriminator->zero_grad();
    Tensor real = discriminator->forward(images).reshape({batch});
    Tensor real_loss = torch::binary_cross_entropy(real, torch::empty({batch}).uniform_(0.8, 1.0));
    real_loss.backward();
    Tensor fake = generator->forward(torch::randn({batch, noise, 1, 1}));
    Tensor judged = discriminator->forward(fake.detach()).reshape({batch});
    Tensor fake_loss = torch::binary_cross_entropy(judged, torch::zeros({batch}));
    fake_loss.backward();
    discriminator_optimizer.step();

    generator->zero_grad();
    judged = discriminator->forward(fake).reshape({batch});
    Tensor generator_loss = torch::binary_cross_entropy(judged, torch::ones({batch}));
    generator_loss.backward();
    generator_optimizer.step();
    return (real_loss + fake_loss).detach();
  };
  return run({.name = "dcgan", .step = step, .tolerance = 0.3}, argc, argv);
}
