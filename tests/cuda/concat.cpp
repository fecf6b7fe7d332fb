#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include "../ptxas.h"
#include "fake.h"
#include "runtime/cuda/concat.h"
#include "support/str.h"

// Concatenations by a kernel of our own, whose text the fake driver runs: nothing else computes anything there.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

// Parts of different lengths, some empty, that begin at any multiple of their elements' size.
void check(DType dtype, std::vector<int64_t> sizes, int64_t dim, int count, int64_t step) {
  std::vector<Tensor> here, there;
  for (int i = 0; i < count; ++i) {
    sizes[dim] = step * (i % 5);
    Tensor x = randint(0, 100, sizes).to(dtype);
    here.push_back(x);
    there.push_back(x.to(kCUDA));
  }
  int64_t before = runtime::host_steps();
  test::Counted kernels(test::fake_driver(), "written kernel");
  Tensor got = cat(there, dim), compiled = compile([&](const std::vector<Tensor>& x) { return cat(x, dim); })(there);
  EXPECT_EQ(kernels(), 2 * ((count - (count + 4) / 5 + 31) / 32));
  EXPECT_EQ(runtime::host_steps(), before);
  Tensor want = cat(here, dim);
  std::string what = str(name(dtype), " ", sizes, " along ", dim, " ", count);
  EXPECT_TRUE(got.cpu().equal(want)) << what;
  EXPECT_TRUE(compiled.cpu().equal(want)) << what;
}

TEST(Concat, ManyTensors) {
  for (DType dtype : {kBool, kInt16, kFloat32, kInt64})
    for (int64_t dim : {0, 1, 2})
      for (int64_t step : {1, 8}) check(dtype, {3, 5, 4}, dim, 20, step);
  check(kFloat32, {2, 3}, 1, 100, 3);
  check(kBFloat16, {1, 3000}, 0, 9, 1);
}

// Parts that lie in a tensor without gaps are read there: nothing else is launched.
TEST(Concat, PartsOfATensor) {
  Tensor x = randn({40, 6, 5});
  auto joined = [](const Tensor& t) { return cat(t.unbind(0), 1); };
  auto sorted = [](const Tensor& t) { return std::get<0>(t.select(0, 3).sort(0)); };
  int before = test::fake_driver().calls("cuLaunchKernel");
  EXPECT_TRUE(compile(joined)(x.to(kCUDA)).cpu().equal(joined(x)));
  EXPECT_EQ(test::fake_driver().calls("cuLaunchKernel") - before, 2);
  EXPECT_TRUE(compile(sorted)(x.to(kCUDA)).cpu().equal(sorted(x)));
  EXPECT_EQ(test::fake_driver().calls("cuLaunchKernel") - before, 3);
}

TEST(Concat, Assembles) {
  if (!test::have_ptxas()) GTEST_SKIP() << "there is no ptxas";
  for (int unit : {1, 2, 4, 8, 16})
    EXPECT_TRUE(
        test::assembles(runtime::cuda::concat_kernel({unit}).text, "-arch=sm_80 --warn-on-spills --warning-as-error"))
        << unit;
}

}  // namespace
}  // namespace brasa
