#include <gtest/gtest.h>

#include <brasa/autocast.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/profiler.h>

#include "gpu/on_device.h"

// What a device keeps of parameters between calls, such as narrow copies of weights, made anew as soon as they may have changed.
namespace brasa {
namespace {

class Prepared : public OnDevice {
 protected:
  nn::Sequential net_{nn::Linear(48, 40), nn::Linear(40, 32)};
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped()) net_->to(device_);
  }
  // With rows of weights that have one length: their sums are made of a parameter alone, as narrow copies are.
  Tensor eager(const Tensor& x) {
    NoGradGuard guard;
    AutocastMode autocast(device_.type(), kBFloat16);
    std::vector<Tensor> p = net_->parameters();
    Tensor rows = p[0] / p[0].square().sum({1}, true).sqrt();
    return linear(linear(x, rows, p[1]).relu(), p[2], p[3]);
  }
  auto compiled(const std::string& mode) {
    return compile([this](const Tensor& x) { return eager(x); }, {.mode = mode});
  }
  // Calls of one function between writes of every kind.
  void follows_writes(const std::string& mode) {
    auto f = compiled(mode);
    Tensor x = randn({16, 48}, device_), w = net_->parameters()[0];
    auto same = [&](int calls) {
      for (int i = 0; i < calls; ++i) EXPECT_TRUE(allclose(f(x).cpu(), eager(x).cpu(), 2e-2, 2e-2));
    };
    same(4);
    EXPECT_NE(f.explain().graphs[0].kernels.find("made once"), std::string::npos);
    NoGradGuard guard;
    for (int calls : {1, 1, 2, 1, 5}) {
      w[0].add_(1.5);
      same(calls);
    }
    net_->parameters()[2].t().copy_(randn({40, 32}, device_) * 0.2);
    same(4);
    w.set_data(randn({40, 48}, device_) * 0.2);
    same(4);
    // What has an address may be written at any time.
    (void)w.data_ptr();
    same(3);
    w.data()[1].fill_(0.125);
    same(3);
  }
};

TEST_P(Prepared, FollowsWrites) { follows_writes("default"); }
TEST_P(Prepared, FollowsWritesWithKeptLaunches) { follows_writes("reduce-overhead"); }

TEST_P(Prepared, StepsInBetween) {
  optim::SGD sgd(net_->parameters(), 0.05);
  Tensor x = randn({16, 48}, device_);
  auto step = compile([&](const Tensor& t) {
    sgd.zero_grad();
    Tensor loss = net_(t).square().mean();
    loss.backward();
    sgd.step();
    return loss.detach();
  });
  for (const char* mode : {"default", "reduce-overhead"}) {
    auto infer = compiled(mode);
    for (int i = 0; i < 4; ++i) {
      step(x);
      for (int k = 0; k < i; ++k) EXPECT_TRUE(allclose(infer(x).cpu(), eager(x).cpu(), 2e-2, 2e-2)) << mode << i;
    }
  }
}

// A step leaves narrow copies of what it updates to the next one, which finds them only where nothing else has written since: two networks side
// by side, one trained by the compiled step, get the same weights.
class Carried : public OnDevice {
 protected:
  struct Twin {
    nn::Sequential net{nn::Linear(1536, 1408), nn::Linear(1408, 8)};
    std::unique_ptr<optim::SGD> sgd;
    explicit Twin(Device device) {
      net->to(device);
      sgd = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions(0.05).momentum(0.5));
    }
    Tensor step(const Tensor& x) {
      sgd->zero_grad();
      Tensor loss;
      {
        AutocastMode autocast(x.device().type(), kBFloat16);
        loss = net(x).square().mean();
      }
      loss.backward();
      sgd->step();
      return loss.detach();
    }
    void copy_from(Twin& other) {
      NoGradGuard guard;
      for (size_t i = 0; i < net->parameters().size(); ++i) net->parameters()[i].copy_(other.net->parameters()[i]);
    }
  };
  void follows_writes(const std::string& mode) {
    manual_seed(5);
    Twin one(device_), other(device_);
    other.copy_from(one);
    auto step = compile([&](const Tensor& x) { return other.step(x); }, {.mode = mode});
    Tensor x = randn({16, 1536}, device_);
    int made = 0;
    auto same = [&](int calls, const char* what) {
      for (int i = 0; i < calls; ++i, ++made) {
        Tensor a = one.step(x), b = step(x);
        EXPECT_TRUE(allclose(a.cpu(), b.cpu(), 2e-2, 1e-4)) << mode << " " << what << " " << made;
      }
      for (size_t i = 0; i < one.net->parameters().size(); ++i)
        EXPECT_TRUE(allclose(one.net->parameters()[i].cpu(), other.net->parameters()[i].cpu(), 2e-2, 2e-3))
            << mode << " " << what << " parameter " << i;
    };
    auto both = [&](const auto& write) {
      NoGradGuard guard;
      write(one.net->parameters());
      write(other.net->parameters());
    };
    same(5, "alone");
    const std::string kernels = step.explain().graphs[0].kernels;
    EXPECT_NE(kernels.find("made once"), std::string::npos) << kernels;
    // A step that finds the copies runs fewer kernels.
    auto kernels_of_a_step = [&] {
      profiler::profile profile;
      same(1, "profiled");
      profile.stop();
      int64_t count = 0;
      const profiler::Averages averages = profile.key_averages();
      for (const profiler::Average& row : averages.rows())
        if (row.kind == profiler::Kind::Kernel) count += row.calls;
      return count;
    };
    int64_t found = kernels_of_a_step();
    both([](std::vector<Tensor> p) { p[0].mul_(0.5); });
    int64_t missed = kernels_of_a_step();
    EXPECT_GT(missed, found);
    for (int calls : {1, 2, 1, 4}) {
      both([](std::vector<Tensor> p) { p[0].mul_(0.5); });
      same(calls, "multiplied");
    }
    both([](std::vector<Tensor> p) { p[2].t()[3].fill_(0.25); });
    same(3, "a part");
    Tensor fresh = randn({1408, 1536}, device_) * 0.02;
    both([&](std::vector<Tensor> p) { p[0].set_data(fresh.clone()); });
    same(3, "other memory");
    other.copy_from(one);
    same(2, "copied");
    both([](std::vector<Tensor> p) {
      (void)p[0].data_ptr();
      p[0].data()[1].fill_(0.125);
    });
    same(3, "what has an address");
  }
};

TEST_P(Carried, FollowsWrites) { follows_writes("default"); }
TEST_P(Carried, FollowsWritesWithKeptLaunches) { follows_writes("reduce-overhead"); }

INSTANTIATE_TEST_SUITE_P(Devices, Prepared, testing::Values("emu", "cuda"));
INSTANTIATE_TEST_SUITE_P(Devices, Carried, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
