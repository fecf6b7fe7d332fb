#include "compiler/run/graph_cache.h"

#include <gtest/gtest.h>

#include <exception>
#include <random>
#include <set>

#include "compiler/kernels/disk_cache.h"
#include "compiler/libraries/library.h"
#include "ops/algebra.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"
#include "support/error.h"

// What the disk keeps of assembled graphs. That they run as those that passes made is what check.cpp looks at in every test of this suite.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ops::operator*;
using ops::operator+;

// Kernels, a call of a library, a check and sizes that the symbols give.
struct Sorted {
  explicit Sorted(double number, int64_t n = 6) : facts({n}) {
    Expr size = Expr::size(0);
    ir::Value x = graph.add_input({DType::Float32, {size, Expr(4)}, false}, "x");
    ops::Builder builder(graph, facts);
    ir::Value y = ops::exp(x * number) + x;
    auto [values, places] = ops::prim::sort(y, 0, false);
    ir::Value sum = ops::prim::reduce(values, {1}, "add");
    graph.add_output(sum * sum + number);
    graph.add_output(places);
    graph.add_output(ops::prim::reduce(x, {0, 1}, "add"));
  }
  ir::Graph graph{ir::Level::Primitives};
  ir::Facts facts;
};

class GraphCache : public testing::Test {
 protected:
  void SetUp() override {
    if (DiskCache::get().folder().empty()) GTEST_SKIP() << "there is no disk cache";
  }
  static std::string key_of(const Sorted& s) {
    const runtime::Device& host = runtime::host();
    Machine machine = machine_of(host.properties().target, get_num_threads());
    machine.libraries = libraries_of(host.properties());
    return graph_key(s.graph, s.facts, {}, host, machine);
  }
  // The entry that compiling this makes. Other processes make theirs meanwhile.
  static std::string entry_of(Sorted&& s) {
    std::string key = key_of(s);
    if (DiskCache::get().read(key)) return "";
    compile(s.graph, s.facts);
    return DiskCache::get().read(key) ? key : "";
  }
  // Other runs of the test have left other numbers' entries.
  static double new_number() {
    static std::mt19937_64 random{std::random_device{}()};
    return std::uniform_real_distribution<double>(0.1, 0.9)(random);
  }
};

TEST_F(GraphCache, NamesAllThatThePipelineReads) {
  double number = new_number();
  std::string key = entry_of(Sorted(number));
  ASSERT_FALSE(key.empty());
  EXPECT_EQ(entry_of(Sorted(number)), "") << "the same graph has the same name";
  EXPECT_NE(entry_of(Sorted(new_number())), "");
  EXPECT_NE(entry_of(Sorted(number, 7)), "") << "an example size may decide something";
  const runtime::Device& host = runtime::host();
  Sorted s(number);
  CompilerOptions options;
  Machine machine = machine_of(host.properties().target, 1);
  std::set<std::string> all;
  auto add = [&] { all.insert(graph_key(s.graph, s.facts, options, host, machine)); };
  add();
  machine.threads = 3;
  add();
  options.numbers = Numbers::Strict;
  add();
  options.size_classes = true;
  add();
  options.lasting = {true};
  add();
  s.facts.equal(Expr::size(0), Expr(6));
  add();
  options.target = "x86-64+avx2";
  add();
  EXPECT_EQ(all.size(), 7U);
}

TEST_F(GraphCache, FindsWhatAnotherCallMade) {
  double number = new_number();
  Sorted first(number), second(number);
  auto a = compile(first.graph, first.facts);
  int64_t found = assembled_graphs_found();
  auto b = compile(second.graph, second.facts);
  EXPECT_EQ(assembled_graphs_found(), found + 1);
  EXPECT_EQ(first.facts.facts(), second.facts.facts());
  EXPECT_EQ(report_of(*a)->primitives, report_of(*b)->primitives);
  EXPECT_EQ(report_of(*a)->kernels, report_of(*b)->kernels);
  EXPECT_EQ(report_of(*a)->bytes_after, report_of(*b)->bytes_after);
  EXPECT_EQ(report_of(*a)->arena_bytes, report_of(*b)->arena_bytes);
  ASSERT_FALSE(report_of(*a)->memory.empty());
  EXPECT_EQ(report_of(*a)->memory, report_of(*b)->memory) << "explain shows the plan of memory";
}

// The cache's checksums find what damage there is; what is read behind them refers to nothing that is not there either.
TEST_F(GraphCache, DamagedBytesAreAnError) {
  double number = new_number();
  std::string key = entry_of(Sorted(number));
  Sorted s(number);
  std::string bytes = DiskCache::get().read(key).value();
  ir::Facts facts = s.facts;
  EXPECT_EQ(read_assembled(bytes, s.graph, {}, facts).parts.by_value.size(), 1U);
  for (size_t n = 0; n < bytes.size(); n += 7) {
    facts = s.facts;
    EXPECT_THROW(read_assembled(std::string_view(bytes).substr(0, n), s.graph, {}, facts), Error);
  }
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = bytes;
    for (int k = 0; k < 1 + i % 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    facts = s.facts;
    try {
      read_assembled(damaged, s.graph, {}, facts);
    } catch (const std::exception&) {
    }
  }
}

}  // namespace
}  // namespace brasa::compiler
