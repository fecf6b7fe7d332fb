// Where more than last digits follows from a rounding: what cancels, what is compared, ordered or rounded to an integer. Operands are chosen so
// that a product and a sum that were rounded as one would go the other way.
#include <brasa/checkpoint.h>

#include "values.h"

namespace brasa {
namespace {

using Tensors = std::vector<Tensor>;
/// Gives the loss, and what else is to be there.
using Body = std::function<Tensors(const Tensors&)>;

constexpr int64_t kCount = 64;

Tensor values(IntArrayRef sizes, double salt) { return (numbers(sizes) * (1.3 + salt) + 0.1 * salt).clone(); }

// The loss and the gradients, with the backward pass outside of the function or inside.
Tensors results(const Body& body, const Tensors& inputs, bool compiled, bool inside, const char* budget) {
  Tensors leaves;
  for (const Tensor& t : inputs) leaves.push_back(t.clone().requires_grad_());
  auto step = [&](const Tensors& in) {
    Tensors made = body(in);
    if (inside) made[0].backward();
    if (inside) made[0] = made[0].detach();
    return made;
  };
  auto f = compile(step, {.options = {{"memory_budget", budget}}});
  Tensors made = compiled ? f(leaves) : step(leaves);
  if (!inside) made[0].backward();
  Tensors out = {made[0].detach()};
  for (const Tensor& t : leaves) out.push_back(t.grad().defined() ? t.grad() : zeros_like(t));
  return out;
}

void expect_as_eager(const char* name, const Body& body, const Tensors& inputs) {
  for (bool inside : {false, true}) {
    Tensors want = results(body, inputs, false, inside, "1");
    for (const char* budget : {"1", "0.5", "0"}) {
      Tensors got = results(body, inputs, true, inside, budget);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(allclose(got[i], want[i], 1e-4, 1e-5, true))
            << name << (inside ? ", inside" : ", outside") << ", budget " << budget << ", result " << i << "\n"
            << (got[i] - want[i]).abs().max();
    }
  }
}

TEST(Decisions, DifferencesOfEqualProductsAreZero) {
  expect_as_eager("swapped factors",
                  [](const Tensors& in) -> Tensors {
                    Tensor none = in[0] * in[1] - in[1] * in[0];
                    return {(none.sign() * in[0]).sum() + none.abs().sqrt().detach().sum()};
                  },
                  {values({kCount}, 0), values({kCount}, 1)});
  expect_as_eager("a square's imaginary part",
                  [](const Tensors& in) -> Tensors {
                    Tensor z = view_as_complex(in[0]), none = (z * z.conj()).imag();
                    return {(none.sign() * in[0].select(1, 0)).sum() + none.abs().sqrt().detach().sum()};
                  },
                  {values({kCount, 2}, 0)});
}

TEST(Decisions, VariancesAreNotNegative) {
  expect_as_eager("variance of equal rows",
                  [](const Tensors& in) -> Tensors {
                    Tensor x = in[0].expand({4, kCount});
                    Tensor variance = x.square().mean(0) - x.mean(0).square();
                    return {variance.sum() + variance.sqrt().detach().sum()};
                  },
                  {values({1, kCount}, 0)});
}

TEST(Decisions, NumbersAreRoundedToIntegersAsEagerly) {
  Tensor tenths = arange(kCount, kFloat32) / 10;
  expect_as_eager("tenths", [](const Tensors& in) -> Tensors { return {((in[0] * 10 - in[1]).floor() * in[0]).sum()}; },
                  {tenths, arange(kCount, kFloat32)});
  // The backward pass finds the row once more.
  for (bool kept : {false, true})
    expect_as_eager("rows of a table",
                    [kept](const Tensors& in) -> Tensors {
                      Tensor product = in[0] * 10, row = (product - 7).floor().to(kInt64) + 8;
                      Tensor loss = (in[1].index_select(0, row) * arange(10, kFloat32)).sum() + (product * 0).sum();
                      return kept ? Tensors{loss, product.detach()} : Tensors{loss};
                    },
                    {tenths.narrow(0, 0, 10), values({12}, 0)});
}

// The sums are 0, but the product, which something else keeps, was rounded: a backward pass that computes them again must find zeros, too.
TEST(Decisions, BackwardGoesTheWayOfForward) {
  using Choice = Tensor (*)(const Tensor& sum, const Tensors& in);
  const std::pair<const char*, Choice> choices[] = {
      {"where", [](const Tensor& sum, const Tensors& in) { return where(sum > 0, in[0] * 10, in[1] * -5); }},
      {"sign", [](const Tensor& sum, const Tensors& in) { return sum.sign() * in[0]; }},
      {"argmax", [](const Tensor& sum, const Tensors& in) { return in[0].gather(0, sum.argmax(0, true)).sin() * 3; }},
      {"sort", [](const Tensor& sum, const Tensors&) { return std::get<0>(sum.sort(0)) * arange(kCount, kFloat32); }},
      {"topk", [](const Tensor& sum, const Tensors&) { return std::get<0>(sum.topk(5)) * arange(5, kFloat32); }},
  };
  Tensor x = values({kCount}, 0), w = values({kCount}, 1);
  for (auto [name, choice] : choices)
    for (bool checkpointed : {false, true}) {
      Choice choose = choice;
      expect_as_eager(name,
                      [=](const Tensors& in) -> Tensors {
                        auto block = [choose, in](const Tensor& a, const Tensor& b, const Tensor& c) {
                          return choose(a * b + c, {a, b}).sin();
                        };
                        Tensor product = in[0] * in[1];
                        Tensor chosen =
                            checkpointed ? checkpoint(block, in[0], in[1], in[2]) : block(in[0], in[1], in[2]);
                        return {chosen.sum(), product.detach()};
                      },
                      {x, w, -(x * w)});
    }
}

// What is computed again waits for the end of the forward part: real numbers for complex ones, too.
TEST(Decisions, RealNumbersWaitForComplexOnes) {
  expect_as_eager("a square's imaginary part",
                  [](const Tensors& in) -> Tensors {
                    Tensor z = view_as_complex(in[0]), part = (z * z.conj()).imag();
                    Tensor signs = part.sign() * 3;
                    return {part.sum() + signs.sum(), part.detach(), signs.detach()};
                  },
                  {values({50, 2}, 0)});
}

}  // namespace
}  // namespace brasa
