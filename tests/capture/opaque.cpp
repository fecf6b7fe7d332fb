// allow_in_graph: a function that is one call in the graph.
#include <brasa/autograd.h>
#include <brasa/optim.h>

#include <stdexcept>

#include "situations.h"

namespace brasa {
namespace {

// On the host, whatever the device: doubles what is above the mean.
Tensor foreign(const Tensor& x) {
  Tensor y = x.detach().cpu().contiguous().clone();
  float mean = y.mean().item<float>();
  auto* data = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < y.numel(); ++i)
    if (data[i] > mean) data[i] *= 2;
  return y.to(x.device());
}

struct Foreign : autograd::Function<Foreign> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return foreign(x); }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) {
    return {foreign(g[0]) + 1};
  }
};

TEST(Opaque, IsNoBreak) {
  std::vector<bool> compiling;
  auto opaque = allow_in_graph([&](const Tensor& x) {
    compiling.push_back(is_compiling());
    return foreign(x);
  });
  auto f = compile([&](const Tensor& x) { return opaque(x + 1) * 2 + x; }, {.fullgraph = true});
  for (int64_t n : {3, 5, 8, 2}) expect_close(f(numbers({n})), foreign(numbers({n}) + 1) * 2 + numbers({n}));
  EXPECT_EQ(compiling, std::vector<bool>(4, false));
  Explanation e = f.explain();
  EXPECT_TRUE(e.breaks.empty()) << e.str();
  ASSERT_EQ(e.opaque_calls.size(), 1u) << e.str();
  EXPECT_EQ(e.opaque_calls[0].after, "aten::add.Scalar");
  EXPECT_EQ(e.opaque_calls[0].count, 4);
  EXPECT_NE(e.str().find("opaque call, after aten::add.Scalar"), std::string::npos) << e.str();
  EXPECT_NE(e.str().find("0 graph breaks"), std::string::npos) << e.str();
  EXPECT_EQ(e.graphs.size(), 4u) << e.str();  // before and behind the call, for one size and for all
  if (const std::string& where = e.opaque_calls[0].where; where.find(".cpp:") != std::string::npos) {
    EXPECT_NE(where.find("opaque.cpp:"), std::string::npos) << where;
  }
}

// Where nothing records it is the function; compiled functions that it calls are.
TEST(Opaque, OutsideOfCompiledFunctions) {
  auto inner = compile([](const Tensor& x) { return x.sin() + 1; });
  auto opaque = allow_in_graph([&](const Tensor& x) { return inner(x); });
  expect_close(opaque(numbers({3})), numbers({3}).sin() + 1);
  EXPECT_EQ(inner.explain().graphs.size(), 1u);
}

TEST(Opaque, APureFunctionRunsItsBody) {
  int runs = 0;
  auto opaque = allow_in_graph([&](const Tensor& x) {
    ++runs;
    return foreign(x);
  });
  auto f = compile([&](const Tensor& x) { return opaque(x * 3).sum(); }, {.pure = true});
  for (int i = 0; i < 5; ++i) expect_close(f(numbers({4}) + i), foreign((numbers({4}) + i) * 3).sum());
  EXPECT_EQ(runs, 5);
  EXPECT_NE(f.explain().not_skipped.find("allow_in_graph"), std::string::npos) << f.explain().str();
}

struct Situation {
  const char* name;
  void (*program)(const Wrap& compile, Seen& seen);
};

