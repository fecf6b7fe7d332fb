#include <brasa/autograd.h>
#include <gtest/gtest.h>

#include "tensor/util.h"

// Views, writes and derivatives across GradMode and InferenceMode, and backward inside backward.
namespace brasa {
namespace {

using namespace autograd;

TEST(Modes, AViewMadeWithoutRecordingNeedsAGradientLikeItsBaseAndHandsNoneOn) {
  Tensor leaf = ones({2, 3}, requires_grad()), view, view_of_view;
  {
    NoGradGuard guard;
    view = leaf.view({6});
    view_of_view = view.slice(0, 1, 3);
    EXPECT_FALSE((view * 2).requires_grad());
    EXPECT_FALSE(leaf.detach().view({6}).requires_grad());
  }
  for (const Tensor& v : {view, view_of_view}) {
    EXPECT_TRUE(v.requires_grad());
    EXPECT_TRUE(v.is_leaf());
    EXPECT_THROW(v.backward(ones(v.sizes())), Error);
    EXPECT_THROW(v.add_(1), Error);
  }
  Tensor sum = (view * 2).sum();
  EXPECT_TRUE(sum.requires_grad());
  sum.backward();
  EXPECT_FALSE(leaf.grad().defined());
  {
    NoGradGuard guard;
    view.mul_(5);
  }
  EXPECT_EQ(leaf[0][0].item<float>(), 5);
}

TEST(Modes, AViewMadeInInferenceModeDoesNotFollowItsBasesHistory) {
  Tensor base = ones({4}, requires_grad()).clone(), view;
  {
    InferenceMode guard;
    view = base.view({2, 2});
    EXPECT_FALSE(view.is_inference());
    view.add_(1);
    EXPECT_TRUE(view.is_leaf());
  }
  base.mul_(2);
  EXPECT_THROW(view.grad_fn(), Error);
}

TEST(Modes, InferenceTensors) {
  Tensor inference, trained, x = ones({3}, requires_grad());
  {
    InferenceMode guard;
    inference = ones({3});
    trained = ones({3}).set_requires_grad(true);
    inference.add_(1);
  }
  // Written to by nothing from outside, with or without gradients.
  EXPECT_THROW(inference.add_(1), Error);
  EXPECT_THROW(mul_out(inference, ones({3}), ones({3})), Error);
  {
    NoGradGuard guard;
    EXPECT_THROW(inference.add_(1), Error);
  }
  EXPECT_THROW(inference._version(), Error);
  EXPECT_THROW(inference.unsafeGetTensorImpl()->bump_version(), Error);
  // Alone they are not recorded; with others their gradients flow, but backward may not need their values.
  EXPECT_FALSE((trained * 2).requires_grad());
  (trained + x).sum().backward();
  EXPECT_TRUE(trained.grad().equal(ones({3})));
  EXPECT_THROW(trained * x, Error);
  Tensor copy = inference.clone();
  int64_t version = copy._version();
  copy.unsafeGetTensorImpl()->bump_version();
  EXPECT_EQ(copy.unsafeGetTensorImpl()->version_counter().current_version(), version + 1);
}

TEST(Modes, OutArgumentsHaveNoDerivative) {
  Tensor x = ones({3}, requires_grad()), out = zeros({3});
  EXPECT_THROW(mul_out(out, x, x), Error);
  NoGradGuard guard;
  mul_out(out, x, x);
  EXPECT_TRUE(out.equal(ones({3})));
}

struct Countdown : Function<Countdown> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    AutoGradMode enabled(true);
    ctx->saved_data["next"] = x.detach().set_requires_grad(true) - 1;
    return ctx->saved_data["next"].toTensor().detach();
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    Tensor next = ctx->saved_data["next"].toTensor();
    if (next.item<float>() == 0) throw std::runtime_error("landed");
    if (next.item<float>() < 0) return grads;
    AutoGradMode enabled(true);
    apply(next).sum().backward();
    return grads;
  }
};

TEST(Modes, BackwardInsideBackwardIsAsDeepAsTheProgramWants) {
  Tensor x = full({1}, 3000.5).set_requires_grad(true);
  Countdown::apply(x).sum().backward();
  EXPECT_TRUE(x.grad().equal(ones({1})));
  // What is thrown at the bottom comes up through all of it.
  Tensor y = full({1}, 300.0).set_requires_grad(true);
  EXPECT_THROW(Countdown::apply(y).sum().backward(), std::runtime_error);
}

struct DefaultDtype {
  explicit DefaultDtype(DType t) : before(get_default_dtype()) { set_default_dtype(t); }
  ~DefaultDtype() { set_default_dtype(before); }
  DType before;
};

