#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/elements.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "../ptxas.h"
#include "fake.h"
#include "runtime/cuda/tiled_product.h"
#include "support/str.h"

// Products of reduced floats by a kernel of our own, whose text the fake driver runs: nothing else computes anything there.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

using runtime::cuda::AfterProduct;
using runtime::cuda::Epilogue;
using runtime::cuda::Product;
using runtime::cuda::TiledProductKind;
using Op = Epilogue::Op;

Epilogue::Step number(float v) { return {Op::Number, {}, std::bit_cast<uint32_t>(v)}; }
const Epilogue kNone,
    kSquare = {{number(1), {Op::Fma, {0, 0, 1}}}, {2}},
    kLeaky = {{number(0), {Op::Less, {0, 1}}, number(-0.5), {Op::Mul, {0, 3}}, {Op::Select, {2, 4, 0}}}, {5}},
    kAll = {{number(3),
             {Op::Abs, {0}},
             {Op::Add, {2, 1}},
             {Op::Reciprocal, {3}},
             {Op::Rsqrt, {3}},
             {Op::Min, {4, 5}},
             {Op::Max, {6, 0}},
             {Op::Neg, {7}},
             {Op::Exp2, {8}},
             {Op::Sub, {9, 4}},
             // And bits: its sign apart, and both together again.
             {Op::Number, {}, 0x7fffffff},
             {Op::And, {10, 11}},
             {Op::Xor, {10, 12}},
             {Op::Shl, {13}, 0},
             {Op::Xor, {12, 14}}},
            {15}},
    // Of another matrix, too: x + 2 y, and with y² before it.
    kOfTwo = {{number(2), {Op::Fma, {2, 1, 0}}}, {3}, 2},
    kTwoOfTwo = {{number(2), {Op::Fma, {2, 1, 0}}, {Op::Mul, {1, 1}}}, {4, 3}, 2};

double square(double x, double) { return x * x + 1; }
double leaky(double x, double) { return x < 0 ? -0.5 * x : x; }
double all(double x, double) {
  double y = std::fabs(x) + 3;
  return std::exp2(-std::fmax(std::fmin(1 / y, 1 / std::sqrt(y)), x)) - 1 / y;
}
double of_two(double x, double y) { return x + 2 * y; }
// With the elements themselves before what they become.
Epilogue with_elements(Epilogue e) {
  e.results.insert(e.results.begin(), 0);
  return e;
}
const Epilogue kLeakyToo = with_elements(kLeaky), kSquareToo = with_elements(kSquare);

struct Case {
  int64_t rows, columns, inner;
  bool right_along_sum, bias;
  const Epilogue* epilogue = &kNone;
  double (*computes)(double x, double other) = [](double x, double) { return x; };
};

// Rows in the device's memory, with something else between them.
template <class T>
class Rows {
 public:
  Rows(int64_t rows, int64_t columns, runtime::Device& device) : step((columns + 7) / 8 * 8 + 8), device_(device) {
    static std::mt19937 random(5);
    std::uniform_real_distribution<float> uniform(-1, 1);
    all.reserve(static_cast<size_t>(rows * step));
    for (int64_t i = 0; i < rows * step; ++i) all.emplace_back(i % step < columns ? uniform(random) : NAN);
    data = device.allocate(bytes(), runtime::kDefaultStream);
    device.upload(data, all.data(), bytes(), runtime::kDefaultStream);
  }
  ~Rows() { device_.deallocate(data, bytes(), runtime::kDefaultStream); }
  Rows(const Rows&) = delete;
  double operator()(int64_t row, int64_t column) const {
    return double{static_cast<float>(all[static_cast<size_t>(row * step + column)])};
  }
  void download() { device_.download(all.data(), data, bytes(), runtime::kDefaultStream); }

  int64_t step;
  void* data;
  std::vector<T> all;

 private:
  size_t bytes() const { return all.size() * sizeof(T); }
  runtime::Device& device_;
};

