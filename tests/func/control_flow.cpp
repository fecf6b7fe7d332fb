#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/control_flow.h>
#include <brasa/func.h>
#include <brasa/minify.h>
#include <gtest/gtest.h>

// Branches and loops: recorded in compiled functions and under func's transformations as they run eagerly, with gradients.
namespace brasa {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors&)>;  // of inputs, to one tensor

// Sums are taken in another order: up to float32's rounding of the largest element.
void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.scalar_type(), b.scalar_type());
  EXPECT_TRUE(allclose(a, b, 0, 1e-5 * (1 + a.abs().max().item<double>()))) << a << "\n" << b;
}

// Results and gradients, which a call of f leaves in its inputs.
Tensors run(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  Tensors fresh;
  for (const Tensor& t : inputs) {
    fresh.push_back(t.detach().clone());
    if (is_floating_point(t)) fresh.back().requires_grad_();
  }
  Tensor y = f(fresh);
  Tensors out{y};
  if (y.requires_grad()) y.square().sum().backward();
  for (const Tensor& t : fresh) out.push_back(t.grad());
  return out;
}

// f compiled gives what f gives, without a graph break, for each of these inputs in turn, on all backends.
void check(const Function& f, const std::vector<Tensors>& calls, int recompiles = 1) {
  for (std::string backend : {"inductor", "interpreter", "eager", "aot_eager"}) {
    SCOPED_TRACE(backend);
    CompileOptions options;
    options.backend = backend;
    options.fullgraph = true;
    auto compiled = compile([&](const Tensors& in) { return Tensors{f(in)}; }, options);
    for (const Tensors& inputs : calls) {
      Tensors want = run(f, inputs), got = run([&](const Tensors& in) { return compiled(in)[0]; }, inputs);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) {
        SCOPED_TRACE(i);
        // What the branches that are taken do not read has no gradient eagerly, and zeros in a graph.
        if (!want[i].defined() && got[i].defined()) want[i] = zeros_like(got[i]);
        if (want[i].defined() || got[i].defined()) expect_close(want[i], got[i]);
      }
    }
    EXPECT_LE(static_cast<int>(compiled.explain().recompiles.size()), recompiles) << compiled.explain().str();
  }
}

Tensor values(std::vector<int64_t> sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return (arange(n).to(kFloat32) * 0.37).sin().reshape(sizes);
}

// The message, without the device that tensors are on where that is not the host.
std::string error_of(const std::function<void()>& f) {
  std::string message;
  try {
    f();
  } catch (const Error& e) {
    message = e.what();
  }
  const std::string where = " on emu:0";
  for (size_t at; (at = message.find(where)) != message.npos;) message.erase(at, where.size());
  return message;
}

TEST(Cond, OfValuesAndSizes) {
  auto f = [](const Tensors& in) {
    return cond(
        in[0].sum() > 0, [](Tensor x, Tensor w) { return x.matmul(w).tanh(); },
        [](Tensor x, Tensor w) { return x * 2 + w.sum(); }, in[0], in[1]);
  };
  std::vector<Tensors> calls;
  for (int64_t n : {3, 4, 5, 7})
    for (double sign : {1.0, -1.0}) calls.push_back({values({n, 4}) + 2 * sign, values({4, 4})});
  check(f, calls);
}

// What the branches read from outside: parameters, numbers and sizes.
TEST(Cond, OfWhatIsCaptured) {
  double scale = 0.5;
  auto f = [&](const Tensors& in) {
    scale += 0.25;
    Tensor x = in[0], w = in[1].tanh();
    return cond(
        x.mean() > 0, [&] { return (x * scale).matmul(w.t()).slice(0, 0, x.size(0) - 1); },
        [&] { return x.matmul(in[1]).narrow(0, 1, x.size(0) - 1).clamp(-scale, scale); });
  };
  std::vector<Tensors> calls;
  for (int64_t n : {3, 5, 8, 13, 4})
    for (double sign : {1.0, -1.0}) calls.push_back({values({n, 4}) + 2 * sign, values({4, 4})});
  // Both sides see `scale`, which each call changes, uncompiled ones too.
  auto compiled = compile([&](const Tensors& in) { return f(in); }, CompileOptions{.fullgraph = true});
  for (const Tensors& inputs : calls) {
    double before = scale;
    Tensors want = run(f, inputs);
    scale = before;
    Tensors got = run([&](const Tensors& in) { return compiled(in); }, inputs);
    for (size_t i = 0; i < want.size(); ++i) expect_close(want[i], got[i]);
  }
  EXPECT_LE(compiled.explain().recompiles.size(), 2u)  // another number, another size
      << compiled.explain().str();
}

