// Function transforms of tensors that live on another device than the default one.
#include <brasa/brasa.h>
#include <brasa/func.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

Device emu() { return Device("emu"); }

void expect_there(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.device().str(), "emu:0");
  EXPECT_TRUE(allclose(got.cpu(), want.cpu())) << got.cpu() << "\nwanted " << want;
}

Tensor f(const Tensor& x) { return (x * 2).sin().sum() + x.square().prod(); }

TEST(FuncDevices, DerivativesAreWhereTheInputsAre) {
  Tensor x = rand({3}), there = x.to(emu());
  expect_there(func::grad(f)(there), func::grad(f)(x));
  expect_there(func::hessian(f)(there), func::hessian(f)(x));
  auto map = [](const Tensor& v) { return outer(v, v.exp()).sum(0); };
  expect_there(func::jacrev(map)(there), func::jacrev(map)(x));
  expect_there(func::jacfwd(map)(there), func::jacfwd(map)(x));
}

TEST(FuncDevices, MapsAreWhereTheInputsAre) {
  Tensor xs = rand({4, 3}), w = rand({3});
  auto each = [](const Tensor& x, const Tensor& y) {
    Tensor out = x.clone();
    out.narrow(0, 1, 2).mul_(y.narrow(0, 0, 2));
    return out - out.mean();
  };
  auto mapped = func::vmap(each, {0, std::nullopt});
  expect_there(mapped(xs.to(emu()), w.to(emu())), mapped(xs, w));
  expect_there(func::vmap(func::grad(f))(xs.to(emu())), func::vmap(func::grad(f))(xs));
}

TEST(FuncDevices, RandomNumbersAreTheSame) {
  auto noisy = [](const Tensor& x) { return x + rand_like(x); };
  Tensor xs = rand({4, 3});
  manual_seed(5);
  Tensor want = func::vmap(noisy, {0}, 0, "different")(xs);
  manual_seed(5);
  expect_there(func::vmap(noisy, {0}, 0, "different")(xs.to(emu())), want);
}

}  // namespace
}  // namespace brasa
