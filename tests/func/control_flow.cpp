#include <brasa/brasa.h>
#include <brasa/control_flow.h>
#include <gtest/gtest.h>

// Branches and loops: recorded in compiled functions and under func's transformations as they run eagerly, with gradients.
namespace brasa {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors&)>;  // of inputs, to one tensor

void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.defined(), b.defined());
  if (!a.defined()) return;
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.scalar_type(), b.scalar_type());
  EXPECT_TRUE(allclose(a, b, 1e-5, 1e-6)) << a << "\n" << b;
}

// Results and gradients, which a call of f leaves in its inputs.
Tensors run(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  Tensors fresh;
  for (const Tensor& t : inputs) {
    fresh.push_back(t.detach().clone());
    if (is_floating_point(t)) fresh.back().requires_grad_();
  }
  Tensor y = f(fresh);
  Tensors out{y};
  if (y.requires_grad()) y.square().sum().backward();
  for (const Tensor& t : fresh) out.push_back(t.grad());
  return out;
}

// f compiled gives what f gives, without a graph break, for each of these inputs in turn, on all backends.
void check(const Function& f, const std::vector<Tensors>& calls, size_t recompiles = 1) {
  for (std::string backend : {"inductor", "interpreter", "eager", "aot_eager"}) {
    SCOPED_TRACE(backend);
    CompileOptions options;
    options.backend = backend;
    options.fullgraph = true;
    auto compiled = compile([&](const Tensors& in) { return Tensors{f(in)}; }, options);
    for (const Tensors& inputs : calls) {
      Tensors want = run(f, inputs), got = run([&](const Tensors& in) { return compiled(in)[0]; }, inputs);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) {
        SCOPED_TRACE(i);
        expect_close(want[i], got[i]);
      }
    }
    EXPECT_LE(compiled.explain().recompiles.size(), recompiles) << compiled.explain().str();
  }
}

Tensor values(IntArrayRef sizes, double scale = 1) {
  Tensor t = arange(IntArrayRef(sizes).empty() ? 1 : [&] {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }());
  return (t.to(kFloat32) * 0.37).sin().reshape(sizes) * scale;
}

TEST(Cond, OfValuesAndSizes) {
  auto f = [](const Tensors& in) {
    return cond(
        in[0].sum() > 0, [](Tensor x, Tensor w) { return x.matmul(w).tanh(); },
        [](Tensor x, Tensor w) { return x * 2 + w.sum(); }, in[0], in[1]);
  };
  std::vector<Tensors> calls;
  for (int64_t n : {3, 4, 5, 7})
    for (double sign : {1.0, -1.0}) calls.push_back({values({n, 4}) + 2 * sign, values({4, 4})});
  check(f, calls);
}

}  // namespace
}  // namespace brasa
