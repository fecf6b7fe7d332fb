// Archives of functions that were recorded, read back as PyTorch's are. tests/pytorch has PyTorch read them.
#include <brasa/export_program.h>

#include <gtest/gtest.h>

#include <brasa/autograd.h>
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

// Sizes that follow each other in the example are no functions of each other.
TEST(ExportedArchive, AnIntegerFollowsFromTheSizeThatItComesFrom) {
  auto f = [](const Tensor& x) { return x.narrow(1, 1, x.size(1) - 1); };
  ExportOptions options = only_archive();
  options.dynamic = {{0, 0, 2, 100}, {0, 1, 2, 100}, {0, 2, 2, 100}};
  Folder folder;
  io::ExportedModule read = written(export_(f, {rand({3, 4, 5})}, options), folder);
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{3, 4, 5}, {5, 11, 9}, {9, 2, 4}}) {
    Tensor x = rand(sizes);
    EXPECT_TRUE(f(x).equal(read(x)[0])) << x.sizes();
  }
}

TEST(ExportedArchive, SizesThatDependOnValues) {
  auto f = [](const Tensor& x, const Tensor& n) {
    Tensor rows = x.index({x.select(1, 0) > 0});
    int64_t count = item_within(n, 0, 20);
    return std::vector<Tensor>{
        rows * 2, rows.nonzero(), arange(2 * count), x.narrow(0, 0, n.item<int64_t>()).sum(0),
        cond(x.sum() > 0, [](Tensor t) { return t.masked_select(t > 0).sum(); }, [](Tensor t) { return t.sum(); }, x)};
  };
  ExportOptions options = only_archive();
  options.dynamic = {{0, 0, 2, 100}};
  Folder folder;
  io::ExportedModule read = written(export_(f, {rand({5, 3}), scalar_tensor(3, kLong)}, options), folder);
  for (int64_t rows : {2, 9, 40})
    for (double shift : {-9.0, 0.0, 9.0}) {
      Tensor x = randn({rows, 3}) + shift, n = scalar_tensor(std::min<int64_t>(rows / 2, 20), kLong);
      std::vector<Tensor> want = f(x, n), got = read->forward({x, n});
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(allclose(got[i], want[i], 1e-5, 1e-5)) << i;
    }
  EXPECT_THROW(read->forward({rand({9, 3}), scalar_tensor(10, kLong)}), Error);
  EXPECT_THROW(read->forward({rand({90, 3}), scalar_tensor(21, kLong)}), Error);
}

// The first result of that archive is None.
TEST(ExportedArchive, ResultsThatAreNoTensorsAreLeftOut) {
  Folder folder;
  io::ExportedModule net = io::load_pt2(BRASA_TEST_DATA "/models/tied_at_the_root.pt2");
  Tensor x = randn({2, 3});
  std::vector<Tensor> want = net(x), got = written(export_(net, only_archive()), folder)(x);
  ASSERT_EQ(want.size(), 2u);
  EXPECT_FALSE(want[0].defined());
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(allclose(got[0], want[1], 1e-5, 1e-6));
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

// Branches and loops become PyTorch's operators that take graphs: with sizes that vary inside, numbers of the program, tensors from outside,
// results that are arguments, and one in the other.
TEST(ExportedArchive, BranchesAndLoops) {
  Folder folder;
  ExportOptions varying = only_archive();
  varying.dynamic = {{0, 0, 2, 9, "items"}, {0, 1, 2, 9, "width"}, {1, 0, 2, 9, "width"}};
  Tensor w = rand({1});
  auto step = [&](const std::vector<Tensor>& carried, const std::vector<Tensor>& items) {
    Tensor next = cond(
        items[0].sum() > 0, [&](const Tensor& c) { return c + items[0] * w + ones({c.size(0)}); },
        [](const Tensor& c) { return c; }, carried[0]);
    return std::make_pair(std::vector<Tensor>{next}, std::vector<Tensor>{next, carried[0].cumsum(0), items[0]});
  };
  auto f = [&](const Tensor& x, const Tensor& start) {
    std::vector<Tensor> out;
    for (bool reverse : {false, true}) {
      auto [last, given] = scan(step, std::vector<Tensor>{start}, std::vector<Tensor>{x}, reverse);
      out.insert(out.end(), last.begin(), last.end());
      out.insert(out.end(), given.begin(), given.end());
    }
    out.push_back(map([&](const Tensor& row) { return row.softmax(0) + start; }, x));
    auto counted =
        while_loop([](const std::vector<Tensor>& s) { return s[0].abs().sum() < 40; },
                   [&](const std::vector<Tensor>& s) { return std::vector<Tensor>{s[0] * 2 + start, s[1] + 1}; },
                   std::vector<Tensor>{start, zeros({}, kInt64)});
    out.insert(out.end(), counted.begin(), counted.end());
    return out;
  };
  io::ExportedModule read = written(export_(f, {randn({4, 3}), rand({3})}, varying), folder);
  for (int64_t n : {2, 5}) {
    Tensor x = randn({n, n + 1}), start = rand({n + 1});
    std::vector<Tensor> want = f(x, start), got = read->forward({x, start});
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < want.size(); ++k) EXPECT_TRUE(allclose(got[k], want[k], 1e-5, 1e-6)) << n << ' ' << k;
  }
}

