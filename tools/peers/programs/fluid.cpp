// Two-dimensional turbulence: the vorticity form of the Navier-Stokes equations, pseudo-spectral, with Heun's method and an
// integrating factor for viscosity.
#include "program.h"

int main(int argc, char** argv) {
  torch::NoGradGuard no_grad;
  const int64_t n = 256;
  const double dt = 2e-3, viscosity = 1e-4;
  Tensor ky = torch::fft_fftfreq(n, 1.0 / n).view({n, 1});
  Tensor kx = torch::fft_rfftfreq(n, 1.0 / n).view({1, n / 2 + 1});
  Tensor k2 = kx.square() + ky.square();
  Tensor inverse_k2 = torch::where(k2 == 0, torch::zeros_like(k2), 1 / k2);
  Tensor kept = torch::logical_and(kx.abs() < n / 3.0, ky.abs() < n / 3.0).to(torch::kFloat32);
  Tensor decay = torch::exp(-viscosity * dt * k2);
  Tensor i_kx = torch::complex(torch::zeros_like(kx), kx), i_ky = torch::complex(torch::zeros_like(ky), ky);

  auto grid = torch::meshgrid({torch::arange(n) * (2 * M_PI / n), torch::arange(n) * (2 * M_PI / n)}, "ij");
  Tensor vorticity = torch::sin(3 * grid[1]) * torch::cos(4 * grid[0]) + torch::cos(5 * grid[1] + 2 * grid[0]) +
                     0.1 * torch::sin(11 * grid[0] - 7 * grid[1]);
  Tensor w = torch::fft::rfft2(vorticity);

  // -(u · ∇)w, where u is the velocity whose stream function has the vorticity w.
  auto advection = [&](const Tensor& w) {
    Tensor stream = w * inverse_k2;
    Tensor u = torch::fft::irfft2(i_ky * stream), v = torch::fft::irfft2(-i_kx * stream);
    Tensor w_x = torch::fft::irfft2(i_kx * w), w_y = torch::fft::irfft2(i_ky * w);
    return -kept * torch::fft::rfft2(u * w_x + v * w_y);
  };
  auto step = [&] {
    for (int i = 0; i < 5; ++i) {
      Tensor slope = advection(w);
      Tensor predicted = decay * (w + dt * slope);
      w = decay * w + 0.5 * dt * (decay * slope + advection(predicted));
    }
    return torch::fft::irfft2(w).square().mean();
  };
  return run({.name = "fluid", .step = step}, argc, argv);
}
