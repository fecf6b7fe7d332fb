#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <sstream>

#include "loops/kernel.h"
#include "loops/on_gpu.h"

namespace brasa::compiler::test {
namespace {

using Wide = long double;

Wide digamma(Wide x) {
  if (x == 0) return std::copysign(std::numeric_limits<Wide>::infinity(), -x);
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<Wide>::quiet_NaN();
    return digamma(1 - x) - M_PIl / std::tan(M_PIl * (x - std::round(x)));
  }
  Wide r = 0;
  for (; x < 30; ++x) r -= 1 / x;
  Wide y = 1 / (x * x);
  return r + std::log(x) - 0.5L / x -
         y * (1.L / 12 - y * (1.L / 120 - y * (1.L / 252 - y * (1.L / 240 - y * (1.L / 132 - y * 691.L / 32760)))));
}

Wide erfinv(Wide y) {
  if (!(std::fabs(y) <= 1)) return std::numeric_limits<Wide>::quiet_NaN();
  if (std::fabs(y) == 1) return std::copysign(std::numeric_limits<Wide>::infinity(), y);
  Wide low = 0, high = 7, a = std::fabs(y);
  for (int i = 0; i < 80; ++i) {
    Wide mid = (low + high) / 2;
    (a < 0.5L ? std::erf(mid) < a : std::erfc(mid) > 1 - a) ? low = mid : high = mid;
  }
  if (a < 1e-5L) low = a * (std::sqrt(M_PIl) / 2) * (1 + M_PIl * a * a / 12);
  return std::copysign(low, y);
}

struct Case {
  const char* name;
  Wide (*reference)(Wide);
  double low, high;  // where most of the samples lie
  double ulp32 = 4, ulp64 = 4;
  bool absolute = false;     // the error counts against max(1, |result|): zeros away from 0
  bool inside_only = false;  // samples beyond low and high do not count
};

const Case kCases[] = {
    {"exp", [](Wide x) { return std::exp(x); }, -90, 90},
    {"exp2", [](Wide x) { return std::exp2(x); }, -130, 130},
    {"expm1", [](Wide x) { return std::expm1(x); }, -5, 20},
    {"log", [](Wide x) { return std::log(x); }, 0, 4},
    {"log2", [](Wide x) { return std::log2(x); }, 0, 4},
    {"log10", [](Wide x) { return std::log10(x); }, 0, 4},
    {"log1p", [](Wide x) { return std::log1p(x); }, -1, 3},
    {"sin", [](Wide x) { return std::sin(x); }, -20, 20},
    {"cos", [](Wide x) { return std::cos(x); }, -20, 20},
    {"tan", [](Wide x) { return std::tan(x); }, -20, 20},
    {"sin", [](Wide x) { return std::sin(x); }, -20000, 20000},
    {"cos", [](Wide x) { return std::cos(x); }, -20000, 20000},
    {"tan", [](Wide x) { return std::tan(x); }, -20000, 20000},
    {"asin", [](Wide x) { return std::asin(x); }, -1.01, 1.01},
    {"acos", [](Wide x) { return std::acos(x); }, -1.01, 1.01},
    {"atan", [](Wide x) { return std::atan(x); }, -10, 10},
    {"sinh", [](Wide x) { return std::sinh(x); }, -10, 10},
    {"cosh", [](Wide x) { return std::cosh(x); }, -10, 10},
    {"tanh", [](Wide x) { return std::tanh(x); }, -10, 10, 2},
    {"asinh", [](Wide x) { return std::asinh(x); }, -10, 10},
    {"acosh", [](Wide x) { return std::acosh(x); }, 0.9, 10},
    {"atanh", [](Wide x) { return std::atanh(x); }, -1.01, 1.01},
    {"sqrt", [](Wide x) { return std::sqrt(x); }, 0, 10, 0.5001, 0.5001},
    {"rsqrt", [](Wide x) { return 1 / std::sqrt(x); }, 0, 10},
    {"erf", [](Wide x) { return std::erf(x); }, -5, 5},
    {"erfc", [](Wide x) { return std::erfc(x); }, -5, 10},
    {"erfinv", erfinv, -1, 1},
    {"lgamma", [](Wide x) { return std::lgamma(x); }, 0, 20, 4, 6, false, true},
    {"lgamma", [](Wide x) { return std::lgamma(x); }, -20, 0, 4, 40, true, true},
    {"digamma", digamma, 0, 20, 4, 8, true, true},
    {"digamma", digamma, -20, 0, 4, 40, true, true},
    {"floor", [](Wide x) { return std::floor(x); }, -5, 5, 0, 0},
    {"ceil", [](Wide x) { return std::ceil(x); }, -5, 5, 0, 0},
    {"trunc", [](Wide x) { return std::trunc(x); }, -5, 5, 0, 0},
    {"round", [](Wide x) { return std::nearbyint(x); }, -5, 5, 0, 0},
};

// The distance in units of the last place of a T around `want`.
template <class T>
double ulps(T got, Wide want, bool absolute) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  T rounded = static_cast<T>(want);
  if (got == rounded) return 0;
  if (std::isnan(got)) return 1e9;
  Wide limit = std::numeric_limits<T>::max();
  if (std::isinf(got)) return std::fabs(want) >= limit * (1 - 4 * std::numeric_limits<T>::epsilon()) ? 0 : 1e9;
  if (std::isinf(rounded)) return std::fabs(got) >= limit * (1 - 4 * std::numeric_limits<T>::epsilon()) ? 0 : 1e9;
  Wide size = absolute ? std::max<Wide>(1, std::fabs(want)) : std::fabs(want);
  int e = size == 0 ? -20000 : std::ilogb(size);
  e = std::max(e, std::numeric_limits<T>::min_exponent - 1);
  return static_cast<double>(std::fabs(got - want) / std::ldexp(Wide(1), e - (std::numeric_limits<T>::digits - 1)));
}

