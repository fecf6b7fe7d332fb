#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "gpu/on_device.h"

// Modes in which a device keeps the launches of a run: what varies from call to call is in them all the same.
namespace brasa {
namespace {

class Kept : public OnDevice {
 protected:
  static CompileOptions kept() { return {.mode = "reduce-overhead"}; }
};

// Batches in other memory, sizes of batches that come again, a learning rate that changes, losses that are looked at late.
TEST_P(Kept, TrainingSteps) {
  auto losses = [&](Device device, const std::string& mode) {
    manual_seed(5);
    nn::Sequential model(nn::Linear(24, 40), nn::GELU(), nn::Linear(40, 8));
    auto optimizer = std::make_shared<optim::Adam>(model->parameters(), optim::AdamOptions(1e-2));
    model->to(device);
    auto step = compile(
        [=](const Tensor& x, const Tensor& target) mutable {
          optimizer->zero_grad();
          Tensor loss = nn::functional::mse_loss(model(x), target);
          loss.backward();
          optimizer->step();
          return loss.detach();
        },
        {.mode = mode});
    std::vector<Tensor> losses, batches;
    for (int i = 0; i < 14; ++i) {
      int64_t rows = i % 3 == 2 ? 7 : 16;
      batches.push_back(randn({rows, 24}).to(device));
      losses.push_back(step(batches.back(), randn({rows, 8}).to(device)));
      if (i == 8) static_cast<optim::AdamOptions&>(optimizer->param_groups()[0].options()).lr(1e-3);
    }
    losses.push_back(model->parameters()[0].flatten().narrow(0, 0, 20).detach());
    for (Tensor& t : losses) t = t.reshape({-1});
    return cat(losses, 0).cpu();
  };
  EXPECT_TRUE(allclose(losses(device_, "reduce-overhead"), losses(kCPU, "default"), 1e-3, 1e-4));
}

// A library's operands move: their values are copied to where it was told to look, and back.
TEST_P(Kept, OperandsThatMove) {
  auto f = compile(
      [](const Tensor& a, const Tensor& b, Tensor c) {
        Tensor p = a.mm(b);
        c.add_(p);
        return std::vector<Tensor>{p, c.mm(b).tanh()};
      },
      kept());
  std::vector<Tensor> a, b, c, results, expected;
  for (int i = 0; i < 6; ++i) {
    a.push_back(randn({32, 32}, device_));
    b.push_back(randn({32, 32}, device_));
    c.push_back(randn({32, 32}, device_));
    Tensor before = c.back().clone();
    for (Tensor& t : f(a.back(), b.back(), c.back())) results.push_back(t);
    Tensor p = a.back().mm(b.back()), after = before + p;
    for (const Tensor& t : {p, after.mm(b.back()).tanh()}) expected.push_back(t);
    EXPECT_TRUE(allclose(c.back(), after, 1e-4, 1e-4)) << i;
  }
  for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(allclose(results[i], expected[i], 1e-4, 1e-4)) << i;
}

// Gradients asked for outside: both halves are kept.
TEST_P(Kept, BackwardOutside) {
  Tensor w = randn({16, 16}, device_).requires_grad_();
  auto f = compile([=](const Tensor& x) { return x.mm(w).tanh().square().sum(); }, kept());
  for (int i = 0; i < 5; ++i) {
    Tensor x = randn({8, 16}, device_);
    f(x).backward();
    Tensor given = w.grad().clone();
    w.mutable_grad() = Tensor();
    x.mm(w).tanh().square().sum().backward();
    EXPECT_TRUE(allclose(given, w.grad(), 1e-4, 1e-4)) << i;
    w.mutable_grad() = Tensor();
  }
}

TEST_P(Kept, RandomNumbersAreEachCallsOwn) {
  Tensor x = ones({1000}, device_);
  auto dropped = [](const Tensor& t) {
    return nn::functional::dropout(t, nn::functional::DropoutFuncOptions().p(0.5).training(true));
  };
  auto f = compile(dropped, kept());
  std::vector<Tensor> calls, eager;
  manual_seed(11);
  for (int i = 0; i < 5; ++i) calls.push_back(f(x));
  manual_seed(11);
  for (int i = 0; i < 5; ++i) eager.push_back(dropped(x));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(calls[i].equal(eager[i])) << i;
}

TEST_P(Kept, ChecksFindWhatIsWrongInTheirCall) {
  Tensor table = randn({10, 4}, device_);
  auto f = compile([=](const Tensor& at) { return table.index_select(0, at) * 2; }, kept());
  Tensor good = tensor({1, 9, 3}).to(device_), bad = tensor({1, 10, 3}).to(device_);
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) (void)f(good).cpu();
    EXPECT_THROW((void)f(bad).cpu(), Error) << i;
  }
  EXPECT_TRUE(f(good).cpu().equal((table.index_select(0, good) * 2).cpu()));
}

