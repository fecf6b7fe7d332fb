// Attention of long sequences, which the CPU computes block by block, without the matrix of scores.
#include <cmath>
#include <limits>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/memory.h>
#include <brasa/nn.h>
#include <brasa/stats.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

using Tensors = std::vector<Tensor>;

Tensors attention(const Tensors& x, bool causal) {
  return {scaled_dot_product_attention(x[0], x[1], x[2], std::nullopt, 0.0, causal)};
}

// With all scores in memory. A row of which a mask leaves nothing gives zeros.
Tensor by_scores(const Tensors& x, const Tensor& mask) {
  Tensor scores = matmul(x[0], x[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(x[0].size(-1)));
  if (mask.scalar_type() != kBool) return matmul(softmax(scores + mask, -1), x[2]);
  Tensor some = mask.any(-1, true);
  scores = scores.masked_fill(mask.logical_not().logical_and(some), -std::numeric_limits<double>::infinity());
  return matmul(softmax(scores, -1) * some, x[2]);
}
Tensor by_scores(const Tensors& x, bool causal) {
  Tensor scores = matmul(x[0], x[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(x[0].size(-1)));
  if (causal)
    scores = scores.masked_fill(ones({x[0].size(-2), x[1].size(-2)}, kBool).tril().logical_not(),
                                -std::numeric_limits<double>::infinity());
  return matmul(softmax(scores, -1), x[2]);
}

struct Case {
  int64_t batch, heads, queries, keys, features;
  bool causal, heads_inside;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << " x " << c.heads << " x " << c.queries << ", " << c.keys << " x " << c.features
             << (c.causal ? " causal" : "") << (c.heads_inside ? " heads inside" : "");
}

// Whole blocks, parts of blocks, one more than a block; more and fewer keys than queries; features that fill no vector.
const Case kCases[] = {
    {1, 2, 512, 512, 64, false, false}, {1, 1, 1024, 1024, 32, true, true}, {2, 1, 513, 700, 16, false, true},
    {1, 3, 641, 641, 20, true, false},  {1, 2, 1030, 515, 8, true, false},  {1, 1, 600, 1100, 1, true, true},
    {1, 1, 2000, 512, 3, false, false}, {3, 6, 512, 513, 5, false, true},   {2, 3, 192, 197, 16, true, true},
    {1, 2, 300, 200, 24, true, false},
};

Tensors operands(const Case& c, DType dtype) {
  auto heads = [&](int64_t length) {
    return c.heads_inside ? randn({c.batch, length, c.heads, c.features}).transpose(1, 2).to(dtype)
                          : randn({c.batch, c.heads, length, c.features}).to(dtype);
  };
  Tensors x = {heads(c.queries), heads(c.keys), heads(c.keys)};
  for (Tensor& t : x) t.requires_grad_(true);
  return x;
}

// {output, gradients} for a cotangent.
template <class F>
Tensors results(const F& f, const Tensors& x, const Tensor& ct) {
  Tensor out = f(x);
  Tensors all = {out.detach()};
  for (const Tensor& g : autograd::grad({out}, x, {ct})) all.push_back(g);
  return all;
}

double error(const Tensor& is, const Tensor& wanted) {
  return ((is.to(kFloat64) - wanted).norm() / wanted.norm()).item<double>();
}

// Rounded to float32 each of some hundred terms of a sum is off by 6e-8; narrow floats have 11 and 8 digits in probabilities and results.
double tolerance(DType dtype) {
  return dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 5e-6 : dtype == kHalf ? 2e-3 : 1.6e-2;
}

Tensors in_float64(const Tensors& x) {
  Tensors wide;
  for (const Tensor& t : x) wide.push_back(t.detach().to(kFloat64).set_requires_grad(true));
  return wide;
}

// Eager and compiled results and gradients of `f` are those that `by_all_scores` gives in float64.
template <class F, class G>
void check(const F& f, const G& by_all_scores, const Tensors& x, const std::string& what) {
  DType dtype = x[0].scalar_type();
  Tensor ct = randn(f(x).sizes()).to(dtype);
  Tensors wanted = results(by_all_scores, in_float64(x), ct.to(kFloat64)), eager = results(f, x, ct);
  auto compiled = compile([&](const Tensors& in) { return Tensors{f(in)}; });
  Tensors of_graph = results([&](const Tensors& in) { return compiled(in)[0]; }, x, ct);
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LT(error(eager[i], wanted[i]), tolerance(dtype)) << what << ", " << toString(dtype) << ", result " << i;
    EXPECT_LT(error(of_graph[i], wanted[i]), tolerance(dtype)) << what << ", " << toString(dtype) << ", result " << i;
  }
}

TEST(LongAttention, IsThatOfAllScores) {
  manual_seed(44);
  for (const Case& c : kCases)
    for (DType dtype : {kFloat32, kBFloat16, kFloat64, kHalf}) {
      if (size_of(dtype) != 4 && &c - kCases > 2) continue;  // the first three have blocks of every kind
      check([&](const Tensors& in) { return attention(in, c.causal)[0]; },
            [&](const Tensors& in) { return by_scores(in, c.causal); }, operands(c, dtype), testing::PrintToString(c));
    }
}

// For all scores, for rows of them, for keys, for a head; views of larger ones and of smaller ones.
TEST(LongAttention, TakesMasks) {
  manual_seed(48);
  Case c{2, 3, 640, 1100, 16, false, true};
  auto bools = [](IntArrayRef sizes) { return rand(sizes) > 0.5; };
  Tensor band = ones({c.queries, c.keys}, kBool).tril(300).logical_and(ones({c.queries, c.keys}, kBool).triu(-200)),
         padding = arange(c.keys).lt(tensor({700, 30}).view({2, 1})).view({2, 1, 1, c.keys}),
         nothing = bools({c.queries, c.keys}).logical_and(arange(c.queries).remainder(5).ne(0).view({-1, 1}));
  std::pair<const char*, Tensor> masks[] = {
      {"some", bools({c.batch, c.heads, c.queries, c.keys})},
      {"a band", band},
      {"padding", padding},
      {"expanded", padding.expand({c.batch, c.heads, c.queries, c.keys})},
      {"rows of nothing", nothing},
      {"nothing for a batch", tensor({0, 1}).to(kBool).view({2, 1, 1, 1})},
      {"one for each row", bools({c.heads, c.queries, 1})},
      {"turned", bools({c.keys, c.queries}).t()},
      {"a part", bools({700, 1200}).slice(0, 60).slice(1, 100)},
      {"floats", randn({c.heads, c.queries, c.keys})},
      {"floats for keys", randn({c.batch, 1, 1, c.keys})},
      {"infinities",
       zeros({c.queries, c.keys}).masked_fill(band.logical_not(), -std::numeric_limits<double>::infinity())},
  };
  for (DType dtype : {kFloat32, kBFloat16, kFloat64})
    for (const auto& [name, named] : masks) {
      const Tensor& mask = named;
      if (dtype == kBFloat16 && mask.scalar_type() != kBool && mask.dim() != 3) continue;  // one of them is wide
      if (dtype != kFloat32 && mask.scalar_type() == kBool && mask.dim() == 4) continue;
      bool wide = mask.scalar_type() != kBool && mask.dim() == 3;
      Tensor given = mask.scalar_type() == kBool || wide ? mask : mask.to(dtype);
      check([&](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], given); },
            [&](const Tensors& in) { return by_scores(in, mask); }, operands(c, dtype), name);
    }
}

