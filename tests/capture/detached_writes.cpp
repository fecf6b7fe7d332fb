// Gradients where memory has a write without gradients behind one with them, and where results of one row lie differently.
#include <brasa/autograd.h>
#include <brasa/control_flow.h>

#include "situations.h"

namespace brasa {
namespace {

// A view is written, then the memory once more without gradients: these go to the first write.
TEST(DetachedWrites, BehindAWriteThroughAView) {
  for (int which = 0; which < 6; ++which) {
    SCOPED_TRACE(which);
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor x = in[0] * 1, d = x.detach();
        x.slice(0, 0, 4, 2).mul_(which % 2 ? in[0].slice(0, 0, 4, 2) : in[0].select(0, 1));
        if (which < 2) d.mul_(2);
        if (which == 2 || which == 3) d.select(0, 1).fill_(0.2);
        if (which > 3) {
          NoGradGuard guard;
          x.add_(1);
        }
        return {x.sin(), x.roll({1}, {0})};
      });
      Tensor x = numbers({4, 2}).clone().set_requires_grad(true);
      Tensors out = f({x});
      (out[0].sum() + out[1].square().sum()).backward();
      seen.add(out);
      seen.add(x.grad());
    });
  }
}

// What is written is of another dtype than the memory: its conversion counts, also where a view needs no movement.
TEST(DetachedWrites, OfAWiderDtype) {
  for (int which = 0; which < 8; ++which) {
    SCOPED_TRACE(which);
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor x = in[0] * in[0], y = (which % 2 ? x.to(kFloat32) : in[0].to(kFloat32) * 1), wide = x.sin();
        if (which == 7) seen.note(x.sum().item<double>() > 0 ? "positive" : "negative");
        if (which > 5) wide = cond(x.detach().sum() > 0, [&] { return wide * 2; }, [&] { return wide + 1; });
        Tensor to = y.slice(0, 0, y.size(0), which == 2 || which == 3 ? 2 : 1);
        if (which > 3) to = to.view({-1});
        to.add_(wide.slice(0, 0, to.size(0)).reshape(to.sizes()));
        if (which == 4) y.detach().mul_(2);
        to.select(0, 0).mul_(wide.sum());
        return {y.cos(), to};
      });
      for (int rows : {1, 3, 4}) {
        Tensor x = numbers({rows}).to(kFloat64).set_requires_grad(true);
        Tensors out = f({x});
        Tensor g = autograd::grad({out[0].sum() + out[1].square().sum()}, {x}, {}, true, true)[0];
        g.sin().sum().backward();
        seen.add(out);
        seen.add({g.detach().clone(), x.grad()});
      }
    });
  }
}

// A leaf and a view of it are operands; what is written through a view of the view lies as the leaf does, and not as that view.
TEST(DetachedWrites, OfALeafBesideAViewOfIt) {
  for (int which = 0; which < 3; ++which) {
    SCOPED_TRACE(which);
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor a = which == 0 ? in[1].t() : which == 1 ? in[1].permute({1, 0}).slice(0, 0, 4) : in[1].view({4, 4});
        a.detach().mul_(0.5);
        return {where(a > 0.05, in[0], a * 2)};
      });
      Tensor x = numbers({4, 4}).sin().clone().set_requires_grad(true);
      Tensor out = f({x, which == 2 ? x.view({16}) : x.t()})[0];
      out.square().sum().backward();
      seen.add({out, x.grad()});
    });
  }
}

struct DoubledInPlace : autograd::Function<DoubledInPlace> {
  static Tensor forward(autograd::AutogradContext* c, Tensor x) {
    c->mark_dirty({x});
    return x.mul_(2);
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) { return {g[0] * 2}; }
};

// A custom function writes to its operand, or to a part of it.
TEST(DetachedWrites, ByACustomFunction) {
  for (int which = 0; which < 4; ++which) {
    SCOPED_TRACE(which);
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor x = in[0] * in[0];
        if (which == 3) x = x + in[0];
        DoubledInPlace::apply(which % 2 ? x.slice(0, 1) : x);
        if (which == 2) x.mul_(in[0]);
        return {x.sin()};
      });
      Tensor x = numbers({4}).clone().set_requires_grad(true);
      Tensors out = f({x});
      out[0].sum().backward();
      seen.add(out);
      seen.add(x.grad());
    });
  }
}

// The memory holds a view of what the gradients belong to, and these do not move with it.
TEST(DetachedWrites, OfItsOwnView) {
  for (int which = 0; which < 3; ++which) {
    SCOPED_TRACE(which);
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor x = in[0] * in[0];
        if (which == 1) x.select(0, 0).mul_(in[0].select(0, 1));
        if (which == 2) x.mul_(in[0]);
        {
          NoGradGuard guard;
          x.slice(1, 1).copy_(x.slice(1, 0, 2));
        }
        return {x * in[1]};
      });
      Tensor x = numbers({3, 3}).clone().set_requires_grad(true);
      Tensors out = f({x, numbers({3, 3}).exp()});
      Tensor g = autograd::grad({out[0].sum()}, {x}, {}, true, true)[0];
      g.sin().sum().backward();
      seen.add(out);
      seen.add({g.detach().clone(), x.grad()});
    });
  }
}

// The gradient of what is broadcast has a shape of its own beside that of the transposed operand.
TEST(DetachedWrites, GradientsOfOneProductLieDifferently) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([](const Tensors& in) { return autograd::grad({in[0] * in[1]}, {in[0], in[1]}, {in[2]}); });
    Tensor a = complex(numbers({5, 5}), numbers({5, 5}).cos()).t().detach().set_requires_grad(true);
    Tensor b = numbers({60}).as_strided({1, 5}, {60, 12}).detach().set_requires_grad(true);
    seen.add(f({a, b, ones_like(a)}));
  });
}

}  // namespace
}  // namespace brasa
