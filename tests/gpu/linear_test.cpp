#include <gtest/gtest.h>

#include <brasa/autocast.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "gpu/on_device.h"
#include "support/str.h"

// Linear layers of reduced floats and what is made of them, compiled: the CPU's results on an emulated GPU, and on a GPU where there is one.
namespace brasa {
namespace {

class Linear : public OnDevice {};

void expect_close(const Tensor& a, const Tensor& b, const std::string& what) {
  Tensor x = a.cpu().to(kFloat64), y = b.to(kFloat64);
  EXPECT_LE((x - y).norm().item<double>(), 4e-3 * (y.norm().item<double>() + 1e-6)) << what;
}

TEST_P(Linear, OfManyShapes) {
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& b) { return linear(x, w, b); };
  for (DType dtype : {kBFloat16, kFloat16})
    for (std::vector<int64_t> rows : {std::vector<int64_t>{1}, {33}, {2, 197}})
      for (auto [in, out] : {std::pair<int64_t, int64_t>{64, 96}, {768, 64}, {24, 1000}, {37, 19}, {8, 1}}) {
        std::vector<int64_t> shape = rows;
        shape.push_back(in);
        Tensor x = randn(shape).to(dtype), w = (randn({out, in}) * 0.1).to(dtype), bias = randn({out + 1}).to(dtype);
        for (int64_t start : {0, 1}) {
          Tensor b = bias.slice(0, start, start + out);
          Tensor got = compile(f)(x.to(device_), w.to(device_), bias.to(device_).slice(0, start, start + out));
          expect_close(got, f(x.to(kFloat32), w.to(kFloat32), b.to(kFloat32)),
                       str(name(dtype), " ", shape, " to ", out, " from ", start));
        }
      }
}

// The step of a small network under autocast, Adam included: losses and weights.
TEST_P(Linear, TrainingUnderAutocast) {
  auto train = [](Device device) {
    manual_seed(7);
    nn::Sequential model(nn::Linear(64, 128), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({128})),
                         nn::Linear(128, 40));
    Tensor x = randn({8, 12, 64}).to(device), target = randn({8, 12, 40}).to(device);
    model->to(device);
    auto optimizer = std::make_shared<optim::Adam>(model->parameters(), optim::AdamOptions(1e-3));
    auto step = compile([=]() mutable {
      optimizer->zero_grad();
      Tensor loss;
      {
        AutocastMode autocast(device.type(), kBFloat16, true);
        loss = nn::functional::mse_loss(model(x).to(kFloat32), target);
      }
      loss.backward();
      optimizer->step();
      return loss.detach();
    });
    std::vector<double> losses;
    for (int i = 0; i < 12; ++i) losses.push_back(step().item<double>());
    return losses;
  };
  std::vector<double> cpu = train(kCPU), there = train(device_);
  for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(there[i], cpu[i], 5e-3 * cpu[i]) << i;
  EXPECT_LT(there.back(), there.front());
}

INSTANTIATE_TEST_SUITE_P(Devices, Linear, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
