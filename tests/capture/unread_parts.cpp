// Functions that read a part of what they compute: eager's numbers and gradients, whatever part it is and whatever lies between.
#include <brasa/nn.h>

#include <random>

#include "support/str.h"
#include "values.h"

namespace brasa {
namespace {

using Random = std::mt19937;
int64_t one_of(Random& random, std::initializer_list<int64_t> all) { return all.begin()[random() % all.size()]; }

// A function of tokens [images, tokens, features] with two square weights and a row, by numbers that are drawn once.
struct Drawn {
  std::vector<unsigned> steps;
  unsigned part, loss;
  explicit Drawn(Random& random) : part(random() % 7), loss(random() % 2) {
    for (unsigned n = 2 + random() % 5; n > 0; --n) steps.push_back(random() % 11);
  }

  Tensor operator()(const std::vector<Tensor>& all) const {
    Tensor x = all[0];
    int64_t images = x.size(0), tokens = x.size(1), features = x.size(2);
    for (unsigned s : steps) x = step(s, x, all);
    switch (part) {
      case 0: x = x.select(1, 0); break;
      case 1: x = x.select(1, -1); break;
      case 2: x = x.narrow(1, tokens / 2, std::max<int64_t>(tokens / 3, 1)); break;
      case 3: x = x.slice(1, 0, std::nullopt, 3); break;
      case 4: x = x.select(0, images - 1); break;
      case 5: x = x.narrow(2, features / 2, 1); break;
      default: x = x.reshape({images * tokens, features}).select(0, 0); break;
    }
    return loss ? x.square().sum() : (x * all[3].narrow(0, 0, 1)).sin().mean();
  }

 private:
  static Tensor step(unsigned s, const Tensor& x, const std::vector<Tensor>& all) {
    switch (s) {
      case 0: return linear(x, all[1], all[3]);
      case 1: return x + gelu(linear(x, all[2]));
      case 2: return layer_norm(x, {x.size(2)}, all[3]);
      case 3: return x.softmax(2) * 3;
      case 4: return x + x.mean({1}, true);
      case 5: return x.matmul(all[1]).tanh();
      case 6: return (x.transpose(1, 2) * 0.5).transpose(1, 2) - x.sigmoid();
      case 7: return x.matmul(x.transpose(1, 2)).softmax(2).matmul(x);
      case 8: return x * x.amax({2}, true) / (1 + x.square().sum({2}, true));
      case 9: return x.flip({1}) + x;
      default: return (x.reshape({-1, x.size(2)}).mm(all[2]) + all[3]).reshape(x.sizes());
    }
  }
};

void expect_eagers(const std::vector<Tensor>& got, const std::vector<Tensor>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    // Other sums of parts are in another order.
    EXPECT_LE((got[i] - want[i]).norm().item<double>(), 2e-4 * want[i].norm().item<double>() + 1e-6)
        << what << ", result " << i;
}

TEST(UnreadParts, OfDrawnFunctions) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    Random random(seed);
    manual_seed(seed);
    Drawn drawn(random);
    bool within = random() % 2;  // gradients inside of the compiled function, or by a backward pass outside
    auto f = [=](const std::vector<Tensor>& all) {
      Tensor loss = drawn(all);
      std::vector<Tensor> out = {loss};
      if (within)
        for (const Tensor& g : autograd::grad({loss}, all, {}, std::nullopt, false, true))
          out.push_back(g.defined() ? g : zeros({}));
      return out;
    };
    auto run = [&](const auto& function, const std::vector<Tensor>& given) {
      std::vector<Tensor> all;
      for (const Tensor& t : given) all.push_back(t.detach().requires_grad_());
      std::vector<Tensor> out = function(all);
      if (!within) {
        out[0].backward();
        for (const Tensor& t : all) out.push_back(t.grad().defined() ? t.grad() : zeros({}));
      }
      return out;
    };
    auto compiled = compile(f);
    // The second sizes are symbols.
    for (int call = 0; call < 3; ++call) {
      int64_t images = one_of(random, {1, 2, 5}), tokens = one_of(random, {1, 2, 7, 16}), features = 8;
      std::vector<Tensor> given = {randn({images, tokens, features}), randn({features, features}) * 0.4,
                                   randn({features, features}) * 0.4, rand({features})};
      expect_eagers(run(compiled, given), run(f, given), str("call ", call, ", ", images, " x ", tokens));
    }
  }
}

// A backward pass outside: of both results, and of one of them.
TEST(UnreadParts, OfSomeResults) {
  auto f = [](const Tensor& x, const Tensor& w) {
    Tensor y = x.mm(w).exp().sin();
    return std::vector<Tensor>{y.narrow(0, 0, 2).square().sum(), y.narrow(0, 2, 1).sum()};
  };
  auto compiled = compile(f);
  manual_seed(3);
  for (int64_t rows : {12, 12, 9, 20})
    for (int which : {3, 1, 2}) {
      Tensor given = randn({rows, 4}), weights = randn({4, 5}) * 0.3;
      auto gradients = [&](const auto& function) {
        Tensor x = given.clone().requires_grad_(), w = weights.clone().requires_grad_();
        std::vector<Tensor> y = function(x, w), of;
        for (int i : {0, 1})
          if (which >> i & 1) of.push_back(y[static_cast<size_t>(i)]);
        return autograd::grad(of, {x, w});
      };
      expect_eagers(gradients(compiled), gradients(f), str(rows, " rows, results ", which));
    }
}

// Zeros of the user's own hide neither NaN nor infinities.
TEST(UnreadParts, MasksMultiply) {
  auto masked = [](const Tensor& x) {
    Tensor m = zeros_like(x);
    m.select(1, 0).fill_(1);
    return m * x.log();
  };
  auto padded = [](const Tensor& x, const Tensor& w) { return pad(x, {0, 8}).mm(w); };
  auto divided = [](const Tensor& x) { return pad(x, {0, 8}) / std::nan(""); };
  Tensor x = zeros({6, 4}), w = cat({ones({4, 3}), full({8, 3}, NAN)}, 0);
  x.select(1, 0).fill_(2);
  for (const Tensor& y : {compile(masked)(x), compile(padded)(x, w), compile(divided)(x)})
    EXPECT_TRUE(y.select(1, 1).isnan().all().item<bool>()) << y;
}

// What nobody reads is not computed: NaN and infinities in it reach nothing.
TEST(UnreadParts, AreNotComputed) {
  auto f = [](const Tensor& x, const Tensor& w) {
    Tensor loss = x.mm(w).log().select(0, 0).sum();
    std::vector<Tensor> out = autograd::grad({loss}, {x, w});
    out.push_back(loss.detach());
    return out;
  };
  Tensor x = ones({3, 4}), w = ones({4, 2});
  x[1].fill_(-1);
  x[2].fill_(0);
  std::vector<Tensor> got = compile(f)(x.requires_grad_(), w.requires_grad_());
  for (const Tensor& g : got) EXPECT_TRUE(g.isfinite().all().item<bool>());
  EXPECT_TRUE(allclose(got[1], full({4, 2}, 0.25)));
  EXPECT_EQ(got[0].slice(0, 1).abs().sum().item<float>(), 0);
}

}  // namespace
}  // namespace brasa
