#include <brasa/autocast.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <gtest/gtest.h>

#include "fake.h"
#include "runtime/device.h"

// The row `cuda` on a fake driver: its kernels compute nothing, but its memory, its copies and the order of its calls are real.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Driver, Copies) {
  ASSERT_EQ(device_count(kCUDA), 1);
  Tensor x = arange(12, kFloat32).reshape({3, 4}), there = x.to(kCUDA);
  EXPECT_EQ(there.device().str(), "cuda:0");
  EXPECT_TRUE(there.cpu().equal(x));
  EXPECT_TRUE(there.to(kCUDA).is_same(there));
  auto [free, whole] = mem_get_info(kCUDA);
  EXPECT_LT(free, whole);
}

// A step after the first ones takes no memory from the driver, waits for nothing and loads nothing.
TEST(Driver, ASteadyStepOnlyLaunches) {
  nn::Sequential model(nn::Linear(24, 48), nn::GELU(), nn::Linear(48, 8));
  model->to(kCUDA);
  auto optimizer = std::make_shared<optim::Adam>(model->parameters(), optim::AdamOptions(1e-3));
  Tensor x = randn({16, 24}).to(kCUDA), target = randn({16, 8}).to(kCUDA);
  auto step = compile([=]() mutable {
    optimizer->zero_grad();
    Tensor loss;
    {
      AutocastMode autocast(kCUDA, kBFloat16, true);
      loss = nn::functional::mse_loss(model(x), target);
    }
    loss.backward();
    optimizer->step();
    return loss.detach();
  });
  for (int i = 0; i < 3; ++i) step();
  fakes::Control& driver = test::fake_driver();
  auto calls = [&] {
    std::vector<int> out;
    for (const char* f : {"cuMemAlloc_v2", "cuMemFree_v2", "cuStreamSynchronize", "cuCtxSynchronize",
                          "cuModuleLoadDataEx", "cuEventCreate", "cuMemcpyDtoHAsync_v2"})
      out.push_back(driver.calls(f));
    return out;
  };
  std::vector<int> before = calls();
  int launches = driver.calls("cuLaunchKernel");
  test::Counted products(driver, "small_"), with_bias(driver, "small_product_with_bias");
  step();
  EXPECT_EQ(calls(), before);
  EXPECT_GT(driver.calls("cuLaunchKernel"), launches);
  EXPECT_EQ(products(), 5);  // two layers, both by weight, one by input
  EXPECT_EQ(with_bias(), 2);
}

// From the third call on, a call of the driver for all of a function's launches, and one for each whose slots are others.
TEST(Driver, KeptLaunchesAreOneCall) {
  // The library has products of float64.
  TensorOptions there = TensorOptions(kCUDA).dtype(kFloat64);
  Tensor w = randn({64, 64}, there), u = randn({64, 64}, there), x = randn({8, 64}, there);
  auto f = compile([=](const Tensor& a, double scale) mutable { return ((a * scale).mm(w).tanh().mm(u) + 1).sum(); },
                   {.mode = "reduce-overhead", .dynamic = false});
  fakes::Control &driver = test::fake_driver(), &cublas = test::fake_cublaslt();
  std::vector<Tensor> kept;
  auto calls = [&](const Tensor& a) {
    test::Counted launches(driver, "cuLaunchKernel"), products(cublas, "cublasLtMatmul"),
        graphs(driver, "cuGraphLaunch"), made(driver, "cuGraphInstantiateWithFlags"),
        copies(driver, "cuMemcpyDtoDAsync_v2"), changed(driver, "cuGraphExecKernelNodeSetParams_v2");
    kept.push_back(f(a, 0.5));
    return std::vector<int>{launches() > 0, products(), graphs(), made(), copies(), changed()};
  };
  using Calls = std::vector<int>;
  EXPECT_EQ(calls(x), (Calls{1, 2, 0, 0, 0, 0}));
  EXPECT_EQ(calls(x), (Calls{1, 2, 1, 1, 0, 0}));
  EXPECT_EQ(calls(x), (Calls{0, 0, 1, 0, 0, 1}));  // the result is elsewhere
  Tensor other = x.clone();
  EXPECT_EQ(calls(other), (Calls{0, 0, 1, 0, 0, 2}));
  // The device cannot: launches are launches.
  auto g = compile([=](const Tensor& a) mutable { return a.mm(w).tanh(); }, {.mode = "max-autotune"});
  g(x);
  driver.fail("cuStreamEndCapture", 1, 901);
  test::Counted graphs(driver, "cuGraphLaunch");
  for (int i = 0; i < 3; ++i) g(x);
  // Nor is it worth it where kernels take long.
  Tensor large = empty({1 << 23}, TensorOptions(Device("cuda")));
  auto long_kernel = compile([](const Tensor& a) { return a.tanh(); }, {.mode = "reduce-overhead"});
  for (int i = 0; i < 3; ++i) long_kernel(large);
  EXPECT_EQ(graphs(), 0);
  // A library's operand that moved is copied.
  auto h = compile([=](const Tensor& a) mutable { return a.mm(w).tanh(); }, {.mode = "reduce-overhead"});
  for (int i = 0; i < 3; ++i) h(x);
  test::Counted made(driver, "cuGraphInstantiateWithFlags"), copies(driver, "cuMemcpyDtoDAsync_v2");
  for (int i = 0; i < 3; ++i) h(other);
  EXPECT_EQ(made(), 1);
  EXPECT_EQ(copies(), 3);
}