template <class T>
std::vector<T> samples(double low, double high) {
  std::mt19937_64 rng(7);
  std::vector<T> x{0, -T(0), 1, -1, T(0.5), T(-0.5), 2, 3, 100, T(1e10), T(-1e10)};
  using L = std::numeric_limits<T>;
  for (T v : {L::infinity(), L::max(), L::min(), L::denorm_min(), L::epsilon(), L::min() * T(0.37)}) {
    x.push_back(v);
    x.push_back(-v);
  }
  x.push_back(L::quiet_NaN());
  std::uniform_real_distribution<double> uniform(low, high), exponent(L::min_exponent - 20, L::max_exponent),
      unit(0, 1);
  for (int i = 0; i < 20000; ++i) {
    x.push_back(static_cast<T>(uniform(rng)));
    if (i % 4 == 0) {  // any magnitude
      T v = static_cast<T>(std::ldexp(Wide(1 + unit(rng)), static_cast<int>(exponent(rng))));
      x.push_back(rng() & 1 ? v : -v);
    }
    if (i % 8 == 0) x.push_back(static_cast<T>(1 + std::ldexp(uniform(rng), -static_cast<int>(rng() % 50))));
    if (i % 8 == 1) x.push_back(static_cast<T>(std::ldexp(uniform(rng), -static_cast<int>(rng() % 60))));
  }
  return x;
}