template <class T>
void check(DType dtype, const Case& c) {
  std::string what = str(name(dtype), " ", c.rows, " x ", c.inner, " by ", c.inner, " x ", c.columns,
                         c.right_along_sum ? " along" : " across", c.bias ? " with bias" : "");
  runtime::Device& device = runtime::device_of(kCUDA);
  Rows<T> left(c.rows, c.inner, device), bias(1, c.columns, device), result(c.rows, c.columns, device),
      first(c.rows, c.columns, device), other(c.rows, c.columns, device);
  Rows<T> right(c.right_along_sum ? c.columns : c.inner, c.right_along_sum ? c.inner : c.columns, device);
  Product p{dtype,
            dtype,
            c.rows,
            c.inner,
            c.columns,
            1,
            {left.data, left.step, 1, 0},
            {right.data, c.right_along_sum ? 1 : right.step, c.right_along_sum ? right.step : 1, 0},
            c.bias ? bias.data : nullptr,
            result.data,
            result.step,
            0};
  AfterProduct after{*c.epilogue, other.data, other.step, first.data, first.step};
  ASSERT_TRUE(takes_tiled_product(p, after, device)) << what;
  run_tiled_product(p, after, device, runtime::kDefaultStream);
  result.download();
  first.download();
  // What is rounded twice, to a number that may lie on the other side of a middle.
  double bound = dtype == kBFloat16 ? 0x1p-6 : 0x1p-9;
  int64_t wrong = 0, changed = 0;
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < result.step; ++j) {
      if (j >= c.columns) {
        changed += !std::isnan(result(i, j)) || !std::isnan(first(i, j));
        continue;
      }
      float sum = 0;
      for (int64_t k = 0; k < c.inner; ++k)
        sum += static_cast<float>(left(i, k) * (c.right_along_sum ? right(j, k) : right(k, j)));
      T x(sum + (c.bias ? static_cast<float>(bias(0, j)) : 0));
      auto differs = [&](double got, double want) { return !(std::fabs(got - want) <= bound * (std::fabs(want) + 1)); };
      double element{static_cast<float>(x)}, y = other(i, j);
      wrong += differs(result(i, j), c.computes(element, y));
      if (c.epilogue->writes_two()) wrong += differs(first(i, j), c.epilogue->reads_other() ? y * y : element);
    }
  EXPECT_EQ(wrong, 0) << what;
  EXPECT_EQ(changed, 0) << what << ", between rows";
}

TEST(TiledProduct, OfManySizes) {
  check<BFloat16>(kBFloat16, {1, 8, 8, true, false});
  check<BFloat16>(kBFloat16, {1, 8, 8, false, true});
  check<Half>(kFloat16, {100, 200, 64, true, true, &kSquare, square});
  check<Half>(kFloat16, {100, 200, 72, false, false, &kLeaky, leaky});
  check<BFloat16>(kBFloat16, {130, 256, 600, true, true, &kLeaky, leaky});
  check<BFloat16>(kBFloat16, {130, 256, 600, false, true, &kAll, all});
  check<Half>(kFloat16, {300, 520, 72, false, true});
  check<BFloat16>(kBFloat16, {300, 520, 800, true, false, &kAll, all});
  check<BFloat16>(kBFloat16, {130, 264, 72, true, true, &kLeakyToo, leaky});
  check<Half>(kFloat16, {130, 264, 72, false, false, &kSquareToo, square});
  check<BFloat16>(kBFloat16, {5, 13, 7, false, false});
  check<BFloat16>(kBFloat16, {130, 264, 72, false, false, &kOfTwo, of_two});
  check<Half>(kFloat16, {100, 520, 72, true, true, &kOfTwo, of_two});
  check<BFloat16>(kBFloat16, {130, 264, 72, true, true, &kTwoOfTwo, of_two});
}