// No gradient flows where the branch stops it.
TEST(Cond, DetachedParts) {
  auto f = [](const Tensors& in) {
    return cond(
        in[0].sum() > 0,
        [](Tensor x) {
          Tensor norm;
          {
            NoGradGuard guard;
            norm = x.norm();
          }
          return x / norm;
        },
        [](Tensor x) { return x * x.detach(); }, in[0]);
  };
  check(f, {{values({4}) + 1}, {values({4}) - 1}});
}

TEST(Cond, GivesLists) {
  auto f = compile([](Tensor x) {
    auto [a, list] = cond(
        x.sum() > 0, [](Tensor t) { return std::pair(t, Tensors{t + 1, t.sum()}); },
        [](Tensor t) { return std::pair(-t, Tensors{t - 1, t.max()}); }, x);
    return Tensors{a, list[0], list[1]};
  });
  Tensor x = values({5});
  Tensors got = f(x);
  bool holds = x.sum().item<float>() > 0;
  expect_close(got[0], holds ? x : -x);
  expect_close(got[1], holds ? x + 1 : x - 1);
  expect_close(got[2], holds ? x.sum() : x.max());
}

TEST(Cond, Errors) {
  auto error = [](std::function<Tensor(Tensor)> yes, std::function<Tensor(Tensor)> no) {
    auto f = [&](Tensor x) { return cond(x.sum() > 0, yes, no, x); };
    return error_of([&] { compile(f, {.fullgraph = true})(values({3})); });
  };
  auto same = [](Tensor x) { return x; };
  Tensor outside = zeros({3});
  auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), text.npos) << text << "\nlacks: " << part;
  };
  has(error(same, [](Tensor x) { return x.sum(); }),
      "cond: result 0 of true_fn is float32[3], and of false_fn float32[]");
  has(error(same, [](Tensor x) { return x.to(kFloat64); }),
      "cond: result 0 of true_fn is float32[3], and of false_fn float64[3]");
  has(error([](Tensor x) { return x * x.sum().item<float>(); }, same),
      "cond: true_fn is recorded, and item() needs a value");
  has(error(same, [&](Tensor x) { return outside.add_(x); }),
      "cond: false_fn writes into float32[3], a tensor from outside (or one of `empty`), in place");
  has(error(same, [](Tensor x) { return x.add_(1); }), "cond: false_fn writes into one of its arguments in place");
  has(error(same, [](Tensor x) { return dropout(x, 0.5, true); }), "draws random numbers");
  has(error_of([] { cond(ones({2}), [] { return ones({}); }, [] { return ones({}); }); }),
      "cond: the predicate is float32[2], expected a tensor of one element");
}

