#include "ir/legality.h"

#include <gtest/gtest.h>

#include "compiler/loops/ops.h"
#include "compiler/pipeline.h"
#include "ir/text.h"
#include "ops/algebra.h"

// Graphs of loops are legal at their level, for every kind of group and target.
namespace brasa::compiler {
namespace {

TEST(Legality, GraphsOfLoops) {
  for (const char* target : {"x86-64", "x86-64+avx2", "x86-64+avx512", "x86-64+avx512+vnni", "x86-64+avx512+bf16",
                             "x86-64+avx512+bf16+amx", "nvptx+sm_80"})
    for (bool symbolic : {false, true}) {
      ir::Graph graph(ir::Level::Primitives);
      ir::Facts facts(std::vector<int64_t>{48, 70});
      {
        using namespace ops;  // NOLINT
        Builder builder(graph, facts);
        ir::Expr rows = symbolic ? ir::Expr::size(0) : ir::Expr(48),
                 columns = symbolic ? ir::Expr::size(1) : ir::Expr(70);
        ir::Value x = graph.add_input({DType::Float32, {rows, columns}, false});
        ir::Value w = graph.add_input({DType::Float32, {columns, columns}, false});
        ir::Value index = graph.add_input({DType::Int64, {rows}, false});
        ir::Value e = exp(x - amax(x, {1}, true)), p = e / sum(e, {1}, true);
        graph.add_output(matmul2(p, w));
        graph.add_output(prim::scan(x, 1, "add"));
        graph.add_output(prim::scatter(x, {index}, x, {0}, "add"));
        graph.add_output(prim::arg_reduce(x, 1, "max"));
        graph.add_output(prim::gather(x, {index}, {0}));
      }
      CompilerOptions options;
      options.target = target;
      options.threads = 2;
      std::vector<std::string> texts = kernel_texts(graph, facts, options);
      EXPECT_GE(texts.size(), 4u);
      for (const std::string& text : texts) {
        SCOPED_TRACE(target);
        std::unique_ptr<ir::Graph> loops = ir::parse(text, find_loop_level_op);
        EXPECT_EQ(loops->level(), ir::Level::Loops);
        EXPECT_NO_THROW(ir::check_legal(*loops)) << text;
      }
    }
}

}  // namespace
}  // namespace brasa::compiler
