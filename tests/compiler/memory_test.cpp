#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "check.h"
#include "compiler/run/block.h"
#include "compiler/run/compiled.h"
#include "support/error.h"

// Kernels that share memory: the order of their reads and writes.
namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using ops::operator+;
using ops::operator-;
using ops::operator*;
using Values = std::vector<Value>;
namespace prim = ops::prim;

const In kVector{DType::Float32, {40}};

TEST(Memory, AReductionIsReadAlongTheOtherDimension) {
  for (int64_t n : {2, 5, 64})
    check_both({{DType::Float32, {n, n}}}, [](const Values& v) {
      Value e = ops::exp(v[0]), s = prim::reduce(v[0], {1}, "add");
      Value t = prim::reduce(e * prim::broadcast(s, ops::shape_of(e), {1}) + v[0], {1}, "add");
      return Values{e, t};
    });
}

TEST(Memory, Swap) {
  Options o;
  for (bool symbolic : {false, true}) {
    o.symbolic = symbolic;
    o.into = {0, 1};
    check({kVector, kVector}, [](const Values& v) { return Values{v[1], v[0]}; }, o);
    check(
        {{DType::Float32, {6, 7}, -2, 2, {1, 6}}, {DType::Float32, {6, 7}}},
        [](const Values& v) { return Values{v[1], v[0]}; }, o);
    o.into = {0, 1, 2};
    check({kVector, kVector, kVector}, [](const Values& v) { return Values{v[1], v[2], v[0]}; }, o);
    o.into = {0, -1, 1};
    check({kVector, kVector}, [](const Values& v) { return Values{v[1], v[0], v[0]}; }, o);
  }
}

TEST(Memory, Leapfrog) {
  Options o;
  o.into = {0, 1};
  for (bool symbolic : {false, true}) {
    o.symbolic = symbolic;
    check({kVector, kVector}, [](const Values& v) { return Values{v[1], 2 * v[1] - v[0]}; }, o);
  }
  o.into = {1, 0};
  check({kVector, kVector}, [](const Values& v) { return Values{2 * v[1] - v[0], v[1]}; }, o);
}

TEST(Memory, OneKernelReadsAllBeforeItWrites) {
  Options o;
  o.into = {0, 1};
  for (int64_t n : {1, 40, 1000})
    check(
        {{DType::Float32, {n}}, {DType::Float32, {n}}, {DType::Float32, {n}}},
        [](const Values& v) { return Values{2 * v[1] + v[2], 3 * v[0] + v[2]}; }, o);
}

TEST(Memory, KernelsOfSymbolicSizeWaitForEachOther) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts({100000});
  {
    ops::Builder builder(graph, facts);
    Value x = graph.add_input({DType::Float32, {ir::Expr::size(0)}, false});
    graph.add_output(prim::scan(prim::reverse(prim::scan(x, 0, "add"), {0}), 0, "add"));
  }
  auto executable = compile(graph, facts, {});
  auto* compiled = dynamic_cast<const CompiledGraph*>(executable.get());
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->steps().size(), 2u);
  EXPECT_EQ(compiled->batches().size(), 2u);
}

TEST(Memory, AFailedCheckLeavesInputsAlone) {
  // x is raised by one where an index is used that is too large.
  auto run = [](auto write) {
    ir::Graph graph(ir::Level::Primitives);
    Value x = graph.add_input({DType::Float32, {4}, false}), i = graph.add_input({DType::Int64, {3}, false});
    ir::Facts facts;
    {
      ops::Builder builder(graph, facts);
      Value small = prim::binary("lt", i, prim::full(4, {3}, DType::Int64));
      graph.add_check(prim::reduce(small, {0}, "and"), "index out of range");
      graph.add_output(write(x, i), 0);
    }
    auto executable = compile(graph, facts, {});
    float data[] = {1, 2, 3, 4};
    int64_t index[] = {1, 9, 2}, four = 4, three = 3, one = 1;
    std::vector<Operand> in = {{data, DType::Float32, {&four, 1}, {&one, 1}},
                               {index, DType::Int64, {&three, 1}, {&one, 1}}};
    EXPECT_THROW(executable->run(nullptr, in, {}), IndexError);
    for (int k = 0; k < 4; ++k) EXPECT_EQ(data[k], k + 1.0f) << k;
  };
  run([](Value x, Value) { return x + 1; });
  run([](Value x, Value i) { return prim::scatter(x, {i}, prim::full(1, {3}, DType::Float32), {0}, "add"); });
  // What the check needs, and the write as well.
  run([](Value x, Value i) {
    return x + prim::convert(prim::broadcast(prim::reduce(i, {0}, "add"), {4}, {}), DType::Float32);
  });
}

