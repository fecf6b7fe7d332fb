// What may be written, and what gradients see of it.
#include <brasa/autograd.h>
#include <brasa/call.h>
#include <brasa/compile.h>

#include "error_of.h"
#include "values.h"

namespace brasa {
namespace {

// A result that PyTorch's node does not keep: backward makes it again where it needs it.
TEST(InPlace, ResultsThatNoDerivativeKeeps) {
  auto ones_of = [](IntArrayRef sizes) { return full(sizes, 0.7, kDouble); };
  auto check = [&](auto f, IntArrayRef sizes) {
    Tensor x = (arange(24, kDouble) * 0.37).sin().reshape(sizes).requires_grad_(),
           y = x.detach().clone().requires_grad_();
    Tensor scale = ones_of({}).requires_grad_(), other = ones_of({}).requires_grad_();
    Tensor written = f(x * 2, scale);
    written.mul_(3).relu_();
    written.square().sum().backward();
    (f(y * 2, other) * 3).relu().square().sum().backward();
    EXPECT_TRUE(allclose(x.grad(), y.grad(), 1e-9, 1e-9)) << x.grad() << y.grad();
    if (other.grad().defined()) {
      EXPECT_NEAR(scale.grad().item<double>(), other.grad().item<double>(), 1e-9);
    }
  };
  check([](const Tensor& x, const Tensor& s) { return x / s; }, {4, 6});
  check([](const Tensor& x, const Tensor&) { return layer_norm(x, {6}); }, {4, 6});
  check([](const Tensor& x, const Tensor&) { return rms_norm(x, {6}); }, {4, 6});
  check([](const Tensor& x, const Tensor&) { return group_norm(x, 2); }, {2, 4, 3});
  check([](const Tensor& x, const Tensor&) { return batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); },
        {2, 4, 3});
  check([](const Tensor& x, const Tensor&) { return instance_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); },
        {2, 4, 3});
  // A function of its operand is kept, as PyTorch keeps it.
  Tensor x = ones_of({3}).requires_grad_(), y = x.exp();
  y.mul_(2);
  EXPECT_THROW(y.sum().backward(), Error);
}

TEST(InPlace, AViewBecomesAnotherView) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 1, row = y.select(0, 1);
    row.unsqueeze_(0);
    row.mul_(3);
    Tensor block = y.narrow(1, 0, 2);
    block.t_();
    block.transpose_(0, 1).squeeze_();
    block.add_(row.sum());
    return y.square() + row.sum() * block.sum();
  };
  Tensor x = (arange(6, kDouble) * 0.3 + 0.1).reshape({2, 3});
  auto plain = [](const Tensor& x) {
    Tensor y = x * 1, row = y[1].unsqueeze(0) * 3, block = y.narrow(1, 0, 2);
    Tensor below = cat({block.narrow(0, 0, 1), row.narrow(1, 0, 2)}, 0) + row.sum();
    Tensor all = cat({below, cat({y.narrow(0, 0, 1), row}, 0).narrow(1, 2, 1)}, 1);
    return all.square() + all[1].sum() * below.sum();
  };
  Tensor a = x.clone().requires_grad_(), b = x.clone().requires_grad_(), c = x.clone().requires_grad_();
  Tensor expected = plain(a);
  expected.sin().sum().backward();
  for (auto& [leaf, result] : {std::pair(b, f(b)), std::pair(c, compile(f)(c))}) {
    EXPECT_TRUE(allclose(result, expected)) << result << expected;
    result.sin().sum().backward();
    EXPECT_TRUE(allclose(leaf.grad(), a.grad())) << leaf.grad() << a.grad();
  }
  Tensor base = x.clone(), row = base[0];
  call("aten::unsqueeze_", {row, 0});
  EXPECT_EQ(row.sizes(), IntArrayRef({1, 3}));
  row.zero_();
  EXPECT_EQ(base[0].sum().item<double>(), 0);
}