const Situation kSituations[] = {
    {"Gradients",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = numbers({3}).clone().requires_grad_();
       auto own = allow_in_graph([](const Tensor& x) { return Foreign::apply(x); });
       auto operators = allow_in_graph([](const Tensor& x) { return x.sum().item<float>() > 0 ? x.exp() : x * 3; });
       auto f = compile([&](const Tensors& in) -> Tensors { return {own(in[0] * w).sin() + operators(in[0] + w)}; });
       for (int k = 0; k < 4; ++k) {
         Tensor x = (numbers({2 + k, 3}) - k).detach().requires_grad_();
         Tensor y = f({x})[0];
         y.square().sum().backward();
         seen.add({y, x.grad(), w.grad()});
       }
     }},
    {"GradientsOfGradients",
     [](const Wrap& compile, Seen& seen) {
       auto opaque = allow_in_graph([](const Tensor& x) { return x.pow(3) * x.max().item<float>(); });
       auto f = compile([&](const Tensors& in) -> Tensors { return {opaque(in[0] * 2).sum()}; });
       for (int k = 0; k < 3; ++k) {
         Tensor x = (numbers({2 + k}) + 1).detach().requires_grad_();
         Tensor g = autograd::grad({f({x})[0]}, {x}, {}, std::nullopt, true)[0];
         g.sum().backward();
         seen.add({g, x.grad()});
       }
     }},
    {"TrainingInside",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = numbers({3, 3}).clone().requires_grad_();
       optim::SGD optimizer({w}, optim::SGDOptions(0.1).momentum(0.9));
       auto opaque = allow_in_graph([](const Tensor& x) { return Foreign::apply(x); });
       auto step = compile([&](const Tensors& in) -> Tensors {
         optimizer.zero_grad();
         Tensor loss = opaque(in[0].matmul(w)).square().mean();
         loss.backward();
         optimizer.step();
         return {loss.detach()};
       });
       for (int k = 0; k < 4; ++k) seen.add(step({numbers({2 + k, 3})}));
       seen.add(w);
     }},
    {"Writes",
     [](const Wrap& compile, Seen& seen) {
       Tensor buffer = zeros({4});
       auto opaque = allow_in_graph([&](Tensor x) {
         if (x[0].item<float>() > 0) x.mul_(2);
         buffer.add_(x);
         return x.select(0, 0);
       });
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y = in[0] + 1, row = y.select(0, 1);
         row.add_(buffer);
         Tensor first = opaque(row);
         buffer.mul_(0.5);
         first.add_(1);
         in[0].select(0, 0).copy_(row);
         return {y, row, first};
       });
       for (int k = 0; k < 4; ++k) {
         Tensor x = (numbers({2 + k, 4}) * (k % 2 ? 1 : -3)).clone();
         seen.add(f({x}));
         seen.add({x, buffer});
       }
     }},
    {"SizesThatDependOnData",
     [](const Wrap& compile, Seen& seen) {
       auto opaque = allow_in_graph([](const Tensor& x) { return x.masked_select(x > 0); });
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor kept = opaque(in[0].sin());
         return {kept * 2, kept.sum(), opaque(kept - 0.5)};
       });
       for (int k = 0; k < 6; ++k) seen.add(f({numbers({3 + 5 * k}) - 0.2 * k}));
     }},
    {"RandomNumbers",
     [](const Wrap& compile, Seen& seen) {
       auto opaque = allow_in_graph([](const Tensor& x) { return x + rand({3}) * x.sum().item<float>(); });
       auto f =
           compile([&](const Tensors& in) -> Tensors { return {rand({3}) + opaque(in[0] * rand({3})) + rand({3})}; });
       for (int k = 0; k < 3; ++k) seen.add(f({numbers({3}) + k}));
     }},
    {"Errors",
     [](const Wrap& compile, Seen& seen) {
       auto opaque = allow_in_graph([](const Tensor& x) {
         if (x.sum().item<float>() > 2) throw std::runtime_error("too much");
         return x + 1;
       });
       auto f = compile([&](const Tensors& in) -> Tensors {
         in[0].add_(1);
         Tensor y = in[0] * 2;
         try {
           y = opaque(y);
         } catch (const std::runtime_error&) {
           y = y - 1;
         }
         return {y, opaque(y * 0.1)};
       });
       for (int k = 0; k < 5; ++k) {
         Tensor x = (numbers({3}) + 4 * k).clone();
         Tensors out;
         try {
           out = f({x});
         } catch (const std::runtime_error& e) {
           seen.note(e.what());
         }
         seen.add(out);
         seen.add(x);
       }
     }},
};

class OpaqueSituation : public testing::TestWithParam<Situation> {};
TEST_P(OpaqueSituation, IsEager) { expect_as_eager(GetParam().program); }
INSTANTIATE_TEST_SUITE_P(Opaque, OpaqueSituation, testing::ValuesIn(kSituations),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace brasa
