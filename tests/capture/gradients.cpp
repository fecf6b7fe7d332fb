// Where gradients go: parameters that several segments share, leaves that lie above one another, hooks, numbers and sizes that change.
#include <brasa/autograd.h>

#include "cube.h"
#include "situations.h"

namespace brasa {
namespace {

Tensor leaf(IntArrayRef sizes) { return numbers(sizes).clone().set_requires_grad(true); }
void break_here(const Tensor& t) { (void)t.sum().item<float>(); }

TEST(Gradients, AParameterBesideItsView) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([](const Tensors& in) -> Tensors { return {(in[0] * in[1].sin()).sum()}; });
    Tensor w = leaf({3});
    for (int i = 0; i < 3; ++i) {
      f({w.view({3}), w})[0].backward();
      f({w * 2, w})[0].backward();
      f({w, w})[0].backward();
      f({w.detach(), w})[0].backward();
      seen.add(w.grad());
    }
  });
}

TEST(Gradients, AParameterBeforeAndAfterABreak) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3}), x = numbers({4, 3});
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor h = in[0] * w;
      break_here(h);
      Tensor y = (h * w).tanh();
      break_here(y);
      return {(y * w).sum() + w.square().sum() * 0.1};
    });
    for (int i = 0; i < 3; ++i) {
      f({x})[0].backward();
      seen.add(w.grad());
    }
  });
}

TEST(Gradients, ACellCalledTwice) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3, 3}), b = leaf({3}), x = numbers({2, 3});
    auto cell = compile([&](const Tensors& in) -> Tensors { return {(in[0] + in[1].matmul(w) + b).tanh()}; });
    for (int steps = 1; steps < 5; ++steps) {
      Tensor h = zeros({2, 3});
      for (int t = 0; t < steps; ++t) h = cell({x + t, h})[0];
      h.square().sum().backward();
      seen.add({w.grad(), b.grad()});
    }
  });
}

TEST(Gradients, TwoFunctionsShareAParameter) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({5, 3});
    auto embed = compile([&](const Tensors& in) -> Tensors { return {w.index_select(0, in[0])}; });
    auto head = compile([&](const Tensors& in) -> Tensors { return {in[0].matmul(w.t()).log_softmax(-1)}; });
    for (int i = 0; i < 3; ++i) {
      Tensor h = embed({tensor(std::vector<int64_t>{0, 2, 4, 1})})[0];
      Tensor loss = head({h})[0].select(1, i).sum();
      loss.backward();
      seen.add(w.grad());
    }
  });
}

TEST(Gradients, APenaltyAfterABreak) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3});
    double beta = 0;
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor loss = (in[0] * w).sum();
      break_here(loss);
      return {loss + beta * w.square().sum()};
    });
    for (; beta < 0.5; beta += 0.1) {
      w.mutable_grad().reset();
      f({ones({3})})[0].backward();
      seen.add(w.grad());
    }
  });
}

TEST(Gradients, RetainedOfInputsThatAreNoLeaves) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3});
    auto f = compile([&](const Tensors& in) -> Tensors { return {(in[0] * w).sum(), in[0].exp()}; });
    for (int i = 0; i < 3; ++i) {
      Tensor h = w.sin(), k = w.cos();
      h.retain_grad();
      f({h})[0].backward();
      seen.add({w.grad(), h.grad()});
      k.retain_grad();
      Tensors both = f({k});
      (both[0] + both[1].sum()).backward();
      seen.add({w.grad(), k.grad()});
    }
  });
}

TEST(Gradients, RetainedInsideAndOfInputsInside) {
  for (bool inside : {false, true})
    expect_as_eager([inside](const Wrap& compile, Seen& seen) {
      Tensor w = leaf({3}), kept, given;
      auto f = compile([&](const Tensors& in) -> Tensors {
        given = in[0];
        given.retain_grad();
        kept = in[0] * w;
        kept.retain_grad();
        Tensor loss = kept.sin().sum();
        if (inside) loss.backward();
        return {loss};
      });
      for (int i = 0; i < 3; ++i) {
        Tensor loss = f({w.exp()})[0];
        if (!inside) loss.backward();
        seen.add({w.grad(), kept.grad(), given.grad()});
      }
    });
}