// More tiles than processors: what is kept of one is written while the next one is multiplied, or at once where sums are short.
TEST(TiledProduct, BlocksGoOn) {
  const int64_t rows = 128 * (runtime::device_of(kCUDA).properties().processors + 2);
  check<BFloat16>(kBFloat16, {rows, 8, 520, true, true, &kSquare, square});
  check<Half>(kFloat16, {rows, 8, 72, false, false, &kLeaky, leaky});
  check<BFloat16>(kBFloat16, {rows, 8, 520, true, true, &kLeakyToo, leaky});
  check<BFloat16>(kBFloat16, {rows / 2, 264, 520, false, false, &kOfTwo, of_two});
  check<BFloat16>(kBFloat16, {rows / 2, 264, 72, false, false, &kOfTwo, of_two});
  check<Half>(kFloat16, {rows / 2, 264, 520, false, true, &kTwoOfTwo, of_two});
}

// A product whose operands lie well; nothing is computed.
Product described() {
  auto* somewhere = reinterpret_cast<void*>(1024);
  return {kBFloat16, kBFloat16, 100, 64, 200, 1, {somewhere, 64, 1, 0}, {somewhere, 1, 64, 0},
          somewhere, somewhere, 200, 0};
}

TEST(TiledProduct, WhatItLeaves) {
  runtime::Device& device = runtime::device_of(kCUDA);
  auto takes = [&](auto&& change) {
    Product p = described();
    change(p);
    return takes_tiled_product(p, {kNone}, device);
  };
  auto* odd = reinterpret_cast<void*>(1032);
  EXPECT_TRUE(takes([](auto&) {}));
  EXPECT_TRUE(takes([](auto& p) { p.right.row = 200, p.right.column = 1; }));
  EXPECT_TRUE(takes([](auto& p) { p.rows = 1, p.left.row = p.to_row = 3; }));  // one row has no step
  EXPECT_TRUE(takes([](auto& p) { p.rows = 0; }));
  EXPECT_FALSE(takes([](auto& p) { p.inner = 0; }));
  EXPECT_FALSE(takes([](auto& p) { p.operands = p.result = kFloat32; }));
  EXPECT_FALSE(takes([](auto& p) { p.result = kFloat32; }));
  EXPECT_FALSE(takes([](auto& p) { p.count = 2; }));
  EXPECT_FALSE(takes([](auto& p) { p.left.column = 2; }));
  EXPECT_FALSE(takes([](auto& p) { p.left.row = 68; }));
  EXPECT_FALSE(takes([](auto& p) { p.left.row = 0; }));  // the same row again
  EXPECT_FALSE(takes([](auto& p) { p.right.row = 2; }));
  EXPECT_FALSE(takes([](auto& p) { p.right.column = 60; }));
  EXPECT_FALSE(takes([](auto& p) { p.to_row = 204; }));
  EXPECT_FALSE(takes([](auto& p) { p.columns = 199; }));  // the bias is read in pairs
  EXPECT_TRUE(takes([](auto& p) { p.columns = 199, p.bias = nullptr; }));
  EXPECT_FALSE(takes([&](auto& p) { p.left.data = odd; }));
  EXPECT_FALSE(takes([&](auto& p) { p.right.data = odd; }));
  EXPECT_FALSE(takes([&](auto& p) { p.to = odd; }));
  EXPECT_FALSE(takes([&](auto& p) { p.bias = reinterpret_cast<void*>(1026); }));
  EXPECT_FALSE(takes([](auto& p) { p.inner = p.left.row = p.right.column = int64_t{1} << 31; }));
}

TEST(TiledProduct, Failures) {
  runtime::Device& device = runtime::device_of(kCUDA);
  auto run = [&](int64_t rows) {
    Product p = described();
    p.rows = rows;
    run_tiled_product(p, {kNone}, device, runtime::kDefaultStream);
  };
  test::Counted launches(test::fake_driver(), "cuLaunchKernelEx");
  run(0);
  EXPECT_EQ(launches(), 0);
  for (const char* function : {"cuTensorMapEncodeTiled", "cuLaunchKernelEx"}) {
    test::fake_driver().fail(function, 1, 1);
    EXPECT_THROW(run(100), runtime::DeviceError) << function;
  }
}

double difference(const Tensor& got, const Tensor& want) {
  return (got.cpu() - want).to(kFloat64).norm().item<double>() / want.norm().item<double>();
}

