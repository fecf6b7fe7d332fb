#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>

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

// On both sides of what is kept, as norms of channels sum; and along rows of unknown lengths, multiples of 16 bytes or not.
TEST_P(Sums, OfChannelsAndRows) {
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{4, 3, 5, 7}, {33, 2, 16, 16}, {1, 5, 3, 8}, {7, 1, 1, 1}, {2, 3, 0, 4}}) {
    Tensor x = randn(shape), want = x.to(kFloat64).sum({0, 2, 3}).to(kFloat32);
    EXPECT_TRUE(allclose(x.to(device_).sum({0, 2, 3}).cpu(), want, 1e-4, 1e-4)) << str(shape);
    EXPECT_TRUE(
        allclose(compile([](const Tensor& t) { return t.sum({0, 2, 3}); })(x.to(device_)).cpu(), want, 1e-4, 1e-4))
        << str(shape);
  }
  for (int64_t length : {1, 8, 120, 1000, 1001, 4096}) {
    Tensor x = randn({5, length});
    EXPECT_TRUE(allclose(x.to(device_).softmax(1).cpu(), x.softmax(1), 1e-5, 1e-6)) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Sums, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