// A first part that needs few inputs is a call of its own, before the function has ended.
TEST(Driver, KeptLaunchesBeginWhileACallIsRecorded) {
  fakes::Control& driver = test::fake_driver();
  std::vector<Tensor> w;
  for (int i = 0; i < 5; ++i) w.push_back(randn({64, 64}).to(kCUDA));
  std::vector<int> begun;
  test::Counted graphs(driver, "cuGraphLaunch");
  auto body = [&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 6; ++i) y = y.mm(w[0]).tanh();
    for (size_t i = 1; i < w.size(); ++i) y = y.mm(w[i]).tanh();
    begun.push_back(graphs());
    return y;
  };
  auto f = compile(body, {.mode = "reduce-overhead"}), g = compile(body, {.mode = "reduce-overhead"});
  Tensor x = randn({8, 64}).to(kCUDA), other = x.clone();
  for (const Tensor& t : {x, x, x, x, other, x}) (void)f(t);
  // Two calls each from the second on, the first one early from the third on, where the inputs are those of the run before.
  EXPECT_EQ(begun, (std::vector<int>{0, 0, 3, 5, 6, 8}));
  // Where a library's operand behind it moves, all is kept anew, and what has begun does not count, although other work keeps the memory.
  for (int i = 0; i < 3; ++i) (void)g(x);
  w[2] = w[2].clone();
  test::Counted now(driver, "cuGraphLaunch"), made(driver, "cuGraphInstantiateWithFlags");
  (void)g(x);
  EXPECT_EQ(made(), 2);
  EXPECT_EQ(now(), 3);
}

// Its kernels may read before others have ended, so the first one is none that starts while what came before the run still writes.
TEST(Driver, TheFirstKernelOfAKeptRunWaits) {
  Tensor w = randn({64, 64}).to(kCUDA), x = randn({64, 64}).to(kCUDA);
  fakes::Control& driver = test::fake_driver();
  for (const char* mode : {"default", "reduce-overhead"}) {
    auto f = compile(
        [=](const Tensor& a) mutable {
          Tensor s = (a * w).sum(1);
          return (s / s.sum()).exp();
        },
        {.mode = mode});
    test::Counted launches(driver, "cuLaunchKernel"), early(driver, "cuLaunchKernelEx");
    f(x);
    EXPECT_GT(launches(), 1) << mode;
    EXPECT_EQ(launches() - early(), mode == std::string("default") ? 0 : 1) << mode;
  }
}

// Kernels that are the same and touch nothing of each other's are one launch: updates, and the sums that they read.
TEST(Driver, EqualKernelsShareALaunch) {
  std::vector<Tensor> weights, gradients;
  for (int i = 0; i < 7; ++i) {
    weights.push_back(randn({48}).to(kCUDA));
    gradients.push_back(randn({60, 48}).to(kCUDA));
  }
  auto step = compile([=]() mutable {
    NoGradGuard no_grad;
    for (size_t i = 0; i < weights.size(); ++i) weights[i].sub_(gradients[i].sum(0) * 0.1);
  });
  step();
  fakes::Control& driver = test::fake_driver();
  int launches = driver.calls("cuLaunchKernel");
  step();
  EXPECT_LE(driver.calls("cuLaunchKernel") - launches, 2);
}

