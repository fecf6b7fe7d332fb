#include <gtest/gtest.h>

#include <functional>

#include "check.h"
#include "compiler/passes/contraction.h"
#include "compiler/pipeline.h"

// What the kernels of products look like: panels, tiles, tasks.
namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using Values = std::vector<Value>;
namespace prim = ops::prim;

// With sizes of which nothing is known but these examples.
std::vector<std::string> texts_of(const char* target, const std::vector<int64_t>& examples,
                                  const std::function<Value(ir::Graph&)>& body) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts(examples);
  {
    ops::Builder builder(graph, facts);
    graph.add_output(body(graph));
  }
  CompilerOptions options;
  options.target = target;
  options.size_classes = !examples.empty();
  return kernel_texts(graph, facts, options);
}

Value input(ir::Graph& graph, ops::Shape shape) { return graph.add_input({DType::Float32, std::move(shape), false}); }

// The tiles of a transposed operand lie in its panels as a whole, at sizes of which nothing is known, too: a row's place is its number
// in the tile, and depends on no size.
TEST(Dot, TilesReadWholePanels) {
  ir::Expr m = ir::Expr::size(0), k = ir::Expr::size(1), n = ir::Expr::size(2);
  for (const char* target : {"x86-64+avx2", "x86-64+avx512"}) {
    std::vector<std::string> texts = texts_of(target, {512, 512, 512}, [&](ir::Graph& graph) {
      return prim::dot_general(input(graph, {k, m}), input(graph, {k, n}), {0}, {0}, {}, {});
    });
    ASSERT_EQ(texts.size(), 3) << target;
    EXPECT_EQ(texts.back().find("min(s0 - 1"), std::string::npos) << texts.back();
  }
}

// Few columns by a transposed operand, whose rows fill a vector or not; in batches, and along several dimensions.
TEST(Dot, FewColumnsByATransposedOperand) {
  for (int64_t columns : {0, 1, 2, 7, 8, 16})
    for (int64_t rows : {0, 1, 15, 16, 40}) {
      auto product = [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {1}, {0}, {0})}; };
      check_both({{DType::Float32, {3, 20, rows}}, {DType::Float32, {3, 20, columns}}}, product);
      check_both({{DType::BFloat16, {3, 20, rows}}, {DType::BFloat16, {3, 20, columns}}}, product);
      check_both({{DType::Float64, {20, 2, rows}}, {DType::Float64, {columns, 20, 2}}},
                 [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {0, 1}, {1, 2}, {}, {})}; });
    }
}

// Rows that lie a multiple of 4096 bytes apart fall on one place of the first cache. It has room for as many as a tile has, so that they are
// read as they lie: columns alone become panels.
TEST(Dot, RowsThatFallOnOnePlaceAreReadAsTheyLie) {
  auto texts = [](const char* target) {
    return texts_of(target, {}, [&](ir::Graph& graph) {
      return prim::dot_general(input(graph, {512, 1024}), input(graph, {1024, 512}), {1}, {0}, {}, {});
    });
  };
  for (const char* target : {"x86-64+avx2", "x86-64+avx512"}) EXPECT_EQ(texts(target).size(), 2) << target;
  for (DType t : {DType::Float32, DType::Float64})
    EXPECT_LE(contraction_tile(512, 512, t, machine_of("x86-64+avx512", 1)).rows, 8);
  check({{DType::Float64, {40, 512}}, {DType::Float64, {512, 130}}},
        [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {0}, {}, {})}; });
}

// A sum asks in each of its steps whether its columns are there only where a tile may end behind the result.
TEST(Dot, WholeTilesAskForNoColumns) {
  auto product = [](int64_t m, int64_t n) {
    return texts_of("x86-64+avx2", {},
                    [&](ir::Graph& graph) {
                      return prim::dot_general(input(graph, {m, 1536}), input(graph, {1536, n}), {1}, {0}, {}, {});
                    })
        .back();
  };
  // 16 panels, six of them in a task, so that the end of the last task is not that of a panel's loop.
  std::string whole = product(1024, 384), parts = product(1023, 381);
  EXPECT_EQ(whole.find("mask="), std::string::npos) << whole;
  EXPECT_EQ(whole.find("min(1023"), std::string::npos) << whole;
  EXPECT_NE(parts.find("mask="), std::string::npos) << parts;
}

// Of unknown sizes the tasks are found when they are there: so many rows that the second cache holds, and parts of the columns.
TEST(Dot, TasksOfUnknownSizes) {
  ir::Expr m = ir::Expr::size(0), k = ir::Expr::size(1), n = ir::Expr::size(2);
  std::string text = texts_of("x86-64+avx2", {512, 512, 512}, [&](ir::Graph& graph) {
                       return prim::dot_general(input(graph, {m, k}), input(graph, {k, n}), {1}, {0}, {}, {});
                     }).back();
  EXPECT_NE(text.find("// max(1, s1)"), std::string::npos) << text;
  size_t rows = text.find("kind=\"parallel\"");
  EXPECT_NE(text.find("kind=\"parallel\"", rows + 1), std::string::npos) << text;
}