// A function that can't be recorded runs as it is written.
TEST(ControlFlow, FunctionsThatAreNotRecorded) {
  Tensor outside = zeros({4});
  auto wrong = [](Tensor x) {
    if (x.numel() > 0) throw std::runtime_error("wrong");
    return x;
  };
  auto prefix = [](Tensor x, Tensor n) { return x.narrow(0, 0, n.item<int64_t>()).sum(); };
  auto whole = [](Tensor x, Tensor) { return x.sum(); };
  std::vector<std::function<Tensor(const Tensors&)>> bodies = {
      [&](const Tensors& in) { return cond(in[0].sum() > 0, prefix, whole, in[0] * 2, in[1]) + 1; },
      [&](const Tensors& in) { return cond(in[0].sum() > 0, whole, prefix, in[0], in[1]) * in[0]; },
      [&](const Tensors& in) {
        Tensor y = cond(
            in[0].sum() > 0, [&](Tensor x) { return outside.add_(x.detach()) + x; },
            [&](Tensor x) { return x * outside; }, in[0]);
        return y * 2;
      },
      // Of different sizes, and what is not reached fails.
      [&](const Tensors& in) {
        return cond(in[0].numel() > 0 ? in[0].sum() > -100 : in[0], [](Tensor x) { return x.sin(); }, wrong, in[0]);
      },
      [&](const Tensors& in) {
        return cond(in[0].sum() > 0, [](Tensor x) { return x.sum(); }, [](Tensor x) { return x * 3; }, in[0]);
      },
      [&](const Tensors& in) {
        auto [h, ys] = scan(
            [](Tensor h, Tensor x) {
              h = h + x * (x.item<float>() > 0 ? 2 : 3);
              return std::pair(h, h * 2);
            },
            zeros({}), in[0]);
        return h + ys.sum();
      },
      [&](const Tensors& in) {
        return map([](Tensor x, Tensor y) { return x.item<float>() > 0 ? x * y : x - y; }, in[0], in[1]);
      },
      [&](const Tensors& in) {
        NoGradGuard guard;
        return while_loop([](Tensor x) { return x.sum() < 20; },
                          [](Tensor x) { return x.abs() + (x.item<float>() > 1 ? 1 : 2); }, in[0].sum());
      }};
  for (size_t i = 0; i < bodies.size(); ++i) {
    auto compiled = compile(bodies[i]);
    for (int call = 0; call < 5; ++call) {
      Tensor x = values({4}) + (call % 2 ? 0.7 : -0.7), n = tensor(int64_t{call % 4 + 1});
      Tensor a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
      Tensor before = outside.clone();
      auto run = [&](auto& f, const Tensor& t) {
        Tensor y = f(Tensors{t, n});
        if (y.requires_grad()) y.sum().backward();
        return y;
      };
      Tensor want = run(bodies[i], a), left = outside.clone();
      outside.copy_(before);
      expect_close(run(compiled, b), want);
      expect_close(outside, left);
      if (want.requires_grad()) expect_close(b.grad(), a.grad());
    }
    EXPECT_NE(compiled.explain().str().find("can't be recorded"), std::string::npos) << i << compiled.explain().str();
  }
}

// A branch may change what it has made itself, in place and through views.
TEST(Cond, WritesToItsOwnTensors) {
  auto f = [](const Tensors& in) {
    return cond(
        in[0].sum() > 0,
        [](Tensor x) {
          Tensor y = x.clone();
          y.select(0, 1).mul_(3);
          y.add_(1);
          return y;
        },
        [](Tensor x) { return x * 2; }, in[0]);
  };
  check(f, {{values({4, 3}) + 1}, {values({4, 3}) - 1}, {values({6, 3}) + 1}});
}

TEST(Cond, AnOperandThatIsNotReadHasAGradientOfZeros) {
  auto f = [](Tensor x, Tensor w, Tensor v) {
    return cond(
        x.sum() > 0, [](Tensor x, Tensor w, Tensor) { return x * w; },
        [](Tensor x, Tensor, Tensor v) { return x + v / 0; }, x, w, v);
  };
  auto compiled = compile(f);
  for (bool eager : {true, false}) {
    Tensor x = ones({3}), w = ones({3}).requires_grad_(), v = ones({1}).requires_grad_();
    Tensor y = eager ? f(x, w, v) : compiled(x, w, v);
    y.sum().backward();
    expect_close(w.grad(), x);
    ASSERT_TRUE(v.grad().defined()) << eager;
    expect_close(v.grad(), zeros({1}));
  }
}

TEST(Cond, UnderTransformations) {
  auto f = [](Tensor x) {
    return cond(x.sum() > 0, [](Tensor t) { return t.sin().sum(); }, [](Tensor t) { return (t * t).sum(); }, x);
  };
  Tensor xs = stack({values({4}) + 1, values({4}) - 1, values({4}) + 2});
  for (int64_t i = 0; i < 3; ++i) {
    Tensor x = xs[i];
    bool holds = x.sum().item<float>() > 0;
    expect_close(func::grad(f)(x), holds ? x.cos() : 2 * x);
    expect_close(func::hessian(f)(x), holds ? diag(-x.sin()) : 2 * eye(4));
    expect_close(func::vmap(f)(xs)[i], f(x));
    expect_close(func::vmap(func::grad(f))(xs)[i], holds ? x.cos() : 2 * x);
    expect_close(func::jvp(f, x, ones({4})).second[0], (holds ? x.cos() : 2 * x).sum());
  }
}