// What checks look at does not keep work from beginning early: they are made when the call is known to be the same.
TEST(Driver, WorkBeginsBeforeItsChecks) {
  Tensor table = randn({50, 16}).to(kCUDA), w = randn({16, 16}).to(kCUDA), i = randint(50, {8}, kInt64).to(kCUDA);
  fakes::Control& driver = test::fake_driver();
  auto launches = [&] { return driver.calls("cuLaunchKernel") + test::fake_cublaslt().calls("cublasLtMatmul"); };
  int before = 0, early = 0;
  auto f = compile([&](const Tensor& index) {
    before = launches();
    Tensor h = table.index_select(0, index).mm(w).tanh().mm(w);
    early = launches() - before;
    return h.sum();
  });
  for (int call = 0; call < 4; ++call) f(i);
  EXPECT_GT(early, 0);
}

// What a function was the last time begins while it is recorded; if it goes on in another way, nothing has happened.
TEST(Driver, WorkBeginsWhileACallRecords) {
  Tensor w = randn({64, 64}).to(kCUDA), v = randn({64, 64}).to(kCUDA), x = randn({8, 64}).to(kCUDA);
  fakes::Control& driver = test::fake_driver();
  auto launches = [&] { return driver.calls("cuLaunchKernel") + test::fake_cublaslt().calls("cublasLtMatmul"); };
  bool other = false;
  int before = 0, early = 0;
  auto f = compile([&](const Tensor& a) {
    before = launches();
    Tensor h = a.mm(w).tanh().mm(w).tanh().mm(v);
    early = launches() - before;
    return other ? h.exp().sum() : h.sin().sum();
  });
  for (int i = 0; i < 4; ++i) {
    f(x);
    EXPECT_EQ(early > 0, i > 0) << i;
    EXPECT_GT(launches() - before, early) << i;
  }
  int whole = launches() - before;
  other = true;
  for (int i = 0; i < 6; ++i) f(x);
  EXPECT_EQ(launches() - before, whole);
  other = false;
  // A trace that is left again and again does not begin any more.
  for (int i = 0; i < 12; ++i) other = !other, f(x);
  EXPECT_EQ(early, 0);
  EXPECT_EQ(launches() - before, whole);
}

TEST(Driver, FailuresAreErrors) {
  Tensor x = ones({4}).to(kCUDA);
  (x + x).cpu();
  fakes::Control& driver = test::fake_driver();
  driver.fail("cuLaunchKernel", 1, 700);
  EXPECT_NE(message([&] { (void)(x + x).cpu(); }).find("cuLaunchKernelEx failed: CUDA_ERROR_FAKE (injected)"),
            std::string::npos);
  driver.fail("cuStreamSynchronize", 1, 719);
  EXPECT_NE(message([&] { (void)x.cpu(); }).find("cuStreamSynchronize failed"), std::string::npos);
  driver.fail("cuModuleLoadDataEx", 1, 218);
  EXPECT_NE(message([&] { (void)(x.to(kFloat64).atan2(x.to(kFloat64))).cpu(); }).find("cuModuleLoadDataEx"),
            std::string::npos);
  (x + x).cpu();
}

TEST(Driver, MemoryThatIsNotThere) {
  EXPECT_THROW(empty({int64_t{1} << 40}, TensorOptions(Device("cuda"))), OutOfMemoryError);
  fakes::Control& driver = test::fake_driver();
  // Kept memory goes back before the second try.
  {
    Tensor kept = empty({1 << 24}, TensorOptions(Device("cuda")));
  }
  driver.fail("cuMemAlloc_v2", 1, 2);
  int freed = driver.calls("cuMemFree_v2");
  Tensor x = empty({1 << 26}, TensorOptions(Device("cuda")));
  EXPECT_GT(driver.calls("cuMemFree_v2"), freed);
  EXPECT_EQ(x.numel(), 1 << 26);
}

}  // namespace
}  // namespace brasa
