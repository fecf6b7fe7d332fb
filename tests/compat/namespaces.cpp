#include <gtest/gtest.h>
#include <torch/torch.h>

#include <type_traits>

// Both directives at once, as programs have them: an inner namespace or a name that they bring twice would be ambiguous.
using namespace torch;
using namespace at;

struct Net : nn::Module {
  Net() { register_module("layer", layer); }
  Tensor forward(Tensor x) { return nn::functional::relu(layer(x)); }
  nn::Linear layer{nn::LinearOptions(3, 2)};
};

// Programs open LibTorch's namespaces, too.
namespace torch {
namespace nn {
struct Twice : Module {
  Tensor forward(Tensor x) { return x * 2; }
};
}  // namespace nn
inline Tensor thrice(Tensor x) { return mul(x, 3); }
}  // namespace torch

namespace {

TEST(Namespaces, InnerOnesAreFoundOnce) {
  Net net;
  EXPECT_EQ(net.forward(torch::ones({4, 3})).sizes(), IntArrayRef({4, 2}));
  EXPECT_EQ(torch::nn::Twice().forward(torch::ones({1})).item<float>(), 2);
  EXPECT_EQ(torch::thrice(torch::ones({1})).item<float>(), 3);
  optim::SGD step(net.parameters(), 0.1);
  auto dataset = data::datasets::TensorDataset(torch::ones({2}));
  EXPECT_EQ(dataset.size(), 2u);
  EXPECT_TRUE(linalg::norm(torch::zeros({2})).equal(torch::zeros({})));
}

TEST(Namespaces, NamesAreBrasas) {
  static_assert(std::is_same_v<torch::Tensor, brasa::Tensor> && std::is_same_v<at::Tensor, brasa::Tensor>);
  static_assert(std::is_same_v<c10::ScalarType, torch::Dtype>);
  static_assert(std::is_same_v<torch::nn::Linear, brasa::nn::Linear>);
  EXPECT_TRUE(at::add(torch::ones({2}), at::ones({2})).equal(torch::full({2}, 2.0)));
  EXPECT_EQ(torch::data::Dataset<torch::data::datasets::MNIST>::is_stateful, false);
}

}  // namespace
