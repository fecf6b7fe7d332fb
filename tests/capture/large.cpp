// Functions of many operators: time to compile grows as they do. BRASA_LARGE_NODES gives other numbers of operators.
#include <brasa/autograd.h>

#include <cstdlib>
#include <ctime>

#include "situations.h"

namespace brasa {
namespace {

struct Shape {
  const char* name;
  Tensors (*run)(const Tensors& in, int operators);
};

constexpr Shape kShapes[] = {
    {"chain",
     [](const Tensors& in, int operators) -> Tensors {
       Tensor y = in[0];
       for (int i = 0; i < operators / 2; ++i) y = y * in[1] + in[0];
       return {y.sum()};
     }},
    {"views and writes",
     [](const Tensors& in, int operators) -> Tensors {
       Tensor y = in[0] * 1;
       for (int i = 0; i < operators / 3; ++i) y.select(0, i % 4).mul_(in[1][0]);
       return {y.sum()};
     }},
    {"rows",
     [](const Tensors& in, int operators) -> Tensors {
       Tensor y = in[0];
       for (int i = 0; i < operators / 2; ++i) y = y - y.amax(1, true);
       return {y.sum()};
     }},
};

// Of all threads, so that what else the machine does counts for nothing.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double seconds_to_compile(const Shape& shape, int operators, bool gradients, bool dynamic) {
  CompileOptions options;
  options.dynamic = dynamic;
  auto f = compile([&](const Tensors& in) { return shape.run(in, operators); }, options);
  Tensor x = full({4, 4}, 0.5).set_requires_grad(gradients), y = full({4, 4}, 0.5);
  double start = processor_seconds();
  Tensor out = f(Tensors{x, y})[0];
  if (gradients) out.backward();
  double seconds = processor_seconds() - start;
  std::cout << shape.name << (gradients ? ", gradients" : "") << (dynamic ? ", symbolic" : "") << ": " << operators
            << " operators, " << seconds * 1e3 / operators << " ms each\n";
  return seconds;
}

TEST(LargeFunctions, CompileInTimeThatGrowsWithThem) {
  const char* given = std::getenv("BRASA_LARGE_NODES");
  int operators = given ? std::atoi(given) : 600;
  for (const Shape& shape : kShapes)
    for (bool gradients : {false, true})
      for (bool dynamic : {false, true}) {
        double few = seconds_to_compile(shape, operators / 4, gradients, dynamic);
        double all = seconds_to_compile(shape, operators, gradients, dynamic);
        // 4 times as long, where quadratic growth gives 16.
        EXPECT_LT(all, 10 * few + 0.05) << shape.name;
      }
}

// Their kernels are one, which begins at another place in each step: of inputs, of results, and of what is in between.
TEST(LargeFunctions, WritesThroughViewsThatOverlap) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    for (int i = 0; i < 40; ++i) y.slice(0, i % 4, i % 4 + 3).add_(i);
    return y;
  };
  Tensor x = arange(8).to(kFloat);
  EXPECT_TRUE(equal(compile(f)(x), f(x)));
}

TEST(LargeFunctions, StepsOfALoopThatIsWrittenOut) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = (numbers({3, 4}) * 0.3).set_requires_grad(true), u = (numbers({4, 4}) * 0.3).set_requires_grad(true);
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor h = in[1], between = in[0] * 2, all = zeros({in[0].size(0), in[0].size(1), 4});
      for (int64_t i = 0; i < in[0].size(0); ++i) {
        h = (in[0][i].matmul(w) + h.matmul(u) + between[i].sum(1, true)).tanh();
        all.select(0, i).copy_(h);
      }
      return {all, all[0].matmul(u) + all[1].matmul(u), in[0].narrow(2, 1, 2).transpose(1, 2).square().sum()};
    });
    for (auto [steps, batch] : {std::pair<int64_t, int64_t>(4, 2), {4, 3}, {5, 3}, {2, 0}, {3, 1}}) {
      w.mutable_grad().reset();
      u.mutable_grad().reset();
      Tensor xs = (numbers({steps, batch, 3}) * 0.5).set_requires_grad(true);
      Tensors out = f({xs, zeros({batch, 4})});
      (out[0].square().sum() + out[1].sum() + out[2]).backward();
      seen.add({out[0], out[1], xs.grad(), w.grad(), u.grad()});
    }
  });
}

}  // namespace
}  // namespace brasa
