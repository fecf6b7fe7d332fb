#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <random>

#include "../ptxas.h"
#include "fake.h"
#include "runtime/cuda/small_product.h"
#include "support/str.h"

// Products of small matrices by a kernel of our own, whose text the fake driver runs: nothing else computes anything there.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

using runtime::cuda::Product;
using runtime::cuda::SmallProductKind;

// Three matrices, of which the last two are multiplied, in parts of larger ones that hold NaN elsewhere.
struct Operand {
  Operand(int64_t rows, int64_t columns, bool turned, int64_t gap, DType dtype) {
    int64_t y = turned ? columns : rows, x = turned ? rows : columns;
    Tensor whole = full({3, y + 1, x + gap}, NAN).to(dtype);
    host = whole.slice(0, 1).slice(1, 0, y).slice(2, 0, x);
    host.copy_(randn(host.sizes()));
    all = whole.to(kCUDA);
    row = x + gap;
    batch = (y + 1) * row;
    if (turned) host = host.transpose(1, 2);
  }
  void* data() const {
    return static_cast<std::byte*>(all.data_ptr()) + batch * static_cast<int64_t>(all.element_size());
  }
  Tensor host, all;
  int64_t row, batch;
};

struct Case {
  int64_t rows, inner, columns;
  bool left_turned = false, right_turned = true, bias = true;
  int64_t gap = 8;  // elements between rows
  int64_t count = 1;
};

void check(DType dtype, DType result_dtype, const Case& c) {
  std::string what = str(name(dtype), " to ", name(result_dtype), ", ", c.count, " of ", c.rows, " x ", c.inner, " x ",
                         c.columns, " turned ", c.left_turned, c.right_turned, ", gap ", c.gap);
  Operand left(c.rows, c.inner, c.left_turned, c.gap, dtype), right(c.inner, c.columns, c.right_turned, c.gap, dtype);
  Operand result(c.rows, c.columns, false, c.gap, result_dtype);
  Tensor bias = randn({c.columns}).to(result_dtype), bias_there = bias.to(kCUDA);
  auto matrix = [](const Operand& o, bool turned) {
    return runtime::cuda::Matrix{o.data(), turned ? 1 : o.row, turned ? o.row : 1, o.batch};
  };
  Product p{dtype,
            result_dtype,
            c.rows,
            c.inner,
            c.columns,
            c.count,
            matrix(left, c.left_turned),
            matrix(right, c.right_turned),
            c.bias ? bias_there.data_ptr() : nullptr,
            result.data(),
            result.row,
            result.batch};
  runtime::Device& device = runtime::device_of(kCUDA);
  run_small_product(p, device, runtime::kDefaultStream);

  Tensor want = left.host.to(kFloat64).matmul(right.host.to(kFloat64));
  if (c.bias) want = want + bias.to(kFloat64);
  Tensor whole = result.all.cpu().to(kFloat64), got = whole.slice(0, 1).slice(1, 0, c.rows).slice(2, 0, c.columns);
  // Sums of float32, which are rounded once.
  double bound = result_dtype == kBFloat16 ? 0x1p-8 : result_dtype == kFloat16 ? 0x1p-11 : 2e-6;
  EXPECT_LE((got - want).slice(0, 0, c.count).norm().item<double>(),
            bound * want.slice(0, 0, c.count).norm().item<double>())
      << what;
  // Nothing else is written.
  int64_t others = whole.numel() - c.count * c.rows * c.columns;
  Tensor unwritten = result.host.to(kFloat64).slice(0, c.count);
  EXPECT_EQ(whole.isnan().sum().item<int64_t>(), others - unwritten.numel()) << what;
}

TEST(SmallProducts, Kernels) {
  manual_seed(3);
  for (auto [dtype, result] :
       {std::pair{kFloat32, kFloat32}, {kBFloat16, kBFloat16}, {kFloat16, kFloat16}, {kBFloat16, kFloat32}})
    for (bool left_turned : {false, true})
      for (bool right_turned : {false, true}) {
        check(dtype, result, {64, 64, 64, left_turned, right_turned});
        check(dtype, result, {33, 70, 5, left_turned, right_turned, false, 3});
        check(dtype, result, {1, 300, 40, left_turned, right_turned, true, 8, 2});
      }
  for (DType dtype : {kFloat32, kFloat16})
    for (Case c : {Case{1, 1, 1},
                   {5, 1024, 7},
                   {100, 9, 65},
                   {3, 32, 33, false, true, true, 0},
                   {70, 16, 2, true, false, false, 0, 2}})
      check(dtype, dtype, c);
}

