// Gradients that there are none of: what does not get one, and what none flows to.
#include <brasa/autograd.h>
#include <brasa/control_flow.h>

#include <string>

#include "situations.h"

namespace brasa {
namespace {

Tensor leaf(IntArrayRef sizes) { return (numbers(sizes) * 0.1 + 0.2).set_requires_grad(true); }

// Of three results that share operands, each set of which may get gradients: none comes from the others, though theirs were infinite.
TEST(MissingGradients, OfResultsWhoseDerivativeIsInfinite) {
  for (int order : {1, 2})
    expect_as_eager([order](const Wrap& compile, Seen& seen) {
      Tensor w = leaf({1});
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor x = in[0] * w;
        return {x * x, x.sqrt() * 2, x.log() * w};
      });
      for (int64_t n : {3, 3, 4, 2})
        for (int given : {1, 2, 4, 5, 7}) {
          Tensor x = (numbers({n}) * 0).set_requires_grad(true);
          Tensors out = f({x}), used;
          for (int k = 0; k < 3; ++k)
            if (given >> k & 1) used.push_back(out[k].sum());
          if (order == 2) used = {autograd::grad(used, {x}, {}, true, true)[0].square().sum()};
          seen.add(autograd::grad(used, {x, w}, {}, false, false, true));
        }
    });
}

TEST(MissingGradients, SetsOfCotangentsBeyondTheLimit) {
  CompileOptions options;
  options.recompile_limit = 2;
  auto f = compile(
      [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0].sin(), in[0].exp(), in[0].square()}; },
      options);
  for (int given : {1, 2, 4, 6, 1, 7}) {
    Tensor x = leaf({3}), copy = x.detach().clone().set_requires_grad(true);
    std::vector<Tensor> out = f(std::vector<Tensor>{x}), eager{copy.sin(), copy.exp(), copy.square()}, used, expected;
    for (int k = 0; k < 3; ++k) {
      if (!(given >> k & 1)) continue;
      used.push_back(out[k].sum());
      expected.push_back(eager[k].sum());
    }
    EXPECT_TRUE(allclose(autograd::grad(used, {x})[0], autograd::grad(expected, {copy})[0])) << given;
  }
}

// Derivatives of derivatives that do not read what they are asked for.
TEST(MissingGradients, OfDerivativesThatDoNotReadTheirOperands) {
  struct Case {
    const char* name;
    Tensor (*f)(const Tensor& x, const Tensor& y);
  };
  const Case cases[] = {
      {"linear", [](const Tensor& x, const Tensor& y) { return x * 3 + y; }},
      {"product", [](const Tensor& x, const Tensor& y) { return x * y; }},
      {"of a result", [](const Tensor& x, const Tensor& y) { return x.exp() + y; }},
      {"of several", [](const Tensor& x, const Tensor& y) { return (x * 2).exp() * 3 - y * 2; }},
      {"moved", [](const Tensor& x, const Tensor& y) { return x.view({3, 1}).expand({3, 2}).sum(1) + y.abs(); }},
  };
  for (const Case& c : cases)
    for (bool inside : {true, false}) {
      SCOPED_TRACE(c.name);
      expect_as_eager([&](const Wrap& compile, Seen& seen) {
        auto second = [&](const Tensor& z, const Tensor& x, const Tensor& y) {
          Tensors first = autograd::grad({z.sum()}, {x, y}, {}, true, true, true), out = first;
          for (const Tensor& g : first)
            if (g.defined() && g.requires_grad())
              for (const Tensor& h : autograd::grad({g.sum()}, {x, y}, {}, true, false, true)) out.push_back(h);
          for (Tensor& t : out) t = t.defined() ? t.detach() : tensor(-1);
          return out;
        };
        auto f = compile([&](const Tensors& in) -> Tensors {
          Tensor z = c.f(in[0], in[1]);
          return inside ? second(z, in[0], in[1]) : Tensors{z};
        });
        for (int i = 0; i < 3; ++i) {
          Tensor x = leaf({3}), y = leaf({3});
          Tensors out = f({x, y});
          seen.add(inside ? out : second(out[0], x, y));
        }
      });
    }
}

// What a loop carries to its end is a result beside the others, and not what they are made of.
TEST(MissingGradients, OfWhatALoopCarries) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3});
    auto step = [&](Tensor carry, Tensor row) {
      Tensor next = (carry + row * w).sin();
      return std::pair(next, next);
    };
    auto f = compile([&](const Tensors& in) -> Tensors {
      auto [last, rows] = scan(step, in[1], in[0], false);
      last.register_hook([](const Tensor& g) { return g * 5; });
      Tensor by_last = autograd::grad({rows.sum()}, {last}, {}, true, false, true)[0];
      return {last, rows, by_last.defined() ? by_last.detach() : tensor(-1)};
    });
    for (int64_t n : {2, 2, 3}) {
      Tensor x = leaf({n, 3}), start = leaf({3});
      Tensors out = f({x, start});
      (out[0].sum() + out[1].square().sum()).backward();
      seen.add({out[0], out[1], out[2], x.grad(), start.grad(), w.grad()});
    }
  });
}