// Added masks that are learned, as biases by distance are, have derivatives: for each score, or one for several heads, queries or keys.
TEST(LongAttention, MasksHaveDerivatives) {
  Case c{2, 3, 513, 600, 8, false, false};
  const std::vector<int64_t> all[] = {{2, 3, 513, 600}, {3, 513, 600},  {513, 600},  {1, 1, 513, 600},
                                      {2, 1, 513, 600}, {2, 1, 1, 600}, {3, 1, 600}, {600}};
  int64_t seed = 49;
  for (const auto& sizes : all)
    for (DType dtype : {kFloat64, kFloat32}) {
      if (dtype == kFloat32 && sizes.size() != 3) continue;
      manual_seed(++seed);
      Tensors x = operands(c, dtype);
      x.push_back(randn(sizes, dtype).requires_grad_(true));
      check([](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
            [](const Tensors& in) { return by_scores(in, in[3]); }, x, "a mask of " + testing::PrintToString(sizes));
    }
  // What is added to a whole row changes nothing: the sums are zeros but for rounding.
  const std::vector<int64_t> rows[] = {{3, 513, 1}, {513, 1}, {2, 3, 1, 1}, {1}, {2, 1, 513, 1}};
  for (const auto& sizes : rows) {
    Tensors x = operands(c, kFloat64);
    x.push_back(randn(sizes, kFloat64).requires_grad_(true));
    Tensor by_mask = autograd::grad({scaled_dot_product_attention(x[0], x[1], x[2], x[3]).square().sum()}, {x[3]})[0];
    EXPECT_EQ(by_mask.sizes(), IntArrayRef(sizes));
    EXPECT_LT(by_mask.abs().max().item<double>(), 1e-11);
  }
  // With narrow operands a mask may be wide, and has what they have, rounded once.
  Tensors x = operands(c, kBFloat16);
  x.push_back(randn({3, 513, 600}).requires_grad_(true));
  check([](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
        [](const Tensors& in) { return by_scores(in, in[3]); }, x, "a wide mask");
}

// Whichever operands need a gradient, a call keeps what its derivative reads; the logarithms have one, too.
TEST(LongAttention, EachOperandHasADerivative) {
  manual_seed(51);
  Case c{1, 2, 513, 600, 8, false, false};
  for (int needs = 1; needs < 8; ++needs) {
    Tensors x = operands(c, kFloat64), wide, wanted_of, of;
    for (size_t i = 0; i < 3; ++i) {
      x[i].requires_grad_(needs >> i & 1);
      wide.push_back(x[i].detach().set_requires_grad(needs >> i & 1));
      if (needs >> i & 1) of.push_back(x[i]), wanted_of.push_back(wide[i]);
    }
    auto check_of = [&](const Tensor& is, const Tensor& wanted) {
      Tensor ct = randn(is.sizes(), kFloat64);
      Tensors by = autograd::grad({is}, of, {ct}), wanted_by = autograd::grad({wanted}, wanted_of, {ct});
      ASSERT_EQ(by.size(), wanted_by.size());
      for (size_t i = 0; i < by.size(); ++i)
        EXPECT_LT((by[i] - wanted_by[i]).norm().item<double>(), 1e-11) << "needs " << needs << ", " << i;
    };
    check_of(attention(x, false)[0], by_scores(wide, false));
    if (needs & 4) continue;  // logarithms have no values in them
    Tensor log_sum = std::get<1>(_scaled_dot_product_flash_attention_for_cpu(x[0], x[1], x[2]));
    check_of(log_sum, logsumexp(matmul(wide[0], wide[1].transpose(-1, -2)) / std::sqrt(8.0), {-1}));
  }
}

// Heads of operands with other dimensions than four, and key heads that query heads share.
TEST(LongAttention, TakesOtherHeads) {
  manual_seed(50);
  auto heads = [](const std::vector<std::vector<int64_t>>& sizes) {
    Tensors x;
    for (const auto& s : sizes) x.push_back(randn(s).requires_grad_(true));
    return x;
  };
  auto all = [](bool causal, bool gqa, const std::optional<Tensor>& mask) {
    return [=](const Tensors& in) {
      return scaled_dot_product_attention(in[0], in[1], in[2], mask, 0.0, causal, std::nullopt, gqa);
    };
  };
  auto without = [](const Tensors& in) { return by_scores(in, true); };
  check(all(true, false, {}), without, heads({{530, 8}, {530, 8}, {530, 8}}), "two dimensions");
  check(all(true, false, {}), without, heads({{3, 530, 8}, {3, 530, 8}, {3, 530, 8}}), "three");
  check(all(true, false, {}), without, heads({{2, 1, 2, 530, 8}, {3, 2, 530, 8}, {2, 3, 1, 530, 8}}), "five");
  auto repeat = [](const Tensors& in) {
    return Tensors{in[0], in[1].repeat_interleave(2, -3), in[2].repeat_interleave(2, -3)};
  };
  check(
      all(true, true, {}), [&](const Tensors& in) { return by_scores(repeat(in), true); },
      heads({{2, 4, 530, 8}, {2, 2, 530, 8}, {2, 2, 530, 8}}), "shared");
  Tensor mask = rand({2, 1, 1, 530, 530}) > 0.3;
  check(
      all(false, true, mask), [&](const Tensors& in) { return by_scores(repeat(in), mask); },
      heads({{2, 3, 4, 530, 8}, {3, 2, 530, 8}, {2, 3, 2, 530, 8}}), "shared, with a mask");
}

// What a call of `f` and its gradient hold beside the operands, in bytes.
template <class F>
int64_t peak(const F& f, const Tensors& x, const Tensor& ct) {
  results(f, x, ct);
  reset_peak_memory_stats();
  int64_t before = memory_stats().allocated;
  results(f, x, ct);
  return memory_stats().peak - before;
}

TEST(LongAttention, HasNoMatrixOfScores) {
  int64_t length = 2048, heads = 4, scores = heads * length * length * 4;
  Tensors x = operands({1, heads, length, length, 16, false, false}, kFloat32);
  Tensor ct = randn({1, heads, length, 16});
  Tensor padding = arange(length).lt(1500).view({1, 1, 1, length}).expand({1, heads, length, length});
  EXPECT_LT(peak([](const Tensors& in) { return attention(in, false)[0]; }, x, ct), scores / 4);
  EXPECT_LT(peak([&](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], padding); }, x, ct),
            scores / 4);
}

