#include <gtest/gtest.h>

#include <brasa/brasa.h>

#include "gpu/on_device.h"
#include "support/str.h"

// Eager sums over the first dimensions, whose sizes the code does not know: short and long columns on an emulated GPU, and on a GPU where
// there is one.
namespace brasa {
namespace {

class Sums : public OnDevice {};

TEST_P(Sums, OfColumns) {
  for (DType dtype : {kFloat32, kBFloat16})
    for (std::vector<int64_t> shape :
         {std::vector<int64_t>{3, 5}, {1023, 5}, {1024, 5}, {5000, 33}, {1, 1}, {0, 4}, {2100, 0}}) {
      Tensor x = randn(shape).to(dtype), got = x.to(device_).sum(0).cpu().to(kFloat64), want = x.to(kFloat64).sum(0);
      double bound = dtype == kFloat32 ? 1e-4 : 2e-2;
      EXPECT_TRUE(allclose(got, want, bound, bound * 20)) << name(dtype) << " " << str(shape);
    }
  Tensor x = randn({40, 51, 7}), got = x.to(device_).sum({0, 1}).cpu();
  EXPECT_TRUE(allclose(got, x.to(kFloat64).sum({0, 1}).to(kFloat32), 1e-4, 1e-4));
  EXPECT_TRUE(allclose(x.to(device_).amax({0, 1}).cpu(), x.amax({0, 1})));
}

INSTANTIATE_TEST_SUITE_P(Devices, Sums, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
