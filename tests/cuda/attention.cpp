#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../ptxas.h"
#include "compiler/compile.h"
#include "fake.h"
#include "ir/text.h"
#include "ops/table.h"
#include "runtime/cuda/attention.h"
#include "support/str.h"

// Attention by kernels of our own, whose text the fake driver runs: nothing else computes anything there, so that results come from
// these kernels alone, which read heads where they are.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

int launches() { return test::fake_driver().calls("attention"); }

// Operands have 8 bits in bfloat16 and 11 in float16, to which results are rounded, too, and in TF32. Where a gradient is zero, differences of
// float32 are left.
void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  Tensor x = got.cpu().to(kFloat64), y = want.to(kFloat64);
  double bound = got.scalar_type() == kBFloat16 ? 1e-2 : 1.5e-3;
  EXPECT_LE((x - y).norm().item<double>(), bound * y.norm().item<double>() + 1e-5) << what;
}

struct Case {
  DType dtype;
  int64_t queries, keys, features;
  bool causal;
  int64_t start = 0;  // of the features in memory
  bool tall = false;
};
std::string text(const Case& c) {
  return str(name(c.dtype), " ", c.queries, " ", c.keys, " ", c.features, c.causal ? " causal" : "",
             c.tall ? " tall" : "", " from ", c.start);
}

constexpr int64_t kBatches = 2, kHeads = 3, kRowsOfSum = runtime::cuda::kRowsOfSum;

// [batch, heads, length, features] beside other heads in memory: here, and there.
struct Both {
  Tensor here, there;
};
Both heads(int64_t length, const Case& c) {
  Tensor all = randn({kBatches, length, kHeads, c.features + c.start}).to(c.dtype), there = all.to(kCUDA);
  auto seen = [&](const Tensor& x) { return x.slice(3, c.start).transpose(1, 2); };
  return {seen(all).to(kFloat64), seen(there)};
}
runtime::cuda::Heads of(const Tensor& x) { return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)}; }

// The kernels themselves, against the composition in float64.
void check(const Case& c) {
  Device gpu(kCUDA);
  std::vector<Both> given = {heads(c.queries, c), heads(c.keys, c), heads(c.keys, c)};
  for (Both& x : given) x.here.requires_grad_();
  double scale = 1 / std::sqrt(static_cast<double>(c.features));
  Tensor want = scaled_dot_product_attention(given[0].here, given[1].here, given[2].here, std::nullopt, 0.0, c.causal);
  Tensor scores = given[0].here.detach().matmul(given[1].here.detach().transpose(2, 3)) * scale;
  if (c.causal) scores = scores.masked_fill(ones({c.queries, c.keys}).triu(1).to(kBool), -INFINITY);
  Both ct = heads(c.queries, c);
  want.backward(ct.here);

  runtime::Device& device = runtime::device_of(gpu);
  auto fresh = [&](int64_t length) {
    return empty({kBatches, length, kHeads, c.features}, TensorOptions(gpu).dtype(c.dtype));
  };
  auto inside = [](const Tensor& x) { return of(x.transpose(1, 2)); };
  auto close = [&](const Tensor& got, const Tensor& wanted, const char* which) {
    expect_close(got.cpu().transpose(1, 2), wanted, str(text(c), ": ", which));
  };
  Tensor out = fresh(c.queries), log_sum = empty({kBatches, kHeads, c.queries}, TensorOptions(gpu).dtype(kFloat32));
  runtime::cuda::Attention a{
      {c.dtype, c.features, c.causal, true, c.tall}, kBatches, kHeads, c.queries, c.keys, scale, {}, {}, {}, nullptr};
  a.query = of(given[0].there);
  a.key = of(given[1].there);
  a.value = of(given[2].there);
  a.log_sum = log_sum.data_ptr();
  run_attention(a, inside(out), device, runtime::kDefaultStream);
  close(out, want, "out");
  // Products of reduced floats are exact in float32; each of TF32 may be off by 2^-10 of it.
  Tensor sizes = given[0].here.detach().abs().matmul(given[1].here.detach().abs().transpose(2, 3)) * scale;
  double log_bound = 1e-5 + (c.dtype == kFloat32 ? 0x1p-10 * sizes.max().item<double>() : 0);
  EXPECT_LE((log_sum.cpu().to(kFloat64) - scores.logsumexp(3)).abs().max().item<double>(), log_bound) << text(c);

  Tensor dq = fresh(c.queries), dk = fresh(c.keys), dv = fresh(c.keys);
  std::vector<Tensor> sums;  // [batch, sums, head, features]
  for (int64_t length : {c.queries, c.keys, c.keys})
    sums.push_back(full({kBatches, (length + kRowsOfSum - 1) / kRowsOfSum, kHeads, c.features}, NAN).to(kCUDA));
  runtime::cuda::AttentionGradients rows{inside(dq), inside(dk), inside(dv)},
      of_rows{inside(sums[0]), inside(sums[1]), inside(sums[2])};
  bool summed = runtime::cuda::sums_attention_gradients(c.dtype, c.features);
  run_attention_backward(a, of(ct.there), inside(out), rows, summed ? &of_rows : nullptr, device,
                         runtime::kDefaultStream);
  close(dq, given[0].here.grad(), "by query");
  close(dk, given[1].here.grad(), "by key");
  close(dv, given[2].here.grad(), "by value");
  Tensor gradients[] = {dq, dk, dv};
  for (size_t i = 0; summed && i < 3; ++i) {
    Tensor x = gradients[i].cpu().to(kFloat64), got = sums[i].cpu().to(kFloat64);
    for (int64_t at = 0; at < x.size(1); at += kRowsOfSum) {
      Tensor part = x.slice(1, at, std::min(at + kRowsOfSum, x.size(1)));
      Tensor off = (got.select(1, at / kRowsOfSum) - part.sum(1)).abs();
      EXPECT_LE((off - 1e-5 * part.abs().sum(1)).max().item<double>(), 0) << text(c) << ": sum " << i << " " << at;
    }
  }
}

