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

}  // namespace
}  // namespace brasa