class Math : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Math, testing::ValuesIn(targets()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

template <class T>
void expect_close(const Case& c, const std::vector<T>& in, const std::vector<T>& out) {
  double bound = sizeof(T) == 4 ? c.ulp32 : c.ulp64, worst = 0;
  size_t at = 0, bad = 0;
  for (size_t j = 0; j < in.size(); ++j) {
    if (c.inside_only && (in[j] < c.low || in[j] > c.high) && std::isfinite(in[j])) continue;
    double e = ulps(out[j], c.reference(in[j]), c.absolute);
    bad += e > bound;
    if (e > worst) {
      worst = e;
      at = j;
    }
  }
  if (getenv("BRASA_SHOW_ULPS")) printf("%-8s f%zu %.2f ulp at %.9g\n", c.name, 8 * sizeof(T), worst, double(in[at]));
  EXPECT_LE(worst, bound) << c.name << (sizeof(T) == 4 ? " f32" : " f64") << " at " << in[at] << ": " << out[at]
                          << " for " << static_cast<double>(c.reference(in[at])) << "; " << bad << " of " << in.size()
                          << " are beyond";
}

template <class T>
void check(const Case& c, const std::string& target) {
  DType t = sizeof(T) == 4 ? DType::Float32 : DType::Float64;
  Kernel k;
  Expr n = Expr::size(0), i = k.b.loop("vector", n, 16);
  Value x = k.b.buffer(t, n), y = k.b.buffer(t, n);
  k.b.store(y, i, k.b.op(c.name, {k.b.load(x, i)}));
  k.compile(target);
  auto in = samples<T>(c.low, c.high);
  std::vector<T> out(in.size());
  k.run({in.data(), out.data()}, {static_cast<int64_t>(in.size())});
  expect_close(c, in, out);
}

TEST_P(Math, Float32) {
  for (const Case& c : kCases) check<float>(c, GetParam());
}
TEST_P(Math, Float64) {
  for (const Case& c : kCases) check<double>(c, GetParam());
}

// A GPU has instructions of its own for some.
TEST(MathOnAGpu, Functions) {
  if (device_count(kCUDA) == 0) GTEST_SKIP() << "there is no GPU";
  for (const Case& c : kCases) {
    ir::Graph graph(ir::Level::Loops);
    graph.name = "function";
    LoopBuilder b(graph);
    Expr n = Expr::size(0);
    Value x = b.buffer(DType::Float32, n), y = b.buffer(DType::Float32, n);
    Expr block = b.loop("block", ceildiv(n, 128)), thread = b.loop("thread", 128), i = block * 128 + thread;
    Value mask = b.op("lt", {b.index(i), b.index(n)});
    b.store(y, i, b.op(c.name, {b.load(x, i, mask)}), mask);
    auto in = samples<float>(c.low, c.high);
    std::vector<float> out(in.size());
    expect_close(c, in, on_gpu(graph, {in, out}, {static_cast<int64_t>(in.size())}, 1));
  }
}

// The sum of 1 and erf x is computed as erfc(-x) where that is small.
// Of numbers around 0 by a GPU: `body` makes the result of x.
template <class Body, class Want>
void check_on_gpu(const Body& body, const Want& want, double bound) {
  if (device_count(kCUDA) == 0) GTEST_SKIP() << "there is no GPU";
  ir::Graph graph(ir::Level::Loops);
  graph.name = "function";
  LoopBuilder b(graph);
  constexpr int kCount = 8192;
  Value x = b.buffer(DType::Float32, kCount), y = b.buffer(DType::Float32, kCount);
  Expr block = b.loop("block", kCount / 128), thread = b.loop("thread", 128), i = block * 128 + thread;
  b.store(y, i, body(b, b.load(x, i)));
  std::vector<float> in(kCount);
  for (int k = 0; k < kCount; ++k) in[k] = static_cast<float>(k - kCount / 2) / 512;
  in[0] = -INFINITY;
  in[1] = INFINITY;
  in[2] = NAN;
  in[3] = -1e30f;
  std::vector<float> out = on_gpu(graph, {in, in}, {}, 1);
  for (int k = 0; k < kCount; ++k) {
    double expected = want(double{in[k]});
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(out[k]) : std::fabs(out[k] - expected) <= bound)
        << in[k] << ": " << out[k] << " for " << expected;
  }
}
template <class Function>
auto one_and(const Function& function) {
  return [=](LoopBuilder& b, Value x) { return b.op("add", {b.op(function, {x}), b.constant(1.0, DType::Float32)}); };
}

TEST(MathOnAGpu, OneAndErf) {
  check_on_gpu(one_and("erf"), [](double x) { return std::erfc(-x); }, 5e-7);
}
// Which is made at once where only a reduced float is made of it.
TEST(MathOnAGpu, OneAndTanh) {
  auto body = [](LoopBuilder& b, Value x) {
    return b.convert(b.convert(one_and("tanh")(b, x), DType::Float16), DType::Float32);
  };
  check_on_gpu(body, [](double x) { return 2 / (1 + std::exp(-2 * x)); }, 1e-3);
}
// Both of a GELU's derivative: what tanh lacks of 1 is right relative to 1 alone.
TEST(MathOnAGpu, OneLessSquaredTanh) {
  auto body = [](LoopBuilder& b, Value x) {
    Value t = b.op("tanh", {x}), one = b.constant(1.0, DType::Float32);
    Value both = b.op("add", {b.op("add", {one, t}), b.op("sub", {one, b.op("mul", {t, t})})});
    return b.convert(b.convert(both, DType::Float16), DType::Float32);
  };
  check_on_gpu(body, [](double x) { return 2 + std::tanh(x) - std::tanh(x) * std::tanh(x); }, 1.2e-3);
}
// An exponential that is added to a 1: see ops/softmax.h.
TEST(MathOnAGpu, ExpBesideOne) {
  auto body = [](LoopBuilder& b, Value x) {
    Value y = b.op("min", {x, b.constant(0.0, DType::Float32)}), least = b.constant(-86.64, DType::Float32);
    return b.op("exp", {b.op("select", {b.op("lt", {y, least}), b.constant(-INFINITY, DType::Float32), y})});
  };
  check_on_gpu(body, [](double x) { return std::exp(std::isnan(x) ? x : std::min(x, 0.0)); }, 2e-7);
}