TEST(Attention, Kernels) {
  for (DType dtype : {kBFloat16, kFloat16, kFloat32})
    for (bool causal : {false, true}) check({dtype, 197, 197, 64, causal});
  for (DType dtype : {kBFloat16, kFloat32})
    for (bool causal : {false, true})
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {2, 5}, {64, 64}, {150, 33}, {33, 150}})
        for (int64_t features : {8, 40, 128}) check({dtype, queries, keys, features, causal});
}

// Of one key, which has all of the weight: the value to the nearest number of TF32, ties away from zero.
TEST(Attention, Float32IsRounded) {
  struct {
    float given, rounded;
  } cases[] = {{1 + 0x1p-11f, 1 + 0x1p-10f}, {-1 - 0x1p-11f, -1 - 0x1p-10f}, {1 + 0x1.8p-12f, 1}, {0x1.ffep3f, 0x1p4f}};
  for (auto [given, rounded] : cases) {
    Tensor x = full({1, 1, 1, 8}, given).to(kCUDA), out = empty({1, 1, 1, 8}, kCUDA), log_sum = empty({1}, kCUDA);
    runtime::cuda::Attention a{{kFloat32, 8, false}, 1, 1, 1, 1, 1.0, of(x), of(x), of(x), log_sum.data_ptr()};
    run_attention(a, of(out), runtime::device_of(kCUDA), runtime::kDefaultStream);
    // The weight is 1 but for the last bits of an exponential.
    EXPECT_LE((out.cpu() - rounded).abs().max().item<float>(), 1e-6f * std::abs(rounded)) << given;
  }
}

// They stay where they belong: a query's in its row, a value's in its feature; a key's score of -infinity has no weight.
TEST(Attention, NanAndInfinity) {
  struct Kind {
    DType dtype;
    int64_t length, features;
  };
  for (auto [dtype, length, features] : {Kind{kBFloat16, 40, 16}, {kFloat32, 40, 16}, {kBFloat16, 230, 64}})
    for (float odd : {NAN, INFINITY, -INFINITY})
      for (int which : {0, 1, 2}) {
        std::vector<Tensor> x;
        for (int i = 0; i < 3; ++i) x.push_back(randn({1, length, 1, features}).to(dtype));
        x[which].select(1, 30).select(2, 5).fill_(odd);
        Tensor out = empty({1, length, 1, features}, TensorOptions(kCUDA).dtype(dtype));
        Tensor log_sum = empty({length}, kCUDA);
        std::vector<Tensor> there;
        for (Tensor& t : x) {
          t = t.transpose(1, 2);
          there.push_back(t.to(kCUDA));
        }
        runtime::cuda::Attention a{
            {dtype, features, false}, 1, 1, length, length, 0.25, of(there[0]), of(there[1]), of(there[2]),
            log_sum.data_ptr()};
        run_attention(a, of(out.transpose(1, 2)), runtime::device_of(kCUDA), runtime::kDefaultStream);
        Tensor want = scaled_dot_product_attention(x[0].to(kFloat64), x[1].to(kFloat64), x[2].to(kFloat64),
                                                   std::nullopt, 0.0, false, 0.25);
        Tensor got = out.cpu().transpose(1, 2).to(kFloat64);
        auto finite = [](const Tensor& t) { return t.isfinite().sum().item<int64_t>(); };
        EXPECT_TRUE(got.isfinite().equal(want.isfinite()))
            << name(dtype) << " " << odd << " in " << which << ": " << finite(got) << " " << finite(want);
      }
}

