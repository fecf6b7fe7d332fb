// Fits y = 3x + 0.5 by gradient descent; the whole step, backward and update included, is one compiled graph.
#include <iostream>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>

using brasa::Tensor;

int main() {
  brasa::manual_seed(0);
  Tensor x = brasa::rand({256, 1});
  Tensor y = 3 * x + 0.5;

  Tensor weight = brasa::zeros({1, 1}, brasa::requires_grad());
  Tensor bias = brasa::zeros({1}, brasa::requires_grad());

  auto step = brasa::compile([&](const Tensor& input, const Tensor& target) {
    Tensor loss = brasa::mse_loss(brasa::linear(input, weight, bias), target);
    std::vector<Tensor> gradients = brasa::autograd::grad({loss}, {weight, bias});
    brasa::NoGradGuard no_grad;
    weight.sub_(gradients[0], 0.5);
    bias.sub_(gradients[1], 0.5);
    return loss;
  });

  Tensor loss;
  for (int i = 0; i < 300; ++i) loss = step(x, y);

  std::cout << "y = " << weight.item<float>() << " x + " << bias.item<float>() << '\n';
  return loss.item<float>() < 1e-4 ? 0 : 1;
}
