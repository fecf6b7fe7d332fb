// What tensors look at: memory that changes hands, strides, writes before an error, and calls that go wrong.
#include <brasa/autograd.h>
#include <brasa/stats.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "situations.h"

namespace brasa {
namespace {

TEST(Memory, SetDataOfAView) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor v = in[0].select(0, 1), before = v * 2;
      v.set_data(in[1]);
      Tensor after = v + 1;
      v.mul_(3);
      return {before, after, v * 1, in[0] + 0, in[1] + 0};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor x = numbers({3, 4}) + i, y = numbers({2, 5}) - i;
      seen.add(f({x, y}));
      seen.add({x, y});
    }
  });
}

TEST(Memory, SetDataIsReadLate) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor p = in[0], old = p.view({-1});
      p.set_data(in[1] * 2);
      p.add_(1);
      Tensor inner = in[1] * 5;
      inner.set_data(in[1].t());
      return {p * 2, old + 1, inner.sin()};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor x = numbers({3, 4}) + i, y = numbers({2, 5}) - i;
      seen.add(f({x, y}));
      seen.add({x, y});
    }
  });
}

TEST(Memory, SetDataBetweenReadAndWrite) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor first = in[0] * 2;
      in[0].set_data(in[1]);
      in[0].mul_(2);
      return {first, in[0] + 1, in[1] + 1};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor x = numbers({3}) + i, y = numbers({3}) - i;
      seen.add(f({x, y}));
      seen.add({x, y});
    }
  });
}

TEST(Memory, SetDataWithGradients) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = numbers({3}).clone().requires_grad_();
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor loss = (in[0] * w).sin().sum();
      return {loss};
    });
    for (int i = 0; i < 4; ++i) {
      w.set_data(numbers({3 + i % 2}) * i);
      w.mutable_grad().reset();
      f({numbers({3 + i % 2})})[0].backward();
      seen.add(w.grad());
    }
  });
}

TEST(Memory, Resize) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor a = in[0] * 2, b = in[0].view({-1}), c = in[1];
      a.resize_({2, 2});
      a.add_(1);
      Tensor early = c * 3;
      c.resize_({4});
      c.fill_(5);
      return {a * 1, b + 1, early, c * 2};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor x = numbers({3, 4}) + i, y = numbers({2, 5}) - i;
      seen.add(f({x, y}));
      seen.add({x, y});
    }
  });
}

TEST(Memory, ResizeGrows) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor out = empty({0});
      out.resize_({2, 3}).fill_(2);
      Tensor y = in[0] * 2;
      y.resize_({8}).narrow(0, 6, 2).zero_();
      Tensor target = empty({0});
      add_out(target, in[0], in[0]);
      return {out, y, target};
    });
    for (int i = 0; i < 3; ++i) seen.add(f({numbers({2, 3}) + i}));
  });
}

TEST(Memory, ShapesThatChangeInPlace) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor a = in[0] * 2;
      a.t_();
      a.add_(1);
      Tensor b = in[0].clone();
      b.unsqueeze_(0);
      b.transpose_(0, 2).mul_(2);
      in[1].t_();
      return {a, b, a.reshape({-1}), in[1] * 2};
    });
    for (int i = 0; i < 3; ++i) {
      Tensor x = numbers({3, 4}) + i, y = numbers({2, 5}) - i;
      seen.add(f({x, y}));
      seen.add(y);
    }
  });
}

// Results lie as eager's do.
TEST(Memory, Strides) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor x = in[0], t = x.t();
      return {t * 2,
              t.clone(),
              empty_like(t).zero_(),
              zeros_like(t),
              t + x.t().sin(),
              t + t.contiguous(),
              t.exp().sum(0, true),
              t.to(kDouble),
              (t > 0).to(kFloat),
              t.contiguous() * 2,
              where(t > 0, t, -t),
              (t * 2).reshape({-1}),
              t.unsqueeze(0) * 2,
              t.expand({2, -1, -1}) * 2,
              x.matmul(t),
              t.relu().add_(1),
              t.clamp(0, 1).t(),
              x.permute({1, 0}).view({x.size(1), x.size(0)}) - 1,
              t.softmax(0),
              t * x.select(0, 0).unsqueeze(1),
              t + 1.0,
              randn_like(t) * 0,
              full_like(t, 3),
              cat({t, t}, 0),
              t.slice(0, 0, 3, 2) * 2,
              t.flip({0})};
    });
    for (int64_t n : {3, 4, 5, 3, 1, 2}) seen.add(f({numbers({3, n + 1})}));
  });
}