TEST(Attention, TallBlocks) {
  for (bool causal : {false, true}) {
    for (DType dtype : {kBFloat16, kFloat16, kFloat32}) check({dtype, 300, 300, 64, causal, 0, true});
    for (DType dtype : {kBFloat16, kFloat32})
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {17, 130}, {150, 33}})
        for (int64_t features : {8, 40, 64}) check({dtype, queries, keys, features, causal, 0, true});
  }
  for (DType dtype : {kBFloat16, kFloat32}) check({dtype, 40, 70, 37, true, 3, true});
}

// Heads of 64 features, long enough for blocks of two groups: the last rows are a part of a group's, of a tile's, and of neither.
TEST(Attention, GroupsOfWarps) {
  for (DType dtype : {kBFloat16, kFloat16})
    for (bool causal : {false, true})
      for (auto [queries, keys] :
           {std::pair<int64_t, int64_t>{128, 250}, {129, 257}, {300, 140}, {256, 256}, {331, 331}}) {
        test::Counted groups(test::fake_driver(), "groups of warps");
        check({dtype, queries, keys, 64, causal, queries == 331 ? 8 : 0});
        EXPECT_EQ(groups(), 3);
      }
  test::Counted groups(test::fake_driver(), "groups of warps");
  check({kBFloat16, 197, 130, 64, false});
  EXPECT_EQ(groups(), 2);  // a block has the whole head for its gradients
  // What is short, wide or narrow, or begins anywhere, is multiplied by single warps.
  for (Case c : {Case{kBFloat16, 100, 300, 64, true},
                 {kBFloat16, 300, 100, 64, true},
                 {kBFloat16, 150, 150, 128, true},
                 {kBFloat16, 150, 150, 56, true},
                 {kBFloat16, 250, 250, 64, true, 1},
                 {kFloat32, 150, 150, 64, true}}) {
    test::Counted none(test::fake_driver(), "groups of warps");
    check(c);
    EXPECT_EQ(none(), 0) << text(c);
  }
}

// One launch forward and one backward, of heads that a block has whole.
TEST(Attention, WholeHeads) {
  for (DType dtype : {kBFloat16, kFloat16, kFloat32})
    for (auto [queries, keys] : {std::pair<int64_t, int64_t>{208, 105}, {105, 208}, {130, 192}}) {
      int before = launches();
      check({dtype, queries, keys, 64, false});
      EXPECT_EQ(launches() - before, dtype == kFloat32 ? 3 : 2);  // whose gradient's head has no room
    }
}

// Rows that begin anywhere, features of any number.
TEST(Attention, AnyLayout) {
  for (DType dtype : {kBFloat16, kFloat32})
    for (auto [features, start] : {std::pair<int64_t, int64_t>{64, 1}, {1, 0}, {2, 0}, {37, 0}, {100, 3}, {128, 1}})
      check({dtype, 40, 70, features, start % 2 == 1, start});
  check({kFloat32, 130, 120, 64, false, 1});
}

// What the compiler makes of the operators: one launch forward and two backward, of heads where they are.
TEST(Attention, IsOneCall) {
  constexpr int64_t kLength = 50, kFeatures = 16, kWidth = kHeads * kFeatures;
  auto f = [](const Tensor& x) {
    auto parts = x.view({kBatches, kLength, 3, kHeads, kFeatures}).permute({2, 0, 3, 1, 4}).unbind(0);
    return scaled_dot_product_attention(parts[0], parts[1], parts[2])
        .transpose(1, 2)
        .reshape({kBatches, kLength, kWidth});
  };
  Tensor x = randn({kBatches, kLength, 3 * kWidth}).to(kBFloat16), want = f(x.to(kFloat64));
  auto compiled = compile(f);
  Tensor there = x.to(kCUDA), ct = ones({kBatches, kLength, kWidth}).to(kBFloat16).to(kCUDA);
  {
    NoGradGuard no_grad;
    int before = launches(), all = test::fake_driver().calls("cuLaunchKernel");
    expect_close(compiled(there), want, "forward");
    EXPECT_EQ(launches() - before, 1);
    EXPECT_EQ(test::fake_driver().calls("cuLaunchKernel") - all, 1);
  }
  there.requires_grad_();
  compiled(there).backward(ct);
  int before = launches();
  compiled(there).backward(ct);
  EXPECT_EQ(launches() - before, 3);
}