TEST(Memory, ACheckEndsItsBatch) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  {
    ops::Builder builder(graph, facts);
    Value x = graph.add_input({DType::Float32, {4, 4}, false}), y = graph.add_input({DType::Float32, {8}, false});
    graph.add_check(prim::reduce(prim::binary("lt", y, prim::full(0.0, {8}, DType::Float32)), {0}, "and"), "negative");
    graph.add_output(prim::reduce(x, {0}, "add"));
    graph.add_output(x + 1, 0);
  }
  auto executable = compile(graph, facts, {});
  auto* compiled = dynamic_cast<const CompiledGraph*>(executable.get());
  ASSERT_TRUE(compiled);
  for (const CompiledGraph::Check& c : compiled->checks())
    for (const Batch& b : compiled->batches()) EXPECT_FALSE(c.after >= b.begin && c.after + 1 < b.end);
}

// Numbers that become sizes come to an eager graph as operands without memory.
TEST(Memory, TheInterpreterTakesNoneForAnOperandWithoutElementsToRead) {
  constexpr int64_t kHuge[] = {int64_t{1} << 40}, kDense[] = {1};
  ir::Graph graph(ir::Level::Primitives);
  graph.add_input({DType::Float32, {kHuge[0]}});
  ir::Facts facts;
  {
    ops::Builder builder(graph, facts);
    graph.add_output(ops::scalar(3.0, DType::Float32));
  }
  float out = 0;
  Operand in{nullptr, DType::Float32, kHuge, kDense}, result{&out, DType::Float32, {}, {}};
  interpret(graph)->run(nullptr, {&in, 1}, {&result, 1});
  EXPECT_EQ(out, 3);
}

// There is room for all panels of these three matrices, though not for what they are made of as well, which nobody else reads.
TEST(Memory, OfWhatIsMadeOnceTheEndsAreKept) {
  constexpr int64_t kRows = 2048, kColumns = 4096;
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  ops::Builder builder(graph, facts);
  CompilerOptions options;
  options.lasting = {false};
  Value x = graph.add_input({DType::Float32, {64, kRows}, false});
  for (int i = 0; i < 3; ++i) {
    options.lasting.push_back(true);
    Value w = prim::scan(graph.add_input({DType::Float32, {kRows, kColumns}, false}), 0, "add");
    graph.add_output(prim::dot_general(x, w, {1}, {0}, {}, {}), -1);
  }
  auto executable = compile(graph, facts, options);
  int64_t kept = 0;
  for (const std::string& kernel : report_of(*executable)->kernels) kept += kernel.find("made once") != kernel.npos;
  EXPECT_EQ(kept, 6);
}

// A step of a weight that a product makes: in whatever shape they lie, the result needs no memory of its own.
TEST(Memory, WhatAProductMakesOverwritesAWeightOfAnotherShape) {
  constexpr int64_t kRows = 64, kColumns = 48, kSums = 4;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{kRows, kColumns, 1, 1}, {1, kColumns, kRows}}) {
    auto steps = [&](const Values& v) {
      Value g = prim::reshape(prim::dot_general(v[0], v[1], {0}, {0}, {}, {}), ops::shape_of(v[2]));
      Value moment = v[3] * 0.5 + g;
      return Values{moment, v[2] - moment};
    };
    Options o;
    o.into = {3, 2};
    const std::vector<In> in = {{DType::Float32, {kSums, kRows}},
                                {DType::Float32, {kSums, kColumns}},
                                {DType::Float32, shape},
                                {DType::Float32, shape}};
    ir::Expr arena = check(in, steps, o).arena_bytes;
    EXPECT_LT(arena.constant(), kRows * kColumns * 4);
    o.symbolic = true;
    check(in, steps, o);
  }
}

// Weights that lie channels last, whose gradient comes in that order: dimensions are turned on the way, but each element meets itself alone.
TEST(Memory, AnUpdateInAnotherOrderOfDimensionsOverwrites) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  const std::vector<ir::Expr> last{36, 1, 12, 4};
  {
    ops::Builder builder(graph, facts);
    Value w = graph.add_input({DType::Float32, {8, 4, 3, 3}, false}, "", last);
    Value m = graph.add_input({DType::Float32, {8, 4, 3, 3}, false}, "", last);
    Value g = graph.add_input({DType::Float32, {8, 3, 3, 4}, false});
    auto turned = [](Value v) { return prim::transpose(v, {0, 2, 3, 1}); };
    auto back = [](Value v) { return prim::transpose(v, {0, 3, 1, 2}); };
    Value momentum = turned(0.5 * m) + g;
    graph.add_output(back(momentum), 1);
    graph.add_output(back(turned(w) - 0.125 * momentum), 0);
  }
  auto executable = compile(graph, facts, {});
  auto* compiled = dynamic_cast<const CompiledGraph*>(executable.get());
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->steps().size(), 1u);
  std::vector<float> w(288), m(288), g(288);
  for (size_t i = 0; i < 288; ++i) w[i] = static_cast<float>(i), m[i] = static_cast<float>(2 * i % 7), g[i] = 3;
  std::vector<float> before = w, momentum = m;
  const int64_t turned_sizes[] = {8, 4, 3, 3}, turned_strides[] = {36, 1, 12, 4};
  const int64_t sizes[] = {8, 3, 3, 4}, strides[] = {36, 12, 4, 1};
  const Operand inputs[] = {{w.data(), DType::Float32, turned_sizes, turned_strides},
                            {m.data(), DType::Float32, turned_sizes, turned_strides},
                            {g.data(), DType::Float32, sizes, strides}};
  compiled->run(nullptr, inputs, {});
  for (size_t i = 0; i < 288; ++i) {
    EXPECT_EQ(m[i], 0.5f * momentum[i] + 3) << i;
    EXPECT_EQ(w[i], before[i] - 0.125f * m[i]) << i;
  }
}