// Rows of a matrix that has to be written first, as its places lie unevenly, are packed like others whose elements lie apart.
TEST(Dot, RowsThatAreWrittenFirstArePacked) {
  std::vector<std::string> texts = texts_of("x86-64+avx2", {}, [](ir::Graph& graph) {
    Value x = prim::transpose(input(graph, {4, 3, 256, 64}), {0, 2, 1, 3});
    return prim::dot_general(prim::reshape(x, {1024, 192}), input(graph, {1024, 384}), {0}, {0}, {}, {});
  });
  EXPECT_EQ(texts.size(), 4);  // the matrix, its panels, the other's panels, the product
}

// Of an image's rows of 64 places a result with rows of 8 is no product with 56 · 64 columns.
TEST(Convolution, FewResultsInLongRowsHaveFewColumns) {
  std::vector<std::string> texts = texts_of("x86-64+avx2", {}, [](ir::Graph& graph) {
    return prim::convolution(input(graph, {3, 4, 56, 64}), input(graph, {20, 4, 7, 8}), {1, 1}, {0, 0}, {0, 0}, {1, 1},
                             {8, 8}, 1);
  });
  EXPECT_NE(texts.back().find("f32[3840]"), std::string::npos) << texts.back();  // 3 · 20 · 8 · 8
}

// The gradient by weights of a 4 x 4 kernel by steps of 2: the last step of its sums is long enough to stand there once.
TEST(Dot, StepsOfLargeTilesStandThereOnce) {
  std::vector<std::string> texts = texts_of("x86-64+avx2", {}, [](ir::Graph& graph) {
    Value x = prim::window(prim::window(input(graph, {64, 16, 16, 16}), 2, 7, 1, 2), 3, 7, 1, 2);
    x = prim::slice(x, {0, 0, 0, 0, 0, 0}, {64, 16, 4, 4, 7, 7}, {1, 1, 1, 1, 1, 1});
    return prim::dot_general(x, input(graph, {128, 16, 7, 7}), {1, 4, 5}, {1, 2, 3}, {}, {});
  });
  EXPECT_EQ(texts.back().find("unroll=7"), std::string::npos) << texts.back();
}

// A weight's update reads and writes rows of memory, whose panels stay in the cache meanwhile.
TEST(Dot, SeveralResultsAreMadeAlongTheirRows) {
  Options o;
  o.into = {2, -1};
  auto update = [](const Values& v) {
    Value g = prim::dot_general(v[0], v[1], {0}, {0}, {}, {});
    return Values{ops::operator-(v[2], g), g};
  };
  auto report = check({{DType::Float32, {8, 600}}, {DType::Float32, {8, 64}}, {DType::Float32, {600, 64}}}, update, o);
  EXPECT_EQ(report.kernels.back().find("row blocks"), std::string::npos) << report.kernels.back();
}

// One product for all images, where each was multiplied by itself.
TEST(Convolution, ImagesOfOnePlaceAreRowsOfAMatrix) {
  auto points = [](const Values& v) {
    return Values{prim::convolution(v[0], v[1], {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1)};
  };
  const std::vector<In> in = {{DType::Float32, {20, 30, 1, 1}}, {DType::Float32, {50, 30, 1, 1}}};
  check_both(in, points);
  std::string kernel = check(in, points).kernels.back();
  EXPECT_TRUE(kernel.starts_with("contraction [20, 50]")) << kernel;
}

// Rows of a few vectors: the place of each in memory is found by adding, and not by dividing the number of a parallel iteration.
TEST(Schedules, ShortRowsShareAParallelIteration) {
  std::string copy = texts_of("x86-64+avx2", {}, [](ir::Graph& graph) {
                       Value part = prim::slice(input(graph, {1576, 48, 20}), {0, 0, 0}, {1576, 48, 16}, {1, 1, 1});
                       return prim::transpose(part, {1, 0, 2});
                     }).back();
  EXPECT_NE(copy.find("range=r2<788>, kind=\"serial\""), std::string::npos) << copy;
}

// Panels of a matrix: of 16 rows half of each is read in order.
TEST(Schedules, ShortRowsFollowWhatTheyAreReadFrom) {
  std::string copy = texts_of("x86-64+avx2", {}, [](ir::Graph& graph) {
                       return prim::transpose(input(graph, {1576, 48, 16}), {1, 0, 2});
                     }).back();
  EXPECT_NE(copy.find("range=r2<24>, kind=\"serial\""), std::string::npos) << copy;
  EXPECT_NE(copy.find("range=r3<min(16, r1*(-16) + 1576)>, kind=\"serial\""), std::string::npos) << copy;
}

// As many places as elements are in a vector.
TEST(Kernels, PlacesAreAsWideAsElements) {
  for (int64_t dim : {0, 1}) {
    std::vector<std::string> texts = texts_of("x86-64+avx2", {}, [dim](ir::Graph& graph) {
      return prim::arg_reduce(graph.add_input({DType::Float32, {64, 64}, false}), dim, "max");
    });
    ASSERT_EQ(texts.size(), 1u);
    EXPECT_NE(texts[0].find("(f32[], i32[])"), std::string::npos) << texts[0];
    EXPECT_NE(texts[0].find("kind=\"vector\", width=8"), std::string::npos) << texts[0];
  }
}

}  // namespace
}  // namespace brasa::compiler
