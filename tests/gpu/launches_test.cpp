#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "gpu/on_device.h"

// Equal kernels of one launch: the CPU's results on an emulated GPU, and on a GPU where there is one.
namespace brasa {
namespace {

class Launches : public OnDevice {};

// Sums of columns in two stages, updates that read them, and copies in another dtype, of more tensors than one launch takes.
TEST_P(Launches, OfEqualKernels) {
  constexpr int64_t kTensors = 70, kColumns = 24;
  auto steps = [](Device device) {
    manual_seed(3);
    std::vector<Tensor> weights, gradients;
    for (int64_t i = 0; i < kTensors; ++i) {
      weights.push_back(randn({kColumns}).to(device));
      gradients.push_back(randn({i % 2 == 0 ? 2100 : 33, kColumns}).to(device));
    }
    auto step = compile([=]() mutable {
      NoGradGuard no_grad;
      std::vector<Tensor> before;
      for (size_t i = 0; i < weights.size(); ++i) {
        before.push_back(weights[i].to(kBFloat16));
        weights[i].sub_(gradients[i].sum(0) * 0.01);
      }
      return cat(before, 0);
    });
    Tensor out;
    for (int i = 0; i < 3; ++i) out = step();
    weights.push_back(out.to(kFloat32));
    return cat(weights, 0).cpu();
  };
  EXPECT_TRUE(allclose(steps(device_), steps(kCPU), 1e-2, 1e-3));
}

INSTANTIATE_TEST_SUITE_P(Devices, Launches, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