// What is to see the gradient of a result comes after the call.
TEST(Gradients, ResultsThatOthersAreMadeOf) {
  for (int what : {0, 1, 2, 3})
    expect_as_eager([what](const Wrap& compile, Seen& seen) {
      Tensor w = leaf({3});
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor h = in[0] * w, p = h.sin();
        if (what == 3) break_here(p);
        Tensor k = p.view({3, 1}) * h;
        return {h, p, k.exp().sum()};
      });
      for (int i = 0; i < 4; ++i) {
        Tensor x = leaf({3});
        Tensors out = f({x});
        if (what == 0) out[1].retain_grad();
        if (what == 1) out[0].register_hook([](const Tensor& g) { return g * 3; });
        if (what == 2) {
          seen.add(autograd::grad({out[2]}, {out[0], x}, {}, true));
          seen.add(autograd::grad({out[2]}, {out[1]}, {}, true));
        }
        if (what == 3) {
          out[0].retain_grad();
          out[1].register_hook([](const Tensor& g) { return g * 2; });
        }
        (out[2] + out[0].sum()).backward();
        seen.add({w.grad(), x.grad(), out[0].is_leaf() ? Tensor() : out[0].grad(), out[1].grad()});
      }
    });
}

TEST(Gradients, RetainedOfWhatIsWrittenLater) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3}), kept;
    auto f = compile([&](const Tensors& in) -> Tensors {
      kept = in[0] * w;
      kept.retain_grad();
      kept.mul_(3);
      return {kept.sin().sum()};
    });
    for (int i = 0; i < 3; ++i) {
      f({w.exp()})[0].backward();
      seen.add({w.grad(), kept.grad()});
    }
  });
}

TEST(Gradients, HooksOnInputs) {
  for (bool inside : {false, true})
    expect_as_eager([inside](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor loss = (in[0] * in[0]).sum();
        if (inside) loss.backward();
        return {loss};
      });
      for (double factor : {10.0, 0.0, 5.0, 0.0, 0.0, 2.0}) {
        Tensor w = leaf({3}), b = w * 1;
        if (factor != 0) b.register_hook([factor](const Tensor& g) { return g * factor; });
        Tensor loss = f({b})[0];
        if (!inside) loss.backward();
        seen.add(w.grad());
      }
    });
}

TEST(Gradients, HooksOnLeaves) {
  for (bool inside : {false, true})
    expect_as_eager([inside](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor loss = (in[0] * in[0]).sum();
        if (inside) loss.backward();
        return {loss};
      });
      for (double factor : {10.0, 0.0, 5.0, 0.0, 0.0, 2.0}) {
        Tensor w = leaf({3});
        if (factor != 0) w.register_hook([factor](const Tensor& g) { return g * factor; });
        Tensor loss = f({w})[0];
        if (!inside) loss.backward();
        seen.add(w.grad());
      }
    });
}

TEST(Gradients, HooksThatAreRegisteredInside) {
  for (bool inside : {false, true})
    expect_as_eager([inside](const Wrap& compile, Seen& seen) {
      double factor = 0;
      int calls = 0;
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor h = in[0].sin();
        if (factor != 0)
          for (const Tensor& t : {h, in[0]})
            t.register_hook([factor, &calls](const Tensor& g) {
              ++calls;
              return g * factor;
            });
        Tensor loss = (h * in[0]).sum();
        if (inside) loss.backward();
        return {loss};
      });
      for (double next : {10.0, 0.0, 5.0, 0.0, 0.0, 2.0}) {
        factor = next;
        Tensor w = leaf({3});
        Tensor loss = f({w})[0];
        if (!inside) loss.backward();
        seen.add(w.grad());
        seen.note(std::to_string(calls));
      }
    });
}

