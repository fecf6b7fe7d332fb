// Regression by a Gaussian process (Rasmussen & Williams 2006, chapter 5): steps that raise the marginal likelihood.
#include "program.h"

int main(int argc, char** argv) {
  const int64_t points = 512, features = 4;
  Tensor x = waves({points, features}).to(torch::kFloat64);
  Tensor y =
      torch::sin(3 * x.select(1, 0)) + 0.5 * x.select(1, 1).square() + 0.1 * waves({points}, 1).to(torch::kFloat64);
  auto leaf = [](Tensor t) { return t.to(torch::kFloat64).requires_grad_(true); };
  Tensor log_lengths = leaf(torch::zeros({features})), log_scale = leaf(torch::tensor(0.0)),
         log_noise = leaf(torch::tensor(-2.0));
  torch::optim::Adam optimizer({log_lengths, log_scale, log_noise}, torch::optim::AdamOptions(0.05));

  auto step = [&] {
    optimizer.zero_grad();
    Tensor scaled = x / log_lengths.exp();
    Tensor norms = scaled.square().sum(1, true);
    Tensor distance2 = (norms + norms.t() - 2 * torch::mm(scaled, scaled.t())).clamp_min(0);
    Tensor kernel =
        log_scale.exp() * torch::exp(-0.5 * distance2) + (log_noise.exp() + 1e-6) * torch::eye(points, torch::kFloat64);
    Tensor factor = torch::linalg_cholesky(kernel);
    Tensor solved = torch::cholesky_solve(y.unsqueeze(1), factor).squeeze(1);
    Tensor loss = 0.5 * y.dot(solved) + factor.diagonal().log().sum() + 0.5 * points * std::log(2 * M_PI);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "gaussian_process", .step = step}, argc, argv);
}
