#include <gtest/gtest.h>

#include "compiler/pipeline.h"
#include "ir/text.h"
#include "ops/table.h"

namespace brasa::compiler {
namespace {

std::vector<std::string> texts(const std::string& graph, bool keep_launches) {
  auto parsed = ir::parse(graph, [](std::string_view name) { return ops::find(name); });
  ir::Facts facts(std::vector<int64_t>{});
  CompilerOptions options;
  options.target = "nvptx+sm_90";
  options.keep_launches = keep_launches;
  return kernel_texts(*parsed, facts, options);
}

// The first kernel reads both inputs as they are, and writes one; the second reads that, and the other one.
TEST(Unwritten, IsWhatNoEarlierKernelOfTheRunWrites) {
  const char* graph = R"(graph primitives "" {
  %0 = input: f32[64, 768] ""
  %1 = input: f32[64, 768] ""
  %2 = prim::mul(%0, %1): f32[64, 768]
  %3 = prim::sub(%2, %1): f32[64, 768]
  %4 = prim::reduce(%3, dims=[1], combiner="add"): f32[64]
  return %2 -> 0, %4
}
)";
  std::vector<std::string> kept = texts(graph, true);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_NE(kept[0].find("loop::unwritten([%0, %1])"), std::string::npos) << kept[0];
  EXPECT_NE(kept[1].find("loop::unwritten([%1])"), std::string::npos) << kept[1];
  for (const std::string& text : texts(graph, false)) EXPECT_EQ(text.find("unwritten"), std::string::npos) << text;
}

}  // namespace
}  // namespace brasa::compiler