// Blocks leave half of a causal one out, so shorter ones pay.
TEST(LongAttention, HasNoMatrixOfCausalScores) {
  int64_t length = 256, heads = 24;
  Tensors x = operands({1, heads, length, length, 4, true, false}, kFloat32);
  Tensor ct = randn({1, heads, length, 4});
  EXPECT_LT(peak([](const Tensors& in) { return attention(in, true)[0]; }, x, ct), heads * length * length * 4 / 2);
}

// The derivative as graphs for a GPU name it is the same one.
TEST(LongAttention, GradientsOfGraphsForAGpu) {
  manual_seed(53);
  int64_t heads = 4, queries = 600, keys = 1000, scores = heads * queries * keys * 4;
  Tensor q = randn({1, heads, queries, 8}), k = randn({1, heads, keys, 8}), v = randn({1, heads, keys, 8}),
         mask = randn({queries, keys}), ct = randn_like(q), seed = zeros({}, kInt64);
  auto forward = _scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, false, mask);
  const Tensor &out = std::get<0>(forward), &log_sum = std::get<1>(forward);
  auto efficient = [&](bool by_mask) {
    return _scaled_dot_product_efficient_attention_backward(ct, q, k, v, mask, out, log_sum, seed, seed, 0.0,
                                                            {true, true, true, by_mask}, false);
  };
  auto [dq, dk, dv] = _scaled_dot_product_flash_attention_for_cpu_backward(ct, q, k, v, out, log_sum, 0.0, false, mask);
  efficient(false);
  reset_peak_memory_stats();
  int64_t before = memory_stats().allocated;
  auto [by_q, by_k, by_v, none] = efficient(false);
  EXPECT_LT(memory_stats().peak - before, scores / 2);
  EXPECT_TRUE(equal(by_q, dq) && equal(by_k, dk) && equal(by_v, dv));
  Tensor added = mask.detach().set_requires_grad(true);
  Tensor wanted = autograd::grad({scaled_dot_product_attention(q, k, v, added)}, {added}, {ct})[0];
  EXPECT_TRUE(allclose(std::get<3>(efficient(true)), wanted, 1e-4, 1e-6));
}