// Which gradients have a history after `create_graph`, and where their own go: "TF 0vN" says that of two the first has one, and that its
// derivative by three operands is zero, something, nothing.
std::string history(const Tensors& first, const Tensors& wanted) {
  std::string out;
  for (const Tensor& g : first) out += !g.defined() ? "N" : g.requires_grad() ? "T" : "F";
  for (const Tensor& g : first) {
    if (!g.defined() || !g.requires_grad()) continue;
    out += " ";
    for (const Tensor& h : autograd::grad({g.sin().sum()}, wanted, {}, true, false, true))
      out += !h.defined() ? "N" : (h == 0).all().item<bool>() ? "0" : "v";
  }
  return out;
}

// What PyTorch 2.15 gives for results whose cotangents do not depend on the operands.
TEST(MissingGradients, OfDerivativesOfNormsAsInPyTorch) {
  struct Case {
    const char* name;
    Tensor (*f)(const Tensors& in);
    Tensors operands;
    std::vector<bool> needs;
    const char* expected;
  };
  Tensor x = numbers({4, 6, 5}) * 0.1, five = numbers({5}) * 0.1 + 0.2, six = numbers({6}) * 0.1 + 0.2;
  Tensor kernel = numbers({3, 6, 3}) * 0.1, matrix = numbers({3, 5}) * 0.1, three = numbers({3}) * 0.1;
  auto layer = [](const Tensors& in) { return layer_norm(in[0], {5}, in[1], in[2]); };
  auto batch = [](const Tensors& in) { return batch_norm(in[0], in[1], in[2], {}, {}, true, 0.1, 1e-5, false); };
  auto evaluated = [](const Tensors& in) {
    return batch_norm(in[0], in[1], in[2], zeros({6}), ones({6}), false, 0.1, 1e-5, false);
  };
  auto instance = [](const Tensors& in) { return instance_norm(in[0], in[1], in[2], {}, {}, true, 0.1, 1e-5, false); };
  auto rms = [](const Tensors& in) { return rms_norm(in[0], {5}, in[1]); };
  auto convolved = [](const Tensors& in) { return conv1d(in[0], in[1], in[2]); };
  auto linear_layer = [](const Tensors& in) { return linear(in[0], in[1]); };
  auto product = [](const Tensors& in) { return in[0] * in[1]; };
  const Case cases[] = {
      {"layer norm", layer, {x, five, five}, {true, true, true}, "TTT vvN vNN NNN"},
      {"layer norm's weight", layer, {x, five, five}, {false, true, false}, "T N"},
      {"layer norm's parameters", layer, {x, five, five}, {false, true, true}, "TT NN NN"},
      {"layer norm's input and bias", layer, {x, five, five}, {true, false, true}, "TT vN NN"},
      {"batch norm", batch, {x, six, six}, {true, true, true}, "TTT vvN vNN NNN"},
      {"batch norm's weight", batch, {x, six, six}, {false, true, false}, "T N"},
      {"batch norm in evaluation", evaluated, {x, six, six}, {true, true, true}, "TTT NvN vNN NNN"},
      {"its parameters", evaluated, {x, six, six}, {false, true, true}, "TT NN NN"},
      {"instance norm", instance, {x, six, six}, {true, true, true}, "TTT vvN vNN NNN"},
      {"rms norm", rms, {x, five}, {true, true}, "TT vv vN"},
      {"convolution", convolved, {x, kernel, three}, {true, true, true}, "TTT NvN vNN NNN"},
      {"convolution's weight", convolved, {x, kernel, three}, {false, true, false}, "T N"},
      {"linear", linear_layer, {x, matrix}, {true, true}, "TT Nv vN"},
      {"product", product, {x, five}, {true, true}, "TT Nv vN"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Tensors operands, wanted;
    for (size_t i = 0; i < c.needs.size(); ++i) {
      operands.push_back(c.operands[i].clone().set_requires_grad(c.needs[i]));
      if (c.needs[i]) wanted.push_back(operands.back());
    }
    auto first = [](const Tensor& y, const Tensors& of) {
      Tensor weights = numbers(y.sizes()).square().sin();
      return autograd::grad({(y * weights).sum()}, of, {}, true, true, true);
    };
    auto with_gradients = [](const Tensors& in) {
      Tensors out;
      for (const Tensor& t : in)
        if (t.requires_grad()) out.push_back(t);
      return out;
    };
    EXPECT_EQ(history(first(c.f(operands), wanted), wanted), c.expected) << "eager";
    auto result = compile([&](const Tensors& in) -> Tensors { return {c.f(in)}; });
    EXPECT_EQ(history(first(result(operands)[0], wanted), wanted), c.expected) << "outside";
    auto gradients = compile([&](const Tensors& in) -> Tensors { return first(c.f(in), with_gradients(in)); });
    EXPECT_EQ(history(gradients(operands), wanted), c.expected) << "the second one outside";
    std::string seen;
    auto both = compile([&](const Tensors& in) -> Tensors {
      Tensors of = with_gradients(in), g = first(c.f(in), of), out;
      seen.clear();
      for (const Tensor& t : g) seen += t.requires_grad() ? "T" : "F";
      for (const Tensor& t : g) {
        if (!t.requires_grad()) continue;
        seen += " ";
        for (const Tensor& h : autograd::grad({t.sin().sum()}, of, {}, true, false, true)) {
          seen += h.defined() ? "?" : "N";
          if (h.defined()) out.push_back(h);
        }
      }
      return out;
    });
    for (const Tensor& h : both(operands)) seen.replace(seen.find('?'), 1, (h == 0).all().item<bool>() ? "0" : "v");
    EXPECT_EQ(seen, c.expected) << "inside";
  }
}

}  // namespace
}  // namespace brasa