TEST(Memory, ChannelsLast) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor x = in[0].contiguous(MemoryFormat::ChannelsLast);
      return {x,
              x * 2,
              x.relu() + in[0],
              batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false),
              x.mean({2, 3}),
              cat({x, x * 2}, 1),
              x.flip({2}),
              x.narrow(1, 1, 2).clone(),
              max_pool2d(x.narrow(2, 1, 3), {2, 2}),
              x.clone(MemoryFormat::Contiguous),
              in[0].contiguous(MemoryFormat::ChannelsLast) + 1};
    });
    for (int64_t n : {2, 3, 4}) seen.add(f({numbers({n, 3, 4, 5})}));
  });
}

TEST(Memory, StridesThatDecideWhetherViewsCopy) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor y = in[0].t() * 2, flat = y.reshape({-1});
      flat.add_(1);
      Tensor z = in[0].t().exp(), row = z.contiguous();
      row.zero_();
      return {y, flat, z, row};
    });
    for (int64_t n : {3, 4, 5, 3}) seen.add(f({numbers({3, n})}));
    auto g = compile([&](const Tensors& in) -> Tensors { return {(in[0].t() * 2).view({-1})}; });
    for (int i = 0; i < 2; ++i) seen.attempt([&] { seen.add(g({numbers({3, 4})})); });
  });
}

TEST(Memory, StridesOfGradients) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor y = in[0].t().sin();
      return {y, y.exp()};
    });
    for (int64_t n : {3, 4, 5, 3}) {
      Tensor x = numbers({2, n}).clone().requires_grad_();
      Tensors out = f({x});
      seen.add(out);
      (out[0] * out[1]).sum().backward();
      seen.add(x.grad());
    }
  });
}

// Where PyTorch's kernel for CPUs would compute it, so that heads are put beside each other without a copy; elsewhere row-major.
TEST(Memory, AttentionLiesAsItsQuery) {
  auto heads = [](const Tensor& x) { return x.view({x.size(0), x.size(1), 2, 4}).transpose(1, 2); };
  auto beside = [](const Tensor& y) { return y.transpose(1, 2).view({y.size(0), y.size(2), -1}); };
  expect_as_eager([&](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor q = heads(in[0]), mask = ones({q.size(2), q.size(2)}, kBool).tril();
      Tensor y = scaled_dot_product_attention(q, q, q), z = scaled_dot_product_attention(q, q.contiguous(), q, mask);
      return {y,
              beside(y) * 2,
              z,
              beside(z),
              scaled_dot_product_attention(q, q, q.narrow(3, 0, 2)),
              scaled_dot_product_attention(q, q, q, mask.expand({2, -1, -1}))};
    });
    for (int64_t n : {3, 5}) {
      Tensor x = numbers({2, n, 8}).clone().requires_grad_();
      Tensors out = f({x});
      seen.add(out);
      EXPECT_FALSE(out[4].transpose(1, 2).is_contiguous() || out[5].transpose(1, 2).is_contiguous());
      (out[1] * out[3]).sum().backward();
      seen.add(x.grad());
    }
  });
}

// An error in the middle does not undo what came before.
TEST(Memory, WritesBeforeAnError) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      in[0].add_(1);
      Tensor y = in[0].index_select(0, in[1]);
      in[0].mul_(2);
      return {y * 2};
    });
    Tensor x = numbers({4}).clone();
    for (int64_t at : {1, 9, 2, 9, 9, 3}) {
      seen.attempt([&] { seen.add(f({x, tensor(std::vector<int64_t>{0, at})})); });
      seen.add(x);
    }
  });
}

