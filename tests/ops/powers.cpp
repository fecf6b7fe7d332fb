#include <brasa/brasa.h>
#include <gtest/gtest.h>

namespace brasa::test {
namespace {

// As PyTorch's: whole exponents are products, whatever the tensor's dtype.
TEST(FloatPower, OfWholeExponentsAreProducts) {
  Tensor x = randn({1000}, kDouble);
  EXPECT_TRUE(equal(float_power(x, 3), x * x * x));
  EXPECT_TRUE(equal(float_power(x, 2), x * x));
  Tensor flags = x > 0;
  EXPECT_TRUE(equal(float_power(flags, 2), flags.to(kDouble)));
}

}  // namespace
}  // namespace brasa::test