TEST(Gradients, HooksThatSeeWhatIsRecorded) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    double last = 0;
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor loss = (in[0].exp() * in[0]).sum();
      loss.backward();
      return {loss * 2};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor w = leaf({3});
      w.register_hook([&](const Tensor& g) {
        last = g.sum().item<float>();
        return last > 0 ? g : g * 2;
      });
      w.register_post_accumulate_grad_hook([&](const Tensor& t) { last += t.grad().sum().item<float>(); });
      seen.add(f({w}));
      seen.add(w.grad());
      seen.add(full({1}, last));
    }
  });
}

TEST(Gradients, NumbersThatChange) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&, double)> f;
  };
  const Case cases[] = {
      {"mul", [](const Tensor& w, double k) { return w * k; }},
      {"rsub", [](const Tensor& w, double k) { return (k - w).square(); }},
      {"pow", [](const Tensor& w, double k) { return (w.square() + 1).pow(1 + k); }},
      {"base", [](const Tensor& w, double k) { return pow(Scalar(1 + k), w); }},
      {"clamp", [](const Tensor& w, double k) { return w.clamp(Scalar(-k), Scalar(k)); }},
      {"clamp_min", [](const Tensor& w, double k) { return w.clamp_min(Scalar(k)); }},
      {"elu", [](const Tensor& w, double k) { return elu(w - 0.5, k); }},
      {"celu", [](const Tensor& w, double k) { return celu(w - 0.5, k + 0.1); }},
      {"leaky_relu", [](const Tensor& w, double k) { return leaky_relu(w - 0.5, k); }},
      {"hardshrink", [](const Tensor& w, double k) { return hardshrink(w, k); }},
      {"softshrink", [](const Tensor& w, double k) { return softshrink(w, k); }},
      {"softplus", [](const Tensor& w, double k) { return softplus(w, k + 0.5, 20); }},
      {"threshold", [](const Tensor& w, double k) { return threshold(w, k, 7); }},
      {"alpha", [](const Tensor& w, double k) { return add(w, w.square(), k); }},
      {"addcdiv", [](const Tensor& w, double k) { return addcdiv(w, w, w.square() + 1, k); }},
      {"lerp", [](const Tensor& w, double k) { return lerp(w, w.square(), k); }},
      {"div", [](const Tensor& w, double k) { return w / (k + 0.5); }},
      {"reciprocal", [](const Tensor& w, double k) { return (k + 0.5) / (w.square() + 1); }},
      {"remainder", [](const Tensor& w, double k) { return w.remainder(k + 0.3) * w; }},
      {"masked_fill", [](const Tensor& w, double k) { return w.masked_fill(w > 0.2, k) * w; }},
      {"where", [](const Tensor& w, double k) { return where(w > k, w, w * k); }},
      {"layer_norm", [](const Tensor& w, double k) { return layer_norm(w, {5}, {}, {}, k + 0.01); }},
      {"addmm", [](const Tensor& w, double k) { return addmm(w, w.reshape({5, 1}), w.reshape({1, 5}), 1, k); }},
      {"norm", [](const Tensor& w, double k) { return w.norm(k + 1.5); }},
      {"fill", [](const Tensor& w, double k) { return w * full_like(w, k) + w.new_full({5}, k) * w; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (bool inside : {false, true})
      expect_as_eager([&](const Wrap& compile, Seen& seen) {
        double k = 0;
        Tensor w = leaf({5});
        auto f = compile([&](const Tensors& in) -> Tensors {
          Tensor loss = c.f(in[0], k).sum();
          if (inside) loss.backward();
          return {loss};
        });
        for (double value : {0.0, 0.1, 0.25, 0.3, 0.25, 0.7}) {
          k = value;
          w.mutable_grad().reset();
          Tensor loss = f({w})[0];
          if (!inside) loss.backward();
          seen.add({loss, w.grad()});
        }
      });
  }
}

// Sizes of a call must not be those that the backward pass was made for.
TEST(Gradients, SizesThatChange) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&)> f;
  };
  const Case cases[] = {
      {"a write into the middle",
       [](const Tensor& x) {
         Tensor p = x * 1;
         p.narrow(1, x.size(1) / 2, 1).mul_(3);
         return p * x;
       }},
      {"every second", [](const Tensor& x) { return x.slice(1, 0, x.size(1), 2).sin(); }},
      {"a write into every second",
       [](const Tensor& x) {
         Tensor p = x * 1;
         p.slice(1, 1, x.size(1), 2).mul_(x.slice(1, 0, x.size(1) / 2 * 2, 2));
         return p.sin();
       }},
      {"a copy into every second",
       [](const Tensor& x) {
         Tensor p = x * 1;
         p.slice(1, 0, x.size(1), 2).copy_(x.slice(1, 0, x.size(1), 2).exp());
         return p.sin();
       }},
      {"a copy into every third of both",
       [](const Tensor& x) {
         Tensor p = x * 1;
         p.slice(1, 0, x.size(1), 3).slice(0, 1, 3).fill_(2);
         return p.sin();
       }},
      {"rotary",
       [](const Tensor& x) {
         int64_t n = x.size(1) / 2 * 2;
         Tensor even = x.slice(1, 0, n, 2), odd = x.slice(1, 1, n, 2), y = zeros({x.size(0), n});
         y.slice(1, 0, n, 2).copy_(even.cos() - odd.sin());
         y.slice(1, 1, n, 2).copy_(odd.cos() + even.sin());
         return y;
       }},
      {"chunk", [](const Tensor& x) { return x.chunk(2, 1)[0].cos(); }},
      {"last chunk", [](const Tensor& x) { return x.chunk(2, 1).back().cos(); }},
      {"split", [](const Tensor& x) { return x.split((x.size(1) + 1) / 2, 1)[0].square(); }},
      {"narrow", [](const Tensor& x) { return x.narrow(1, (x.size(1) - 1) / 2, 1).cos(); }},
      {"select", [](const Tensor& x) { return x.select(1, x.size(1) / 2).exp(); }},
      {"half", [](const Tensor& x) { return x.size(1) % 2 == 0 ? x.narrow(1, 0, x.size(1) / 2).exp() : x.sin(); }},
      {"mean", [](const Tensor& x) { return (x - x.mean(1, true)) / x.var(1, true, true).add(1).sqrt(); }},
      {"cat", [](const Tensor& x) { return cat({x, x.narrow(1, 0, x.size(1) / 2)}, 1).cumsum(1); }},
      {"roll", [](const Tensor& x) { return x.roll(x.size(1) / 2, 1) * x; }},
      {"unfold", [](const Tensor& x) { return x.unfold(1, 2, 1).sum(-1).sin(); }},
      {"diagonal", [](const Tensor& x) { return x.diagonal().exp(); }},
      {"tril", [](const Tensor& x) { return x.tril(x.size(1) / 3).exp(); }},
      {"index", [](const Tensor& x) { return x.index_select(1, arange(x.size(1) / 2, kInt64) * 2).sin(); }},
      {"gather", [](const Tensor& x) { return x.gather(1, x.argsort(int64_t{1})).cumsum(1); }},
      {"max", [](const Tensor& x) { return std::get<0>(x.max(1)) + x.amin(1); }},
      {"pad", [](const Tensor& x) { return constant_pad_nd(x, {1, x.size(1) / 2}, 2.0).sin(); }},
      {"pool", [](const Tensor& x) { return avg_pool1d(x.unsqueeze(0), {2}).sin(); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (bool inside : {false, true})
      expect_as_eager([&](const Wrap& compile, Seen& seen) {
        auto f = compile([&](const Tensors& in) -> Tensors {
          Tensor y = c.f(in[0]), loss = y.sum();
          if (inside) loss.backward();
          return {y, loss};
        });
        for (int64_t n : {4, 8, 8, 9, 8, 9, 12, 2, 3, 7}) {
          Tensor x = leaf({3, n});
          Tensors out = f({x});
          if (!inside) out[1].backward();
          seen.add({out[0], x.grad()});
        }
      });
  }
}

TEST(Gradients, BackwardTwice) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3});
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor h = in[0] * w;
      return {h.sin().sum(), h.exp().sum()};
    });
    for (int i = 0; i < 3; ++i) {
      Tensors out = f({numbers({3}) + i});
      out[0].backward({}, true);
      out[1].backward({}, true);
      out[0].backward();
      seen.attempt([&] { out[0].backward(); });
      seen.attempt([&] { out[1].backward(); });
      seen.add(w.grad());
    }
  });
}

