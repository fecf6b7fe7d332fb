// Gradients where memory has a write without gradients behind one with them, and where results of one row lie differently.
#include <brasa/autograd.h>

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