TEST(Scan, RecurrentCell) {
  for (bool reverse : {false, true}) {
    auto f = [&](const Tensors& in) {
      Tensor w = in[2];
      auto [h, outputs] = scan(
          [&](Tensor h, Tensor x) {
            h = (x + h.matmul(w)).tanh();
            return std::pair(h, Tensors{h * 2, x.sum(0)});
          },
          in[0], in[1], reverse);
      return h.sum() + (outputs[0] * outputs[1].unsqueeze(1)).sum({0, 1});
    };
    std::vector<Tensors> calls;
    for (int64_t n : {3, 7, 2, 12, 5}) calls.push_back({values({2, 4}), values({n, 2, 4}), values({4, 4})});
    check(f, calls);
  }
}

TEST(Scan, OneItemAndNone) {
  auto f = [](const Tensors& in) {
    return scan([](Tensor a, Tensor b) { return std::pair(a + b, a * b); }, in[0], in[1]).second;
  };
  check(f, {{values({3}), values({1, 3})}});
  std::string message = error_of([&] { f({values({3}), values({0, 3})}); });
  EXPECT_EQ(message, "scan: there are no items to go along: float32[0, 3]");
  EXPECT_EQ(error_of([&] { compile([&](Tensor a, Tensor b) { return f({a, b}); })(values({3}), values({0, 3})); }),
            message);
}

TEST(Scan, Errors) {
  for (bool compiled : {false, true}) {
    auto error = [&](std::function<std::pair<Tensor, Tensor>(Tensor, Tensor)> step) {
      auto f = [&](Tensor a, Tensor b) { return scan(step, a, b).second; };
      return error_of([&] { compiled ? compile(f)(zeros({3}), zeros({2, 3})) : f(zeros({3}), zeros({2, 3})); });
    };
    EXPECT_EQ(error([](Tensor a, Tensor b) { return std::pair(a.sum(), b); }),
              "scan: carried tensor 0 is float32[3] before combine_fn, and float32[] after it");
    EXPECT_EQ(error([](Tensor a, Tensor b) { return std::pair(a.to(kFloat64), b); }),
              "scan: carried tensor 0 is float32[3] before combine_fn, and float64[3] after it");
  }
}

TEST(Scan, WithBranchesAndScansInside) {
  auto f = [](const Tensors& in) {
    return scan(
               [&](Tensor h, Tensor x) {
                 Tensor next = cond(
                     x.sum() > 0, [](Tensor h, Tensor x) { return h * 0.5 + x; },
                     [&](Tensor h, Tensor x) { return h - x * in[2]; }, h, x);
                 Tensor inner =
                     scan([&](Tensor s, Tensor y) { return std::pair(s + y * next.sum(), s); }, zeros({}), x).first;
                 return std::pair(next, inner);
               },
               in[0], in[1])
        .second;
  };
  std::vector<Tensors> calls;
  for (int64_t n : {3, 7, 2}) calls.push_back({values({4}), values({n, 4}), values({4})});
  check(f, calls);
}

TEST(Map, RowsWithWhatIsCaptured) {
  auto f = [](const Tensors& in) {
    return map([&](Tensor x, Tensor w) { return (x.unsqueeze(0).matmul(w) + in[2]).softmax(-1); }, in[0], in[1]);
  };
  std::vector<Tensors> calls;
  for (int64_t n : {3, 7, 2, 5}) calls.push_back({values({n, 4}), values({4, 5}), values({5})});
  check(f, calls);
}

TEST(Map, UnderVmapAndGrad) {
  auto f = [](Tensor x) { return map([](Tensor row) { return row.square().sum(); }, x).sum(); };
  Tensor x = values({2, 3, 4});
  expect_close(func::grad(f)(x[0]), 2 * x[0]);
  expect_close(func::vmap(f)(x)[1], f(x[1]));
}