// A square that is read turned is no update: other elements would be gone.
TEST(Memory, ATransposedSumDoesNotOverwriteWhatItReads) {
  Options o;
  o.into = {0};
  for (int64_t n : {3, 40, 129})
    check(
        {{DType::Float32, {n, n}}, {DType::Float32, {n, n}}},
        [](const Values& v) { return Values{prim::transpose(v[0] + v[1], {1, 0})}; }, o);
}

// The indices of what is read row by row are another expression: a later output loads it anew, so that it comes before what overwrites it.
TEST(Memory, WhatIsReadInTwoWaysIsOverwrittenLast) {
  Options o;
  o.symbolic = true;
  o.into = {0, -1};
  for (bool product : {true, false})
    check(
        {{DType::Float32, {3, 5}, -2, 2, {1, 3}}, {DType::Float32, {3, 4}}, {DType::Float32, {4, 5}}},
        [product](const Values& v) {
          Value x = 0.25 * v[0] - (product ? prim::dot_general(v[1], v[2], {1}, {0}, {}, {}) : v[0]);
          ops::Shape sizes = type_of(x).shape;
          Value rows = 0.25 + prim::reshape(x, {ir::product(sizes)});
          return Values{prim::reshape(rows, sizes), 0.0625 + x};
        },
        o);
}

TEST(Memory, RangesThatAreNeededAtOnceLieApart) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Block block;
    struct Range {
      int64_t bytes;
      std::vector<bool> at;  // by step, whether it is needed
    };
    std::vector<Range> ranges;
    std::vector<size_t> open;
    int64_t live = 0, most = 0;
    const size_t steps = 60;
    for (size_t s = 0; s < steps; ++s) {
      for (int i = static_cast<int>(random() % 4); i > 0; --i) {
        ranges.push_back({static_cast<int64_t>(1 + random() % 9) << 18, std::vector<bool>(steps)});
        ASSERT_EQ(block.take(ranges.back().bytes), ranges.size() - 1);
        open.push_back(ranges.size() - 1);
        live += ranges.back().bytes;
      }
      most = std::max(most, live);
      for (size_t k : open) ranges[k].at[s] = true;
      for (int i = static_cast<int>(random() % 4); i > 0 && !open.empty(); --i) {
        size_t at = random() % open.size();
        block.give_back(open[at]);
        live -= ranges[open[at]].bytes;
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    int64_t first_fit = block.size();
    block.place();
    EXPECT_GE(block.size(), most) << seed;
    EXPECT_LE(block.size(), first_fit) << seed;
    for (size_t a = 0; a < ranges.size(); ++a) {
      EXPECT_LE(block.offset(a) + ranges[a].bytes, block.size());
      for (size_t b = 0; b < a; ++b) {
        bool together = false;
        for (size_t s = 0; s < steps; ++s) together = together || (ranges[a].at[s] && ranges[b].at[s]);
        bool apart = block.offset(a) + ranges[a].bytes <= block.offset(b) ||
                     block.offset(b) + ranges[b].bytes <= block.offset(a);
        EXPECT_TRUE(apart || !together) << seed << " " << a << " " << b;
      }
    }
  }
}

TEST(Memory, ARangeTakesMemoryThatWasUsedLast) {
  Block block;
  constexpr int64_t kMB = 1 << 20;
  size_t first = block.take(9 * kMB), second = block.take(8 * kMB);
  block.give_back(first);
  block.give_back(second);
  size_t later = block.take(kMB);
  block.give_back(later);
  block.place();
  EXPECT_EQ(block.size(), 17 * kMB);
  EXPECT_EQ(block.offset(later), block.offset(second));
}

}  // namespace
}  // namespace brasa::compiler