TEST(Gradients, SecondDerivatives) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&)> f;
  };
  const Case cases[] = {
      {"chain", [](const Tensor& x) { return (x.sin() * x.exp()).sum(); }},
      {"views", [](const Tensor& x) { return (x.view({2, 3}).t().select(0, 1).exp() * x.narrow(0, 0, 2)).sum(); }},
      {"writes",
       [](const Tensor& x) {
         Tensor p = x * 1;
         p.narrow(0, 1, 2).mul_(x.narrow(0, 2, 2));
         return p.pow(3).sum();
       }},
      {"matmul", [](const Tensor& x) { return x.view({2, 3}).matmul(x.view({3, 2})).tanh().sum(); }},
      {"softmax", [](const Tensor& x) { return x.softmax(0).square().sum(); }},
      {"indices",
       [](const Tensor& x) { return x.index_select(0, tensor(std::vector<int64_t>{0, 0, 4})).pow(3).sum(); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    for (int where : {0, 1, 2, 3})  // nothing, the leaf is a view, the leaf's view is the input, inside
      expect_as_eager(
          [&](const Wrap& compile, Seen& seen) {
            auto penalty = [](const Tensor& loss, const Tensor& x) {
              Tensor g = autograd::grad({loss}, {x}, {}, true, true)[0];
              return g.square().sum();
            };
            auto f = compile([&](const Tensors& in) -> Tensors {
              Tensor loss = c.f(in[0]);
              return {where == 3 ? penalty(loss, in[0]) : loss};
            });
            for (int i = 0; i < 3; ++i) {
              Tensor whole = numbers({2, 6}).clone(),
                     x = where == 1 ? whole.select(0, i % 2) : whole.select(0, 1).clone();
              x.set_requires_grad(true);
              Tensor given = where == 2 ? x.view({6}) : x, loss = f({given})[0];
              Tensor p = where == 3 ? loss : penalty(loss, x);
              p.backward();
              seen.add({loss, p, x.grad()});
            }
          },
          1e-4);
  }
}

TEST(Gradients, CustomFunctions) {
  for (bool inside : {false, true})
    expect_as_eager([inside](const Wrap& compile, Seen& seen) {
      double k = 1;
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor y = Cube::apply(in[0].sin(), k).exp() * in[0], loss = y.sum();
        if (inside) loss.backward();
        return {y, loss};
      });
      for (int64_t n : {3, 4, 5, 4, 3}) {
        k += 0.5;
        Tensor x = leaf({n});
        Tensors out = f({x});
        if (!inside) out[1].backward();
        seen.add({out[0], x.grad()});
      }
    });
}

