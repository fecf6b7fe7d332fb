#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include <brasa/call.h>

#include "values.h"

// What operators give at the edges of their arguments, in each way of running them.
namespace brasa {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The function's result in each way of running it.
using Function = std::function<Tensor(const std::vector<Tensor>&)>;
void each_way(const Function& f, const std::function<void(const Function&)>& check) {
  check(f);
  for (const char* backend : {"inductor", "interpreter"})
    check([g = compile([f](const std::vector<Tensor>& in) { return std::vector{f(in)}; }, {.backend = backend})](
              const std::vector<Tensor>& in) { return g(in).at(0); });
}

TEST(Edges, SumsWithProductsOfReducedFloatsAreRoundedOnce) {
  auto eighths = [](std::vector<int64_t> sizes) { return randint(-8, 9, sizes).to(kFloat).div(8); };
  manual_seed(1);
  Tensor m = eighths({16, 16}), n = eighths({16, 16}), x = eighths({16, 16}), v = eighths({16});
  Tensor p = eighths({3, 16, 16}), q = eighths({3, 16, 16});
  const std::map<std::string, std::vector<Tensor>> calls = {{"addmm", {x, m, n}},
                                                            {"addmv", {v, m, v}},
                                                            {"baddbmm", {x, p, q}},
                                                            {"addbmm", {x, p, q}},
                                                            {"_addmm_activation", {x, m, n}}};
  for (const auto& each : calls) {
    const std::string& name = each.first;
    auto f = [&name](const std::vector<Tensor>& t) { return call("aten::" + name, {t[0], t[1], t[2], 3, 0.5}).at(0); };
    for (DType dtype : name == "addmm" ? std::vector{kBFloat16, kHalf} : std::vector{kBFloat16})
      each_way(f, [&](const Function& g) {
        std::vector<Tensor> wide, narrow;
        for (const Tensor& t : each.second) {
          wide.push_back(t.clone().requires_grad_());
          narrow.push_back(t.to(dtype).requires_grad_());
        }
        Tensor exact = g(wide), got = g(narrow);
        EXPECT_TRUE(equal(got, exact.to(dtype))) << name << ' ' << dtype;
        exact.sum().backward();
        got.sum().backward();
        for (size_t i = 0; i < wide.size(); ++i)
          EXPECT_TRUE(equal(narrow[i].grad(), wide[i].grad().to(dtype))) << name << ' ' << dtype << ' ' << i;
      });
  }
}

TEST(Edges, OrdersBeyondSinglePrecisionAreInfinite) {
  Tensor x = tensor({3.0, -4.0, 0.5});
  for (double sign : {1.0, -1.0})
    each_way([&](const std::vector<Tensor>& in) { return norm(in[0], sign * 1e39); },
             [&](const Function& f) { EXPECT_EQ(f({x}).item<double>(), sign > 0 ? 4 : 0.5); });
  EXPECT_EQ(cdist(x.reshape({1, 3}), zeros({1, 3}), 1e39).item<double>(), 4);
}

TEST(Edges, TheNormOfOneElementIsItsSize) {
  Tensor x = tensor({0.0, -1e30, 1e-30}, kFloat).reshape({3, 1});
  for (double p : {0.5, 1.0, 2.0, 3.5, -2.0, kInf, -kInf})
    each_way([&](const std::vector<Tensor>& in) { return norm(in[0], p, {1}, false); },
             [&](const Function& f) { EXPECT_TRUE(equal(f({x}), x.abs().reshape({3}))) << p << '\n'
                                                                                       << f({x}); });
  EXPECT_TRUE(equal(norm(x, 0, {1}, false), tensor({0.0, 1.0, 1.0}, kFloat)));
}

// Nobody makes memory for the result, and the products that it is of are sums of nothing.
TEST(Edges, AttentionWithoutFeaturesWeighsEvenly) {
  Tensor weights = ones({3, 3}).tril();
  weights = (weights / weights.sum(1, true)).expand({1, 2, 3, 3});
  for (const char* backend : {"inductor", "interpreter"}) {
    auto f = compile(
        [](const Tensor& q, const Tensor& k, const Tensor& v) {
          return call("aten::_scaled_dot_product_attention_math", {q, k, v, {}, 0.0, true});
        },
        {.backend = backend});
    auto none = [] { return empty({1, 2, 3, 0}); };
    EXPECT_TRUE(allclose(f(none(), none(), none())[1], weights)) << backend;
  }
}

TEST(Edges, DerivativesWhereAnElementIsInfinite) {
  // The derivative of the sum by the first input, whose elements or whose factors are infinite.
  auto check = [](const char* name, const Function& f, const Tensor& other, const Tensor& x, const Tensor& expected) {
    each_way(f, [&](const Function& g) {
      Tensor leaf = x.clone().requires_grad_();
      g({leaf, other}).sum().backward();
      EXPECT_TRUE(allclose(leaf.grad(), expected)) << name << '\n' << leaf.grad();
    });
  };
  Tensor x = tensor({-kInf, kInf, 1.0}), none = zeros({3});
  check("hardswish", [](const auto& in) { return hardswish(in[0]); }, none, x, tensor({0.0, 1.0, 5.0 / 6}));
  check("huber_loss", [](const auto& in) { return huber_loss(in[0], in[1]) * 3; }, none, x, tensor({-1.0, 1.0, 1.0}));
  check(
      "smooth_l1_loss", [](const auto& in) { return smooth_l1_loss(in[0], in[1]) * 3; }, none, x,
      tensor({-1.0, 1.0, 1.0}));
  check(
      "prelu", [](const auto& in) { return call("aten::_prelu_kernel", {in[1], in[0]})[0]; }, x, ones({3}),
      tensor({-kInf, 0.0, 0.0}));
  check(
      "hardswish_backward", [](const auto& in) { return call("aten::hardswish_backward", {in[0], in[1]})[0]; }, x,
      ones({3}), tensor({0.0, 1.0, 5.0 / 6}));
}

TEST(Edges, ABoolIsNoFactorOfIntegers) {
  Tensor x = ones({2}, kInt);
  for (const char* name : {"aten::add.Scalar", "aten::rsub.Scalar"})
    each_way([&](const std::vector<Tensor>& in) { return call(name, {in[0], 1, true})[0]; },
             [&](const Function& f) { EXPECT_THROW(f({x}), Error) << name; });
  each_way([](const std::vector<Tensor>& in) { return call("aten::add.Tensor", {in[0], in[0], true})[0]; },
           [&](const Function& f) { EXPECT_THROW(f({x}), Error); });
}

TEST(Edges, NextNumbers) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::denorm_min();
  struct Case {
    ScalarType dtype;
    double largest, after_one, least;
  };
  for (const Case& c : {Case{kFloat, 3.4028234663852886e38, 1 + std::ldexp(1, -23), std::ldexp(1, -149)},
                        Case{kDouble, 1.7976931348623157e308, 1 + std::ldexp(1, -52), low},
                        Case{kBFloat16, 3.3895313892515355e38, 1 + std::ldexp(1, -7), std::ldexp(1, -133)},
                        Case{kHalf, 65504, 1 + std::ldexp(1, -10), std::ldexp(1, -24)}})
    for (const char* backend : {"inductor", "interpreter"}) {
      auto f = compile([](const Tensor& a, const Tensor& b) { return nextafter(a, b); }, {.backend = backend});
      auto values = [&](std::vector<double> v) { return tensor(v, kDouble).to(c.dtype); };
      Tensor y = f(values({inf, -inf, 1, -1, 0, 0, inf, 1, 2}), values({0, 0, 2, -2, -1, inf, inf, nan, 2}));
      Tensor expected = values({c.largest, -c.largest, c.after_one, -c.after_one, -c.least, c.least, inf, nan, 2});
      EXPECT_TRUE(allclose(y, expected, 0, 0, true)) << backend << y << expected;
    }
}

}  // namespace
}  // namespace brasa
