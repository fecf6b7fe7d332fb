#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

// Programs convert to and from the dtypes that are only stored as the interpreter does.
namespace brasa {
namespace {

Tensor many_floats() {
  std::vector<float> out = {0.0F,    -0.0F,  INFINITY, -INFINITY, NAN,      1e-45F,
                            -1e-40F, 447.9F, 464.0F,   464.1F,    61440.0F, 3e38F};
  std::mt19937 random(7);
  for (int i = 0; i < 4000; ++i) out.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  std::uniform_real_distribution<float> usual(-600, 600);
  for (int i = 0; i < 2000; ++i) out.push_back(usual(random));
  return tensor(ArrayRef<float>(out));
}

Tensor in_backend(const char* backend, const std::function<Tensor(Tensor)>& f, const Tensor& x) {
  CompileOptions options;
  options.backend = backend;
  return compile([&](const Tensor& in) { return f(in); }, options)(x);
}

void expect_same_bits(const std::function<Tensor(Tensor)>& f, const Tensor& x, const char* what) {
  Tensor got = in_backend("inductor", f, x), want = in_backend("interpreter", f, x);
  // A NaN is a NaN, whatever its bits.
  EXPECT_TRUE(got.isnan().equal(want.isnan())) << what;
  auto bits = [](const Tensor& t) { return where(t.isnan(), zeros_like(t), t).view(kInt); };
  EXPECT_TRUE(bits(got).equal(bits(want))) << what;
}

TEST(StoredDTypes, FloatsThereAndBack) {
  Tensor x = many_floats();
  for (DType t : {kFloat8_e5m2, kFloat8_e4m3fn})
    for (DType from : {kFloat, kDouble, kHalf, kBFloat16})
      expect_same_bits([=](Tensor v) { return v.to(from).to(t).to(from).to(kFloat); }, x, toString(t));
}

TEST(StoredDTypes, EveryFloat8) {
  for (DType t : {kFloat8_e5m2, kFloat8_e4m3fn})
    expect_same_bits([=](Tensor v) { return v.to(kByte).view(t).to(kFloat); }, arange(256).to(kFloat), toString(t));
}

TEST(StoredDTypes, UInt64ThereAndBack) {
  Tensor x = many_floats().abs().nan_to_num(0, 1e19, 0).clamp_max(1.8e19);
  for (DType from : {kFloat, kDouble})
    expect_same_bits([=](Tensor v) { return v.to(from).to(kUInt64).to(from).to(kFloat); }, x, toString(from));
  expect_same_bits([](Tensor v) { return v.to(kLong).to(kUInt64).to(kLong).to(kFloat); }, x.clamp_max(1e18) * -1,
                   "Long");
}

}  // namespace
}  // namespace brasa