struct BinaryCase {
  const char* name;
  Wide (*reference)(Wide, Wide);
  double bound;
};
const BinaryCase kBinaryCases[] = {
    {"pow", [](Wide x, Wide y) { return std::pow(x, y); }, 4},
    {"atan2", [](Wide y, Wide x) { return std::atan2(y, x); }, 4},
    {"rem", [](Wide x, Wide y) { return std::fmod(x, y); }, 0},
    {"max", [](Wide x, Wide y) { return std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y); }, 0},
    {"min", [](Wide x, Wide y) { return std::isnan(x) || std::isnan(y) ? x + y : std::min(x, y); }, 0},
};

template <class T>
void check(const BinaryCase& c, const std::string& target) {
  DType t = sizeof(T) == 4 ? DType::Float32 : DType::Float64;
  Kernel k;
  Expr n = Expr::size(0), i = k.b.loop("vector", n, 16);
  Value a = k.b.buffer(t, n), b = k.b.buffer(t, n), y = k.b.buffer(t, n);
  k.b.store(y, i, k.b.op(c.name, {k.b.load(a, i), k.b.load(b, i)}));
  k.compile(target);
  std::vector<T> left, right;
  std::vector<T> special{0,
                         -T(0),
                         1,
                         -1,
                         2,
                         -2,
                         3,
                         -3,
                         T(0.5),
                         T(-0.5),
                         T(2.5),
                         T(1e30),
                         T(-1e30),
                         T(1e-30),
                         INFINITY,
                         -INFINITY,
                         NAN,
                         std::numeric_limits<T>::min() / 8,
                         std::numeric_limits<T>::max()};
  for (T x : special)
    for (T z : special) {
      left.push_back(x);
      right.push_back(z);
    }
  std::mt19937_64 rng(11);
  std::uniform_real_distribution<double> uniform(-10, 10), unit(1, 2);
  for (int j = 0; j < 15000; ++j) {
    left.push_back(static_cast<T>(uniform(rng)));
    right.push_back(static_cast<T>(uniform(rng)));
    left.push_back(static_cast<T>(std::ldexp(unit(rng), static_cast<int>(rng() % 200) - 100)));
    right.push_back(static_cast<T>(std::ldexp(unit(rng), static_cast<int>(rng() % 12) - 6)));
    left.push_back(static_cast<T>(std::fabs(1 + std::ldexp(uniform(rng), -static_cast<int>(rng() % 20)))));
    right.push_back(static_cast<T>(uniform(rng) * 50));
  }
  std::vector<T> out(left.size());
  k.run({left.data(), right.data(), out.data()}, {static_cast<int64_t>(left.size())});
  double worst = 0;
  size_t at = 0;
  for (size_t j = 0; j < left.size(); ++j) {
    double e = ulps(out[j], c.reference(left[j], right[j]), false);
    if (e > worst) {
      worst = e;
      at = j;
    }
  }
  if (getenv("BRASA_SHOW_ULPS")) printf("%-8s f%zu %.2f ulp\n", c.name, 8 * sizeof(T), worst);
  EXPECT_LE(worst, c.bound) << c.name << (sizeof(T) == 4 ? " f32 (" : " f64 (") << left[at] << ", " << right[at]
                            << "): " << out[at] << " for " << static_cast<double>(c.reference(left[at], right[at]));
}

TEST_P(Math, BinaryFloat32) {
  for (const BinaryCase& c : kBinaryCases) check<float>(c, GetParam());
}
TEST_P(Math, BinaryFloat64) {
  for (const BinaryCase& c : kBinaryCases) check<double>(c, GetParam());
}