TEST(Gradients, ACopyIntoASliceOfItsOwn) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor p = in[0] * 2, a = p.select(0, 1);
      a.copy_(a.exp());
      Tensor b = p.narrow(1, 0, 2);
      b.copy_(b.exp() + in[0].narrow(1, 0, 2));
      return {p.sum(), a, b};
    });
    for (int64_t n : {3, 4, 5, 3}) {
      Tensor x = leaf({2, n});
      Tensors out = f({x});
      (out[0] + out[1].sum() * 2 + out[2].sin().sum()).backward();
      seen.add(out);
      seen.add(x.grad());
    }
  });
}

TEST(Gradients, LeavesFromInside) {
  for (bool inside : {false, true})
    expect_as_eager([inside](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors {
        Tensor p = (in[0] * 2).detach().requires_grad_(), q = ones({3}).requires_grad_(), loss = (p * q).sin().sum();
        if (inside) loss.backward();
        return {loss, p, q};
      });
      for (int i = 0; i < 3; ++i) {
        Tensors out = f({numbers({3}) + i});
        if (!inside) out[0].backward();
        seen.add({out[0], out[1].grad(), out[2].grad()});
      }
    });
}

TEST(Gradients, WhatIsRecordedMeetsABackwardFromOutside) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3});
    auto f = compile([&](const Tensors& in) -> Tensors { return {(in[0] * w).exp().sum()}; });
    auto g = compile([&](const Tensors& in) -> Tensors {
      Tensor loss = in[0] * w.sum();
      loss.backward({}, true);
      return {w.grad() * 2, loss};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor first = f({numbers({3}) + i})[0];
      Tensors out = g({first});
      out[1].backward();
      seen.add({out[0], w.grad()});
    }
  });
}

