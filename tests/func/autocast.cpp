// Autocast converts a weight once: what a recorded function converts is of no use outside of it.
#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/control_flow.h>
#include <brasa/func.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

using Body = std::function<Tensor(const Tensor& x, const Tensor& w)>;

// `inside` converts w first, and then the product behind it needs it, too.
std::vector<Tensor> results(const Body& inside, bool compiled) {
  Tensor x = arange(12, kFloat32).reshape({3, 4}).set_requires_grad(true);
  Tensor w = (eye(4) / 2).set_requires_grad(true);
  auto body = [&](const Tensor& t) {
    AutocastMode guard(kBFloat16);
    return inside(t, w).mm(w).to(kFloat32).sum();
  };
  Tensor y = compiled ? compile(body)(x) : body(x);
  y.backward();
  return {y.detach(), x.grad(), w.grad()};
}

// Numbers are small multiples of powers of two, which bfloat16 has.
void check(const Body& inside) {
  std::vector<Tensor> eager = results(inside, false), compiled = results(inside, true);
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(compiled[i].equal(eager[i])) << i << compiled[i] << eager[i];
}

TEST(Autocast, AWeightThatABranchConverts) {
  check([](const Tensor& x, const Tensor& w) {
    return cond(x.sum() > 0, [&] { return x.mm(w); }, [&] { return x.to(kBFloat16); });
  });
}

TEST(Autocast, AWeightThatABranchConvertsWhichCannotBeRecorded) {
  check([](const Tensor& x, const Tensor& w) {
    return cond(x.sum() > 0, [&] { return x.mm(w); }, [&] { return x; });  // of other dtypes
  });
}

TEST(Autocast, AWeightThatALoopConverts) {
  check([](const Tensor& x, const Tensor& w) {
    auto step = [&](Tensor h, Tensor t) { return std::pair(h, t.unsqueeze(0).mm(w).squeeze(0)); };
    return scan(step, zeros({1}), x).second;
  });
}

TEST(Autocast, AWeightThatATransformedFunctionConverts) {
  Tensor x = arange(12, kFloat32).reshape({3, 4}), w = (eye(4) / 2).set_requires_grad(true);
  AutocastMode guard(kBFloat16);
  Tensor mapped = func::vmap([&](const Tensor& row) { return row.unsqueeze(0).mm(w).squeeze(0); })(x);
  EXPECT_TRUE(mapped.equal(x.mm(w)));
  Tensor pulled = func::vjp([&](const Tensor& t) { return t.t().mm(w.t()); }, x.t().contiguous()).first[0];
  EXPECT_TRUE(pulled.equal(x.mm(w)));
}

}  // namespace
}  // namespace brasa