// The first numbers of the generator's published test vector, key and counter 0.
TEST_P(Math, Philox) {
  Kernel k;
  Value out = k.b.buffer(DType::Int32, 70);
  Expr i = k.b.loop("vector", 70, 16, 4);
  Value zero = k.b.constant(int64_t{0}, DType::Int64);
  k.b.store(out, i, k.b.op("philox", {zero, zero, k.b.index(i)}));
  k.compile(GetParam());
  std::vector<int32_t> got(70);
  k.run({got.data()});
  std::vector<uint32_t> first;
  for (int word = 0; word < 4; ++word) first.push_back(static_cast<uint32_t>(got[16 * word]));
  EXPECT_EQ(first, (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

// What a branch computes that is almost never taken is a function, however many copies of a loop's body there are: of what the body
// has, of what it alone reads, and of numbers.
TEST_P(Math, RareBranchesAreFunctions) {
  constexpr int kCount = 70;
  Kernel k;
  Value in = k.f32(kCount), more = k.f32(kCount), out = k.f32(kCount);
  Expr i = k.b.loop("vector", kCount, 8, 4);
  Value x = k.b.load(in, i), one = k.b.constant(1.0, DType::Float32), usual = k.b.op("neg", {x});
  Value rare = k.b.op("add", {k.b.op("mul", {usual, k.b.load(more, i)}), k.b.convert(k.b.index(i), DType::Float32)});
  for (int step = 0; step < 20; ++step) rare = k.b.op("add", {rare, one});
  k.b.store(out, i, k.b.unlikely(k.b.op("gt", {x, one}), rare, usual));
  std::string code = show_kernel(k.graph, GetParam(), "llvm");
  auto count = [&](const std::string& what) {
    int times = 0;
    for (size_t at = 0; (at = code.find(what, at)) != code.npos; ++at) ++times;
    return times;
  };
  // Where no masks cover the rest there is one of a number, too.
  EXPECT_LE(count("define internal"), 2) << code;
  EXPECT_GE(count("@rare"), 6) << code;
  k.compile(GetParam());
  std::vector<float> a(kCount), b(kCount, 3), got(kCount);
  for (int j = 0; j < kCount; ++j) a[j] = j % 9 == 4 ? 2.0f : 0.5f;
  k.run({a.data(), b.data(), got.data()});
  for (int j = 0; j < kCount; ++j) EXPECT_EQ(got[j], j % 9 == 4 ? -6.0f + static_cast<float>(j) + 20 : -0.5f) << j;
}

// Branches of one kernel share a table, and one needs what the other gave.
TEST_P(Math, RareBranchesOfRareBranches) {
  Kernel k;
  Value in = k.b.buffer(DType::Float64, 9), out = k.b.buffer(DType::Float64, 9);
  Expr i = k.b.loop("vector", 9, 4, 1);
  Value x = k.b.op("sin", {k.b.load(in, i)}), large = k.b.constant(1e300, DType::Float64);
  k.b.store(out, i, k.b.op("add", {x, k.b.op("cos", {k.b.op("mul", {x, large})})}));
  k.compile(GetParam());
  std::vector<double> a{0.5, 1e22, -3, 1e300, 0, -1e6, 7e100, 2, 1e19}, got(9);
  k.run({a.data(), got.data()});
  for (size_t j = 0; j < a.size(); ++j) {
    // The product's last digits are those of the kernel's sine.
    double error = std::fabs(got[j] - std::sin(a[j]));
    EXPECT_LE(error, 1.0000001) << a[j];
  }
  EXPECT_EQ(got[4], 1);
}

// A long function that a kernel computes often is called: of a vector, of a number that is the same for all lanes, and with a branch
// and a table of its own.
TEST_P(Math, FunctionsThatAreRepeated) {
  constexpr int kTimes = 8;
  constexpr int kElements = 21;
  auto kernel = [&](int times) {
    auto made = std::make_unique<Kernel>();
    Kernel& k = *made;
    Value x = k.b.buffer(DType::Float64, kElements), one = k.b.buffer(DType::Float64, 1),
          out = k.b.buffer(DType::Float64, kElements);
    Expr i = k.b.loop("vector", kElements, 4, 1);
    Value v = k.b.load(x, i), exponent = k.b.load(one, 0), sum = k.b.constant(0.0, DType::Float64);
    for (int t = 1; t <= times; ++t) {
      Value scaled = k.b.op("mul", {v, k.b.constant(0.5 * t, DType::Float64)});
      Value power = k.b.op("pow", {scaled, exponent});
      Value shift = k.b.op("pow", {exponent, k.b.constant(0.25 * t, DType::Float64)});
      Value wave = k.b.op("cos", {k.b.op("mul", {scaled, k.b.constant(1e9, DType::Float64)})});
      sum = k.b.op("add", {sum, k.b.op("mul", {wave, k.b.op("add", {power, shift})})});
    }
    k.b.store(out, i, sum);
    return made;
  };
  auto k = kernel(kTimes);
  k->compile(GetParam());
  std::vector<double> in = ramp<double>(kElements, 0.07, 0.3), out(kElements);
  double exponent = 1.7;
  k->run({in.data(), &exponent, out.data()});
  for (int i = 0; i < kElements; ++i) {
    double sum = 0, size = 0;
    for (int t = 1; t <= kTimes; ++t) {
      double scaled = in[i] * (0.5 * t);
      double item = std::cos(scaled * 1e9) * (std::pow(scaled, exponent) + std::pow(exponent, 0.25 * t));
      sum += item;
      size += std::fabs(item);
    }
    EXPECT_NEAR(out[i], sum, 1e-14 * size) << GetParam() << " " << in[i];
  }
  auto bytes = [&](int times) {
    std::string text = ir::print(kernel(times)->graph);
    return static_cast<double>(compile_kernel_texts({&text, 1}, GetParam()).code.size());
  };
  EXPECT_LT(bytes(2 * kTimes), 1.5 * bytes(kTimes));
}

TEST_P(Math, OneAndErf) {
  constexpr int kCount = 8192;
  Kernel k;
  Value x = k.b.buffer(DType::Float32, kCount), y = k.b.buffer(DType::Float32, kCount);
  Expr i = k.b.loop("vector", kCount, 8, 2);
  k.b.store(y, i, one_and("erf")(k.b, k.b.load(x, i)));
  k.compile(GetParam());
  std::vector<float> in(kCount), out(kCount);
  for (int e = 0; e < kCount; ++e) in[e] = static_cast<float>(e - kCount / 2) / 400;
  const float special[] = {-INFINITY, INFINITY, NAN, -1e30f, 1e30f};
  std::copy(std::begin(special), std::end(special), in.begin());
  k.run({in.data(), out.data()});
  for (int e = 0; e < kCount; ++e) {
    double expected = std::erfc(-double{in[e]});
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(out[e]) : std::fabs(out[e] - expected) <= 3e-7)
        << in[e] << ": " << out[e] << " for " << expected;
  }
}

// More numbers than AVX2 has registers are operands in memory: a loop makes few of them anew, which takes an instruction and a register each.
TEST(MathWithAvx2, NumbersAreOperandsInMemory) {
  Kernel k;
  Expr n = Expr::size(0), i = k.b.loop("vector", n, 8);
  Value x = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n);
  k.b.store(y, i, k.b.op("erf", {k.b.load(x, i)}));
  std::string code = show_kernel(k.graph, "x86-64+avx2", "assembly");
  size_t last = code.find("vfmadd"), body = last;
  ASSERT_NE(last, code.npos) << code;
  for (size_t at = last; (at = code.find("vpslld", at)) != code.npos; ++at) last = at;
  std::string loop = code.substr(body, last - body);
  int made = 0, read = 0;
  for (size_t at = 0; (at = loop.find("vbroadcastss", at)) != loop.npos; ++at) ++made;
  for (size_t at = 0; (at = loop.find("(%rsp)", at)) != loop.npos; ++at) ++read;
  EXPECT_GT(read, made) << code;
}

// The instruction gives the other operand where one is NaN: of an item a NaN is asked for, of what was there before none.
TEST(MathCode, MaximaAreInstructions) {
  for (const char* target : {"x86-64+avx2", "x86-64+avx512"}) {
    Kernel k;
    Expr n = Expr::size(0), i = k.b.loop("vector", n, 8);
    Value x = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n), z = k.b.buffer(DType::Float32, n);
    k.b.store(z, i, k.b.op("max", {k.b.load(x, i), k.b.load(y, i)}));
    std::string code = show_kernel(k.graph, target, "assembly");
    auto count = [&](const char* instruction) {
      int found = 0;
      for (size_t at = 0; (at = code.find(instruction, at)) != code.npos; ++at) ++found;
      return found;
    };
    EXPECT_GT(count("vmax"), 0) << code;
    EXPECT_EQ(count("vcmp"), count("vmax")) << code;
  }
}

