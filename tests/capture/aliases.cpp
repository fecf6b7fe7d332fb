// Tensors that share memory without being views of each other: data(), set_data, as_strided.
#include "error_of.h"
#include "values.h"

namespace brasa {
namespace {

TEST(Aliases, AWriteThroughDataIsSeenByTheTensor) {
  auto f = [](const Tensor& p, const Tensor& d) {
    NoGradGuard guard;
    p.data().sub_(d * 0.1);
    return p.sum();
  };
  auto g = compile(f);
  Tensor a = numbers({3, 4}).clone().requires_grad_(), b = a.detach().clone().requires_grad_(), d = numbers({3, 4}) + 2;
  for (int i = 0; i < 3; ++i) expect_close(g(a, d), f(b, d));
  expect_close(a.detach(), b.detach());
}

TEST(Aliases, WritesThroughBothReachOneMemory) {
  auto f = [](const Tensor& p) {
    p.data().mul_(2);
    p.add_(1);
    p.data().narrow(0, 0, 1).zero_();
    return p.data() * 3;
  };
  auto g = compile(f);
  Tensor a = numbers({3, 4}).clone(), b = a.clone();
  for (int i = 0; i < 2; ++i) expect_close(g(a), f(b));
  expect_close(a, b);
  EXPECT_EQ(g.explain().graphs.size(), 1u);
}

TEST(Aliases, DataOfARecordedTensor) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2, alias = y.data();
    alias.add_(1);
    return std::vector<Tensor>{y, alias, y.t().data()};
  };
  auto g = compile(f, {.fullgraph = true});
  Tensor x = numbers({3, 4});
  auto got = g(x), want = f(x);
  for (size_t i = 0; i < 3; ++i) expect_close(got[i], want[i]);
  got[0].zero_();
  EXPECT_EQ(got[1].sum().item<float>(), 0);
}

TEST(Aliases, PartsOfComplexNumbers) {
  auto f = [](const Tensor& z, const Tensor& x) {
    real(z).narrow(0, 0, 2).mul_(imag(z).sum());
    view_as_complex(x).select(0, 1).add_(z[0][0]);
    x.view(kInt).select(1, 0).zero_();
    return std::vector<Tensor>{view_as_real(z) * 2, x + 1};
  };
  auto g = compile(f, {.fullgraph = true});
  Tensor za = view_as_complex(numbers({3, 4, 2}).clone()), zb = za.clone(), xa = numbers({3, 2}), xb = xa.clone();
  for (int i = 0; i < 2; ++i) {
    auto got = g(za, xa), want = f(zb, xb);
    for (size_t k = 0; k < 2; ++k) expect_close(got[k], want[k]);
  }
  expect_close(view_as_real(za), view_as_real(zb));
  expect_close(xa, xb);
}

TEST(Aliases, AnotherGeometryOfTheSameMemory) {
  auto f = [](const Tensor& x, const Tensor& window) {
    Tensor before = window.sum();
    x.mul_(3);
    Tensor y = window + 1;
    window.sub_(1);
    return std::vector<Tensor>{before, y, x * 1};
  };
  auto g = compile(f);
  Tensor a = numbers({4, 4}).clone(), b = a.clone();
  Tensor wa = empty({0}), wb = empty({0});
  wa.set_data(a.select(0, 1));
  wb.set_data(b.select(0, 1));
  for (int i = 0; i < 2; ++i) {
    auto got = g(a, wa), want = f(b, wb);
    for (size_t k = 0; k < 3; ++k) expect_close(got[k], want[k]);
  }
  expect_close(a, b);
}

TEST(Aliases, StridesOfAViewCountFromTheBeginningOfTheMemory) {
  auto f = [](const Tensor& x) {
    Tensor made = x * 2, row = made[1], given = x[1];
    return std::vector<Tensor>{row.as_strided({2}, {2}) * 3,
                               row.as_strided({2}, {2}, 5) * given.as_strided({2}, {1}, 6),
                               row.as_strided({3}, {2}, 1) + given.as_strided({3}, {4}, 1)};
  };
  for (const char* backend : {"inductor", "interpreter"}) {
    auto g = compile(f, {.backend = backend});
    for (int64_t rows : {3, 4, 3}) {
      Tensor a = numbers({rows, 4}).clone().requires_grad_(), b = a.detach().clone().requires_grad_();
      auto got = g(a), want = f(b);
      for (size_t k = 0; k < 3; ++k) {
        expect_close(got[k], want[k]);
        (got[k].sum() * (k + 1.0)).backward({}, true);
        (want[k].sum() * (k + 1.0)).backward({}, true);
      }
      expect_close(a.grad(), b.grad());
    }
  }
}

