// Writes what LibTorch's torch::save makes of each of its optimizers in the middle of a training: NAME.optimizer.pt, and NAME.weights.pt with the
// weights then and two steps later. `optimizers FOLDER WRITTEN` instead goes on from WRITTEN/NAME.optimizer.pt, which Brasa wrote of these, and compares. Built against PyTorch's headers and libraries, by hand:
//   T=$(python3 -c 'import torch; print(torch.__path__[0])')
//   c++ -std=c++20 optimizers.cpp -I$T/include -I$T/include/torch/csrc/api/include -L$T/lib -ltorch -ltorch_cpu -lc10 -Wl,-rpath,$T/lib -o optimizers
#include <torch/torch.h>

#include <iostream>
#include <string>

using namespace torch;
using namespace torch::optim;

std::string written;

template <class Opt, class Options>
void goes_on(const std::string& path, const std::string& name, Options options) {
  nn::Sequential net(nn::Linear(3, 2), nn::Tanh(), nn::Linear(2, 2));
  std::vector<Tensor> weights;
  torch::load(weights, path + ".weights.pt");
  size_t count = net->parameters().size();
  {
    NoGradGuard no_grad;
    for (size_t i = 0; i < count; ++i) net->parameters()[i].copy_(weights[i]);
  }
  Opt optimizer(net->parameters(), options);
  torch::load(optimizer, written + "/" + name + ".optimizer.pt");
  Tensor x = torch::arange(6).to(kFloat).reshape({2, 3}) / 6;
  for (int i = 0; i < 2; ++i)
    optimizer.step([&] {
      optimizer.zero_grad();
      Tensor l = net->forward(x).pow(2).sum();
      l.backward();
      return l;
    });
  bool same = true;
  for (size_t i = 0; i < count; ++i)
    same = same && torch::allclose(net->parameters()[i], weights[count + i], 1e-5, 1e-6);
  std::cout << name << (same ? ": goes on as LibTorch's\n" : ": DIFFERS\n");
}

template <class Opt, class Options>
void make(const std::string& path, Options options) {
  if (!written.empty()) return goes_on<Opt>(path, path.substr(path.rfind('/') + 1), Options(0.5));
  torch::manual_seed(1);
  nn::Sequential net(nn::Linear(3, 2), nn::Tanh(), nn::Linear(2, 2));
  Opt optimizer(net->parameters(), options);
  Tensor x = torch::arange(6).to(kFloat).reshape({2, 3}) / 6;
  auto loss = [&] {
    optimizer.zero_grad();
    Tensor l = net->forward(x).pow(2).sum();
    l.backward();
    return l;
  };
  for (int i = 0; i < 3; ++i) optimizer.step(loss);
  std::vector<Tensor> weights;
  for (const Tensor& p : net->parameters()) weights.push_back(p.detach().clone());
  torch::save(optimizer, path + ".optimizer.pt");
  for (int i = 0; i < 2; ++i) optimizer.step(loss);
  for (const Tensor& p : net->parameters()) weights.push_back(p.detach());
  torch::save(weights, path + ".weights.pt");
}

int main(int count, char** arguments) {
  if (count > 2) written = arguments[2];
  std::string folder = std::string(arguments[1]) + "/";
  make<Adam>(folder + "adam", AdamOptions(0.01).betas({0.8, 0.95}).amsgrad(true).weight_decay(0.1));
  make<AdamW>(folder + "adamw", AdamWOptions(0.01).betas({0.8, 0.95}));
  make<SGD>(folder + "sgd", SGDOptions(0.1).momentum(0.9).nesterov(true));
  make<RMSprop>(folder + "rmsprop", RMSpropOptions(0.01).momentum(0.5).centered(true));
  make<Adagrad>(folder + "adagrad", AdagradOptions(0.05).lr_decay(0.1));
  make<LBFGS>(folder + "lbfgs", LBFGSOptions(0.1).max_iter(3).history_size(5));
}