TEST(AssociativeScan, SumsAndProducts) {
  for (bool reverse : {false, true}) {
    auto f = [&](const Tensors& in) {
      // h = a h + b, as pairs (a, b).
      Tensors out =
          associative_scan([](Tensors x, Tensors y) { return Tensors{x[0] * y[0], y[0] * x[1] + y[1]}; }, in, reverse);
      return out[1];
    };
    std::vector<Tensors> calls;
    for (int64_t n : {3, 7, 2, 5}) calls.push_back({values({n, 4}), values({n, 4}) + 1});
    check(f, calls);
  }
  Tensor x = values({5, 3});
  expect_close(associative_scan([](Tensor a, Tensor b) { return a + b; }, x), x.cumsum(0));
  expect_close(associative_scan([](Tensor a, Tensor b) { return a + b; }, x.slice(0, 0, 1)), x.slice(0, 0, 1));
}

// Gradients that the body itself asks for: steps of gradient descent on each item, and through them the gradient outside.
TEST(Scan, GradientsInTheBody) {
  auto f = [](const Tensors& in) {
    return scan(
               [](Tensor w, Tensor x) {
                 Tensor v = w.detach().requires_grad_();
                 Tensor loss = (v * x).tanh().sum();
                 Tensor g = autograd::grad({loss}, {v})[0];
                 return std::pair(w - 0.1 * g * x.sum(), loss);
               },
               in[0], in[1])
        .first;
  };
  std::vector<Tensors> calls;
  for (int64_t n : {3, 5}) calls.push_back({values({4}), values({n, 4})});
  check(f, calls);
}

TEST(Scan, SecondDerivatives) {
  auto f = [](Tensor x) {
    return scan([](Tensor h, Tensor x) { return std::pair((h * x).sin() + x, h); }, ones({3}), x).first.sum();
  };
  Tensor x = values({4, 3});
  auto loop = [](Tensor x) {
    Tensor h = ones({3});
    for (int64_t t = 0; t < x.size(0); ++t) h = (h * x[t]).sin() + x[t];
    return h.sum();
  };
  expect_close(func::hessian(f)(x), func::hessian(loop)(x));
}

// What a function keeps outside has no value.
TEST(Cond, TensorsThatEscape) {
  Tensor kept;
  auto f = compile([&](Tensor x) {
    return cond(x.sum() > 0, [&](Tensor t) { return kept = t * 2; }, [](Tensor t) { return t; }, x);
  });
  f(ones({3}));
  std::string message = error_of([&] { kept.sum().item<float>(); });
  EXPECT_NE(message, "");
}

// Newton's iteration for the square roots of a; the number of steps hangs on the values.
Tensor roots(const Tensor& a) {
  auto [x, steps] = while_loop([&](Tensor x, Tensor) { return (x * x - a).abs().max() > 1e-5; },
                               [&](Tensor x, Tensor steps) { return std::pair((x + a / x) / 2, steps + 1); },
                               ones_like(a), zeros({}, kInt64));
  return x + 0 * steps;
}

TEST(WhileLoop, NewtonsIteration) {
  for (std::string backend : {"inductor", "interpreter", "eager", "aot_eager"}) {
    auto compiled = compile(roots, CompileOptions{.fullgraph = true, .backend = backend});
    for (int64_t n : {3, 4, 7, 1}) {
      Tensor a = arange(n).to(kFloat32) + 1;
      expect_close(roots(a), a.sqrt());
      expect_close(compiled(a), a.sqrt());
    }
    EXPECT_LE(compiled.explain().recompiles.size(), 2u);  // and one element
  }
}

TEST(WhileLoop, NoStep) {
  auto f = [](Tensor x) { return while_loop([](Tensor t) { return t.sum() < 0; }, [](Tensor t) { return t + 1; }, x); };
  Tensor x = ones({3});
  expect_close(compile(f)(x), x);
  expect_close(f(x), x);
}

