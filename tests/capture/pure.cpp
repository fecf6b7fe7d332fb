// Calls of pure functions that skip the body do what calls that run it do.
#include <brasa/amp.h>
#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include <chrono>
#include <thread>

#include "capture/backend.h"
#include "values.h"

namespace brasa {
namespace {

Tensor leaf(IntArrayRef sizes) { return numbers(sizes).clone().set_requires_grad(true); }

/// How often the body of a function ran.
template <class F>
auto counted(F f, int& runs) {
  return [f, &runs](const auto&... args) {
    ++runs;
    return f(args...);
  };
}

std::string explained(const auto& f) { return f.explain().str(); }

TEST(Pure, TheBodyIsSkippedFromTheThirdCallOn) {
  int runs = 0;
  Tensor w = numbers({4, 4}).clone();
  auto f = [&](const Tensor& x, double k) { return (x.matmul(w) * k).relu(); };
  auto g = compile(counted(f, runs), {.pure = true});
  for (int i = 0; i < 6; ++i) expect_close(g(numbers({3, 4}) + i, 2), f(numbers({3, 4}) + i, 2));
  EXPECT_EQ(runs, 2) << explained(g);
  EXPECT_EQ(g.explain().skipped, 4);
  EXPECT_NE(explained(g).find("the body was skipped in 4 calls"), std::string::npos);
  // Other sizes and numbers are other calls.
  for (int i = 0; i < 4; ++i) expect_close(g(numbers({5, 4}) + i, 2), f(numbers({5, 4}) + i, 2));
  EXPECT_EQ(runs, 4) << explained(g);
  for (int i = 0; i < 4; ++i) expect_close(g(numbers({5, 4}) + i, 3), f(numbers({5, 4}) + i, 3));
  EXPECT_EQ(runs, 6) << explained(g);
  expect_close(g(numbers({3, 4}) + 9, 2), f(numbers({3, 4}) + 9, 2));
  EXPECT_EQ(runs, 6);
}

TEST(Pure, WhatItMetMayChangeItsValues) {
  int runs = 0;
  Tensor w = numbers({4, 4}).clone();
  auto f = [&](const Tensor& x) { return x.matmul(w); };
  auto g = compile(counted(f, runs), {.pure = true});
  for (int i = 0; i < 6; ++i) {
    w.mul_(1.5);
    expect_close(g(numbers({3, 4})), f(numbers({3, 4})));
  }
  EXPECT_EQ(runs, 2);
  w.set_data(numbers({4, 2}));
  for (int i = 0; i < 3; ++i) expect_close(g(numbers({3, 4})), f(numbers({3, 4})));
  EXPECT_EQ(runs, 4);
  w.set_data(numbers({4, 2}).to(kFloat64));
  for (int i = 0; i < 3; ++i) expect_close(g(numbers({3, 4}).to(kFloat64)), f(numbers({3, 4}).to(kFloat64)));
  EXPECT_EQ(runs, 6);
}

TEST(Pure, GuardsOfArguments) {
  int runs = 0;
  auto f = [](const Tensor& x, const Tensor& y) { return x * 2 + y; };
  auto g = compile(counted(f, runs), {.recompile_limit = 32, .pure = true});
  Tensor a = numbers({4, 4}), b = numbers({4, 4}) + 1;
  for (int i = 0; i < 3; ++i) expect_close(g(a, b), f(a, b));
  EXPECT_EQ(runs, 2);
  auto other = [&](const Tensor& x, const Tensor& y) {
    int before = runs;
    Tensor got = g(x, y), want = f(x, y);
    expect_close(got, want);
    EXPECT_EQ(got.strides(), want.strides());
    EXPECT_EQ(got.requires_grad(), want.requires_grad());
    EXPECT_EQ(runs, before + 1);
  };
  other(a.t(), b);
  other(a.to(kFloat64), b);
  other(a.clone().set_requires_grad(true), b);
  other(a, a);
  other(numbers({8, 4}).slice(0, 2, 6), b);
  other(a.slice(0, 0, 1).expand({4, 4}), b);
  other(numbers({1, 4}), b);
  {
    InferenceMode guard;
    other(a, b);
  }
  {
    AutocastMode guard(kBFloat16);
    other(a, b);
  }
  expect_close(g(a, b), f(a, b));
  EXPECT_EQ(runs, 11);
}

TEST(Pure, ListsTuplesAndNothing) {
  int runs = 0;
  Tensor sum = zeros({3});
  auto list = [](const std::vector<Tensor>& xs) { return std::vector<Tensor>{xs[0] + xs[1], xs[0] * xs[1]}; };
  auto pair = [](const Tensor& x, std::optional<Tensor> y) {
    return std::tuple(y ? x + *y : x.sin(), Tensor(), x.cos());
  };
  auto nothing = [&](const Tensor& x) { sum.add_(x); };
  auto l = compile(counted(list, runs), {.pure = true});
  auto p = compile(counted(pair, runs), {.pure = true});
  auto n = compile(counted(nothing, runs), {.pure = true});
  for (int i = 0; i < 4; ++i) {
    Tensor x = numbers({3}) + i, y = numbers({3}) * i;
    std::vector<Tensor> got = l(std::vector<Tensor>{x, y});
    expect_close(got[0], x + y);
    expect_close(got[1], x * y);
    auto [a, undefined, c] = p(x, std::optional<Tensor>());
    expect_close(a, x.sin());
    EXPECT_FALSE(undefined.defined());
    expect_close(c, x.cos());
    expect_close(std::get<0>(p(x, std::optional<Tensor>(y))), x + y);
    Tensor before = sum.clone();
    int64_t version = sum._version();
    n(x);
    expect_close(sum, before + x);
    EXPECT_EQ(sum._version(), version + 1);
  }
  EXPECT_EQ(runs, 8) << explained(l) << explained(p) << explained(n);
}

TEST(Pure, ResultsThatAliasArgumentsAndEachOther) {
  int runs = 0;
  Tensor w = numbers({2, 3}).clone();
  auto f = [&](const Tensor& x) {
    Tensor y = x * 2;
    return std::vector<Tensor>{x, x.view({3, 2}), w, w.t(), y, y[0], y};
  };
  auto g = compile(counted(f, runs), {.pure = true});
  for (int i = 0; i < 5; ++i) {
    Tensor x = (numbers({2, 3}) + i).clone();
    std::vector<Tensor> r = g(x);
    EXPECT_TRUE(r[0].is_same(x));
    EXPECT_TRUE(r[1].is_alias_of(x));
    EXPECT_TRUE(r[2].is_same(w));
    EXPECT_TRUE(r[3].is_alias_of(w) && r[3].is_view());
    EXPECT_TRUE(r[6].is_same(r[4]));
    r[1].mul_(3);
    expect_close(x, (numbers({2, 3}) + i) * 3);
    r[5].zero_();
    expect_close(r[4][0], zeros({3}));
    EXPECT_EQ(r[4][1][2].item<float>(), r[6][1][2].item<float>());
  }
  EXPECT_EQ(runs, 2) << explained(g);
}

TEST(Pure, WritesIntoArgumentsAndViews) {
  int runs = 0;
  auto f = [](const Tensor& x) {
    x.select(0, 1).mul_(2);
    x.add_(1);
    return x.sum();
  };
  auto g = compile(counted(f, runs), {.pure = true});
  for (int i = 0; i < 5; ++i) {
    Tensor whole = (numbers({6, 3}) + i).clone(), same = whole.clone();
    Tensor x = whole.slice(0, 2, 4), y = same.slice(0, 2, 4);
    expect_close(g(x), f(y));
    expect_close(whole, same);
    EXPECT_EQ(whole._version(), same._version());
  }
  EXPECT_EQ(runs, 2) << explained(g);
}

TEST(Pure, RandomNumbersAreEagers) {
  int runs = 0;
  auto f = [](const Tensor& x) { return dropout(x, 0.5, true) + rand_like(x); };
  auto g = compile(counted(f, runs), {.pure = true});
  auto draw = [&](auto&& h) {
    manual_seed(3);
    std::vector<Tensor> out;
    for (int i = 0; i < 6; ++i) out.push_back(h(ones({7})));
    out.push_back(rand({3}));
    return out;
  };
  std::vector<Tensor> want = draw(f), got = draw(g);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(equal(want[i], got[i])) << i;
  EXPECT_EQ(runs, 2) << explained(g);
  auto seeded = compile(counted(
                            [](const Tensor& x) {
                              manual_seed(1);
                              return x + rand({3});
                            },
                            runs),
                        {.pure = true});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(equal(seeded(zeros({3})), seeded(zeros({3}))));
  EXPECT_EQ(seeded.explain().not_skipped, "the body seeds random numbers");
}

TEST(Pure, GradientsOutside) {
  int runs = 0;
  Tensor w = leaf({4, 2}), b = leaf({2});
  auto f = [&](const Tensor& x) {
    Tensor h = x.matmul(w) + b;
    return std::pair(h.tanh().sum(), h.view({-1}));
  };
  auto g = compile(counted(f, runs), {.pure = true});
  auto grads = [&](auto& h, const Tensor& x, bool second) {
    for (Tensor t : {w, b, x}) t.mutable_grad() = Tensor();
    auto [loss, flat] = h(x);
    EXPECT_TRUE(loss.requires_grad() && flat.requires_grad() && !loss.is_leaf());
    if (second)
      (flat * 2).sum().backward();
    else
      loss.backward();
    EXPECT_FALSE(flat.is_leaf());
    return std::vector<Tensor>{loss.detach(), w.grad().clone(), b.grad().clone(), x.grad().clone()};
  };
  for (bool second : {false, true})
    for (int i = 0; i < 5; ++i) {
      Tensor x = (numbers({3, 4}) + i).set_requires_grad(true);
      std::vector<Tensor> want = grads(f, x, second), got = grads(g, x, second);
      for (size_t k = 0; k < want.size(); ++k) expect_close(got[k], want[k]);
    }
  EXPECT_EQ(runs, 2) << explained(g);
  // Without gradients it is another graph; derivatives of derivatives go through the same one.
  {
    NoGradGuard guard;
    Tensor x = numbers({3, 4});
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(g(x).first.requires_grad());
  }
  Tensor x = numbers({3, 4}).set_requires_grad(true);
  auto twice = [&](auto& h) {
    Tensor gx = autograd::grad({h(x).first}, {x}, {}, true, true)[0];
    return autograd::grad({gx.square().sum()}, {w})[0];
  };
  expect_close(twice(g), twice(f));
}

TEST(Pure, GradientsThroughRandomNumbersAndWrites) {
  int runs = 0;
  Tensor w = leaf({5}), mean = zeros({5});
  auto f = [&](const Tensor& x) {
    Tensor y = dropout(x * w, 0.5, true);
    {
      NoGradGuard guard;
      mean.mul_(0.5).add_(x * 0.5);
    }
    return y * y;
  };
  auto g = compile(counted(f, runs), {.pure = true});
  auto all = [&](auto& h) {
    manual_seed(5);
    mean.zero_();
    w.mutable_grad() = Tensor();
    for (int i = 0; i < 5; ++i) h(numbers({5}) + i).sum().backward();
    return std::vector<Tensor>{w.grad().clone(), mean.clone()};
  };
  std::vector<Tensor> want = all(f), got = all(g);
  expect_close(got[0], want[0]);
  expect_close(got[1], want[1]);
  EXPECT_EQ(runs, 2) << explained(g);
}

TEST(Pure, HooksOnLeavesOutside) {
  int runs = 0, seen = 0;
  Tensor w = leaf({3});
  auto g = compile(counted([&](const Tensor& x) { return (x * w).sum(); }, runs), {.pure = true});
  for (int i = 0; i < 3; ++i) g(numbers({3}));
  w.register_hook([&](const Tensor& t) {
    ++seen;
    return t * 10;
  });
  g(numbers({3})).backward();
  expect_close(w.grad(), numbers({3}) * 10);
  EXPECT_EQ(seen, 1);
}

/// A step of training as eager and with a skipped body: losses, parameters and gradients.
template <class Make>
void expect_same_training(Make make, int expected_runs, bool with_dropout = false) {
  int runs = 0;
  auto train = [&](bool compiled) {
    manual_seed(2);
    nn::Sequential net(nn::Linear(6, 8), nn::ReLU(), nn::Dropout(with_dropout ? 0.5 : 0), nn::Linear(8, 3));
    auto optimizer = make(net->parameters());
    auto step = [&](const Tensor& x, const Tensor& y) {
      optimizer->zero_grad();
      Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
      loss.backward();
      optimizer->step();
      return loss;
    };
    auto fast = compile(counted(step, runs), {.pure = true});
    std::vector<Tensor> out;
    for (int i = 0; i < 8; ++i) {
      Tensor x = numbers({4, 6}) + i * 0.1, y = (arange(4, kInt64) + i) % 3;
      Tensor loss = compiled ? fast(x, y) : step(x, y);
      EXPECT_TRUE(loss.requires_grad());
      EXPECT_THROW(loss.backward(), Error);
      out.push_back(loss.detach());
      if (i == 5) {
        net->eval();  // seen, and so are gradients that the program takes away
        net->train();
        net->zero_grad();
      }
    }
    for (const Tensor& p : net->parameters()) {
      out.push_back(p.detach().clone());
      out.push_back(p.grad().clone());
    }
    if (compiled) {
      EXPECT_EQ(runs, expected_runs) << explained(fast);
      EXPECT_EQ(fast.explain().breaks.size(), 0u);
    }
    return out;
  };
  std::vector<Tensor> want = train(false), got = train(true);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) expect_close(got[i], want[i]);
}

TEST(Pure, TrainingSteps) {
  using Parameters = std::vector<Tensor>;
  expect_same_training([](const Parameters& p) { return std::make_shared<optim::SGD>(p, optim::SGDOptions(0.1)); }, 4);
  expect_same_training(
      [](const Parameters& p) { return std::make_shared<optim::SGD>(p, optim::SGDOptions(0.1).momentum(0.9)); }, 4);
  expect_same_training([](const Parameters& p) { return std::make_shared<optim::Adam>(p, optim::AdamOptions(0.01)); },
                       4, true);
}

TEST(Pure, LearningRatesByScheduleAreSeen) {
  Tensor w = leaf({3}), v = leaf({3});
  optim::SGD a({w}, optim::SGDOptions(1)), b({v}, optim::SGDOptions(1));
  optim::StepLR sa(a, 3, 0.1), sb(b, 3, 0.1);
  auto step = [](optim::SGD& o, const Tensor& p, const Tensor& x) {
    o.zero_grad();
    (p * x).sum().backward();
    o.step();
  };
  auto f = compile([&](const Tensor& x) { step(a, w, x); }, {.pure = true});
  for (int i = 0; i < 12; ++i) {
    f(numbers({3}));
    step(b, v, numbers({3}));
    sa.step();
    sb.step();
    expect_close(w.detach(), v.detach());
  }
  EXPECT_GT(f.explain().skipped, 0);
}

TEST(Pure, GradientsThatAccumulate) {
  int runs = 0;
  Tensor w = leaf({3}), v = leaf({3});
  auto f = [](const Tensor& p, const Tensor& x) { (p * x * p).sum().backward(); };
  auto g = compile(counted([&](const Tensor& x) { f(w, x); }, runs), {.pure = true});
  for (int i = 0; i < 9; ++i) {
    if (i == 5) {
      w.mutable_grad() = Tensor();
      v.mutable_grad() = Tensor();
    }
    if (i == 7) {
      w.mutable_grad() = ones({3});
      v.mutable_grad() = ones({3});
    }
    g(numbers({3}) + i);
    f(v, numbers({3}) + i);
    expect_close(w.grad(), v.grad());
  }
  EXPECT_LT(runs, 9) << explained(g);
}

TEST(Pure, WhatIsNotSkippedIsExplained) {
  auto why = [](auto f, const auto&... args) {
    auto g = compile(f, {.pure = true});
    for (int i = 0; i < 4; ++i) g(args...);
    EXPECT_EQ(g.explain().skipped, 0);
    return g.explain().not_skipped;
  };
  Tensor x = numbers({3}), kept;
  int calls = 0;
  EXPECT_EQ(why([](const Tensor& t) { return t.sum().item<float>() > 0 ? t + 1 : t - 1; }, x),
            "a graph break: item() needs a value");
  EXPECT_EQ(why([](const Tensor& t) { return t.detach().item<float>() > 0 ? t + 1 : t - 1; }, numbers({1})),
            "item() reads a value");
  EXPECT_EQ(why([](const Tensor& t) { return *t.data_ptr<float>() > 0 ? t + 1 : t - 1; }, x),
            "data_ptr() reads a value");
  EXPECT_EQ(why(
                [&](const Tensor& t) {
                  kept = t * 2;
                  return t + kept;
                },
                x),
            "a tensor that the call made stays with the program, beside the results");
  EXPECT_EQ(why([&](const Tensor& t) { return t * double(++calls); }, x),
            "a number differs though the arguments are the same");
  EXPECT_EQ(why(
                [&](const Tensor& t) {
                  Tensor own = tensor({1.0f, 2.0f, 3.0f});
                  own.add_(t);
                  return own;
                },
                x)
                .substr(0, 42),
            "the body makes or takes another tensor tha");
  EXPECT_EQ(why([](const Tensor& s, const Tensor& t) { return s + t; }, x, x), "two arguments share memory");
  EXPECT_EQ(why([](const std::string& name, const Tensor& t) { return name.empty() ? t + 1 : t; }, std::string("a"), x),
            "an argument is neither tensor nor number, or the result is no tensor");
  struct Own {};
  EXPECT_EQ(why([](const std::vector<Own>& list, const Tensor& t) { return t + double(list.size()); },
                std::vector<Own>(2), x),
            "an argument is neither tensor nor number, or the result is no tensor");
  auto renames = compile([](auto& t) { return t = t + 1; }, {.pure = true});
  for (int i = 1; i < 5; ++i) {
    Tensor own = numbers({3});
    EXPECT_TRUE(renames(own).equal(numbers({3}) + 1));
    EXPECT_TRUE(own.equal(numbers({3}) + 1));
  }
  EXPECT_EQ(renames.explain().not_skipped, "the body makes an argument another tensor");
}

TEST(Pure, ConstantsOfTheBody) {
  int runs = 0;
  auto g = compile(counted([](const Tensor& x) { return x * tensor({1.0f, 2.0f, 3.0f}) + 1.5; }, runs), {.pure = true});
  for (int i = 0; i < 4; ++i) expect_close(g(numbers({3})), numbers({3}) * tensor({1.0f, 2.0f, 3.0f}) + 1.5);
  EXPECT_EQ(runs, 2) << explained(g);
}

// What `detach` gives is no constant of the body, though two calls have the same in it.
TEST(Pure, ADetachedArgumentIsTheArgument) {
  auto g = compile([](const Tensor& x) { return x.detach().sum() * 2; }, {.pure = true});
  for (int i : {0, 0, 0, 1, 1, 2}) EXPECT_EQ(g(full({3}, i)).item<float>(), 6 * i);
  // Nor does the gradient of a view of it go to what it was detached from.
  auto part = compile([](const Tensor& x) { return std::vector<Tensor>{x.slice(0, 0, 2), x * 2}; }, {.pure = true});
  for (int i = 0; i < 4; ++i) {
    Tensor leaf = numbers({6}).narrow(0, 1, 4).detach().requires_grad_();
    part(leaf)[0].sum().backward();
    ASSERT_TRUE(leaf.grad().defined());
    EXPECT_EQ(leaf.grad().sum().item<float>(), 2);
  }
}

TEST(Pure, ErrorsAreThoseOfTheBody) {
  Tensor table = numbers({4, 2}).clone(), sum = zeros({2});
  auto f = [&](const Tensor& i) {
    sum.add_(1);
    return index_select(table, 0, i);
  };
  auto g = compile(f, {.pure = true});
  for (int i = 0; i < 4; ++i) g(tensor({i, 1}, kInt64));
  EXPECT_EQ(g.explain().skipped, 2);
  EXPECT_THROW(g(tensor({9, 1}, kInt64)), IndexError);
  expect_close(sum, full({2}, 5.0));
  expect_close(g(tensor({3, 1}, kInt64))[0], table[3]);
}

TEST(Pure, InsideOthersAndAfterReset) {
  int runs = 0;
  auto inner = compile(counted([](const Tensor& x) { return x.sin() + 1; }, runs), {.pure = true});
  auto outer = compile([&](const Tensor& x) { return inner(x) * 2; });
  for (int i = 0; i < 4; ++i) expect_close(outer(numbers({3}) + i), ((numbers({3}) + i).sin() + 1) * 2);
  EXPECT_EQ(runs, 4);
  for (int i = 0; i < 4; ++i) inner(numbers({3}));
  EXPECT_EQ(runs, 6);
  reset();
  for (int i = 0; i < 4; ++i) expect_close(inner(numbers({3})), numbers({3}).sin() + 1);
  EXPECT_EQ(runs, 8);
  EXPECT_EQ(inner.explain().skipped, 2);
}

/// Runs nothing, so that calls are the host's time alone.
struct Nothing final : compiler::Executable {
  explicit Nothing(const ir::Graph& graph) : Executable(graph) {}
  void run(const int64_t*, std::span<const compiler::Operand>, std::span<const compiler::Operand>) const override {}
};

/// Least microseconds of a call, body and all, and of one that skips the body.
template <class F>
std::pair<double, double> host_times(F f, const Tensor& x) {
  capture::register_backend("nothing", [](const ir::Graph& graph, ir::Facts&, const CompileOptions&, runtime::Device&,
                                          const capture::Lasting&) { return std::make_shared<Nothing>(graph); });
  InferenceMode guard;
  auto least = [&](auto&& g) {
    double out = 1e9;
    for (int i = 0; i < 300; ++i) {
      auto begin = std::chrono::steady_clock::now();
      g(x);
      std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
      if (i >= 5) out = std::min(out, took.count());
    }
    return out;
  };
  auto pure = compile(f, {.backend = "nothing", .pure = true});
  double skipped = least(pure);
  EXPECT_EQ(pure.explain().skipped, 298) << explained(pure);
  return {least(compile(f, {.backend = "nothing"})), skipped};
}

// Prints what docs/performance/compilation.md has.
TEST(Pure, SkippingCostsLittleOfARecording) {
  std::vector<Tensor> met;
  for (int i = 0; i < 300; ++i) met.push_back(numbers({4}).clone());
  auto [recorded, skipped] = host_times(
      [&](const Tensor& x) {
        Tensor y = x;
        for (const Tensor& t : met) y = y + t;
        return y;
      },
      numbers({4}));
  std::cout << "300 additions of 300 tensors: recorded " << recorded << " us, skipped " << skipped << " us\n";
  EXPECT_LT(skipped, recorded / 4);

  // A ViT-tiny of twelve blocks behind its embedding: 150 parameters.
  struct Block {
    nn::LayerNorm norm1{nn::LayerNormOptions({192})}, norm2{nn::LayerNormOptions({192})};
    nn::Linear qkv{192, 576}, proj{192, 192}, fc1{192, 768}, fc2{768, 192};
    Tensor operator()(const Tensor& x) {
      Tensor q = qkv(norm1(x)).reshape({x.size(0), x.size(1), 3, 3, 64}).permute({2, 0, 3, 1, 4});
      Tensor heads = scaled_dot_product_attention(q[0], q[1], q[2]).transpose(1, 2).reshape(x.sizes());
      Tensor y = x + proj(heads);
      return y + fc2(gelu(fc1(norm2(y))));
    }
  };
  std::vector<Block> blocks(12);
  nn::LayerNorm norm(nn::LayerNormOptions({192}));
  nn::Linear head(192, 1000);
  std::tie(recorded, skipped) = host_times(
      [&](Tensor x) {
        for (Block& b : blocks) x = b(x);
        return head(norm(x).select(1, 0));
      },
      numbers({1, 197, 192}).clone());
  std::cout << "ViT-tiny: recorded " << recorded << " us, skipped " << skipped << " us\n";
  EXPECT_LT(skipped, recorded / 4);
}

TEST(Pure, SeveralThreads) {
  Tensor w = numbers({8, 8}).clone();
  auto f = [&](const Tensor& x) { return x.matmul(w).relu() + 1; };
  auto g = compile(f, {.pure = true});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Tensor x = numbers({2 + (i + t) % 3, 8}) + i;
        EXPECT_TRUE(allclose(g(x), f(x), 1e-5, 1e-5));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_GT(g.explain().skipped, 100);
}

}  // namespace
}  // namespace brasa
