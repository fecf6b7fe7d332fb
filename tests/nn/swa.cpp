#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <brasa/nn/swa_utils.h>
#include <gtest/gtest.h>

namespace brasa::optim::swa_utils {
namespace {

void set(nn::Module& module, double value) {
  NoGradGuard guard;
  for (Tensor& p : module.parameters()) p.fill_(value);
}

TEST(AveragedModel, Means) {
  nn::Linear model(2, 1);
  AveragedModel averaged(model.ptr());
  for (double v : {1.0, 2.0, 6.0}) {
    set(*model, v);
    averaged.update_parameters(*model);
  }
  EXPECT_EQ(averaged.n_averaged(), 3);
  EXPECT_TRUE(allclose(averaged->weight, full({1, 2}, 3.0)));
  EXPECT_TRUE(model->weight.equal(full({1, 2}, 6.0)));
  EXPECT_TRUE(allclose(averaged->forward(ones({1, 2})), full({1, 1}, 9.0)));
}

TEST(AveragedModel, Exponentially) {
  nn::Linear model(2, 1);
  AveragedModel<nn::LinearImpl> averaged(model, exponential(0.75));
  for (double v : {4.0, 8.0}) {
    set(*model, v);
    averaged.update_parameters(*model);
  }
  EXPECT_TRUE(allclose(averaged->weight, full({1, 2}, 5.0)));
  EXPECT_THROW(exponential(1.5), Error);
  EXPECT_THROW(averaged.update_parameters(*nn::Linear(3, 1)), Error);
}

TEST(AveragedModel, BatchNormsGetTheStatisticsOfTheData) {
  nn::Sequential model(nn::BatchNorm1d(nn::BatchNormOptions(2).momentum(0.5)));
  model->eval();
  std::vector<Tensor> batches = {full({4, 2}, 1.0), full({4, 2}, 3.0)};
  update_bn(batches, *model, [&](const Tensor& x) { return model->forward(x); });
  auto* norm = model[0]->as<nn::BatchNorm1d>();
  EXPECT_TRUE(allclose(norm->running_mean, full({2}, 2.0)));
  EXPECT_EQ(norm->options.momentum(), 0.5);
  EXPECT_FALSE(model->is_training());
}

TEST(Init, OrthogonalSparseAndDirac) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3, 5}, {5, 3}, {4, 2, 2}}) {
    Tensor t = nn::init::orthogonal_(brasa::empty(sizes), 2.0);
    Tensor m = t.reshape({sizes[0], -1});
    Tensor gram = m.size(0) <= m.size(1) ? m.mm(m.t()) : m.t().mm(m);
    EXPECT_TRUE(allclose(gram, eye(gram.size(0)) * 4, 1e-4, 1e-4)) << t.sizes();
  }
  Tensor sparse = nn::init::sparse_(empty({10, 3}), 0.35);
  EXPECT_TRUE(sparse.eq(0).sum(0).equal(full({3}, 4, kInt64)));
  Tensor filter = nn::init::dirac_(empty({2, 3, 3, 3})), x = randn({1, 3, 5, 5});
  EXPECT_TRUE(allclose(conv2d(x, filter, {}, 1, 1), x.slice(1, 0, 2)));
  EXPECT_THROW(nn::init::orthogonal_(empty({3})), Error);
}

}  // namespace
}  // namespace brasa::optim::swa_utils