// As many tiles as processors, so that the kernel is the way: the CPU's results, and what the function is of, for its derivative.
TEST(TiledProduct, ActivationsOfCompiledLayers) {
  manual_seed(4);
  NoGradGuard no_grad;
  int64_t rows = 128 * runtime::device_of(kCUDA).properties().processors;
  Tensor x = randn({rows, 8}).to(kBFloat16), w = randn({256, 8}).to(kBFloat16), b = randn({256}).to(kBFloat16);
  for (const char* approximate : {"none", "tanh"}) {
    auto f = [=](const Tensor& x, const Tensor& w, const Tensor& b) {
      Tensor y = linear(x, w, b);
      return std::vector<Tensor>{gelu(y, approximate), y};
    };
    auto compiled = compile(f);
    std::vector<Tensor> got = compiled(x.to(kCUDA), w.to(kCUDA), b.to(kCUDA)), want = f(x, w, b);
    for (size_t i : {0, 1}) EXPECT_LE(difference(got[i], want[i]), 1e-3) << approximate << " " << i;
  }
}

// With another tensor, and what is made of that alone beside it.
TEST(TiledProduct, FunctionsOfTwoTensors) {
  manual_seed(5);
  NoGradGuard no_grad;
  int64_t rows = 64 * runtime::device_of(kCUDA).properties().processors;
  Tensor x = randn({2, rows, 8}).to(kBFloat16), w = randn({256, 8}).to(kBFloat16),
         h = randn({2, rows, 256}).to(kBFloat16);
  for (bool both : {false, true}) {
    auto f = [=](const Tensor& x, const Tensor& w, const Tensor& h) {
      Tensor y = h.to(kFloat32);
      std::vector<Tensor> out = {(linear(x, w).to(kFloat32) * sigmoid(y)).to(kBFloat16)};
      if (both) out.push_back(tanh(h));
      return out;
    };
    auto compiled = compile(f);
    std::vector<Tensor> want = f(x, w, h);
    test::Counted products(test::fake_cublaslt(), "cublasLtMatmul");
    std::vector<Tensor> got = compiled(x.to(kCUDA), w.to(kCUDA), h.to(kCUDA));
    EXPECT_EQ(products(), 0);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]), 4e-3) << both << " " << i;
  }
}

// The derivative of a layer's activation is behind the product by the next layer's weights.
TEST(TiledProduct, OfTraining) {
  int64_t rows = 128 * runtime::device_of(kCUDA).properties().processors;
  auto leaf = [](IntArrayRef sizes) { return zeros(sizes, TensorOptions(kCUDA).dtype(kBFloat16).requires_grad(true)); };
  Tensor x = leaf({rows, 8}), w = leaf({256, 8}), b = leaf({256}), v = leaf({8, 256});
  auto compiled = compile([](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& v) {
    Tensor y = linear(x, w, b).to(kFloat32), loss = linear((y * y).to(kBFloat16), v).to(kFloat32).square().mean();
    return autograd::grad({loss}, {x, w, b, v});
  });
  test::Counted products(test::fake_cublaslt(), "cublasLtMatmul"), small(test::fake_driver(), "small_");
  compiled(x, w, b, v);
  // Of six: the others are the second layer's, and the gradients by the weights and by x.
  EXPECT_EQ(products() + small(), 4);
}

TEST(TiledProduct, Assembles) {
  if (!test::have_ptxas()) GTEST_SKIP() << "there is no ptxas";
  for (const TiledProductKind& kind : {TiledProductKind{kBFloat16, true, true, kAll},
                                       {kFloat16, false, true, kLeaky},
                                       {kBFloat16, true, true, with_elements(kAll)},
                                       {kBFloat16, false, false, kOfTwo},
                                       {kFloat16, true, true, kTwoOfTwo},
                                       {kFloat16, true, false, kNone}}) {
    runtime::cuda::WrittenKernel kernel = tiled_product_kernel(kind);
    EXPECT_TRUE(test::assembles(kernel.text, "-arch=sm_90a --warn-on-spills --warning-as-error")) << kernel.name;
  }
}

}  // namespace
}  // namespace brasa