// The backward pass of a loop is a loop that goes the other way along what the first one kept.
TEST(ExportedArchive, TrainingStepsWithLoops) {
  manual_seed(9);
  Folder folder;
  nn::LSTM net(nn::LSTMOptions(3, 4));
  optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
  auto step = [&](const Tensor& x) {
    optimizer.zero_grad();
    Tensor loss = std::get<0>(net->forward(x)).square().mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  ExportOptions options = only_archive();
  options.modules = {{"", net.ptr()}};
  io::ExportedModule read = written(export_(step, {randn({5, 2, 3})}, options), folder);
  for (int k = 0; k < 2; ++k) {
    Tensor x = randn({5, 2, 3}), want = step(x);
    EXPECT_TRUE(allclose(read->forward({x})[0], want, 1e-5, 1e-6)) << k;
  }
}

// Derivatives of factorisations are made of other ones, and of their parts.
TEST(ExportedArchive, DerivativesOfFactorisations) {
  Folder folder;
  using F = std::function<Tensor(const Tensor&)>;
  auto positive = [](const Tensor& x) { return x.matmul(x.t()) + eye(4); };
  const std::pair<const char*, F> functions[] = {
      {"cholesky", [&](const Tensor& x) { return linalg_cholesky(positive(x)); }},
      {"inv", [](const Tensor& x) { return linalg_inv(x); }},
      {"solve", [](const Tensor& x) { return linalg_solve(x, x.narrow(1, 0, 2).cos()); }},
      {"det", [](const Tensor& x) { return linalg_det(x); }},
      {"lu", [](const Tensor& x) { return std::get<1>(linalg_lu_factor(x)).sum() + std::get<0>(linalg_lu_factor(x)); }},
      {"qr", [](const Tensor& x) { return std::get<0>(linalg_qr(x)).abs(); }},
      {"eigh", [&](const Tensor& x) { return std::get<0>(linalg_eigh(positive(x))); }},
      {"eig", [](const Tensor& x) { return view_as_real(linalg_eigvals(x)).square().sum(); }},
      {"svd", [](const Tensor& x) { return std::get<1>(linalg_svd(x)); }},
      {"ldl", [&](const Tensor& x) { return std::get<0>(linalg_ldl_factor(positive(x))); }},
      {"fft", [](const Tensor& x) { return view_as_real(fft_rfft(x)).square(); }},
  };
  for (const auto& [name, f] : functions) {
    auto both = [f = f, has = std::string_view(name) != "ldl"](const Tensor& x) {
      Tensor y = f(x);
      return has ? std::vector<Tensor>{y.detach(), autograd::grad({y.sum()}, {x})[0]} : std::vector<Tensor>{y.detach()};
    };
    manual_seed(6);
    Tensor x = randn({4, 4}).requires_grad_();
    std::vector<Tensor> want = both(x), got = written(export_(both, {x}, only_archive()), folder)->forward({x});
    for (size_t k = 0; k < want.size(); ++k) EXPECT_TRUE(allclose(got.at(k), want[k], 1e-3, 1e-4)) << name << ' ' << k;
  }
}

// The sizes that the export tries are of the form that is said.
TEST(ExportedArchive, SizesThatAreMultiples) {
  auto f = [](const Tensor& x) { return x.view({x.size(0) / 2, 4}) + x.view({2, -1}).sum(); };
  ExportOptions options = only_archive();
  options.dynamic = {{0, 0, 2, 64, "half", 2}};
  EXPECT_NO_THROW(export_(f, {rand({6, 2})}, options));
  options.dynamic[0].factor = 1;
  EXPECT_THROW(export_(f, {rand({6, 2})}, options), Error);
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
}

}  // namespace
}  // namespace brasa
