// Bodies that attract each other, moved by the leapfrog method; forces of all pairs, softened.
#include "program.h"

int main(int argc, char** argv) {
  torch::NoGradGuard no_grad;
  const int64_t bodies = 1024;
  const double dt = 1e-3, softening = 0.05;
  Tensor place = waves({bodies, 3}), velocity = 0.1 * waves({bodies, 3}, 1);
  Tensor mass = (waves({bodies}, 2).abs() + 0.5) / bodies;

  auto acceleration = [&](const Tensor& place) {
    Tensor between = place.unsqueeze(0) - place.unsqueeze(1);  // [i, j]: from i to j
    Tensor distance2 = between.pow(2).sum(-1) + softening * softening;
    return ((mass * distance2.pow(-1.5)).unsqueeze(-1) * between).sum(1);
  };
  Tensor force = acceleration(place);
  auto step = [&] {
    for (int i = 0; i < 2; ++i) {
      velocity = velocity + 0.5 * dt * force;
      place = place + dt * velocity;
      force = acceleration(place);
      velocity = velocity + 0.5 * dt * force;
    }
    return 0.5 * (mass * velocity.pow(2).sum(-1)).sum();
  };
  return run({.name = "nbody", .step = step}, argc, argv);
}