// Gradients of queries, keys and values that one projection made are written where it reads them.
TEST(Attention, GradientsOfOneTensor) {
  constexpr int64_t kLength = 50, kFeatures = 16, kWidth = kHeads * kFeatures;
  auto f = [](const Tensor& x, const Tensor& w) {
    auto parts = linear(x, w).view({kBatches, kLength, 3, kHeads, kFeatures}).permute({2, 0, 3, 1, 4}).unbind(0);
    return scaled_dot_product_attention(parts[0], parts[1], parts[2]).transpose(1, 2).reshape({-1, kWidth});
  };
  auto step = compile(
      [&](const Tensor& x, const Tensor& w, const Tensor& ct) { return autograd::grad({f(x, w)}, {x, w}, {ct}); });
  Tensor x = randn({kBatches, kLength, kWidth}).to(kBFloat16).to(kCUDA).requires_grad_(),
         w = randn({3 * kWidth, kWidth}).to(kBFloat16).to(kCUDA).requires_grad_(),
         ct = randn({kBatches * kLength, kWidth}).to(kBFloat16).to(kCUDA);
  step(x, w, ct);
  int before = launches();
  test::Counted all(test::fake_driver(), "cuLaunchKernel"), products(test::fake_driver(), "small_");
  step(x, w, ct);
  EXPECT_EQ(launches() - before, 3);
  EXPECT_EQ(all() - products(), 3);
}

// Sums of its rows, as of a bias' gradient, come with them.
TEST(Attention, SumsOfGradientsOfOneTensor) {
  constexpr int64_t kMany = 2, kParts = 5, kLength = kParts * kRowsOfSum, kFeatures = 16, kWidth = kHeads * kFeatures;
  auto f = [](const Tensor& x) {
    auto parts = x.view({kMany, -1, 3, kHeads, kFeatures}).permute({2, 0, 3, 1, 4}).unbind(0);
    return scaled_dot_product_attention(parts[0], parts[1], parts[2]).transpose(1, 2).reshape({-1, kWidth});
  };
  auto calls = [&](int64_t length, const auto& sum) {
    auto step = compile([&](const Tensor& x, const Tensor& ct) {
      Tensor by_x = autograd::grad({f(x)}, {x}, {ct})[0];
      return std::vector<Tensor>{by_x, sum(by_x)};
    });
    Tensor x = randn({kMany, length, 3 * kWidth}).to(kBFloat16).to(kCUDA).requires_grad_(),
           ct = randn({kMany * length, kWidth}).to(kBFloat16).to(kCUDA);
    step(x, ct);
    int before = launches(), all = test::fake_driver().calls("cuLaunchKernel");
    std::vector<Tensor> out = step(x, ct);
    EXPECT_EQ(launches() - before, 3);
    return std::pair(std::move(out), test::fake_driver().calls("cuLaunchKernel") - all);
  };
  // Of parts as the kernels have them nothing is left to add.
  auto [of_parts, all] = calls(kLength, [](const Tensor& x) {
    return x.view({kMany, kParts, kRowsOfSum, 3 * kWidth}).sum({2}, false, kFloat32);
  });
  EXPECT_EQ(all, 3);
  Tensor rows = of_parts[0].cpu().to(kFloat64).view({kMany, kParts, kRowsOfSum, 3 * kWidth});
  EXPECT_LE((of_parts[1].cpu().to(kFloat64) - rows.sum(2)).abs().max().item<double>(),
            1e-5 * rows.abs().sum(2).max().item<double>());
  EXPECT_EQ(calls(kLength - 13, [](const Tensor& x) { return x.sum({0, 1}); }).second, 4);
}