size_t lines_with(const std::string& code, const std::function<bool(const std::string&)>& holds) {
  std::stringstream lines(code);
  size_t found = 0;
  for (std::string line; std::getline(lines, line);) found += holds(line);
  return found;
}
bool has(const std::string& line, const char* text) { return line.find(text) != line.npos; }

// Where a processor reads one vector of 64 bytes a cycle, numbers in memory take as long as the products that they are for.
TEST(MathWithAvx512, NumbersAreHeldInRegisters) {
  Kernel k;
  Expr n(4096), i = k.b.loop("vector", n, 16);
  Value x = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n), z = k.b.buffer(DType::Float32, n);
  k.b.store(z, i, k.b.op("mul", {k.b.op("exp", {k.b.load(x, i)}), k.b.op("tanh", {k.b.load(y, i)})}));
  std::string code = show_kernel(k.graph, "x86-64+avx512", "assembly");
  auto products = [&](const char* operand) {
    return lines_with(code, [&](const auto& line) { return has(line, "vfm") && has(line, operand); });
  };
  EXPECT_GT(products("%zmm"), 3 * products("{1to16}")) << code;
}

// Memory does not send ahead for reads through a mask.
TEST(MathWithAvx512, WhatAMaskChoosesIsReadWhole) {
  Kernel k;
  Expr n(4096), i = k.b.loop("vector", n, 16);
  Value x = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n), z = k.b.buffer(DType::Float32, n);
  Value zero = k.b.constant(0.0, DType::Float32), more = k.b.op("gt", {k.b.load(x, i), zero});
  k.b.store(z, i, k.b.op("select", {more, k.b.load(y, i), zero}));
  std::string code = show_kernel(k.graph, "x86-64+avx512", "assembly");
  EXPECT_EQ(lines_with(code, [](const auto& line) { return has(line, "), %zmm") && has(line, "{z}"); }), 0) << code;
}