TEST(Memory, WritesBeforeSeveralErrors) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor counter = zeros({}), kept;
    auto f = compile([&](const Tensors& in) -> Tensors {
      counter.add_(1);
      Tensor w = in[0] * 2;
      kept = w;
      w.narrow(0, 0, 2).zero_();
      Tensor y = embedding(in[2], in[1]);
      counter.add_(10);
      Tensor z = in[0].gather(0, in[1]);
      counter.add_(100);
      return {y.sum() + z.sum()};
    });
    for (int64_t at : {1, 4, 9, 2, 9, 4, 3}) {
      seen.attempt([&] { seen.add(f({numbers({4}), tensor(std::vector<int64_t>{0, at}), numbers({6, 2})})); });
      seen.add(counter);
      seen.add(kept);
    }
  });
}

TEST(Memory, AnErrorThatTheFunctionCatches) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      in[0].add_(1);
      Tensor y;
      try {
        y = in[0].index_select(0, in[1]);
        (void)y.sum().item<float>();
      } catch (const Error&) {
        y = zeros({1});
      }
      in[0].mul_(2);
      return {y * 2};
    });
    Tensor x = numbers({4}).clone();
    for (int64_t at : {1, 9, 2, 9, 9, 3}) {
      seen.add(f({x, tensor(std::vector<int64_t>{0, at})}));
      seen.add(x);
    }
  });
}

TEST(Memory, UndefinedOperands) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor nothing;
    auto f = compile([&](const Tensors& in) -> Tensors {
      seen.attempt([&] { in[0] + nothing; });
      seen.attempt([&] { matmul(nothing, in[0]); });
      seen.attempt([&] { nothing.sum(); });
      seen.attempt([&] { cat({in[0], nothing}); });
      seen.attempt([&] { Tensor(in[0] * 1).add_(nothing); });
      seen.attempt([&] { nothing.add_(in[0]); });
      seen.attempt([&] { nothing.view({-1}); });
      seen.attempt([&] { nothing.backward(); });
      seen.attempt([&] { in[0].index_select(0, nothing); });
      seen.attempt([&] { where(nothing, in[0], in[0]); });
      seen.attempt([&] { Tensor(in[0] * 1).copy_(nothing); });
      return {in[0] * 2};
    });
    for (int64_t n : {3, 4, 5}) seen.add(f({numbers({n})}));
  });
}

TEST(Memory, AnErrorInTheFirstOperator) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors { return {(in[0] + in[1]).sin()}; });
    for (auto [a, b] : {std::pair{3, 4}, {3, 3}, {4, 4}, {4, 5}, {5, 5}, {1, 5}, {5, 1}, {6, 5}, {6, 6}, {0, 0}})
      seen.attempt([&, a = a, b = b] { seen.add(f({numbers({a}), numbers({b})})); });
    auto g = compile([&](const Tensors& in) -> Tensors { return {in[0].matmul(in[1]).relu()}; });
    for (auto [a, b] : {std::pair{3, 4}, {3, 3}, {4, 4}, {4, 5}, {5, 5}, {6, 5}, {6, 6}})
      seen.attempt([&, a = a, b = b] { seen.add(g({numbers({2, a}), numbers({b, 3})})); });
  });
}

TEST(Memory, EmptyInputs) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor x = in[0];
      return {x.sum(),           x.sum(0),        x.sum(1),     x.mean(0),   x.mean(), x.prod(1),
              x.exp().cumsum(0), x.matmul(x.t()), x.softmax(0), cat({x, x}), x.norm(), x.argsort(int64_t{0}),
              (x > 0).any(),     (x > 0).all(0)};
    });
    for (int64_t n : {3, 0, 4, 0, 1, 0, 5}) seen.add(f({numbers({n, 3})}));
    auto g = compile([&](const Tensors& in) -> Tensors { return {in[0].amax(0), in[0] * 2}; });
    for (int64_t n : {3, 0, 4, 0, 1, 0, 5}) seen.attempt([&] { seen.add(g({numbers({n, 3})})); });
    auto h = compile([&](const Tensors& in) -> Tensors { return {in[0].argmax(1), std::get<0>(in[0].max(1))}; });
    for (int64_t n : {0, 3, 0, 4, 2}) seen.attempt([&] { seen.add(h({numbers({2, n})})); });
  });
}

