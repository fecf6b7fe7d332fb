#include <gtest/gtest.h>

#include <brasa/autocast.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "gpu/on_device.h"
#include "models/resnet.h"
#include "support/str.h"

// Convolutions and what stands between them, compiled and not, and sums into places: the CPU's results on an emulated GPU, and on a GPU
// where there is one.
namespace brasa {
namespace {

class Convolution : public OnDevice {};

void expect_close(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  Tensor x = a.cpu().to(kFloat64), y = b.to(kFloat64);
  EXPECT_LE((x - y).norm().item<double>(), tolerance * (y.norm().item<double>() + 1e-6)) << what;
}

struct Case {
  std::vector<int64_t> image, weight, stride, padding, dilation;
  int64_t groups;
  bool transposed;
};

TEST_P(Convolution, OfManyShapes) {
  const Case cases[] = {
      {{4, 3, 33, 30}, {64, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}, 1, false},
      {{4, 64, 14, 14}, {32, 64, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, false},
      {{4, 64, 15, 14}, {32, 64, 1, 1}, {2, 2}, {0, 0}, {1, 1}, 1, false},
      {{3, 20, 15, 14}, {12, 20, 3, 3}, {2, 1}, {1, 2}, {1, 2}, 1, false},
      {{2, 32, 9, 9}, {64, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 4, false},
      {{2, 32, 9, 9}, {32, 1, 5, 3}, {1, 2}, {2, 1}, {1, 1}, 32, false},
      {{2, 16, 40}, {24, 16, 5}, {2}, {2}, {1}, 1, false},
      {{2, 8, 6, 9, 8}, {16, 8, 3, 3, 2}, {1, 2, 1}, {1, 1, 0}, {1, 1, 1}, 1, false},
      {{2, 16, 7, 6}, {16, 24, 4, 4}, {2, 2}, {1, 1}, {1, 1}, 1, true},
  };
  for (const Case& c : cases)
    for (DType dtype : {kFloat32, kBFloat16, kFloat16}) {
      if (device_ == Device("emu") && dtype != kFloat32) continue;  // whose loops differ in nothing else
      auto run = [&](Device device, DType t, bool compiled) {
        manual_seed(2);
        Tensor x = randn(c.image).to(dtype).to(t).to(device), w = (randn(c.weight) * 0.1).to(dtype).to(t).to(device);
        x.requires_grad_(true), w.requires_grad_(true);
        auto f = [&](const Tensor& image, const Tensor& weight) {
          std::vector<int64_t> none(c.stride.size(), 0);
          return convolution(image, weight, {}, c.stride, c.padding, c.dilation, c.transposed, none, c.groups);
        };
        Tensor y = compiled ? compile(f)(x, w) : f(x, w);
        y.backward(ones_like(y));
        return std::vector<Tensor>{y.detach(), x.grad(), w.grad()};
      };
      std::vector<Tensor> want = run(kCPU, kFloat32, false);
      for (bool compiled : {false, true}) {
        std::vector<Tensor> got = run(device_, dtype, compiled);
        double tolerance = dtype == kFloat32 ? 2e-5 : dtype == kFloat16 ? 2e-3 : 1e-2;
        for (size_t i = 0; i < want.size(); ++i)
          expect_close(got[i], want[i], tolerance, str(name(dtype), " ", c.image, " by ", c.weight, ": ", i));
      }
    }
}

// A residual network's steps, batch norms and pooling included, in float32 and under autocast.
TEST_P(Convolution, TrainingAResidualNetwork) {
  auto train = [](Device device, bool autocast) {
    manual_seed(7);
    models::ResNet model(std::vector<int64_t>{1, 1}, true, 10);
    Tensor x = randn({4, 3, 40, 36}).to(device), target = randint(10, {4}, kInt64).to(device);
    model->to(device);
    auto optimizer = std::make_shared<optim::SGD>(model->parameters(), optim::SGDOptions(0.01).momentum(0.9));
    auto step = compile([=]() mutable {
      optimizer->zero_grad();
      Tensor loss;
      {
        AutocastMode mode(device.type(), kBFloat16, autocast);
        loss = nn::functional::cross_entropy(model(x).to(kFloat32), target);
      }
      loss.backward();
      optimizer->step();
      return loss.detach();
    });
    std::vector<double> losses;
    for (int i = 0; i < 6; ++i) losses.push_back(step().item<double>());
    return losses;
  };
  std::vector<double> cpu = train(kCPU, false);
  for (bool autocast : {false, true}) {
    std::vector<double> there = train(device_, autocast);
    for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(there[i], cpu[i], (autocast ? 5e-2 : 2e-3) * cpu[0]) << i;
    EXPECT_LT(there.back(), there.front());
  }
}

// Many updates of few places, in the order in which they stand; and what is pooled.
TEST_P(Convolution, SumsIntoPlacesAndMaxima) {
  auto sums = [](const Tensor& index, const Tensor& values) {
    return std::vector<Tensor>{zeros({37, values.size(1)}, values.options()).index_add(0, index, values),
                               zeros({37}, values.options()).index_add(0, index, values.select(1, 0))};
  };
  for (int64_t columns : {1, 24, 25, 768}) {
    Tensor index = randint(37, {3000}, kInt64), values = randn({3000, columns});
    std::vector<Tensor> want = sums(index, values), got = compile(sums)(index.to(device_), values.to(device_));
    for (size_t i = 0; i < want.size(); ++i) expect_close(got[i], want[i], 1e-5, str(columns, " columns, ", i));
  }
  auto pooled = [](const Tensor& x) {
    return nn::functional::max_pool2d(x, nn::functional::MaxPool2dFuncOptions(3).stride(2).padding(1));
  };
  for (bool compiled : {false, true}) {
    auto run = [&](Device device) {
      manual_seed(1);
      Tensor x = randn({2, 5, 19, 24}).to(device);
      x.requires_grad_(true);
      Tensor y = compiled ? compile(pooled)(x) : pooled(x);
      (y * y).sum().backward();
      return std::vector<Tensor>{y.detach(), x.grad()};
    };
    std::vector<Tensor> want = run(kCPU), got = run(device_);
    for (size_t i = 0; i < want.size(); ++i) expect_close(got[i], want[i], 1e-6, str("pooled ", i));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Convolution, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