// The gradient of a mask for all heads is as large as it, not as all scores.
TEST(LongAttention, AMasksGradientHasNoMatrixOfScores) {
  int64_t length = 768, heads = 16, scores = heads * length * length * 4;
  Tensors x = operands({1, heads, length, length, 8, false, false}, kFloat32);
  x.push_back(randn({length, length}).requires_grad_(true));
  Tensor ct = randn({1, heads, length, 8});
  auto f = [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); };
  EXPECT_LT(peak(f, x, ct), scores / 2);
}

TEST(LongAttention, SumsAreTheSameWithAnyThreads) {
  manual_seed(45);
  Case c{2, 2, 1300, 1300, 24, true, false};
  Tensor ct = randn({2, 2, 1300, 24});
  int threads = get_num_threads();
  const std::vector<int64_t> masks[] = {{}, {1300, 1300}, {2, 1, 1300}, {2, 1, 1, 1300}};
  for (const auto& sizes : masks) {
    Tensors x = operands(c, kFloat32);
    if (!sizes.empty()) x.push_back(randn(sizes).requires_grad_(true));
    auto f = [](const Tensors& in) {
      return in.size() == 3 ? attention(in, true)[0] : scaled_dot_product_attention(in[0], in[1], in[2], in[3]);
    };
    Tensors first;
    for (int n : {1, 3, 4}) {
      set_num_threads(n);
      Tensors now = results(f, x, ct);
      if (first.empty()) first = now;
      for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(equal(now[i], first[i])) << n << " threads, result " << i;
    }
  }
  set_num_threads(threads);
}