TEST(Memory, EmptyInputsWithGradients) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([&](const Tensors& in) -> Tensors {
      return {in[0].sin().sum() + in[0].mean(1).sum() + in[0].softmax(1).square().sum() +
              in[0].matmul(in[0].t()).sum()};
    });
    for (int64_t n : {3, 0, 4, 0, 1, 0, 5}) {
      Tensor x = numbers({n, 3}).clone().requires_grad_();
      f({x})[0].backward();
      seen.add(x.grad());
    }
  });
}

TEST(Memory, ManyBreaksInOneCall) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 200000; ++i) {
      y = y + 1;
      if (y.item<float>() < 0) return y;
    }
    return y;
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(f(zeros({})).item<float>(), 200000);
}

TEST(Memory, AThreadOfTheBodyCallsTheSameFunction) {
  TensorFunction f;
  std::function<Tensor(const Tensor&, int)> body;
  auto g = compile([&](const Tensor& x, int depth) { return body(x, depth); });
  body = [&](const Tensor& x, int depth) -> Tensor {
    Tensor y = x * 2;
    if (depth == 0) return y + 1;
    Tensor inner;
    std::thread other([&] { inner = g(ones({3}) * depth, depth - 1); });
    other.join();
    return y + inner;
  };
  for (int i = 0; i < 3; ++i) expect_close(g(ones({3}), 2), full({3}, 2.0 + 4.0 + 3.0));
}

// Bytes that the program has from the allocator (sanitizers have their own, which says 0).
size_t bytes_in_use() { return mallinfo2().uordblks; }

// Makes, calls and drops compiled functions with gradients, of one of `kinds` graphs each.
void make_and_drop(int count, int kinds) {
  for (int i = 0; i < count; ++i) {
    int more = i % kinds;
    auto f = compile([more](const Tensors& in) -> Tensors {
      Tensor y = in[0].sin() * in[1];
      for (int k = 0; k < more; ++k) y = y.cos() + in[1];
      return {y.sum(), y};
    });
    Tensor w = ones({3, 4}).requires_grad_();
    f(Tensors{w, ones({3, 4})})[0].backward();
    f(Tensors{ones({5, 4}), ones({5, 4})});
  }
}

TEST(Memory, DroppedFunctionsLeaveNothing) {
  make_and_drop(100, 4);
  wait_for_optimized_kernels();  // whose code stays
  size_t bytes = bytes_in_use();
  make_and_drop(1000, 4);
  EXPECT_LT(bytes_in_use(), bytes + (64 << 10));
}

// Functions of five sizes. Expressions of sizes live as long as the process: the same ones again cost nothing, new ones a few kilobytes.
void make_and_drop_of_five_sizes(int from, int to) {
  CompileOptions options;
  options.backend = "interpreter";
  for (int k = from; k < to; ++k) {
    auto f = compile(
        [k](const Tensors& in) -> Tensors {
          Tensor y = cat({in[0].slice(0, 0, 1000 + k), in[0].slice(0, -2000 - k)});
          return {y.slice(0, 1, -1, 3) * 2};
        },
        options);
    for (int64_t n : {8, 9, 12, 17, 20}) f(Tensors{ones({n})});
  }
}

TEST(Memory, DroppedFunctionsOfFiveSizesLeaveTheirExpressions) {
  make_and_drop_of_five_sizes(0, 20);
  size_t bytes = bytes_in_use();
  for (int i = 0; i < 5; ++i) make_and_drop_of_five_sizes(0, 20);
  EXPECT_LT(bytes_in_use(), bytes + (64 << 10));
  bytes = bytes_in_use();
  make_and_drop_of_five_sizes(20, 120);
  EXPECT_LT(bytes_in_use(), bytes + 100 * (32 << 10));
}

TEST(Memory, AForkedProcessCompilesAndDrops) {
  make_and_drop(2, 2);
  pid_t child = ::fork();
  if (child == 0) {
    make_and_drop(20, 4);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace brasa