TEST(MathCode, WholeVectorsOfLongBodiesAreReadWhole) {
  Kernel k;
  Expr n = Expr::size(0), i = k.b.loop("vector", n, 8);
  Value x = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n), v = k.b.load(x, i);
  for (int times = 0; times < 40; ++times) v = k.b.op("sqrt", {k.b.op("add", {v, v})});
  k.b.store(y, i, v);
  std::string code = show_kernel(k.graph, "x86-64+avx2", "assembly");
  auto reads = [&](const char* instruction) {
    return lines_with(code, [&](const auto& line) {
      return has(line, instruction) && has(line, "), %ymm") && !has(line, "%rsp") && !has(line, "%rip");
    });
  };
  EXPECT_GT(reads("vmaskmovps"), 0) << code;
  EXPECT_GT(reads("vmovups"), 0) << code;
}

// A row of 20 has one of 16 and one of four through a mask.
TEST(MathWithAvx512, RowsOfLessThanTwoStepsHaveAWholeVector) {
  Kernel k;
  Expr n = Expr::size(0), i = k.b.loop("vector", n, 16, 2);
  Value x = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n);
  k.b.store(y, i, k.b.load(x, i));
  std::string code = show_kernel(k.graph, "x86-64+avx512", "assembly");
  EXPECT_EQ(lines_with(code, [](const auto& line) { return has(line, "vmovups\t%zmm") && !has(line, "{%k"); }), 3)
      << code;
}

// Of two vectors in a step both are computed before one of them is written.
TEST(MathCode, VectorsAreComputedTogether) {
  Kernel k;
  Expr n = 64, i = k.b.loop("vector", n, 16, 2);
  Value x = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n);
  k.b.store(y, i, k.b.op("exp", {k.b.load(x, i)}));
  std::string code = show_kernel(k.graph, "x86-64+avx512", "llvm-raw");
  size_t first = code.find("store <16 x float>"), last = code.rfind("store <16 x float>");
  ASSERT_NE(first, last) << code;
  EXPECT_EQ(code.substr(first, last - first).find("llvm.fma"), std::string::npos) << code;
}

}  // namespace
}  // namespace brasa::compiler::test