// Between a forward and its backward pass. What was read cannot be read any more where the new data are of another kind.
TEST(Aliases, SetDataOfOtherSizesBeforeBackward) {
  auto square = [](const Tensor& x) { return x * x; };
  auto compiled = compile(square);
  for (const Tensor& data : {zeros({3, 2, 5}), zeros({1}), zeros({100, 3}, kFloat64)})
    for (const std::function<Tensor(const Tensor&)>& f :
         {std::function<Tensor(const Tensor&)>(square), std::function<Tensor(const Tensor&)>(compiled)}) {
      Tensor x = ones({100, 3}).requires_grad_(), y = f(x);
      x.set_data(data);
      std::string error = error_of([&] { y.sum().backward(); });
      EXPECT_NE(error.find("was given other data"), std::string::npos) << error;
    }
}

TEST(Aliases, GradientsOfWhatHadOtherSizesBefore) {
  Tensor x = ones({100, 3}).requires_grad_(), y = x * 2;
  x.set_data(zeros({2}));
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(full({100, 3}, 2.f)));
}

// Both uses lead to one leaf, whose hook sees their sum.
TEST(Aliases, SetDataKeepsWhereGradientsGo) {
  Tensor x = ones({3}).requires_grad_(), before = x * 2;
  int hooks = 0;
  x.register_hook([&](const Tensor& g) {
    ++hooks;
    return g * 10;
  });
  x.set_data(zeros({3}));
  Tensor after = x * 3;
  EXPECT_TRUE(autograd::grad({before.sum()}, {x}, {}, true)[0].equal(full({3}, 20.f)));
  (before.sum() + after.sum()).backward();
  EXPECT_EQ(hooks, 2);
  EXPECT_TRUE(x.grad().equal(full({3}, 50.f)));
}

// A kernel that overwrites an input reads it at other places for its other result.
TEST(Aliases, AWriteBesideAReadElsewhere) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.add_(y);
    return x.roll({2}, {0}).roll({2}, {0});
  };
  Tensor a = numbers({4, 4}).clone(), b = a.clone(), y = a * 100;
  expect_close(compile(f)(a, y), f(b, y));
  expect_close(a, b);
}

// Parameters that are parts of one tensor, each without being its view. One that is read behind a write to another ends the segment, among
// operands that are numbered already, and the next segment runs where the call does.
TEST(Aliases, PartsOfOneMemoryAmongOperands) {
  NoGradGuard guard;
  for (const char* name : {"cpu", "emu"}) {
    Device device(name);
    for (int kind = 0; kind < 4; ++kind) {
      auto results = [&](bool compiled) {
        Tensor all = arange(12, kFloat32).to(device), a = zeros({6}, device), b = zeros({6}, device);
        a.set_data(all.slice(0, 0, 6));
        b.set_data(all.slice(0, 6, 12));
        auto f = [&](const Tensor& x) {
          Tensor y = x * 3, z = x + 1;
          if (kind == 3) z = a.sum() + b.sum();
          a.mul_(2);
          if (kind == 0) return y + b;
          if (kind == 1) return stack({z, b, y, a});
          if (kind == 2) b.add_(y);
          return z;
        };
        auto g = compile(f);
        Tensor x = full({6}, 0.5, device);
        std::vector<Tensor> out;
        for (int i = 0; i < 3; ++i) {
          out.push_back(compiled ? g(x) : f(x));
          out.push_back(all.clone());
        }
        return out;
      };
      std::vector<Tensor> got = results(true), want = results(false);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(got[i].cpu().equal(want[i].cpu())) << name << " " << kind << " " << i;
    }
  }
}

}  // namespace
}  // namespace brasa
