#include <brasa/func.h>

#include "tensor/util.h"

namespace brasa {
namespace {

using namespace testing;

TEST(SparseTensors, UnderFunctionTransforms) {
  Tensor a = tensor({{0.0, 2.0, 0.0, 1.0}, {3.0, 0.0, 0.0, 0.0}}).to_sparse(), xs = randn({5, 4});
  auto f = [&](const Tensor& x) { return a.mv(x); };
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < 5; ++i) rows.push_back(f(xs[i]));
  EXPECT_TRUE(allclose(func::vmap(f)(xs), stack(rows), 1e-5, 1e-6));
  EXPECT_TRUE(allclose(func::jvp(f, xs[0], xs[1]).second[0], f(xs[1]), 1e-5, 1e-6));
  EXPECT_TRUE(contains(error_of([&] { func::vmap([](const Tensor& s) { return s * 2; })(a); }), "to_dense()"));
}

}  // namespace
}  // namespace brasa