TEST(Modes, FactoriesFollowTheDefaultDtype) {
  for (DType t : {DType::Float64, DType::BFloat16}) {
    DefaultDtype scope(t);
    EXPECT_EQ(ones({2}).scalar_type(), t);
    EXPECT_EQ(rand({2}).scalar_type(), t);
    EXPECT_EQ(arange(0.0, 3.0).scalar_type(), t);
    EXPECT_EQ(linspace(0, 1, 3).scalar_type(), t);
    EXPECT_EQ(full({2}, 1.5).scalar_type(), t);
    EXPECT_EQ(ones({2}, kFloat16).scalar_type(), kFloat16);
    // What has a kind of its own.
    EXPECT_EQ(arange(3).scalar_type(), kInt64);
    EXPECT_EQ(full({2}, true).scalar_type(), kBool);
    EXPECT_EQ(randint(5, {2}).scalar_type(), kInt64);
    EXPECT_EQ(ones_like(zeros({2}, kInt32)).scalar_type(), kInt32);
  }
  DefaultDtype scope(kInt32);
  EXPECT_EQ(ones({2}).scalar_type(), kInt32);
}

TEST(Modes, IntegersBecomeTheDefaultDtype) {
  Tensor i = arange(1, 4), b = i > 1, f = ones({3});
  for (DType t : {DType::Float64, DType::BFloat16}) {
    DefaultDtype scope(t);
    for (const Tensor& r : {i / i, i * 2.5, i.sqrt(), b / b, sigmoid(b), i.add(0.5), 1.5 - i, atan2(i, i), i.pow(0.5)})
      EXPECT_EQ(r.scalar_type(), t);
    EXPECT_EQ(where(b, i, 2.5).scalar_type(), t);
    EXPECT_EQ((i / f).scalar_type(), kFloat32);
    EXPECT_EQ((f * 2.5).scalar_type(), kFloat32);
    EXPECT_EQ(i.sum(kFloat32).scalar_type(), kFloat32);
    EXPECT_EQ(i.to(kFloat32).scalar_type(), kFloat32);
    EXPECT_EQ((i + i).scalar_type(), kInt64);
    EXPECT_EQ((i > 0.5).scalar_type(), kBool);
  }
  {
    DefaultDtype scope(kFloat64);
    EXPECT_EQ((i * Scalar(std::complex<double>(0, 1))).scalar_type(), kComplexDouble);
    EXPECT_EQ((tensor({1, 3}) / 3)[0].item<double>(), 1.0 / 3);
  }
  EXPECT_EQ((i / i).scalar_type(), kFloat32);
}

// Chooses between halves and constants, in whole vectors and in what is left of them.
TEST(Modes, FunctionsOfHalves) {
  for (int n : {1, 7, 8, 45, 1000}) {
    Tensor x = linspace(-12, 12, n).to(kFloat16);
    auto near = [&](const char* name) {
      Tensor got = call(name, {x})[0].to(kFloat32), want = call(name, {x.to(kFloat32)})[0].to(kFloat16).to(kFloat32);
      EXPECT_TRUE(allclose(got, want, 1e-2, 1e-3, true)) << name << " of " << n;
    };
    for (const char* name : {"aten::special_i0", "aten::special_i0e", "aten::special_i1", "aten::special_i1e",
                             "aten::special_modified_bessel_i0", "aten::special_modified_bessel_i1",
                             "aten::special_erfcx", "aten::special_modified_bessel_k0"})
      near(name);
  }
}

TEST(Modes, MultinomialDrawsByWeight) {
  manual_seed(3);
  Tensor weights = tensor({{0.f, 1.f, 3.f}, {1.f, 0.f, 0.f}});
  Tensor drawn = weights.multinomial(4000, true);
  EXPECT_EQ(drawn.sizes(), IntArrayRef({2, 4000}));
  EXPECT_TRUE(drawn[1].equal(zeros({4000}, kInt64)));
  EXPECT_EQ(drawn[0].eq(0).sum().item<int64_t>(), 0);
  EXPECT_NEAR(drawn[0].eq(2).to(kFloat32).mean().item<double>(), 0.75, 0.03);
  // Without replacement each once; what has no weight comes last.
  Tensor order = tensor({5.f, 0.f, 1.f, 2.f}).multinomial(4);
  EXPECT_TRUE(std::get<0>(order.sort()).equal(arange(4)));
  EXPECT_EQ(order[3].item<int64_t>(), 1);
  Tensor first = ones({2000, 4}).multinomial(1);
  EXPECT_NEAR(first.eq(1).to(kFloat32).mean().item<double>(), 0.25, 0.04);
  EXPECT_THROW(weights.multinomial(4), Error);
  EXPECT_THROW(ones({2}, kInt64).multinomial(1), Error);
  EXPECT_THROW(weights.multinomial(0), Error);
}

}  // namespace
}  // namespace brasa
