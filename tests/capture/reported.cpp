#include "reported.h"

#include <brasa/autograd.h>

namespace brasa {

TEST_P(ReportedProgram, IsEager) { expect_as_eager(GetParam().program); }

void see_calls(const Wrap& compile, Seen& seen, const TensorFunction& f, const std::function<Tensors(int)>& inputs,
               int calls) {
  TensorFunction compiled = compile(f);
  for (int k = 0; k < calls; ++k) {
    Tensors in = inputs(k), out;
    seen.attempt([&] { out = compiled(in); });
    seen.add(out);
    seen.add(in);
    Tensor loss;
    for (const Tensor& t : out)
      if (t.defined() && t.requires_grad() && is_floating_point(t))
        loss = loss.defined() ? loss + t.sin().sum() : t.sin().sum();
    if (!loss.defined()) continue;
    seen.attempt([&] { loss.backward(); });
    for (const Tensor& t : in)
      if (t.defined() && t.is_leaf()) seen.add(t.grad());
  }
}

}  // namespace brasa