// Where gradients flow the loop runs step by step.
TEST(WhileLoop, Gradients) {
  auto gradient = [](auto f) {
    Tensor a = (arange(3).to(kFloat32) + 1).requires_grad_();
    f(a).sum().backward();
    return a.grad();
  };
  Tensor want = 0.5 / (arange(3).to(kFloat32) + 1).sqrt();
  expect_close(gradient(roots), want);
  auto compiled = compile(roots);
  expect_close(gradient(compiled), want);
  EXPECT_EQ(compiled.explain().breaks.at(0).reason, "while_loop with gradients");
  std::string message = error_of([&] { gradient(compile(roots, CompileOptions{.fullgraph = true})); });
  EXPECT_NE(message.find("while_loop with gradients"), message.npos) << message;
}

TEST(WhileLoop, UnderTransformations) {
  Tensor rows = arange(6).to(kFloat32).view({2, 3}) + 1;
  expect_close(func::vmap(roots)(rows), rows.sqrt());
  expect_close(func::jvp(roots, rows[0], ones({3})).second[0], 0.5 / rows[0].sqrt());
  std::string message = error_of([&] { func::grad([](Tensor x) { return roots(x).sum(); })(rows[0]); });
  EXPECT_NE(message.find("while_loop with gradients"), message.npos) << message;
}

TEST(WhileLoop, InScans) {
  auto f = [](Tensor h, Tensor xs) {
    return scan([](Tensor h, Tensor x) { return std::pair(h + 1, roots(x) + h); }, h, xs).second;
  };
  auto compiled = compile(f, CompileOptions{.fullgraph = true});
  for (int64_t n : {2, 3, 5}) {
    Tensor xs = arange(n * 3).to(kFloat32).view({n, 3}) + 1;
    expect_close(compiled(zeros({3}), xs), f(zeros({3}), xs));
  }
}

TEST(WhileLoop, Errors) {
  for (bool compiled : {false, true}) {
    auto error = [&](std::function<Tensor(Tensor)> go_on, std::function<Tensor(Tensor)> step) {
      auto f = [&](Tensor x) { return while_loop(go_on, step, x); };
      return error_of([&] { compiled ? compile(f)(ones({3})) : f(ones({3})); });
    };
    auto goes_on = [](Tensor x) { return x.sum() > 0; };
    EXPECT_EQ(error(goes_on, [](Tensor x) { return x.sum(); }),
              "while_loop: carried tensor 0 is float32[3] before body_fn, and float32[] after it");
    EXPECT_EQ(error([](Tensor x) { return x > 0; }, [](Tensor x) { return x - 1; }),
              "while_loop: the result of cond_fn is bool[3], expected a tensor of one element");
  }
}

// Other processes read it: it names no rows that this one made.
TEST(Explain, ShowsBodies) {
  auto body = [](const Tensor& x) {
    Tensor y = cond(x.sum() > 0, [&] { return x.sin(); }, [&] { return x.cos(); });
    return brasa::map([](Tensor row) { return row.tanh() * 2; }, y);
  };
  CompileOptions options;
  options.backend = "interpreter";
  auto f = compile(body, options);
  f(values({4, 3}));
  std::string graph = f.explain().graphs.at(0).operators;
  EXPECT_EQ(graph.find("flow::"), std::string::npos) << graph;
  EXPECT_NE(graph.find("prim::cos"), std::string::npos) << graph;
  EXPECT_EQ(check_graph(graph), "");
}

TEST(ControlFlow, BodiesAndTransformationsSeeWhatAnOpaqueFunctionDoes) {
  auto opaque = allow_in_graph([](const Tensor& x) { return x * x + 1; });
  auto f = compile([&](const Tensor& x) { return cond(x.sum() > 0, [&] { return opaque(x); }, [&] { return -x; }); },
                   {.fullgraph = true});
  Tensor x = arange(1, 4, kFloat32);
  expect_close(f(x), x * x + 1);
  expect_close(f(-x), x);
  EXPECT_TRUE(f.explain().opaque_calls.empty());
  expect_close(func::vmap([&](const Tensor& row) { return opaque(row); })(x), x * x + 1);
}

}  // namespace
}  // namespace brasa
