// A radiance field (Mildenhall et al. 2020): points along rays are encoded by sines, a network gives density and colour, and the
// volume is rendered along each ray.
#include "program.h"

namespace nn = torch::nn;

Tensor encode(const Tensor& x, int64_t frequencies) {
  std::vector<Tensor> parts = {x};
  for (int64_t i = 0; i < frequencies; ++i) {
    parts.push_back(torch::sin(x * std::pow(2.0, i)));
    parts.push_back(torch::cos(x * std::pow(2.0, i)));
  }
  return torch::cat(parts, -1);
}

struct FieldImpl : nn::Module {
  FieldImpl(int64_t in, int64_t view, int64_t width)
      : trunk1(nn::Linear(in, width), nn::ReLU(), nn::Linear(width, width), nn::ReLU()),
        trunk2(nn::Linear(width + in, width), nn::ReLU(), nn::Linear(width, width), nn::ReLU()),
        density(width, 1),
        colour(nn::Linear(width + view, width / 2), nn::ReLU(), nn::Linear(width / 2, 3), nn::Sigmoid()) {
    register_module("trunk1", trunk1);
    register_module("trunk2", trunk2);
    register_module("density", density);
    register_module("colour", colour);
  }
  std::pair<Tensor, Tensor> forward(const Tensor& points, const Tensor& views) {
    Tensor h = trunk2->forward(torch::cat({trunk1->forward(points), points}, -1));
    return {torch::relu(density(h)).squeeze(-1), colour->forward(torch::cat({h, views}, -1))};
  }
  nn::Sequential trunk1, trunk2;
  nn::Linear density;
  nn::Sequential colour;
};
TORCH_MODULE(Field);

int main(int argc, char** argv) {
  const int64_t rays = 256, samples = 48;
  Field field(3 + 3 * 2 * 8, 3 + 3 * 2 * 4, 128);
  init_weights(*field);
  torch::optim::Adam optimizer(field->parameters(), torch::optim::AdamOptions(5e-4));
  Tensor origins = waves({rays, 3}) * 0.1;
  Tensor directions = torch::nn::functional::normalize(waves({rays, 3}, 1) + torch::tensor({0.0f, 0.0f, 2.0f}));
  Tensor colours = waves({rays, 3}, 2).abs();
  Tensor jitter = waves({rays, samples}, 3).abs();

  auto step = [&] {
    optimizer.zero_grad();
    const double near = 0.5, far = 3.0;
    Tensor depth = torch::linspace(near, far, samples) + jitter * ((far - near) / samples);
    Tensor points = origins.unsqueeze(1) + directions.unsqueeze(1) * depth.unsqueeze(-1);
    Tensor views = encode(directions, 4).unsqueeze(1).expand({rays, samples, -1});
    auto [density, colour] = field->forward(encode(points, 8), views);

    Tensor gaps = torch::cat({depth.slice(1, 1) - depth.slice(1, 0, -1), torch::full({rays, 1}, 1e10)}, 1);
    Tensor alpha = 1 - torch::exp(-density * gaps);
    Tensor passing = torch::cumprod(torch::cat({torch::ones({rays, 1}), 1 - alpha + 1e-10}, 1), 1).slice(1, 0, -1);
    Tensor rendered = ((alpha * passing).unsqueeze(-1) * colour).sum(1);
    Tensor loss = torch::mse_loss(rendered, colours);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "nerf", .step = step}, argc, argv);
}