// Dropout leaves what it leaves where all scores are made, for the same state of the generator.
TEST(LongAttention, DropsWhatAllScoresDrop) {
  struct Drawn {
    Case c;
    DType dtype;
    double p;
    bool masked;
  };
  const Drawn all[] = {{{1, 2, 200, 300, 8, true, false}, kFloat64, 0.25, false},
                       {{1, 2, 513, 600, 8, false, false}, kFloat64, 0.25, false},
                       {{2, 3, 640, 1030, 16, false, true}, kFloat32, 0.1, false},
                       {{2, 2, 700, 700, 8, true, true}, kFloat32, 0.5, false},
                       {{2, 2, 530, 512, 4, false, false}, kFloat64, 0.3, true},
                       {{1, 2, 512, 512, 16, false, false}, kBFloat16, 0.2, true}};
  int64_t seed = 60;
  for (const Drawn& d : all) {
    manual_seed(++seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + testing::PrintToString(d.c));
    Tensors x = operands(d.c, d.dtype);
    if (d.masked) x.push_back(randn({d.c.queries, d.c.keys}, d.dtype).requires_grad_(true));
    Tensor ct = randn({d.c.batch, d.c.heads, d.c.queries, d.c.features}).to(d.dtype);
    auto mask = [&](const Tensors& in) { return d.masked ? std::optional(in[3]) : std::nullopt; };
    auto by_blocks = [&](const Tensors& in) {
      manual_seed(seed);
      return scaled_dot_product_attention(in[0], in[1], in[2], mask(in), d.p, d.c.causal);
    };
    auto by_all_scores = [&](const Tensors& in) {
      manual_seed(seed);
      return std::get<0>(_scaled_dot_product_attention_math(in[0], in[1], in[2], mask(in), d.p, d.c.causal));
    };
    Tensors wanted = results(by_all_scores, in_float64(x), ct.to(kFloat64));
    auto expect_wanted = [&](const Tensors& is, const std::string& by) {
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_LT(error(is[i], wanted[i]), tolerance(d.dtype)) << by << ", result " << i;
    };
    expect_wanted(results(by_blocks, x, ct), "eager");
    for (std::string backend : {"inductor", "interpreter"}) {
      if (backend == "interpreter" && &d != all) continue;  // it is slow
      auto compiled = compile([&](const Tensors& in) { return Tensors{by_blocks(in)}; }, {.backend = backend});
      expect_wanted(results([&](const Tensors& in) { return compiled(in)[0]; }, x, ct), backend);
    }
  }
  // Of other heads elements have their places in the scores of all of them.
  auto same = [&](const std::vector<std::vector<int64_t>>& sizes, bool gqa) {
    Tensors in;
    for (const auto& s : sizes) in.push_back(randn(s, kFloat64).requires_grad_(true));
    auto of = [&](const auto& f) { return [&, f](const Tensors& t) { return manual_seed(7), f(t); }; };
    auto blocks =
        of([&](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2], {}, 0.2, true, {}, gqa); });
    auto scores = of([&](const Tensors& t) {
      return std::get<0>(_scaled_dot_product_attention_math(t[0], t[1], t[2], {}, 0.2, true, {}, {}, gqa));
    });
    Tensor ct = randn_like(scores(in));
    Tensors is = results(blocks, in, ct), wanted = results(scores, in, ct);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_LT(error(is[i], wanted[i]), 1e-13) << i;
  };
  same({{2, 1, 2, 200, 4}, {3, 2, 210, 4}, {2, 3, 1, 210, 4}}, false);
  same({{2, 4, 200, 4}, {2, 2, 200, 4}, {2, 2, 200, 4}}, true);
  Tensors x = operands({1, 1, 512, 512, 8, false, false}, kFloat32);
  auto nothing = [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], {}, 1.0); };
  for (const Tensor& is : results(nothing, x, ones({1, 1, 512, 8}))) EXPECT_EQ(is.count_nonzero().item<int64_t>(), 0);
}