// Gradients come from the kernels' own results. The query's is copied into its order, and the key's is made of the result, which was copied into
// the query's order, too: no kernel does that here.
TEST(Attention, GradientsOfOneCall) {
  constexpr int64_t kLength = 50, kFeatures = 16;
  auto f = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    auto inside = [](const Tensor& x) { return x.transpose(1, 2); };
    return scaled_dot_product_attention(q, inside(k), inside(v));  // which lies as the query does
  };
  auto compiled = compile(f);
  std::vector<Tensor> here, there;
  for (int i = 0; i < 3; ++i) {
    Tensor x = randn({kBatches, i ? kLength : kHeads, i ? kHeads : kLength, kFeatures}).to(kBFloat16);
    here.push_back(x.to(kFloat64).requires_grad_());
    there.push_back(x.to(kCUDA).requires_grad_());
  }
  Tensor ct = randn({kBatches, kHeads, kLength, kFeatures}).to(kBFloat16);
  f(here[0], here[1], here[2]).backward(ct.to(kFloat64));
  for (int i = 0; i < 2; ++i) {
    for (Tensor& x : there) x.mutable_grad() = Tensor();
    compiled(there[0], there[1], there[2]).backward(ct.to(kCUDA));
    expect_close(there[2].grad(), here[2].grad(), str("by the values, ", i));
  }
}

// Eager calls know no sizes; a call's number of features is a fact of its program.
TEST(Attention, EagerCalls) {
  for (int64_t features : {16, 24, 16}) {
    Tensor x = randn({kBatches, 50, kHeads, 3 * features}).to(kBFloat16);
    auto f = [&](const Tensor& all) {
      Tensor heads = all.transpose(1, 2);
      auto part = [&](int64_t i) { return heads.slice(3, i * features, (i + 1) * features); };
      return scaled_dot_product_attention(part(0), part(1), part(2));
    };
    Tensor there = x.to(kCUDA), want = f(x.to(kFloat64));
    int before = launches();
    Tensor got = f(there);
    EXPECT_EQ(launches() - before, 1);
    EXPECT_EQ(got.sizes(), want.sizes());
    there.requires_grad_();
    Tensor y = f(there);
    before = launches();
    y.backward(ones(y.sizes()).to(kBFloat16).to(kCUDA));
    EXPECT_EQ(launches() - before, 2);  // forward not again
  }
}

// What has no kernel is composed, for its number of features alone: a call of fewer has one, and its backward pass another operand.
TEST(Attention, EagerCallsOfWideHeadsFirst) {
  set_float32_matmul_precision("high");
  for (auto [dtype, wide] : {std::pair<DType, int64_t>{kBFloat16, 160}, {kFloat32, 80}})
    for (int64_t features : {wide, int64_t{16}}) {
      Tensor x = randn({kBatches, kHeads, 50, features}).to(dtype), there = x.to(kCUDA).requires_grad_();
      int before = launches();
      Tensor y = scaled_dot_product_attention(there, there, there);
      EXPECT_EQ(launches() - before, features == 16) << name(dtype) << features;
      before = launches();
      y.backward(ones(y.sizes()).to(dtype).to(kCUDA));
      EXPECT_EQ(launches() - before, features == 16 ? 2 : 0) << name(dtype) << features;
    }
  set_float32_matmul_precision("highest");
}

// One query, with a mask of a batch that leaves out some keys, none, or all; a row of keys and values beside the others.
void check_row(DType dtype, int64_t keys, int64_t features, bool cached, int64_t start = 0, bool early = false) {
  Device gpu(kCUDA);
  Case c{dtype, 1, keys, features, false, start};
  std::string what = str(text(c), cached ? " cached" : "");
  Both query = heads(1, c), key = heads(keys, c), value = heads(keys, c), key_row = heads(1, c),
       value_row = heads(1, c);
  Tensor mask = rand({kBatches, 1, keys}) < 0.7;
  mask.select(0, 1).fill_(keys == 5);
  int64_t at = keys / 2;
  if (cached) {
    key.here.select(2, at).copy_(key_row.here.select(2, 0));
    value.here.select(2, at).copy_(value_row.here.select(2, 0));
  }
  Tensor seen = mask.view({kBatches, 1, 1, keys}), there = mask.to(gpu), number = full({1}, at, kInt64).to(gpu);
  double scale = 1 / std::sqrt(static_cast<double>(features));
  Tensor want = scaled_dot_product_attention(query.here, key.here, value.here, seen);
  Tensor out = empty({kBatches, 1, kHeads, features}, TensorOptions(gpu).dtype(dtype));
  runtime::cuda::Heads mask_rows{there.data_ptr(), keys, 0, 1};
  runtime::cuda::AttentionOfRow a{
      {dtype, features, false}, kBatches,           kHeads,          keys,      scale,
      of(query.there),          of(key.there),      of(value.there), mask_rows, number.data_ptr(),
      of(key_row.there),        of(value_row.there)};
  a.kind.cached = cached;
  a.kind.early = early;
  run_attention_of_row(a, of(out.transpose(1, 2)), runtime::device_of(gpu), runtime::kDefaultStream);
  expect_close(out.cpu().transpose(1, 2), want, what);
}

