#include <gtest/gtest.h>

#include <brasa/autocast.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

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

INSTANTIATE_TEST_SUITE_P(Devices, Prepared, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
