#include "ops/complex.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"

namespace brasa::transforms {
namespace {

using ir::Value;
using ops::Array;
using C = std::complex<double>;

Array complexes(std::vector<C> items) {
  Array a = ops::make_array(DType::Complex128, {static_cast<int64_t>(items.size())});
  for (size_t i = 0; i < items.size(); ++i) ops::set_complex(a, static_cast<int64_t>(i), items[i]);
  return a;
}

// For L = Re Σ conj(ct) f(z), the gradient is dL/dx + i dL/dy at z = x + iy; the tangent is f along a direction.
void check(const std::function<Value(Value)>& f) {
  std::vector<C> z = {{0.7, 0.4}, {-1.2, 0.9}, {0.3, -1.1}}, direction = {{0.2, -0.5}, {1, 0.3}, {-0.4, 0.8}};
  ir::Graph g;
  ir::Facts facts;
  {
    ops::Builder builder(g, facts);
    g.add_output(f(g.add_input({DType::Complex128, {3}, false})));
  }
  bool real = !is_complex(ir::type_of(g.outputs()[0].value).dtype);
  std::vector<C> weights = {{0.5, real ? 0 : 1.5}, {-0.8, real ? 0 : 0.1}, {1.1, real ? 0 : -0.6}};
  Array ct = ops::make_array(real ? DType::Float64 : DType::Complex128, {3});
  for (int64_t i = 0; i < 3; ++i) ops::set_complex(ct, i, weights[i]);
  auto along = [&](double step) {
    std::vector<C> moved = z;
    for (size_t i = 0; i < 3; ++i) moved[i] += step * direction[i];
    return ops::evaluate(g, std::vector<Array>{complexes(moved)})[0];
  };
  constexpr double kStep = 1e-6;
  Array up = along(kStep), down = along(-kStep);
  double measured = 0;
  Forward forward = jvp(g, facts, {true});
  std::vector<Array> pushed = ops::evaluate(*forward.graph, std::vector<Array>{complexes(z), complexes(direction)});
  for (int64_t i = 0; i < 3; ++i) {
    C slope = (ops::get_complex(up, i) - ops::get_complex(down, i)) / (2 * kStep);
    EXPECT_LT(std::abs(slope - ops::get_complex(pushed[forward.tangent_of[0]], i)), 1e-7);
    measured += (std::conj(weights[i]) * slope).real();
  }
  JointGraph j = joint(g, facts, {true}, {true});
  std::vector<Array> pulled = ops::evaluate(*j.graph, std::vector<Array>{complexes(z), ct});
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i)
    expected += (std::conj(ops::get_complex(pulled[j.gradient_of[0]], i)) * direction[i]).real();
  EXPECT_NEAR(expected, measured, 1e-7);
}

TEST(Complex, GradientsMatchDifferences) {
  using namespace ops;  // NOLINT
  for (const char* f :
       {"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "rsqrt", "asin", "atan", "neg"}) {
    SCOPED_TRACE(f);
    check([&](Value z) { return prim::unary(f, z); });
  }
  check([](Value z) { return z * z * z; });
  check([](Value z) { return 1 / z; });
  check([](Value z) { return real(z) * imag(z); });
  check([](Value z) { return magnitude(z); });
  check([](Value z) { return conj(z) * z; });
  check([](Value z) { return prim::reduce(z, {0}, "mul") * z; });
  check([](Value z) { return prim::scan(z, 0, "mul"); });
  check([](Value z) {
    Value m = prim::broadcast(z, {3, 3}, {0}), r = matmul2(m, transpose(m, 0, 1) * z);
    return sum(r, {1});
  });
}

}  // namespace
}  // namespace brasa::transforms
