#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "support/mutex.h"

// The thread sanitizer does not follow children of processes that have threads.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BRASA_FORKS_ALONE
#endif
#endif

// One compiled function called by several threads.
namespace brasa {
namespace {

// Both calls are in the function's body at once: a call does not wait for another one to end.
TEST(Threads, CallsOverlap) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  bool met = false;
  auto f = compile([&](const Tensor& x) {
    std::unique_lock lock(mutex);
    if (++inside == 2) met = true;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return met; });
    --inside;
    return x.sin() + 1;
  });
  Tensor x = randn({4}), expected = x.sin() + 1;
  std::atomic<int> right{0};
  auto call = [&] { right += allclose(f(x), expected); };
  std::thread other(call);
  call();
  other.join();
  EXPECT_TRUE(met);
  EXPECT_EQ(right.load(), 2);
}

TEST(Threads, SizesAndGradientsInManyThreads) {
  Tensor w = randn({6, 6});
  auto function = [&](const Tensor& x) { return (x.matmul(w).tanh() * x).sum(1); };
  auto f = compile(function);
  std::atomic<int> wrong{0};
  auto work = [&](int seed) {
    for (int i = 0; i < 40; ++i) {
      int64_t n = 1 + (seed * 7 + i * 3) % 9;
      Tensor x = full({n, 6}, 0.1 * (seed + 1)).add_(0.01 * i).set_requires_grad(true),
             y = x.detach().clone().set_requires_grad(true);
      Tensor a = function(x), b = f(y);
      a.sum().backward();
      b.sum().backward();
      wrong += !allclose(a, b, 1e-5, 1e-5) || !allclose(x.grad(), y.grad(), 1e-5, 1e-5);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

// Threads that begin at once to compute with a parameter that nothing else holds.
TEST(Threads, GradientsOfOneParameter) {
  Tensor p = ones({4}).requires_grad_();
  auto f = compile([&](const Tensor& x) { return (x * p).sum(); });
  std::atomic<int> wrong{0};
  auto work = [&](int seed) {
    Tensor x = full({4}, seed + 1.0);
    for (int i = 0; i < 2000; ++i) {
      Tensor y = i % 2 ? f(x) : (x * p).sum();
      try {
        Tensor g = autograd::grad({y}, {p})[0];
        wrong += g.dim() != 1 || g[0].item<float>() != static_cast<float>(seed + 1);
      } catch (const Error&) {
        ++wrong;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

int64_t resident_pages() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

// Many functions, each called as often as there are functions (BRASA_MANY_FUNCTIONS), by threads at once; memory stays.
TEST(Threads, ManyFunctions) {
  const char* given = std::getenv("BRASA_MANY_FUNCTIONS");
  int count = given ? std::atoi(given) : 40;
  using Function = std::function<Tensor(const Tensor&)>;
  Tensor w = rand({8, 8}), p = rand({8, 8}).requires_grad_();
  std::vector<Function> plain, compiled;
  for (int k = 0; k < count; ++k) {
    int more = k / 5 % 4;
    const Function kinds[] = {
        [=](const Tensor& x) {
          Tensor y = x.sin();
          for (int i = 0; i < more; ++i) y = y * x + 1;
          return y;
        },
        [=](const Tensor& x) { return x.matmul(w).softmax(1) + more; },
        [=](const Tensor& x) { return (x.matmul(p).tanh() * x).sum(1); },
        [=](const Tensor& x) {
          Tensor y = x.clone();
          y.select(1, more).mul_(2);
          return y.sum(0);
        },
        [=](const Tensor& x) {
          Tensor y = x * 2;
          if (y.sum().item<float>() > 40) y = y - 1;
          return y.exp().log() + more;
        },
    };
    plain.push_back(kinds[k % 5]);
    compiled.push_back(compile(plain.back()));
  }
  std::atomic<int> wrong{0};
  auto work = [&](int thread, int round) {
    std::mt19937 draw(static_cast<uint32_t>(8 * round + thread));
    for (int i = thread; i < count * count / 10; i += 8) {
      auto k = static_cast<size_t>(i % count);
      Tensor x = full({1 + static_cast<int64_t>(draw() % 4), 8}, 0.1 * (draw() % 7) + 0.3), y = compiled[k](x);
      if (draw() % 10 == 0) wrong += !allclose(y, plain[k](x), 1e-5, 1e-5);
      if (!y.requires_grad() || draw() % 3) continue;
      auto gradient = [&](const Tensor& of) { return autograd::grad({of.sum()}, {p})[0]; };
      wrong += !allclose(gradient(y), gradient(plain[k](x)), 1e-5, 1e-5);
    }
  };
  int64_t before = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) threads.emplace_back(work, t, round);
    for (std::thread& t : threads) t.join();
    if (round == 4) before = resident_pages();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LT(resident_pages() - before, 4096);
}

#ifndef BRASA_FORKS_ALONE
// Children of threads that compile and differentiate the same functions go on with them.
TEST(Threads, ForkedChildrenCompile) {
  Tensor w = randn({6, 6}).set_requires_grad(true);
  auto function = [&](const Tensor& x) { return (x.matmul(w).tanh() * x).sum(1); };
  auto f = compile(function);
  std::atomic<bool> done{false};
  auto call = [&](int64_t n) {
    Tensor x = full({n, 6}, 0.1).set_requires_grad(true);
    auto own = compile([&](const Tensor& y) { return f(y) * (1 + 0.1 * static_cast<double>(n)); });
    Tensor y = own(x);
    y.sum().backward();
    NoGradGuard no_grad;
    return allclose(y, function(x) * (1 + 0.1 * static_cast<double>(n)), 1e-5, 1e-5);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; !done; ++i) call(1 + (t * 7 + i * 3) % 11);
    });
  for (int64_t i = 0; i < 12; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(180);
      ::_exit(call(1 + i) && call(30 + i) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << i;
  }
  done = true;
  for (std::thread& t : threads) t.join();
}
#endif

#ifndef BRASA_FORKS_ALONE
// The code generator, a library of its own, does not hold a thread up for which the fork waits.
TEST(Threads, AForkWaitsForTheCodeGenerator) {
  Mutex mutex;
  std::atomic<bool> done{false};
  std::atomic<int64_t> calls{0};
  std::thread other([&] {
    while (!done) {
      auto f = compile([&](Tensor x) {
        for (int64_t k = 0; k < 20 + calls; ++k) x = k % 3 == 0 ? x.softmax(0) : (x * 2).sin();
        return x.softmax(0);
      });
      Tensor x = ones({4});
      std::lock_guard lock(mutex);
      f(x);
      ++calls;
    }
  });
  for (int i = 0; i < 30; ++i) {
    for (int64_t before = calls; calls < before + 2; std::this_thread::yield()) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 10));
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      std::lock_guard lock(mutex);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << i;
  }
  done = true;
  other.join();
}
#endif

// A body whose own thread calls the same function.
TEST(Threads, TheBodysThreadCallsTheFunction) {
  auto compiled = std::make_shared<std::function<Tensor(const Tensor&)>>();
  int depth = 0;
  auto g = compile([&](const Tensor& x) {
    if (depth++ == 0) {
      Tensor inner;
      std::thread([&] { inner = (*compiled)(x); }).join();
      return inner + x;
    }
    return x * 2;
  });
  *compiled = [&](const Tensor& x) { return g(x); };
  Tensor x = ones({3});
  EXPECT_TRUE(allclose(g(x), x * 3));
}

}  // namespace
}  // namespace brasa
