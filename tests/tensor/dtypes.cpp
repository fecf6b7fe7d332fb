#include "tensor/util.h"

#include <bit>
#include <limits>
#include <random>

#include <brasa/elements.h>

// The dtypes that are only stored, moved and converted.
namespace brasa {
namespace {

using namespace testing;

constexpr DType kFloat8[] = {kFloat8_e5m2, kFloat8_e4m3fn};

Tensor all_bits() { return arange(256).to(kByte); }

// sign, exponent and fraction by their definition; `fraction` bits of it.
double decoded(int bits, int fraction, int bias, DType t) {
  int exponent = (bits & 0x7f) >> fraction, rest = bits & ((1 << fraction) - 1);
  double sign = bits & 0x80 ? -1 : 1;
  bool top = exponent == (0x7f >> fraction);
  if (t == kFloat8_e5m2 && top) return rest ? NAN : sign * INFINITY;
  if (t == kFloat8_e4m3fn && (bits & 0x7f) == 0x7f) return NAN;
  if (exponent == 0) return sign * std::ldexp(rest, 1 - bias - fraction);
  return sign * std::ldexp(rest + (1 << fraction), exponent - bias - fraction);
}
double decoded(int bits, DType t) { return t == kFloat8_e5m2 ? decoded(bits, 2, 15, t) : decoded(bits, 3, 7, t); }

// The nearest of all finite numbers, the one with the even code of two; beyond half a step over the largest the last code.
int nearest(double v, DType t) {
  int sign = std::signbit(v) ? 0x80 : 0, beyond = t == kFloat8_e5m2 ? 0x7c : 0x7f;
  if (std::isnan(v)) return sign | 0x7f;
  double a = std::fabs(v), step = decoded(beyond - 1, t) - decoded(beyond - 2, t);
  int best = 0;
  for (int code = 1; code < beyond; ++code) {
    double better = std::fabs(decoded(code, t) - a) - std::fabs(decoded(best, t) - a);
    if (better < 0 || (better == 0 && code % 2 == 0)) best = code;
  }
  double over = a - (decoded(beyond - 1, t) + step / 2);
  if (over > 0 || (over == 0 && beyond % 2 == 0)) best = beyond;
  return sign | best;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

std::vector<float> many_floats() {
  std::vector<float> out = {0.0F,   -0.0F,   INFINITY, -INFINITY, NAN, std::bit_cast<float>(0xff812345),
                            1e-45F, -1e-40F, 3e38F};
  for (DType t : kFloat8)
    for (int code = 0; code < 255; ++code) {
      // Numbers, the middles between neighbours, and what lies next to these.
      double a = decoded(code, t), b = decoded(code + 1, t);
      for (double v : {a, (a + b) / 2})
        for (float toward : {-INFINITY, INFINITY})
          if (std::isfinite(v))
            out.insert(out.end(), {static_cast<float>(v), std::nextafterf(static_cast<float>(v), toward)});
    }
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) out.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  std::uniform_real_distribution<float> usual(-600, 600);
  for (int i = 0; i < 5000; ++i) out.push_back(usual(random));
  return out;
}

TEST(Float8, EveryValueBecomesItsFloat) {
  for (DType t : kFloat8) {
    Tensor x = all_bits().view(t), wide = x.to(kFloat);
    for (int i = 0; i < 256; ++i) {
      EXPECT_TRUE(same(wide[i].item<float>(), decoded(i, t))) << name(t) << ' ' << i;
      float one = t == kFloat8_e5m2 ? float(x[i].item<Float8_e5m2>()) : float(x[i].item<Float8_e4m3fn>());
      EXPECT_TRUE(same(one, decoded(i, t)) || std::isnan(one)) << name(t) << ' ' << i;
    }
    for (DType to : {kHalf, kBFloat16, kDouble})
      expect_values(x.to(to).nan_to_num(0, 0, 0), values(wide.nan_to_num(0, 0, 0)));
  }
}

TEST(Float8, FloatsBecomeTheNearest) {
  std::vector<float> all = many_floats();
  Tensor x = tensor(ArrayRef<float>(all));
  for (DType t : kFloat8) {
    auto got = elements<uint8_t>(x.to(t).view(kByte)), other = elements<uint8_t>(x.to(kDouble).to(t).view(kByte));
    for (size_t i = 0; i < all.size(); ++i) {
      int want = nearest(all[i], t), by_class = t == kFloat8_e5m2 ? Float8_e5m2(all[i]).x : Float8_e4m3fn(all[i]).x;
      ASSERT_EQ(got[i], want) << name(t) << ' ' << all[i];
      ASSERT_EQ(by_class, want) << name(t) << ' ' << all[i];
      ASSERT_EQ(other[i], want) << name(t) << ' ' << all[i];
    }
  }
}

TEST(Float8, IntegersAndBools) {
  for (DType t : kFloat8) {
    expect_values(tensor({-3, 0, 5}).to(t), {-3, 0, 5});
    expect_values(tensor({-3.5, 0.25}).to(t).to(kInt), {-3, 0});
    expect_values(tensor({true, false}).to(t).to(kBool), {1, 0});
    EXPECT_EQ(tensor({100000}).to(t).view(kByte).item<uint8_t>(), t == kFloat8_e5m2 ? 0x7c : 0x7f);
  }
}

TEST(StoredDTypes, MakeMoveAndPrint) {
  for (DType t : {kFloat8_e5m2, kFloat8_e4m3fn, kUInt64}) {
    expect_values(zeros({2, 2}, t), {0, 0, 0, 0});
    expect_values(ones({3}, t), {1, 1, 1});
    expect_values(full({2}, 3, t), {3, 3});
    expect_values(empty({2}, t).fill_(5), {5, 5});
    expect_values(tensor({1, 2, 3}, t), {1, 2, 3});
    Tensor x = arange(6).to(t).reshape({2, 3});
    expect_values(x.t(), {0, 3, 1, 4, 2, 5});
    expect_values(x.t().contiguous(), {0, 3, 1, 4, 2, 5});
    expect_values(cat({x, x}, 1), {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
    expect_values(x.index_select(1, tensor({2, 0})), {2, 0, 5, 3});
    expect_values(x.index({tensor({1, 0})}), {3, 4, 5, 0, 1, 2});
    expect_values(x.clone().copy_(tensor({7.0, 8.0, 10.0})), {7, 8, 10, 7, 8, 10});
    expect_values(where(tensor({true, false, true}), x, zeros_like(x)), {0, 0, 2, 3, 0, 5});
    EXPECT_TRUE(x.equal(x.clone()));
    EXPECT_EQ(x.to(kDouble).sum().item<double>(), 15);
    EXPECT_EQ(x[1][2].item().toLong(), 5);
  }
  EXPECT_EQ(text(tensor({1.5, -2.0}, kFloat8_e4m3fn)), " 1.5000\n-2.0000\n[ CPUFloat8_e4m3fnType{2} ]");
  EXPECT_EQ(text(tensor({1, 2}, kUInt64)), " 1\n 2\n[ CPUUInt64Type{2} ]");
}

TEST(StoredDTypes, ArithmeticSaysWhatIsMissing) {
  for (DType t : {kFloat8_e5m2, kFloat8_e4m3fn, kUInt64}) {
    Tensor x = ones({3}, t);
    std::string type = std::string("not implemented for '") + toString(t) + "'";
    EXPECT_THROW((void)(x + x), NotImplementedError);
    EXPECT_TRUE(contains(error_of([&] { (void)(x + x); }), "\"add\" " + type));
    EXPECT_TRUE(contains(error_of([&] { (void)(x * 2); }), "\"mul\" " + type));
    EXPECT_TRUE(contains(error_of([&] { (void)x.cumprod(0); }), t == kUInt64 ? "" : type));
    EXPECT_TRUE(contains(error_of([&] { (void)x.index_add(0, tensor({0}), x.slice(0, 0, 1)); }), type));
    EXPECT_TRUE(contains(error_of([&] { (void)x.sort(); }), type));
  }
  EXPECT_TRUE(contains(error_of([] { (void)(ones({2}, kFloat8_e5m2) + ones({2})); }), "Promotion for Float8 Types"));
  EXPECT_TRUE(contains(error_of([] { (void)(ones({2}, kUInt64) + ones({2}, kLong)); }), "Promotion for uint16"));
  expect_values(ones({2}, kUInt64) + ones({2}), {2, 2});
}

TEST(UInt64, HoldsWhatInt64DoesNot) {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max(), high = uint64_t{1} << 63;
  std::vector<uint64_t> all = {0, 1, high - 1, high, high + 1025, most};
  Tensor x = empty({6}, kUInt64).copy_(from_blob(all.data(), {6}, kUInt64));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(x[i].item<uint64_t>(), all[i]);
    EXPECT_EQ(x.to(kDouble)[i].item<double>(), static_cast<double>(all[i]));
    EXPECT_EQ(x.to(kFloat)[i].item<float>(), static_cast<float>(all[i]));
    EXPECT_EQ(x.to(kLong)[i].item<int64_t>(), static_cast<int64_t>(all[i]));
  }
  EXPECT_EQ(scalar_tensor(Scalar(most), kUInt64).item<uint64_t>(), most);
  Tensor d = tensor({0.0, 1.5, 0x1p62, 0x1p63, 0x1.8p63}, kDouble).to(kUInt64);
  std::vector<uint64_t> want = {0, 1, uint64_t{1} << 62, high, high + (high >> 1)};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(d[i].item<uint64_t>(), want[i]);
  std::ostringstream out;
  out << x[5].item();
  EXPECT_EQ(out.str(), "18446744073709551615");
  EXPECT_TRUE(contains(error_of([&] { (void)x[5].item<int64_t>(); }), "without overflow"));
  EXPECT_TRUE(tensor({-1}).view(kUInt64).equal(x.slice(0, 5)));
}

}  // namespace
}  // namespace brasa