// Calls of drawn sizes, causal or with masks for some or all of their dimensions, with dropout or without it.
TEST(LongAttention, DrawnCallsAreThoseOfAllScores) {
  for (int64_t seed = 100; seed < 112; ++seed) {
    manual_seed(seed);
    auto drawn = [](int64_t least, int64_t most) { return randint(least, most + 1, {}, kInt64).item<int64_t>(); };
    Case c{drawn(1, 3),  drawn(1, 3),      drawn(192, 700), drawn(192, 1100),
           drawn(1, 20), drawn(0, 2) == 0, drawn(0, 1) == 0};
    auto some_of = [&](int64_t size) { return drawn(0, 1) == 0 ? 1 : size; };
    std::vector<int64_t> sizes = {some_of(c.batch), some_of(c.heads), some_of(c.queries), c.keys};
    int64_t kind = c.causal ? 0 : drawn(0, 2);  // of mask: none, bools, floats
    double p = drawn(0, 1) == 0 ? 0 : 0.3;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + testing::PrintToString(c) + ", mask " + std::to_string(kind) +
                 " of " + testing::PrintToString(sizes) + ", dropout " + std::to_string(p));
    Tensors x = operands(c, kFloat64);
    Tensor bools = rand(sizes) > 0.4;
    if (kind == 2) x.push_back(randn(sizes, kFloat64).requires_grad_(true));
    auto mask = [&](const Tensors& in) -> std::optional<Tensor> {
      if (kind == 0) return std::nullopt;
      return kind == 1 ? bools : in[3];
    };
    auto by_blocks = [&](const Tensors& in) {
      manual_seed(seed);
      return scaled_dot_product_attention(in[0], in[1], in[2], mask(in), p, c.causal);
    };
    auto by_all_scores = [&](const Tensors& in) {
      manual_seed(seed);
      return std::get<0>(_scaled_dot_product_attention_math(in[0], in[1], in[2], mask(in), p, c.causal));
    };
    auto compiled = compile([&](const Tensors& in) { return Tensors{by_blocks(in)}; });
    Tensor ct = randn({c.batch, c.heads, c.queries, c.features}, kFloat64);
    Tensors wanted = results(by_all_scores, x, ct), eager = results(by_blocks, x, ct),
            of_graph = results([&](const Tensors& in) { return compiled(in)[0]; }, x, ct);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_LT(error(eager[i], wanted[i]), 1e-12) << "result " << i;
      EXPECT_LT(error(of_graph[i], wanted[i]), 1e-12) << "compiled, result " << i;
    }
  }
}

TEST(LongAttention, DropoutHasNoMatrixOfScores) {
  int64_t length = 1024, heads = 8;
  Tensors x = operands({1, heads, length, length, 8, false, false}, kFloat32);
  Tensor ct = randn({1, heads, length, 8});
  auto f = [](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], std::nullopt, 0.1); };
  EXPECT_LT(peak(f, x, ct), heads * length * length * 4 / 4);
}