// What a later segment or call does with a view of an earlier one's value.
TEST(Gradients, WatchedViewsOfAnEarlierSegment) {
  for (bool broken : {false, true})
    for (bool hook : {false, true})
      expect_as_eager([&](const Wrap& compile, Seen& seen) {
        Tensor seen_by_hook;
        auto watch = [&](const Tensor& v) {
          if (!hook) return v.retain_grad();
          v.register_hook([&](const Tensor& g) {
            seen_by_hook = g.clone();
            return g * 3;
          });
        };
        auto f = compile([&](const Tensors& in) -> Tensors {
          Tensor h = in[0] * in[0], v = h.view({-1}).narrow(0, 1, 4), w = v.view({2, 2}),
                 used = (w * in[0].sum()).exp();
          if (broken && used.detach().sum().item<double>() > -1) watch(v);
          return {h, v, w, used};
        });
        for (int64_t n : {3, 4, 5, 3}) {
          Tensor x = leaf({2, n});
          Tensors out = f({x});
          if (!broken) watch(out[1]);
          Tensor loss = out[0].sum() + out[1].square().sum() + out[2].sin().sum() + out[3].sum();
          loss.backward();
          seen.add({x.grad(), hook ? seen_by_hook : out[1].grad()});
        }
      });
}

// Results that share nothing that backward reads can be taken backward one after the other.
TEST(Gradients, BackwardFromOneResultAfterTheOther) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = leaf({3}), u = leaf({3});
    auto apart = compile([&](const Tensors& in) -> Tensors {
      Tensor x = in[0] * 2 + 1;
      return {(x + w.sin()).sum(), (x - u.exp()).sum(), (w * u).sum()};
    });
    auto shared = compile([&](const Tensors& in) -> Tensors {
      Tensor h = (in[0] * w).exp();
      return {h.sum(), (h * u).sum()};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor x = leaf({3});
      Tensors out = apart({x});
      for (const Tensor& t : out) seen.attempt([&] { t.backward(); });
      seen.attempt([&] { out[0].backward(); });
      seen.add({x.grad(), w.grad(), u.grad()});
      out = shared({x});
      seen.attempt([&] { out[0].backward(); });
      seen.add({x.grad(), w.grad(), u.grad()});
      seen.attempt([&] { out[1].backward(); });
      // How far eager came before the error is its own affair.
      for (const Tensor& t : {w, u}) t.mutable_grad().reset();
    }
  });
}

// Hooks see what a pass computes on its way to the wanted gradients, and nothing else.
TEST(Gradients, HooksBesideWantedGradients) {
  int calls = 0;
  Tensor x = leaf({3}), w = leaf({3}), side = x.sin(), way = w * 2;
  side.register_hook([&](const Tensor& g) { return ++calls, g; });
  way.register_hook([&](const Tensor& g) { return calls += 10, g; });
  side.retain_grad();
  autograd::grad({(side * way).sum()}, {w});
  EXPECT_EQ(calls, 10);
  EXPECT_FALSE(side.grad().defined());
}

// A write reads what it overwrites, through another tensor that looks at it.
TEST(Gradients, WritesThatReadTheirTargetDetached) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([](const Tensors& in) -> Tensors {
      Tensor a = in[0].clone(), b = in[0] + 2;
      a.mul_(a.detach());
      b.select(0, 0).div_(b.select(0, 0).detach());
      return {a.sum() + b.sum()};
    });
    Tensor x = leaf({3});
    f({x})[0].backward();
    seen.add(x.grad());
    Tensor expected = x.detach() + 1;
    expected[0] = x.detach()[0] + 1 / (x.detach()[0] + 2);
    EXPECT_TRUE(allclose(x.grad(), expected));
  });
}

}  // namespace
}  // namespace brasa
