// A graph network of two layers (Kipf & Welling 2017): a sparse adjacency matrix times features, with gradients.
#include "program.h"

namespace nn = torch::nn;

int main(int argc, char** argv) {
  const int64_t nodes = 8000, edges = 80000, features = 64, width = 64, classes = 16;
  Tensor from = (waves({edges}).abs() * (nodes - 0.1)).to(torch::kLong);
  Tensor to = (waves({edges}, 1).abs() * (nodes - 0.1)).to(torch::kLong);
  Tensor degree = torch::ones({nodes}).index_add(0, to, torch::ones({edges}));
  Tensor weights = degree.index({from}).rsqrt() * degree.index({to}).rsqrt();
  Tensor adjacency = torch::sparse_coo_tensor(torch::stack({to, from}), weights, {nodes, nodes}).coalesce();

  nn::Linear first(features, width), second(width, classes);
  nn::Sequential both(first, second);
  init_weights(*both);
  torch::optim::Adam optimizer(both->parameters(), torch::optim::AdamOptions(1e-2).weight_decay(5e-4));
  Tensor x = waves({nodes, features}, 2);
  Tensor labels = (waves({nodes}, 3).abs() * (classes - 0.1)).to(torch::kLong);

  auto step = [&] {
    optimizer.zero_grad();
    Tensor h = torch::relu(torch::mm(adjacency, first(x)));
    Tensor out = torch::mm(adjacency, second(h));
    Tensor loss = torch::nn::functional::cross_entropy(out, labels);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "sparse", .step = step}, argc, argv);
}