// Which of the checks it was is told, and found where nothing but the contents of operands changed.
TEST_P(Kept, ChecksAreToldApart) {
  constexpr int64_t kChecks = 40;  // more than one launch looks at
  std::vector<Tensor> at;
  for (int64_t i = 0; i < kChecks; ++i) at.push_back(tensor({i % 5}).to(device_));
  auto sum = [](const std::vector<Tensor>& t, int64_t first) {
    Tensor out = zeros({1}, t[0].device());
    for (int64_t i = 0; i < kChecks; ++i)
      out = out + arange(first + i, kFloat32).to(out.device()).index_select(0, t[i]);
    return out;
  };
  auto f = compile([&](const std::vector<Tensor>& t) { return sum(t, 5); }, kept());
  const Tensor want = sum(at, 5).cpu();
  for (int64_t wrong : {int64_t{0}, int64_t{7}, int64_t{31}, int64_t{32}, kChecks - 1}) {
    for (int k = 0; k < 4; ++k) EXPECT_TRUE(f(at).cpu().equal(want)) << wrong;
    at[wrong].fill_(kChecks + 5);
    for (int k = 0; k < 2; ++k) try {
        (void)f(at).cpu();
        ADD_FAILURE() << wrong;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("of size " + std::to_string(5 + wrong)), std::string::npos) << e.what();
      }
    at[wrong].fill_(wrong % 5);
  }
  // Of several the first.
  at[3].fill_(-9);
  at[35].fill_(-50);
  try {
    (void)f(at).cpu();
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("of size 8"), std::string::npos) << e.what();
  }
}

// What needs few inputs runs while the rest is recorded. It counts for the run that it began, whatever comes in between.
TEST_P(Kept, FirstPartsRunAhead) {
  std::function<void(const Tensor&)> in_between;
  bool other = false;
  auto f = [&](const Tensor& x, const std::vector<Tensor>& w) {
    Tensor y = x;
    for (int i = 0; i < 6; ++i) y = y.mm(w[0]).tanh();
    if (in_between) in_between(y);
    for (size_t i = 1; i < w.size(); ++i) y = other ? y.mm(w[i]).sin() : y.mm(w[i]).cos();
    return y;
  };
  std::vector<Tensor> weights;
  for (int i = 0; i < 5; ++i) weights.push_back(randn({24, 24}, device_));
  auto compiled = compile(f, kept());
  auto g = compile([](const Tensor& a, const Tensor& b) { return a.mm(b).tanh().mm(b).sin().mm(a); }, kept());
  Tensor a = randn({24, 24}, device_), want_of_g = g(a, a).cpu();
  for (int k = 0; k < 3; ++k) EXPECT_TRUE(g(a, a).cpu().equal(want_of_g));
  std::vector<Tensor> inputs = {randn({8, 24}, device_), randn({8, 24}, device_)};
  auto check = [&](const Tensor& x, const char* when) {
    auto between = std::exchange(in_between, nullptr);
    Tensor want = f(x, weights);
    in_between = between;
    EXPECT_TRUE(allclose(compiled(x, weights), want, 1e-4, 1e-4)) << when;
  };
  for (int i = 0; i < 4; ++i) check(inputs[0], "the same");
  for (int i = 0; i < 4; ++i) check(inputs[i % 2], "another input");
  inputs[0].mul_(2);
  for (int i = 0; i < 3; ++i) check(inputs[0], "other elements");
  // Other kept work, which uses the same memory, by another thread: its stream is the same.
  in_between = [&](const Tensor&) { std::thread([&] { EXPECT_TRUE(g(a, a).cpu().equal(want_of_g)); }).join(); };
  for (int i = 0; i < 4; ++i) check(inputs[0], "beside another");
  in_between = [&](const Tensor&) { throw std::runtime_error("left"); };
  for (int i = 0; i < 2; ++i) EXPECT_THROW(compiled(inputs[0], weights), std::runtime_error);
  in_between = nullptr;
  check(inputs[0], "after an error");
  other = true;
  for (int i = 0; i < 3; ++i) check(inputs[1], "another way");
  other = false;
  check(inputs[1], "the way before");
}

INSTANTIATE_TEST_SUITE_P(Devices, Kept, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
