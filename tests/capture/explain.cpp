// What explain() tells of graph breaks, and options that are refused.
#include <sstream>

#include "values.h"

namespace brasa {
namespace {

TEST(Explain, BreaksHaveReasonOperatorCountAndLine) {
  int line = 0;
  auto f = compile([&](const Tensor& x) {
    Tensor y = x.sin();
    line = __LINE__ + 1;
    if (y.sum().item<float>() > 100) return y;
    std::ostringstream out;
    out << (y * 2);
    return y.exp();
  });
  for (int i = 0; i < 3; ++i) f(numbers({3}));
  Explanation e = f.explain();
  ASSERT_EQ(e.breaks.size(), 2u) << e.str();
  EXPECT_EQ(e.breaks[0].reason, "item()");
  EXPECT_EQ(e.breaks[0].after, "aten::sum");
  EXPECT_EQ(e.breaks[0].count, 3);
  EXPECT_EQ(e.breaks[1].reason, "printing");
  EXPECT_EQ(e.breaks[1].after, "aten::mul.Scalar");
  EXPECT_NE(e.str().find("graph break: item() needs a value, after aten::sum"), std::string::npos) << e.str();
  EXPECT_NE(e.str().find("3 times"), std::string::npos) << e.str();
  EXPECT_EQ(e.str().find("loops ["), std::string::npos) << e.str();
  // With debug information the line, else the function, as far as the linker keeps its name.
  if (const std::string& where = e.breaks[0].where; where.find(".cpp:") != std::string::npos) {
    EXPECT_NE(where.find("explain.cpp:" + std::to_string(line)), std::string::npos) << where;
  }
}

TEST(Explain, RecompileLimitsBelowOneAreRefused) {
  for (int limit : {0, -1, -100}) {
    try {
      compile([](const Tensor& x) { return x; }, {.recompile_limit = limit});
      ADD_FAILURE() << limit;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("recompile_limit"), std::string::npos) << e.what();
    }
  }
}

TEST(Explain, ALoopOfManyBreaksHasFewGraphs) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) {
      y = y + 1;
      if (y.item<float>() < 0) return y;
    }
    return y;
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(f(zeros({})).item<float>(), 1000);
  EXPECT_LE(f.explain().graphs.size(), 80u);
}

TEST(Explain, ValuesThatAreInMemoryTogetherDoNotOverlap) {
  Tensor w = numbers({40, 40});
  auto f = compile([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = y.matmul(w).softmax(1);
    return y;
  });
  f(numbers({30, 40}));
  const Explanation e = f.explain();
  ASSERT_EQ(e.graphs.size(), 1u);
  const Explanation::Graph& g = e.graphs[0];
  if (g.kernels_after == 0) GTEST_SKIP() << "a backend without kernels";
  ASSERT_GT(g.memory.size(), 3u) << e.str(true);
  int64_t separate = 0;
  for (const auto& a : g.memory) {
    EXPECT_LE(a.offset + a.bytes, a.prepared ? g.prepared_bytes : g.arena_bytes) << e.str(true);
    EXPECT_LE(a.first, a.last);
    EXPECT_LT(a.last, static_cast<size_t>(g.kernels_after));
    separate += a.bytes;
    for (const auto& b : g.memory) {
      if (&a == &b || a.prepared != b.prepared || a.last < b.first || b.last < a.first) continue;
      bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(apart || a.last == b.first || b.last == a.first) << e.str(true);  // else a kernel works in place
    }
  }
  EXPECT_LT(g.arena_bytes, separate) << e.str(true);
  EXPECT_NE(e.str(true).find("memory, kernels counted from 0: an arena of "), std::string::npos) << e.str(true);
}

}  // namespace
}  // namespace brasa
