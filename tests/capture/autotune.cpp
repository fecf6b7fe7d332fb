// mode "max-autotune": kernels are measured on tensors of the example call's sizes, whatever those are.
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <vector>

#include "values.h"

namespace brasa {
namespace {

// Sizes of the parts of which the gradient is made are large expressions, for which the compiler defines symbols.
TEST(MaxAutotune, SizesThatAreLargeExpressions) {
  Tensor w = numbers({2, 2, 3, 3}).clone().requires_grad_();
  auto f = [&](const Tensor& x) { return conv_transpose2d(x, w, {}, {2, 2}, {1, 1}, {1, 1}); };
  auto compiled = compile(f, {.mode = "max-autotune", .dynamic = true});
  for (int64_t size : {4, 5, 7}) {
    auto gradients = [&](const auto& function) {
      Tensor x = numbers({2, 2, size, size + 1}).clone().requires_grad_();
      w.mutable_grad() = Tensor();
      function(x).square().sum().backward();
      return std::vector<Tensor>{x.grad(), w.grad()};
    };
    std::vector<Tensor> expected = gradients(f), got = gradients(compiled);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(allclose(got[i], expected[i], 1e-4, 1e-4)) << size;
  }
}

}  // namespace
}  // namespace brasa