TEST(Attention, OfRows) {
  for (bool cached : {false, true}) {
    for (int64_t keys : {1, 5, 70, 700}) check_row(kBFloat16, keys, 64, cached);
    for (int64_t features : {8, 40, 128}) check_row(kFloat16, 33, features, cached);
    check_row(kBFloat16, 33, 40, cached, 3);
  }
}

// Blocks share the keys of a head where there are processors without one.
TEST(Attention, OfRowsByClusters) {
  test::Counted clusters(test::fake_driver(), "clusters of blocks");
  check_row(kBFloat16, 60, 64, false);
  EXPECT_EQ(clusters(), 0);
  check_row(kBFloat16, 129, 64, true);
  EXPECT_EQ(clusters(), 1);
  for (bool cached : {false, true})
    for (int64_t keys : {0, 65, 129, 700}) check_row(kBFloat16, keys, 64, cached && keys, 0, true);
  EXPECT_EQ(clusters(), 7);
}

// A token's attention to caches, into which its own row goes, with a mask: one launch, which reads the caches where they are.
TEST(Attention, OfATokenIsOneCall) {
  constexpr const char* kGraph = R"(graph primitives "" {
  %0 = input: bf16[1, 3, 1, 16] ""
  %1 = input: bf16[2, 1, 3, 50, 16] ""
  %2 = input: bf16[1, 3, 50, 16] ""
  %3 = input: i64[1] ""
  %4 = input: bf16[2, 1, 1, 3, 16] ""
  %5 = input: bool[50] ""
  %6 = prim::slice(%1, start=[1, 0, 0, 0, 0], size=[1, 1, 3, 50, 16], step=[1, 1, 1, 1, 1]): bf16[1, 1, 3, 50, 16]
  %7 = prim::reshape(%6, size=[1, 3, 50, 16]): bf16[1, 3, 50, 16]
  %8 = prim::slice(%4, start=[0, 0, 0, 0, 0], size=[1, 1, 1, 3, 16], step=[1, 1, 1, 1, 1]): bf16[1, 1, 1, 3, 16]
  %9 = prim::reshape(%8, size=[1, 1, 3, 16]): bf16[1, 1, 3, 16]
  %10 = prim::slice(%4, start=[1, 0, 0, 0, 0], size=[1, 1, 1, 3, 16], step=[1, 1, 1, 1, 1]): bf16[1, 1, 1, 3, 16]
  %11 = prim::reshape(%10, size=[1, 1, 3, 16]): bf16[1, 1, 3, 16]
  %12 = prim::scatter(%7, [%3], %9, dims=[2], combine=""): bf16[1, 3, 50, 16]
  %13 = prim::scatter(%2, [%3], %11, dims=[2], combine=""): bf16[1, 3, 50, 16]
  %14 = prim::broadcast(%5, size=[1, 3, 1, 50], dims=[3]): bool[1, 3, 1, 50]
  %15 = prim::masked_attention(%0, %12, %13, %14, scale=0.25, at=none, key_row=none, value_row=none): bf16[1, 1, 3, 16]
  return %15
}
)";
  auto numbers = [](std::vector<int64_t> shape) { return randn(shape).to(kBFloat16); };
  Tensor keys = numbers({2, 1, kHeads, 50, 16}), row = numbers({2, 1, 1, kHeads, 16}), at = full({1}, 7, kInt64);
  std::vector<Tensor> here = {numbers({1, kHeads, 1, 16}), keys, numbers({1, kHeads, 50, 16}), at, row,
                              arange(50, kInt64) <= 9},
                      there;
  std::vector<compiler::Operand> operands;
  auto operand = [](const Tensor& t) {
    return compiler::Operand{t.data_ptr(), t.scalar_type(), t.sizes(), t.strides()};
  };
  for (const Tensor& t : here) operands.push_back(operand(there.emplace_back(t.to(kCUDA))));
  Tensor out = empty({1, 1, kHeads, 16}, TensorOptions(kCUDA).dtype(kBFloat16));
  auto graph = ir::parse(kGraph, [](std::string_view name) { return ops::find(name); });
  ir::Facts facts;
  compiler::CompilerOptions options;
  options.device = &runtime::device_of(Device(kCUDA));
  auto run = compiler::compile(*graph, facts, options);
  int before = launches(), all = test::fake_driver().calls("cuLaunchKernel");
  run->run(nullptr, operands, std::vector{operand(out)});
  EXPECT_EQ(launches() - before, 1);
  EXPECT_EQ(test::fake_driver().calls("cuLaunchKernel") - all, 1);
  auto written = [&](const Tensor& cache, int64_t i) {
    return cache.to(kFloat64).index_copy(2, at, row.select(0, i).transpose(1, 2).to(kFloat64));
  };
  Tensor want =
      scaled_dot_product_attention(here[0].to(kFloat64), written(keys.select(0, 1), 0), written(here[2], 1), here[5]);
  expect_close(out.cpu().transpose(1, 2), want, "a token");
}