// A row that is NaN or infinite is no other row's matter, and scores far below the largest are zeros.
TEST(LongAttention, NaNsAndInfinitiesStayInTheirRows) {
  manual_seed(46);
  float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  Tensor q = randn({1, 1, 640, 8}), k = randn({1, 1, 640, 8}), v = randn({1, 1, 640, 8});
  q.select(2, 3).fill_(nan);
  q.select(2, 600).fill_(1e30);
  v.select(2, 100).fill_(infinity);
  for (bool causal : {false, true}) {
    Tensor is = attention({q, k, v}, causal)[0], wanted = by_scores({q, k, v}, causal);
    EXPECT_TRUE(equal(is.isnan(), wanted.isnan()));
    EXPECT_TRUE(allclose(is, wanted, 1e-4, 1e-5, true));
  }
}

TEST(LongAttention, NewLengthsCompileNothing) {
  auto compiled = compile([](const Tensors& in) { return attention(in, true); });
  auto both = [&](int64_t length) {
    Tensors x = operands({1, 2, length, length, 16, true, false}, kFloat32);
    Tensor ct = ones({1, 2, length, 16});
    results([](const Tensors& in) { return attention(in, true)[0]; }, x, ct);
    results([&](const Tensors& in) { return compiled(in)[0]; }, x, ct);
  };
  for (int64_t length : {600, 640, 700}) both(length);
  int64_t before = stats().compilations;
  for (int64_t length : {513, 1024, 999, 1500}) both(length);
  EXPECT_EQ(stats().compilations, before);
}

TEST(LongAttention, HasSecondDerivatives) {
  manual_seed(47);
  Case c{1, 1, 520, 530, 4, false, false};
  Tensors x = operands(c, kFloat64);
  auto second = [&](bool by_blocks) {
    Tensor out = by_blocks ? attention(x, false)[0] : by_scores(x, false);
    Tensor g = autograd::grad({out.square().sum()}, {x[0]}, {}, std::nullopt, true)[0];
    return autograd::grad({g.square().sum()}, x);
  };
  for (const Tensors& operands_of : {x, Tensors{randn({530, 2, 4}, kFloat64).transpose(0, 1).requires_grad_(true),
                                                randn({2, 530, 4}, kFloat64).requires_grad_(true),
                                                randn({2, 530, 4}, kFloat64).requires_grad_(true)}}) {
    x = operands_of;
    Tensors is = second(true), wanted = second(false);
    for (size_t i = 0; i < 3; ++i) EXPECT_LT(error(is[i], wanted[i]), 1e-12) << i;
  }
  // With dropout and a learned mask, too.
  x.push_back(randn({530}, kFloat64).requires_grad_(true));
  auto of_mask = [&](bool by_blocks) {
    manual_seed(8);
    Tensor out = by_blocks ? scaled_dot_product_attention(x[0], x[1], x[2], x[3], 0.3)
                           : std::get<0>(_scaled_dot_product_attention_math(x[0], x[1], x[2], x[3], 0.3));
    Tensors g = autograd::grad({out.square().sum()}, {x[0], x[3]}, {}, std::nullopt, true);
    return autograd::grad({g[0].square().sum() + g[1].square().sum()}, x);
  };
  Tensors is = of_mask(true), wanted = of_mask(false);
  for (size_t i = 0; i < 4; ++i) EXPECT_LT(error(is[i], wanted[i]), 1e-12) << i;
}

// Whatever is not zero is true.
TEST(LongAttention, ByteMasksAreTrueWhereTheyAreNotZero) {
  manual_seed(52);
  Tensor q = randn({1, 2, 600, 8}), bytes = full({600, 600}, 255, kByte);
  Tensor mask = from_blob(bytes.data_ptr(), {600, 600}, TensorOptions().dtype(kBool));
  EXPECT_TRUE(allclose(scaled_dot_product_attention(q, q, q, mask), scaled_dot_product_attention(q, q, q)));
}

}  // namespace
}  // namespace brasa
