// What hooks and retained gradients see of what is inside of compiled graphs.
#include <brasa/autograd.h>
#include <brasa/control_flow.h>

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

// The same where the derivative is taken behind a break, or outside, in a graph that is compiled, or (for a hook in it) is not.
TEST(Gradients, HooksBesideSecondDerivativesElsewhere) {
  for (const Operator& op : kOperators)
    for (bool inside : {true, false})
      for (bool early : {true, false}) {
        SCOPED_TRACE(op.name);
        expect_as_eager([&](const Wrap& compile, Seen& seen) {
          int calls = 0;
          auto watch = [&](const Tensor& y) {
            y.register_hook([&](const Tensor& g) { return ++calls, g * 2; });
            y.retain_grad();
          };
          auto twice = [](const Tensor& y, const Tensor& x) {
            Tensor g = autograd::grad({y.square().sum()}, {x}, {}, true, true)[0];
            (g.square().sum() + y.sum()).backward();
          };
          auto f = compile([&](const Tensors& in) -> Tensors {
            Tensor y = op.apply(in[0] * 2), z = y * 3;
            if (early) watch(y);
            if (inside) {
              (void)z.detach().sum().item<float>();
              if (!early) watch(y);
              twice(y, in[0]);
            }
            return {y, z};
          });
          for (int64_t n : {3, 3, 2}) {
            Tensor x = leaf({2, n});
            Tensors out = f({x});
            if (!inside && !early) watch(out[0]);
            if (!inside) twice(out[0], x);
            seen.add({x.grad(), out[0].grad(), tensor(calls)});
          }
        });
      }
}

// The same on what alone is left of before a break.
TEST(Gradients, HooksBesideSecondDerivativesBehindABreak) {
  for (const Operator& op : kOperators)
    for (bool outside : {true, false}) {
      SCOPED_TRACE(op.name);
      expect_as_eager([&](const Wrap& compile, Seen& seen) {
        int calls = 0;
        Tensor y;
        auto f = compile([&](const Tensors& in) -> Tensors {
          y = op.apply(in[0] * 2);
          (void)y.detach().sum().item<float>();
          y.register_hook([&](const Tensor& g) { return ++calls, g * 3; });
          y.retain_grad();
          Tensor g = autograd::grad({(y * 2).sin().sum()}, {in[0]}, {}, true, true)[0];
          Tensor loss = g.square().sum() + y.sum();
          if (!outside) loss.backward();
          return {loss};
        });
        for (int64_t n : {3, 3, 2}) {
          Tensor x = leaf({2, n}), loss = f({x})[0];
          if (outside) loss.backward();
          seen.add({x.grad(), y.grad(), loss.detach(), tensor(calls)});
        }
      });
    }
}

// In eager calls, where the pass goes from one tensor.
TEST(Gradients, HooksOfWhatAPassGoesFrom) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([](const Tensors& in) -> Tensors { return {in[0] * in[0], in[1] * 2}; });
    for (size_t roots : {1, 2}) {
      Tensor x = leaf({3}), y = leaf({3});
      Tensors out = f({x, y});
      double noted = 0;
      for (double k : {1., 10.}) out[k > 1].register_hook([&noted, k](const Tensor& g) { return noted += k, g; });
      Tensors from{out[0], out[1]}, given{ones({3}), ones({3})};
      from.resize(roots), given.resize(roots);
      seen.add(autograd::grad(from, {y}, given, true, false, true));
      seen.add(tensor(noted));
    }
  });
}

// One step of a loop after the other: what a step reads last is complete first, and what the loop goes along at the end.
TEST(Gradients, HooksOnWhatALoopReads) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor early = leaf({3}), late = leaf({3});
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor mapped = map([&](Tensor row) { return (row * early).softmax(0) * late.sin(); }, in[0]);
      auto step = [&](Tensor carry, Tensor row) {
        Tensor next = row * late + carry * early;
        return std::pair(next, next * 2);
      };
      return {mapped.sum() + scan(step, in[1], in[0], false).second.sum()};
    });
    for (int64_t n : {2, 3}) {
      Tensor x = leaf({n, 3}), start = leaf({3});
      std::vector<Tensor> leaves{early, x, start, late};
      double noted = 0;
      for (size_t k = 0; k < leaves.size(); ++k)
        leaves[k].register_hook([&noted, k](const Tensor& g) { return noted = noted * 10 + double(k), g; });
      f({x, start})[0].backward();
      seen.add(tensor(noted));
    }
  });
}

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

// Eager hooks run as gradients are complete: a parameter of the later result before the earlier result.
TEST(Gradients, HooksOnLeavesBetweenThoseOnResults) {
  for (bool post : {false, true})
    for (bool twice : {false, true})
      expect_as_eager([&](const Wrap& compile, Seen& seen) {
        Tensor a = leaf({3}), b = leaf({3}), c = leaf({3});
        auto f = compile([&](const Tensors& in) -> Tensors {
          Tensor early = in[0] * a, shared = in[0] * c;
          return {early.sin() * shared, (in[0] * b).exp(), shared.tanh(), early};
        });
        double noted = 0;
        auto note = [&](double k) { noted = noted * 10 + k; };
        for (auto [k, t] : {std::pair(1, a), {2, b}, {3, c}})
          if (post)
            t.register_post_accumulate_grad_hook([&note, k = k](const Tensor&) { note(k); });
          else
            t.register_hook([&note, k = k](const Tensor& g) { return note(k), g * 2; });
        for (int64_t n : {3, 1, 3}) {
          Tensors out = f({leaf({n}).detach()});
          for (size_t k : {0, 2, 3})
            out[k].register_hook([&note, k](const Tensor& g) { return note(5.0 + double(k)), g * 3; });
          Tensor loss = out[0].sum() + (out[1] * out[2]).sum() + out[3].sum();
          for (int i = 0; i <= twice; ++i) loss.backward({}, i < twice);
          seen.add({a.grad(), b.grad(), c.grad(), tensor(noted)});
          noted = 0;
        }
      });
}

}  // namespace
}  // namespace brasa