// In a kept run a cluster reads keys and values while what runs before it ends, unless that writes them, or there is none that waited.
TEST(Attention, OfOneQueryBeginsEarly) {
  auto heads_of = [](int64_t rows) { return randn({1, kHeads, rows, 64}).to(kBFloat16).to(kCUDA); };
  Tensor q = heads_of(1), k = heads_of(130), mask = (arange(130, kInt64) <= 90).to(kCUDA);
  auto attended = [mask](const Tensor& query, const Tensor& keys) {
    return scaled_dot_product_attention(query, keys, keys, mask);
  };
  auto waiting = [&](const std::function<Tensor(const Tensor&)>& f) {
    test::Counted launches(test::fake_driver(), "cuLaunchKernel"), early(test::fake_driver(), "cuLaunchKernelEx");
    compile(f, {.mode = "reduce-overhead"})(q);
    return launches() - early();
  };
  EXPECT_EQ(waiting([=](const Tensor& x) { return attended(x, k).neg(); }), 2);
  EXPECT_EQ(waiting([=](const Tensor& x) { return attended(x.neg(), k.neg()); }), 2);
  // Large enough to be kept on disk.
  for (const char* graph : {"made", "found on disk"})
    EXPECT_EQ(waiting([=](const Tensor& x) {
                return attended(x.exp().sin().tanh().cos().neg(), k).exp().sin().cos().tanh();
              }),
              1)
        << graph;
}

// Of operators: with a mask of bools, of one query.
TEST(Attention, OfOneQueryIsOneCall) {
  Tensor q = randn({1, kHeads, 1, 16}).to(kBFloat16).to(kCUDA), k = randn({1, kHeads, 50, 16}).to(kBFloat16).to(kCUDA);
  auto launched = [&](const Tensor& query, const Tensor& mask) {
    int before = launches();
    compile([=] { return scaled_dot_product_attention(query, k, k, mask); })();
    return launches() - before;
  };
  Tensor seen = ones({50}, kBool).to(kCUDA);
  EXPECT_EQ(launched(q, seen), 1);
  EXPECT_EQ(launched(q, seen.view({1, 1, 1, 50})), 1);
  EXPECT_EQ(launched(q, seen.to(kBFloat16)), 0);
  EXPECT_EQ(launched(q.expand({1, kHeads, 2, 16}), seen), 0);
}

// Masks, dropout, wide floats and wide heads are computed as everywhere.
// Where TF32 is allowed, and only while it is, in programs that were made before, too.
TEST(Attention, Float32IsOneCallWhereItMayBeRounded) {
  Tensor q = randn({1, 2, 5, 16}).to(kCUDA).requires_grad_(), ct = ones({1, 2, 5, 16}).to(kCUDA);
  auto f = [](const Tensor& x) { return scaled_dot_product_attention(x, x, x); };
  auto compiled = compile(f);
  auto launched = [&](bool through) {
    int before = launches();
    (through ? compiled(q) : f(q)).backward(ct);
    return launches() - before;
  };
  for (bool through : {true, false})
    for (bool allowed : {false, true, false, true}) {
      set_float32_matmul_precision(allowed ? "high" : "highest");
      launched(through);  // a first call may compute more than it gives
      EXPECT_EQ(launched(through), allowed ? 3 : 0) << through;
    }
  // Masks and wide heads with all of their scores are composed.
  Tensor row = randn({1, 2, 1, 16}).to(kCUDA), mask = ones({1, 5}, kBool).to(kCUDA);
  Tensor wide = randn({1, 2, 5, 80}).to(kCUDA);
  int before = launches();
  scaled_dot_product_attention(row, q.detach(), q.detach(), mask);
  scaled_dot_product_attention(wide, wide, wide);
  EXPECT_EQ(launches() - before, 0);
  scaled_dot_product_attention(wide, wide, wide, std::nullopt, 0.0, true);
  EXPECT_EQ(launches() - before, 1);
  set_float32_matmul_precision("highest");
}

