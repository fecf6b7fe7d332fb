#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "gpu/on_device.h"
#include "runtime/cuda/tiled_product.h"
#include "support/str.h"

// Products by a kernel of our own are what cuBLASLt gives, rounded in another order.
namespace brasa {
namespace {

TEST(TiledProduct, AsCublasLt) {
  if (device_count(kCUDA) == 0) GTEST_SKIP() << "there is no GPU";
  if (!runtime::cuda::have_products()) GTEST_SKIP() << "there is no cuBLASLt";
  runtime::Device& device = runtime::device_of(kCUDA);
  struct Sizes {
    int64_t rows, columns, inner;
  };
  for (DType dtype : {kBFloat16, kFloat16})
    for (Sizes s : {Sizes{12608, 3072, 768}, {12608, 768, 3072}, {300, 520, 800}, {1, 8, 8}, {17000, 264, 64}})
      for (bool along : {true, false}) {
        TensorOptions there = TensorOptions(kCUDA).dtype(dtype);
        auto random = [&](std::vector<int64_t> sizes) { return randn(sizes).to(dtype).to(kCUDA); };
        Tensor left = random({s.rows, s.inner}), bias = random({s.columns});
        Tensor right = random(along ? std::vector{s.columns, s.inner} : std::vector{s.inner, s.columns});
        Tensor got = empty({s.rows, s.columns}, there), want = empty({s.rows, s.columns}, there);
        runtime::cuda::Product p{dtype,
                                 dtype,
                                 s.rows,
                                 s.inner,
                                 s.columns,
                                 1,
                                 {left.data_ptr(), s.inner, 1, 0},
                                 {right.data_ptr(), along ? 1 : s.columns, along ? s.inner : 1, 0},
                                 bias.data_ptr(),
                                 got.data_ptr(),
                                 s.columns,
                                 0};
        const runtime::cuda::Epilogue none;
        if (!takes_tiled_product(p, {none}, device)) GTEST_SKIP() << "the kernel is not for this GPU";
        run_tiled_product(p, {none}, device, runtime::kDefaultStream);
        p.to = want.data_ptr();
        run_product(p, device, runtime::kDefaultStream);
        Tensor x = got.cpu().to(kFloat64), y = want.cpu().to(kFloat64);
        double bound = dtype == kBFloat16 ? 0x1p-8 : 0x1p-11;
        EXPECT_LE((x - y).norm().item<double>(), bound * y.norm().item<double>())
            << name(dtype) << " " << s.rows << " x " << s.inner << " by " << s.columns
            << (along ? " along" : " across");
      }
}

// A layer's activation and its derivative, behind products.
TEST(TiledProduct, OfTraining) {
  if (device_count(kCUDA) == 0) GTEST_SKIP() << "there is no GPU";
  manual_seed(6);
  TensorOptions there = TensorOptions(kCUDA).dtype(kBFloat16);
  auto leaf = [&](IntArrayRef sizes, double scale) {
    return (randn(sizes) * scale).to(there).detach().requires_grad_(true);
  };
  for (int64_t rows : {17000, 2000}) {
    Tensor x = leaf({rows, 256}, 1), w = leaf({1024, 256}, 0.06), b = leaf({1024}, 1), v = leaf({256, 1024}, 0.03);
    auto f = [](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& v) {
      Tensor y = linear(x, w, b), z = y.to(kFloat32);
      Tensor loss = (linear(gelu(y), v) + linear((z * z).to(kBFloat16), v)).to(kFloat32).square().sum();
      return autograd::grad({loss}, {x, w, b, v});
    };
    auto want = f(x, w, b, v);
    // Computed again for the derivative, and not.
    for (const char* mode : {"default", "max-autotune"}) {
      auto got = compile(f, {.mode = mode})(x, w, b, v);
      for (size_t i = 0; i < want.size(); ++i) {
        Tensor y = want[i].cpu().to(kFloat64);
        EXPECT_LE((got[i].cpu().to(kFloat64) - y).norm().item<double>(), 0x1p-6 * y.norm().item<double>())
            << mode << " " << rows << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace brasa
