// Kernels that begin with baseline code and are optimized later. That both give the same bits is what check.cpp looks at in every test of
// this suite, and tests/loops for every target.
#include <brasa/threads.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "compiler/kernels/baseline.h"
#include "compiler/kernels/kernels.h"
#include "compiler/kernels/optimizer.h"
#include "compiler/pipeline.h"
#include "compiler/run/compiled.h"
#include "ops/algebra.h"
#include "runtime/device.h"

namespace {
bool forked = false;
}
// A forked process holds what threads of its parent had made for themselves; the leak sanitizer, which asks this, would call it lost.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return forked; }

namespace brasa::compiler {
namespace {

using ir::Expr;
using ops::operator*;
using ops::operator+;

// exp(x) + number, and its sum; no other test has this kernel.
class Tiers : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_baseline("", runtime::host().properties().code)) GTEST_SKIP() << "kernels are optimized at once";
  }

  const int threads_ = get_num_threads();

  static std::shared_ptr<const CompiledGraph> compiled(double number, int64_t n) {
    ir::Graph graph(ir::Level::Primitives);
    ir::Facts facts;
    ir::Value x = graph.add_input({DType::Float32, {Expr(n)}, false}, "");
    {
      ops::Builder builder(graph, facts);
      ir::Value y = ops::exp(x * number) + number;
      graph.add_output(y);
      graph.add_output(ops::prim::reduce(y * y, {0}, "add"));
    }
    return std::dynamic_pointer_cast<const CompiledGraph>(compile(graph, facts));
  }

  static std::vector<float> run(const CompiledGraph& graph, int64_t n) {
    std::vector<float> x(static_cast<size_t>(n)), out(x.size() + 1);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01F * static_cast<float>(i % 100);
    const int64_t one = 1;
    const std::span<const int64_t> sizes(&n, 1), strides(&one, 1);
    Operand in{x.data(), DType::Float32, sizes, strides};
    Operand outs[] = {{out.data(), DType::Float32, sizes, strides}, {out.data() + n, DType::Float32, {}, {}}};
    graph.run(nullptr, {&in, 1}, outs);
    return out;
  }
};

TEST_F(Tiers, BeginsWithBaselineCode) {
  // A kernel that no earlier run has left in the cache.
  const double number = 1 + std::random_device{}() * 0x1p-33;
  SCOPED_TRACE(number);
  auto graph = compiled(number, 100);
  EXPECT_GT(graph->baseline_kernels(), 0U);
  std::vector<float> first = run(*graph, 100);
  int64_t before = kernel_counts().optimized;
  graph->optimize(true);
  EXPECT_EQ(graph->baseline_kernels(), 0U);
  EXPECT_GT(kernel_counts().optimized, before);
  EXPECT_EQ(run(*graph, 100), first);
  // Another graph with the same kernels gets the optimized ones.
  EXPECT_EQ(compiled(number, 100)->baseline_kernels(), 0U);
}

TEST_F(Tiers, OptimizesWhatRanForLong) {
  auto graph = compiled(0.7502, 100);
  std::vector<float> first = run(*graph, 100);
  for (int i = 0; i < 1000000 && graph->baseline_kernels() > 0; ++i) ASSERT_EQ(run(*graph, 100), first);
  EXPECT_EQ(graph->baseline_kernels(), 0U);
  EXPECT_EQ(run(*graph, 100), first);
}

// Short runs are timed in samples, which would tell of a long one late.
TEST_F(Tiers, LongRunsAreTimedEach) {
  BaselineKernel k("", 1e-9, "", runtime::host(), nullptr, nullptr);
  EXPECT_TRUE(k.is_long()) << "a first run is timed";
  EXPECT_FALSE(k.due());
  k.ran(1000);
  EXPECT_FALSE(k.is_long());
  k.ran(1000000, 16);
  EXPECT_TRUE(k.is_long());
  EXPECT_TRUE(k.due());
}

TEST_F(Tiers, LargeWorkIsOptimizedAtOnce) {
  // But for the kernel that adds up what the first one summed in parts.
  auto graph = compiled(0.7503, 10000000);
  EXPECT_LT(graph->baseline_kernels(), graph->steps().size());
}

// One loop graph twice in a program, first with little work and then with much: both get the code that the second one asks for.
TEST_F(Tiers, OneKernelOfTwoSizes) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  ir::Value x = graph.add_input({DType::Float32, {Expr(100)}, false}, "");
  {
    ops::Builder builder(graph, facts);
    graph.add_output(ops::exp(x * 0.7505));
  }
  std::string text = kernel_texts(graph, facts, {}).at(0);
  const KernelCost little{100, 1}, much{100, 1e12};
  for (bool first : {true, false}) {
    std::string other = text;
    other.replace(other.find("0.7505"), 6, first ? "0.7506" : "0.7507");
    const KernelCost costs[] = {first ? little : much, first ? much : little};
    for (const LoadedKernel& k : load_kernels(std::vector{other, other}, runtime::host(), "", costs)) {
      EXPECT_TRUE(k);
      EXPECT_FALSE(k.baseline);
    }
  }
}

TEST_F(Tiers, ThreadsRunWhileCodeIsReplaced) {
  auto graph = compiled(0.7504, 300);
  std::vector<float> first = run(*graph, 300);
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!stop)
        if (run(*graph, 300) != first) ++wrong;
    });
  std::vector<std::thread> optimizers;
  for (int t = 0; t < 2; ++t) optimizers.emplace_back([&] { graph->optimize(true); });
  for (std::thread& t : optimizers) t.join();
  stop = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(graph->baseline_kernels(), 0U);
}

TEST_F(Tiers, OptimizesBesideTheCalls) {
  set_num_threads(2);
  auto graph = compiled(0.7505, 100);
  std::vector<float> first = run(*graph, 100);
  graph->optimize(false);
  wait_for_optimizer();
  EXPECT_TRUE(graph->optimize(false));
  EXPECT_EQ(graph->baseline_kernels(), 0U);
  EXPECT_EQ(run(*graph, 100), first);
  set_num_threads(threads_);
}

TEST_F(Tiers, OneThreadOptimizesOneKernelACall) {
  set_num_threads(1);
  auto graph = compiled(0.7506, 100000);
  size_t before = graph->baseline_kernels();
  for (; before > 0; --before) {
    graph->optimize(false);
    EXPECT_EQ(graph->baseline_kernels(), before - 1);
  }
  EXPECT_TRUE(graph->optimize(false));
  set_num_threads(threads_);
}

// A process that forks while kernels are compiled, and its child, which compiles and exits while its own thread does.
TEST_F(Tiers, ForksWhileKernelsAreOptimized) {
  set_num_threads(2);
  auto graph = compiled(0.7507, 100), other = compiled(0.7508, 100);
  std::vector<float> first = run(*graph, 100), second = run(*other, 100);
  for (const auto& g : {graph, other}) g->optimize(false);
  pid_t child = ::fork();
  if (child == 0) {
    forked = true;
    bool same = run(*graph, 100) == first;
    graph->optimize(false);
    wait_for_optimizer();
    same = same && graph->optimize(false) && run(*graph, 100) == first;
    other->optimize(false);
    std::exit(same ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  wait_for_optimizer();
  EXPECT_EQ(graph->baseline_kernels() + other->baseline_kernels(), 0U);
  EXPECT_EQ(run(*other, 100), second);
  set_num_threads(threads_);
}

}  // namespace
}  // namespace brasa::compiler