TEST(Attention, OtherCallsAreComposed) {
  auto launched = [](auto f) {
    int before = launches();
    compile(f)();
    return launches() - before;
  };
  Tensor q = randn({1, 2, 5, 16}).to(kBFloat16).to(kCUDA), wide = randn({1, 2, 5, 160}).to(kBFloat16).to(kCUDA);
  Tensor mask = ones({5, 5}, kBool).to(kCUDA), full = q.to(kFloat32);
  EXPECT_EQ(launched([=] { return scaled_dot_product_attention(q, q, q, mask); }), 0);
  EXPECT_EQ(launched([=] { return scaled_dot_product_attention(q, q, q, std::nullopt, 0.5); }), 0);
  EXPECT_EQ(launched([=] { return scaled_dot_product_attention(full, full, full); }), 0);
  EXPECT_EQ(launched([=] { return scaled_dot_product_attention(wide, wide, wide); }), 0);
  EXPECT_EQ(launched([=] { return scaled_dot_product_attention(q, q, q); }), 1);
}

TEST(Attention, Assembles) {
  if (!test::have_ptxas()) GTEST_SKIP() << "there is no ptxas";
  using runtime::cuda::AttentionPass;
  for (AttentionPass pass : {AttentionPass::ForwardOfHead, AttentionPass::BackwardOfHead})
    for (const char* target : {"sm_80", "sm_90a"})
      EXPECT_TRUE(
          test::assembles(runtime::cuda::attention_kernel(pass, {kBFloat16, 64, false}).text, str("-arch=", target)));
  for (AttentionPass pass : {AttentionPass::Forward, AttentionPass::ByQuery, AttentionPass::ByKey})
    for (DType dtype : {kBFloat16, kFloat32})
      for (int64_t features : {40, 64, 128})
        for (const char* target : {"sm_80", "sm_90a"})
          EXPECT_TRUE(
              test::assembles(runtime::cuda::attention_kernel(pass, {dtype, features, true, features != 40}).text,
                              str("-arch=", target)))
              << static_cast<int>(pass) << " " << name(dtype) << " " << features << " " << target;
  runtime::cuda::AttentionKind of_head{kFloat32, 64, false};
  EXPECT_TRUE(
      test::assembles(runtime::cuda::attention_kernel(AttentionPass::ForwardOfHead, of_head).text, "-arch=sm_90a"));
  for (int64_t features : {8, 40, 64, 128})
    for (bool cached : {false, true}) {
      runtime::cuda::AttentionKind kind{kBFloat16, features, false, features != 40};
      kind.cached = cached;
      EXPECT_TRUE(test::assembles(runtime::cuda::attention_kernel(AttentionPass::OfRow, kind).text,
                                  cached ? "-arch=sm_90a" : "-arch=sm_80"))
          << features;
      kind.blocks = 8;
      kind.early = cached;
      EXPECT_TRUE(test::assembles(runtime::cuda::attention_kernel(AttentionPass::OfRow, kind).text, "-arch=sm_90a"))
          << features << " in clusters";
    }
  // In the registers that a processor has for the groups it is to hold.
  for (AttentionPass pass :
       {AttentionPass::Forward, AttentionPass::ByQuery, AttentionPass::ByKey, AttentionPass::BackwardOfHead})
    for (DType dtype : {kBFloat16, kFloat16})
      for (bool causal : {false, true}) {
        runtime::cuda::AttentionKind kind{dtype, 64, causal && pass != AttentionPass::BackwardOfHead};
        kind.grouped = true;
        kind.summed = pass != AttentionPass::Forward;
        EXPECT_TRUE(test::assembles(runtime::cuda::attention_kernel(pass, kind).text,
                                    "-arch=sm_90a --warn-on-spills --warning-as-error"))
            << static_cast<int>(pass) << " " << name(dtype) << causal;
      }
  for (AttentionPass pass : {AttentionPass::ByQuery, AttentionPass::ByKey})
    for (DType dtype : {kBFloat16, kFloat32})
      EXPECT_TRUE(
          test::assembles(runtime::cuda::attention_kernel(pass, {dtype, 64, true, true, true}).text, "-arch=sm_90a"))
          << static_cast<int>(pass);
}

}  // namespace
}  // namespace brasa
