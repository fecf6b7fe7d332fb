// Archives of functions that were recorded, read back as PyTorch's are. tests/pytorch has PyTorch read them.
#include <brasa/export_program.h>

#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/control_flow.h>
#include <brasa/error.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "export/loaded.h"

namespace brasa {
namespace {

io::ExportedModule written(const ExportedProgram& program, const Folder& folder) {
  std::string path = (folder.path / "written.pt2").string();
  program.write_pt2(path);
  return io::load_pt2(path);
}
ExportOptions only_archive() {
  ExportOptions options;
  options.targets = {};
  return options;
}

TEST(ExportedArchive, AModuleHasItsNamesAndVaryingSizes) {
  manual_seed(4);
  Folder folder;
  nn::Sequential net(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::GELU(), nn::Linear(8, 3));
  ExportOptions options = only_archive();
  options.modules = {{"", net.ptr()}};
  options.input_names = {"x"};
  options.dynamic = {{0, 0, 2, 50, "batch"}};
  io::ExportedModule read = written(export_(net, {rand({4, 6})}, options), folder);
  EXPECT_EQ(read->inputs().at(0), "x: float32[s0, 6], s0 from 2 to 50");
  OrderedDict<std::string, Tensor> parameters = read->named_parameters();
  for (const char* name : {"0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"}) {
    ASSERT_TRUE(parameters.find(name)) << name;
    EXPECT_TRUE(parameters.find(name)->requires_grad()) << name;
  }
  NoGradGuard no_grad;
  for (int64_t batch : {2, 7, 50}) {  // each call moves the statistics
    Tensor x = randn({batch, 6}), want = net->forward(x);
    EXPECT_TRUE(allclose(read->forward(x)[0], want, 1e-5, 1e-6)) << batch;
  }
  OrderedDict<std::string, Tensor> mine = net->named_buffers(), theirs = read->named_buffers();
  for (const char* name : {"1.running_mean", "1.running_var", "1.num_batches_tracked"})
    EXPECT_TRUE(allclose(theirs.find(name)->to(kFloat32), mine.find(name)->to(kFloat32), 1e-5, 1e-6)) << name;
  EXPECT_THROW(read->forward(rand({51, 6})), Error);
}

TEST(ExportedArchive, ChangedInputsWritesThroughViewsAndRanges) {
  Folder folder;
  auto f = [](const Tensor& state, const Tensor& x) {
    state.slice(0, 1, 3).copy_(x);
    Tensor positions = arange(x.size(1)).to(kFloat32);
    return std::make_pair(state.select(0, 1) + positions, cat({state, x}).sum(0));
  };
  io::ExportedModule read = written(export_(f, {rand({4, 5}), rand({2, 5})}, only_archive()), folder);
  Tensor mine = rand({4, 5}), theirs = mine.clone(), x = rand({2, 5});
  auto [first, second] = f(mine, x);
  std::vector<Tensor> got = read->forward({theirs, x});
  EXPECT_TRUE(allclose(got.at(0), first));
  EXPECT_TRUE(allclose(got.at(1), second));
  EXPECT_TRUE(theirs.equal(mine));
}

TEST(ExportedArchive, WritesThroughViewsThatPyTorchHasNoOperatorFor) {
  Folder folder;
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.unfold(0, 2, 2).mul_(2);
    y.t()[1].add_(1);
    return y;
  };
  Tensor x = rand({4, 3});
  EXPECT_TRUE(allclose(written(export_(f, {x}, only_archive()), folder)->forward({x})[0], f(x)));
}

// Experts of a mixture, whose rows end where data says: in an archive, and trained from there in one graph.
TEST(ExportedArchive, MixturesOfExperts) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& ends) { return _grouped_mm(x, w, ends); };
  Tensor x = randn({7, 4}), w = randn({3, 4, 5}), ends = tensor({2, 2, 6}).to(kInt32);
  io::ExportedModule read = written(export_(f, {x, w, ends}, only_archive()), folder);
  Tensor want = cat({x.slice(0, 0, 2).mm(w[0]), x.slice(0, 2, 6).mm(w[2]), zeros({1, 5})});
  auto compiled =
      compile([&](const Tensor& a, const Tensor& b) { return read->forward({a, b, ends})[0].square().sum(); },
              {.fullgraph = true});
  EXPECT_TRUE(allclose(read->forward({x, w, ends})[0], want, 1e-5, 1e-5));
  w.requires_grad_();
  compiled(x, w).backward();
  Tensor gradient = zeros({3, 4, 5});
  gradient[0].copy_(x.slice(0, 0, 2).t().mm(want.slice(0, 0, 2)) * 2);
  gradient[2].copy_(x.slice(0, 2, 6).t().mm(want.slice(0, 2, 6)) * 2);
  EXPECT_TRUE(allclose(w.grad(), gradient, 1e-4, 1e-4));
}

// Forward, backward and the update in one graph of PyTorch's operators.
TEST(ExportedArchive, TrainingSteps) {
  manual_seed(8);
  Folder folder;
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).stride(2).padding(1).bias(false)), nn::BatchNorm2d(4),
                     nn::GELU(), nn::MaxPool2d(2), nn::Flatten(), nn::LayerNorm(nn::LayerNormOptions({16})),
                     nn::Linear(16, 3));
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2));
  auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  ExportOptions options = only_archive();
  options.modules = {{"", net.ptr()}};
  options.optimizers = {{"optimizer", &optimizer}};
  std::vector<Tensor> in = {randn({4, 2, 8, 8}), arange(4) % 3};
  io::ExportedModule read = written(export_(step, in, options), folder);
  for (int k = 0; k < 3; ++k) {
    in[0] = randn({4, 2, 8, 8});
    Tensor want = step(in[0], in[1]);
    EXPECT_TRUE(allclose(read->forward(in)[0], want, 1e-5, 1e-6)) << k;
  }
  OrderedDict<std::string, Tensor> theirs = read->named_parameters();
  for (const auto& p : net->named_parameters())
    EXPECT_TRUE(allclose(*theirs.find(p.key()), p.value(), 1e-4, 1e-5)) << p.key();
  EXPECT_EQ(read->named_buffers().find("optimizer.state.0.step")->item<float>(), 3);
}

TEST(ExportedArchive, WhatAnArchiveCannotHoldIsNamed) {
  Folder folder;
  auto error_of = [&](const auto& f, const std::vector<Tensor>& inputs, ExportOptions options) {
    try {
      export_(f, inputs, options).write_pt2((folder.path / "refused.pt2").string());
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  ExportOptions varying = only_archive();
  varying.dynamic = {{0, 0, 1, 9}};
  auto f = [](const Tensor& x) { return x * static_cast<double>(x.size(0)); };
  EXPECT_NE(error_of(f, {rand({3})}, varying).find("which is to vary"), std::string::npos);
  auto loop = [](const Tensor& x) {
    return while_loop([](const Tensor& c) { return c < 3; }, [](const Tensor& c) { return c + 1; }, x);
  };
  EXPECT_NE(error_of(loop, {zeros({})}, only_archive()).find("no form in PyTorch"), std::string::npos);
  EXPECT_THROW(export_(loop, {zeros({})}, only_archive()).write_object((folder.path / "none").string()), Error);
}

}  // namespace
}  // namespace brasa
