#include <brasa/nn.h>
#include <brasa/optim.h>

#include "tensor/util.h"

namespace brasa {
namespace {

using namespace testing;

Tensor table(int64_t rows) { return arange(rows * 2).reshape({rows, 2}).to(kFloat).requires_grad_(); }

// Rows 1, 3, 1 and 0, in two passes.
Tensor looked_up() {
  Tensor w = table(5);
  (embedding(w, tensor({1, 3, 1}), -1, false, true) * tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}})).sum().backward();
  embedding(w, tensor({0}), -1, false, true).sum().backward();
  return w;
}

TEST(SparseLookups, EmbeddingsHaveSparseGradients) {
  Tensor w = looked_up();
  ASSERT_TRUE(w.grad().is_sparse());
  EXPECT_FALSE(w.grad().is_coalesced());
  expect_values(w.grad()._indices(), {1, 3, 1, 0});
  expect_values(w.grad()._values(), {1, 2, 3, 4, 5, 6, 1, 1});
  expect_values(w.grad().to_dense(), {1, 1, 6, 8, 0, 0, 3, 4, 0, 0});
  // A dense gradient of the same weight is added.
  w.sum().backward();
  EXPECT_FALSE(w.grad().is_sparse());
  expect_values(w.grad(), {2, 2, 7, 9, 1, 1, 4, 5, 1, 1});

  nn::Embedding layer(nn::EmbeddingOptions(5, 2).sparse(true).padding_idx(1));
  layer->forward(tensor({{1, 3}, {1, 0}})).sum().backward();
  EXPECT_EQ(layer->weight.grad()._nnz(), 2);
  expect_values(layer->weight.grad().to_dense(), {1, 1, 0, 0, 0, 0, 1, 1, 0, 0});
  EXPECT_TRUE(contains(error_of([] { embedding(table(3), tensor({1}), -1, true, true); }), "scale_grad_by_freq"));
  // What is no leaf gets a dense one.
  Tensor v = table(3);
  embedding(v * 2, tensor({1, 1}), -1, false, true).sum().backward();
  expect_values(v.grad(), {0, 0, 4, 4, 0, 0});
}

TEST(SparseLookups, Bags) {
  auto bag = [](const Tensor& w, int64_t mode, const std::optional<Tensor>& samples) {
    return std::get<0>(embedding_bag(w, tensor({1, 2, 3, 1}), tensor({0, 3}), false, mode, true, samples));
  };
  Tensor w = table(4), cotangent = tensor({{3.0, 6.0}, {1.0, 2.0}});
  Tensor mean = bag(w, 1, std::nullopt);
  expect_values(mean, {4, 5, 2, 3});
  (mean * cotangent).sum().backward();
  expect_values(w.grad()._indices(), {1, 2, 3, 1});
  expect_values(w.grad()._values(), {1, 2, 1, 2, 1, 2, 1, 2});
  w.mutable_grad().reset();
  Tensor samples = tensor({1.0, 2.0, 3.0, 4.0}).requires_grad_();
  (bag(w, 0, samples) * cotangent).sum().backward();
  expect_values(w.grad()._values(), {3, 6, 6, 12, 9, 18, 4, 8});
  expect_values(samples.grad(), {24, 42, 60, 8});
  EXPECT_TRUE(contains(error_of([&] { bag(w, 2, std::nullopt); }), "max"));
  nn::EmbeddingBag layer(nn::EmbeddingBagOptions(4, 2).sparse(true).mode(kSum));
  layer->forward(tensor({1, 2, 1}), tensor({0, 1})).sum().backward();
  expect_values(layer->weight.grad().to_dense(), {0, 0, 2, 2, 1, 1, 0, 0});
}

template <class Optimizer>
Tensor after_two_steps() {
  Tensor w = looked_up();
  Optimizer optimizer(std::vector<Tensor>{w}, 0.1);
  optimizer.step();
  optimizer.step();
  return w.detach();
}

TEST(SparseLookups, OptimizersTakeSparseGradients) {
  expect_values(after_two_steps<optim::SGD>(), {-0.2, 0.8, 0.8, 1.4, 4, 5, 5.4, 6.2, 8, 9}, 1e-5);
  expect_values(after_two_steps<optim::Adagrad>(),
                {-0.170711, 0.829289, 1.829289, 2.829289, 4, 5, 5.829289, 6.829289, 8, 9}, 1e-5);
  expect_values(after_two_steps<optim::SparseAdam>(), {-0.2, 0.8, 1.8, 2.8, 4, 5, 5.8, 6.8, 8, 9}, 1e-5);
  EXPECT_TRUE(contains(error_of([] { after_two_steps<optim::Adam>(); }), "consider SparseAdam"));
  Tensor w = table(2);
  w.sum().backward();
  optim::SparseAdam adam(std::vector<Tensor>{w}, 0.1);
  EXPECT_TRUE(contains(error_of([&] { adam.step(); }), "consider Adam"));
}

// A sparse gradient moves the weights as the dense one does.
TEST(SparseLookups, StepsAreThoseOfDenseGradients) {
  auto train = [](bool sparse) {
    Tensor w = table(6).detach().div(10).requires_grad_();
    optim::SGD sgd(std::vector<Tensor>{w}, optim::SGDOptions(0.1).momentum(0.9));
    for (int i = 0; i < 4; ++i) {
      sgd.zero_grad(i % 2 == 0);
      embedding(w, tensor({1, 4, i % 3}), -1, false, sparse).square().sum().backward();
      sgd.step();
    }
    return w.detach();
  };
  EXPECT_TRUE(allclose(train(true), train(false)));
}

}  // namespace
}  // namespace brasa
