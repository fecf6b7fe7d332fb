// Functions of many operators: time to compile grows as they do. BRASA_LARGE_NODES gives other numbers of operators.
#include <brasa/autograd.h>

#include <chrono>
#include <cstdlib>

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

TEST(LargeFunctions, CompileInTimeThatGrowsWithThem) {
  const char* given = std::getenv("BRASA_LARGE_NODES");
  int operators = given ? std::atoi(given) : 1000;
  for (const Shape& shape : kShapes)
    for (bool gradients : {false, true})
      for (bool dynamic : {false, true}) {
        CompileOptions options;
        options.dynamic = dynamic;
        auto f = compile([&](const Tensors& in) { return shape.run(in, operators); }, options);
        Tensor x = full({4, 4}, 0.5).set_requires_grad(gradients), y = full({4, 4}, 0.5);
        auto start = std::chrono::steady_clock::now();
        Tensor out = f(Tensors{x, y})[0];
        if (gradients) out.backward();
        double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::cout << shape.name << (gradients ? ", gradients" : "") << (dynamic ? ", symbolic" : "") << ": "
                  << operators << " operators, " << seconds * 1e3 / operators << " ms each\n";
        // Instrumented builds and busy machines take longer than 3 ms.
        EXPECT_TRUE(given || seconds < operators * 0.02) << shape.name;
      }
}

}  // namespace
}  // namespace brasa
