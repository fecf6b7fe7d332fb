// Random programs whose sizes, slices and numbers change from call to call, against eager.
#include <random>

#include "values.h"

namespace brasa {
namespace {

// The same program for every call with this seed; what it does depends on the sizes only through arithmetic.
Tensor run_program(uint32_t seed, const Tensor& x, const Tensor& state, double number) {
  std::mt19937 pick(seed);
  auto choose = [&](int64_t n) { return static_cast<int64_t>(pick() % static_cast<uint64_t>(n)); };
  Tensor v = x;
  for (int step = 0; step < 8; ++step) {
    int64_t rows = v.size(0), columns = v.size(1);
    switch (choose(14)) {
      case 0: v = v.transpose(0, 1).contiguous(); break;
      case 1: v = (v + v.mean({choose(2)}, true)).tanh(); break;
      case 2: v = v.narrow(0, choose(2), rows - 1) * number; break;
      case 3: v = cat({v, v.flip({0})}, choose(2)); break;
      case 4: v = v.reshape({rows * columns}).view({columns, rows}); break;
      case 5: v = v.matmul(v.t()).sin(); break;
      case 6: v = v.slice(1, 0, columns, 2) - 0.5; break;
      case 7: v = v.unsqueeze(1).expand({rows, 2, columns}).reshape({rows * 2, columns}); break;
      case 8: v = v.sub(v.cos(), number); break;
      case 9: v = v.softmax(choose(2)); break;
      case 10: v = v + arange(rows, kFloat64).unsqueeze(1) / static_cast<double>(rows); break;
      case 11: {
        Tensor part = v.clone();
        part.select(0, rows / 2).mul_(2);
        v = part;
        break;
      }
      case 12:
        state.add_(v.detach().sum());
        v = v * state.clone();
        break;
      default: v = v.roll({rows - 1}, {0}) + number;
    }
    if (v.numel() > 4000) v = v.narrow(0, 0, 2);
  }
  return v;
}

class DynamicFuzz : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, DynamicFuzz, ::testing::Values("interpreter", "inductor"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(DynamicFuzz, IsEager) {
  uint32_t programs = std::string(GetParam()) == "interpreter" ? 40 : 8;
  for (uint32_t seed = 1; seed <= programs; ++seed) {
    CompileOptions o;
    o.backend = GetParam();
    enum { Inside, Outside, None } backward = seed % 3 == 0 ? Inside : seed % 3 == 1 ? Outside : None;
    bool gradient = backward != None;
    auto gradient_of = [](const Tensor& v, const Tensor& x) { return autograd::grad({(v * v).sum()}, {x})[0]; };
    auto body = [&](const Tensor& x, const Tensor& state, double number) {
      Tensor v = run_program(seed, x, state, number);
      return backward == Inside ? gradient_of(v, x) : v;
    };
    auto compiled = compile(body, o);
    Tensor a = ones({1}, kFloat64), b = a.clone();  // in double, so that rounding does not grow to a difference
    int call = 0;
    for (auto [n, m] : {std::pair<int64_t, int64_t>{4, 6}, {5, 6}, {7, 9}, {6, 4}, {4, 6}, {9, 3}}) {
      Tensor x = numbers({n, m}).to(kFloat64).set_requires_grad(gradient);
      double number = 0.25 * (call++ % 3);
      std::string want_error, got_error;
      Tensor want, got;
      try {
        want = body(x, a, number);
        if (backward == Outside) want = gradient_of(want, x);
      } catch (const Error& e) {
        want_error = e.what();
      }
      try {
        got = compiled(x, b, number);
        if (backward == Outside) got = gradient_of(got, x);
      } catch (const Error& e) {
        got_error = e.what();
      }
      ASSERT_EQ(want_error.empty(), got_error.empty()) << "seed " << seed << ", sizes " << n << " " << m << "\n"
                                                       << want_error << "\n"
                                                       << got_error;
      if (!want_error.empty()) continue;
      ASSERT_EQ(got.sizes(), want.sizes()) << "seed " << seed;
      double scale = std::max(1.0, want.numel() ? want.detach().abs().max().item<double>() : 1.0);
      EXPECT_TRUE(allclose(got.detach() / scale, want.detach() / scale, 1e-6, 1e-7))
          << "seed " << seed << ", sizes " << n << " " << m;
      b.copy_(a);
    }
    EXPECT_LE(compiled.explain().graphs.size(), 6u) << "seed " << seed << "\n" << compiled.explain().str();
  }
}

}  // namespace
}  // namespace brasa
