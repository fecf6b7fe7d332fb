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

}  // namespace
}  // namespace brasa