// By name a number may stand for a tensor, and lists are not looked into.
TEST(InPlace, ElementsThatShareMemoryByName) {
  Tensor shared = ones({3, 1}).expand({3, 4}), index = tensor({0, 1});
  for (auto& f : std::vector<std::function<void()>>{
           [&] { call("aten::div_.Tensor", {shared, 0.25}); },
           [&] { call("aten::index_put_", {shared, std::vector<Tensor>{index}, ones({})}); },
       })
    EXPECT_NE(error_of(f).find("refers to a single memory location"), std::string::npos);
}

// A result that is written before its backward pass is refused, or not, in compiled calls as in eager ones: where the function goes on from
// it, as the next reader or as one that computes it again, and where nothing but its own derivative could read it.
TEST(InPlace, ResultsWrittenBeforeBackward) {
  struct Case {
    const char* name;
    Tensor (*f)(const Tensor& x, const Tensor& y);
  };
  const Case cases[] = {
      {"sine", [](const Tensor& x, const Tensor&) { return x.sin(); }},
      {"exponential", [](const Tensor& x, const Tensor&) { return x.exp(); }},
      {"sigmoid", [](const Tensor& x, const Tensor&) { return x.sigmoid(); }},
      {"square", [](const Tensor& x, const Tensor&) { return x.square(); }},
      {"GELU", [](const Tensor& x, const Tensor&) { return gelu(x); }},
      {"sum", [](const Tensor& x, const Tensor& y) { return x + y; }},
      {"product", [](const Tensor& x, const Tensor& y) { return x * y; }},
      {"quotient", [](const Tensor& x, const Tensor& y) { return x / y; }},
      {"divisor", [](const Tensor& x, const Tensor& y) { return y / x; }},
      {"part of a norm", [](const Tensor& x, const Tensor&) { return x / x.norm(); }},
      {"layer norm", [](const Tensor& x, const Tensor&) { return layer_norm(x, {4}); }},
      {"affine layer norm", [](const Tensor& x, const Tensor& y) { return layer_norm(x, {4}, y[0], y[1]); }},
      {"softmax", [](const Tensor& x, const Tensor&) { return softmax(x, 1); }},
  };
  using Form = std::vector<Tensor> (*)(const Tensor& made);
  const Form forms[] = {
      [](const Tensor& made) -> std::vector<Tensor> { return {made}; },
      [](const Tensor& made) -> std::vector<Tensor> { return {made, (made * 1.5).sin()}; },
      [](const Tensor& made) -> std::vector<Tensor> { return {made, made + 1}; },
  };
  for (const Case& c : cases)
    for (Form form : forms) {
      SCOPED_TRACE(c.name);
      auto f = [&](const std::vector<Tensor>& in) { return form(c.f(in[0], in[1])); };
      auto run = [&](auto g) {
        Tensor x = ((arange(16, kDouble) * 0.37).sin() * 0.3 + 0.5).reshape({4, 4}).requires_grad_();
        Tensor y = ((arange(16, kDouble) * 0.71).cos() * 0.3 + 0.6).reshape({4, 4}).requires_grad_();
        std::vector<Tensor> out = g(std::vector<Tensor>{x, y});
        {
          NoGradGuard guard;
          out[0].mul_(2);
        }
        std::string error = error_of([&] { out.back().square().sum().backward(); });
        bool modified = error.find("modified by an inplace operation") != std::string::npos;
        EXPECT_EQ(modified, !error.empty()) << error;
        return std::pair(modified, modified ? Tensor() : x.grad());
      };
      auto eager = run(f), compiled = run(compile(f));
      EXPECT_EQ(compiled.first, eager.first) << form(ones({1})).size() << " results";
      if (!eager.first && !compiled.first) {
        EXPECT_TRUE(allclose(compiled.second, eager.second, 1e-9, 1e-9));  // float64, a few operators
      }
    }
}

}  // namespace
}  // namespace brasa
