// What hooks and retained gradients see of what is inside of compiled graphs.
#include <brasa/autograd.h>

#include "situations.h"

namespace brasa {
namespace {

Tensor leaf(IntArrayRef sizes) { return (numbers(sizes) * 0.1 + 0.2).set_requires_grad(true); }

// Beside derivatives of derivatives, which flow through results, as in eager calls.
struct Operator {
  const char* name;
  Tensor (*apply)(const Tensor&);
};
// Derivatives of all but the last two are made of the result.
constexpr Operator kOperators[] = {
    {"exp", [](const Tensor& t) { return t.exp(); }},
    {"tanh", [](const Tensor& t) { return t.tanh(); }},
    {"sqrt", [](const Tensor& t) { return t.sqrt(); }},
    {"softmax", [](const Tensor& t) { return t.softmax(-1); }},
    {"norm", [](const Tensor& t) { return t.norm() * t; }},
    {"written", [](const Tensor& t) { return t.clone().sigmoid_(); }},
    {"part written",
     [](const Tensor& t) {
       Tensor out = t * 2;
       out.select(0, 0).exp_();
       return out;
     }},
    {"sin", [](const Tensor& t) { return t.sin(); }},
    {"product", [](const Tensor& t) { return t.matmul(t.t()); }},
};

enum class Watch { Hook, RetainedGradient };

class HooksBesideSecondDerivatives : public ::testing::TestWithParam<Watch> {};

TEST_P(HooksBesideSecondDerivatives, SeeWhatEagerOnesSee) {
  for (const Operator& op : kOperators) {
    SCOPED_TRACE(op.name);
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      Tensor seen_by_hook, y;
      int calls = 0;
      auto f = compile([&](const Tensors& in) -> Tensors {
        y = op.apply(in[0]);
        if (GetParam() == Watch::RetainedGradient)
          y.retain_grad();
        else
          y.register_hook([&](const Tensor& g) {
            seen_by_hook = g.detach().clone();
            ++calls;
            return g * 2;
          });
        Tensor g = autograd::grad({y.square().sum()}, {in[0]}, {}, true, true)[0];
        (g.square().sum() + y.sum()).backward();
        return {y.detach()};
      });
      for (int64_t n : {3, 3, 4, 2}) {
        Tensor x = leaf({2, n});
        f({x});
        seen.add({x.grad(), GetParam() == Watch::Hook ? seen_by_hook : y.grad()});
        seen.add(tensor(calls));
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, HooksBesideSecondDerivatives,
                         ::testing::Values(Watch::Hook, Watch::RetainedGradient));

// The view is gone when its gradient comes; what was made of it before the break leads through its hook.
TEST(Gradients, HooksOnViewsBehindABreak) {
  for (bool of_leaf : {true, false})
    for (bool part : {true, false})
      expect_as_eager([&](const Wrap& compile, Seen& seen) {
        int calls = 0;
        auto f = compile([&](const Tensors& in) -> Tensors {
          Tensor view = in[0].narrow(1, 0, in[0].size(1) - part), out = view * 3;
          (void)view.detach().sum().item<float>();
          view.register_hook([&](const Tensor& g) {
            ++calls;
            return g * 2;
          });
          return {out};
        });
        for (int64_t n : {2, 3, 4}) {
          Tensor x = leaf({n, 3});
          f({of_leaf ? x.t() : (x + 1).t()})[0].sum().backward();
          seen.add({x.grad(), tensor(calls)});
        }
      });
}

}  // namespace
}  // namespace brasa
