// Tensors that were made in inference mode, as operands of functions with gradients.
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include "situations.h"

namespace brasa {
namespace {

struct Body {
  const char* name;
  Tensor (*run)(const Tensor& x, const Tensor& w);
};

// Eager refuses those whose derivatives read the tensor itself; what is made of it outside of the mode is a tensor like others.
const Body kBodies[] = {
    {"adds", [](const Tensor& x, const Tensor& w) { return x + w; }},
    {"multiplies", [](const Tensor& x, const Tensor& w) { return x * w; }},
    {"multiplies a view", [](const Tensor& x, const Tensor& w) { return x.slice(0, 0, 1) * w; }},
    {"multiplies a detached one", [](const Tensor& x, const Tensor& w) { return x.detach() * w; }},
    {"multiplies a copy", [](const Tensor& x, const Tensor& w) { return x.clone() * w; }},
    {"multiplies what is made of it", [](const Tensor& x, const Tensor& w) { return x.sin() * w + x.sum(); }},
    {"multiplies in place",
     [](const Tensor& x, const Tensor& w) {
       Tensor y = w.expand(x.sizes().vec()) * 1;
       return y.mul_(x);
     }},
    {"adds in place",
     [](const Tensor& x, const Tensor& w) {
       Tensor y = w.expand(x.sizes().vec()) * 1;
       return y.add_(x) * y;
     }},
    {"branches",
     [](const Tensor& x, const Tensor& w) {
       Tensor y = x.exp() * w;
       return x.sum().item<double>() > 0 ? y : y.sin();
     }},
};

TEST(InferenceTensors, AreOperandsAsInEager) {
  for (const Body& body : kBodies) {
    SCOPED_TRACE(body.name);
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors { return {body.run(in[0], in[1])}; });
      for (int64_t rows : {2, 4, 5})
        seen.attempt([&] {
          Tensor x, w = numbers({3}).clone().requires_grad_();
          {
            InferenceMode mode;
            x = numbers({rows, 3}).clone();
          }
          Tensor y = f({x, w})[0];
          Tensor g = autograd::grad({y.square().sum()}, {w}, {}, true, true)[0];
          (g.square().sum() + y.sum()).backward();
          seen.add({y, g, w.grad()});
        });
    });
  }
}

}  // namespace
}  // namespace brasa