// Drawn at random.
TEST(SmallProducts, AnySizes) {
  std::mt19937 random(11);
  manual_seed(11);
  auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  for (int i = 0; i < 30; ++i) {
    DType dtype = std::array{kFloat32, kBFloat16, kFloat16}[static_cast<size_t>(draw(0, 2))];
    Case c{draw(1, 70),     draw(1, 140),    draw(1, 70), draw(0, 1) == 1,
           draw(0, 1) == 1, draw(0, 1) == 1, draw(0, 9),  draw(1, 2)};
    check(dtype, dtype, c);
  }
}

// An infinite or undefined element is in the results that are made of it, and in no other one.
TEST(SmallProducts, InfiniteAndUndefined) {
  for (DType dtype : {kFloat32, kBFloat16}) {
    Tensor x = ones({40, 21}).to(dtype), w = ones({37, 21}).to(dtype);
    x[39][20] = INFINITY;
    w[36][20] = NAN;
    Tensor got = linear(x.to(kCUDA), w.to(kCUDA)).cpu().to(kFloat32);
    EXPECT_TRUE(got.slice(0, 0, 39).slice(1, 0, 36).eq(21).all().item<bool>());
    EXPECT_TRUE(got[39].slice(0, 0, 36).isinf().all().item<bool>());
    EXPECT_TRUE(got.select(1, 36).isnan().all().item<bool>());
  }
}

// Small layers and their gradients are calls of the kernel, and none of the library, eagerly and compiled.
TEST(SmallProducts, LayersWithGradients) {
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& b) { return linear(x, w, b); };
  for (DType dtype : {kFloat32, kBFloat16})
    for (bool compiled : {false, true}) {
      Tensor x = randn({9, 24}).to(dtype).to(kCUDA), w = randn({40, 24}).to(dtype).to(kCUDA);
      Tensor b = randn({40}).to(dtype).to(kCUDA);
      for (Tensor* t : {&x, &w, &b}) t->requires_grad_();
      test::Counted products(test::fake_cublaslt(), "cublasLtMatmul"), small(test::fake_driver(), "small_");
      Tensor y = compiled ? compile(f)(x, w, b) : f(x, w, b);
      y.backward(ones_like(y));
      EXPECT_EQ(products(), 0);
      EXPECT_EQ(small(), 3);
    }
}

TEST(SmallProducts, WhatTheyLeave) {
  runtime::Device& device = runtime::device_of(kCUDA);
  auto takes = [&](auto&& change) {
    Product p{kFloat32, kFloat32, 64, 64, 64, 1, {nullptr, 64, 1, 0}, {nullptr, 1, 64, 0}, nullptr, nullptr, 64, 0};
    change(p);
    return takes_small_product(p, device);
  };
  EXPECT_TRUE(takes([](Product&) {}));
  EXPECT_FALSE(takes([](Product& p) { p.operands = p.result = kFloat64; }));
  EXPECT_FALSE(takes([](Product& p) { p.inner = 0; }));
  EXPECT_FALSE(takes([](Product& p) { p.rows = 1 << 20; }));
  EXPECT_FALSE(takes([](Product& p) { p.inner = 1 << 20; }));
  EXPECT_FALSE(takes([](Product& p) { p.rows = p.columns = p.count = int64_t{1} << 40; }));
  set_float32_matmul_precision("high");
  EXPECT_FALSE(takes([](Product&) {}));
  EXPECT_TRUE(takes([](Product& p) { p.operands = p.result = kBFloat16; }));
  set_float32_matmul_precision("highest");
}

TEST(SmallProducts, Assemble) {
  if (!test::have_ptxas()) GTEST_SKIP() << "there is no ptxas";
  for (DType dtype : {kFloat32, kBFloat16, kFloat16})
    for (bool left_along : {false, true})
      for (bool right_along : {false, true})
        for (bool early : {false, true})
          for (int warps : {2, 8}) {
            auto kernel =
                runtime::cuda::small_product_kernel({dtype, dtype, left_along, right_along, true, early, warps});
            std::string flags = early ? "-arch=sm_90a --warn-on-spills --warning-as-error" : "-arch=sm_80";
            EXPECT_TRUE(test::assembles(kernel.text, flags)) << kernel.name;
          }
}

}  // namespace
}  // namespace brasa
