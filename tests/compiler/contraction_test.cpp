#include <gtest/gtest.h>

#include <algorithm>

#include "check.h"
#include "compiler/loops/linearize.h"
#include "compiler/passes/winograd.h"
#include "compiler/pipeline.h"
#include "ir/text.h"

namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using ops::Shape;
using ops::operator+;
using ops::operator*;
using Values = std::vector<Value>;
namespace prim = ops::prim;

TEST(Dot, Sizes) {
  for (int64_t m : {0, 1, 2, 17, 50})
    for (int64_t n : {0, 1, 2, 17, 70})
      for (int64_t k : {0, 1, 5, 33})
        check_both({{DType::Float32, {m, k}}, {DType::Float32, {k, n}}},
                   [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {0}, {}, {})}; });
}

// Columns behind the last whole panel are fewer vectors, the last one of them full or not, in the task of that panel alone.
TEST(Dot, RestOfColumns) {
  for (int64_t columns : {53, 80, 197, 331})
    for (int64_t rows : {5, 197}) {
      auto product = [](const Values& v) { return prim::dot_general(v[0], v[1], {2}, {1}, {0}, {0}); };
      std::vector<In> types = {{DType::Float32, {3, rows, 24}}, {DType::Float32, {3, 24, columns}}};
      check_both(types, [&](const Values& v) { return Values{product(v)}; });
      types.push_back({DType::Float32, {columns}});
      check_both(types, [&](const Values& v) {
        Value out = product(v);
        return Values{out + prim::broadcast(v[2], ops::shape_of(out), {2})};
      });
      types = {{DType::Float32, {rows, 40}}, {DType::Float32, {columns, 40}}};
      check_both(types, [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {1}, {}, {})}; });
    }
}

// Weights from beyond the second cache: the loop that sums a tile asks for its part of the next panel, in whichever loops the vectors are.
TEST(Dot, NextPanel) {
  for (const char* target : {"x86-64+avx2", "x86-64+avx512"}) {
    ir::Graph graph(ir::Level::Primitives);
    ir::Facts facts;
    {
      ops::Builder builder(graph, facts);
      Value x = graph.add_input({DType::Float32, Shape{64, 1100}, false});
      Value w = graph.add_input({DType::Float32, Shape{260, 1100}, false});
      graph.add_output(prim::dot_general(x, w, {1}, {1}, {}, {}));
    }
    CompilerOptions options;
    options.target = target;
    options.threads = 1;
    std::string text = kernel_texts(graph, facts, options).back(), nest;
    ASSERT_NE(text.find("level=2"), text.npos) << text;
    nest = print(linearize(*ir::parse(text, find_loop_level_op)));
    size_t ask = nest.find("level=2"), sum = nest.find("loop::reduce(");
    // Neighbours in one loop: nothing but themselves lies between them.
    ASSERT_LT(ask, sum) << nest;
    EXPECT_EQ(std::count(nest.begin() + static_cast<int64_t>(ask), nest.begin() + static_cast<int64_t>(sum), '\n'), 1)
        << nest;
  }
}

TEST(Dot, Layouts) {
  check_both({{DType::Float32, {30, 40}}, {DType::Float32, {50, 40}}},
             [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {1}, {}, {})}; });
  check_both({{DType::Float32, {40, 30}}, {DType::Float32, {40, 50}}},
             [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {0}, {0}, {}, {})}; });
  check_both({{DType::Float32, {3, 4, 20, 6}}, {DType::Float32, {4, 3, 6, 18}}},
             [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {3}, {2}, {0, 1}, {1, 0})}; });
  check_both({{DType::Float32, {3, 4, 20}}, {DType::Float32, {20, 4, 7}}},
             [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {2, 1}, {0, 1}, {}, {})}; });
}

// Few rows times columns in blocks that lie apart: each block is a product of its own.
TEST(Dot, BlocksOfColumns) {
  for (int64_t rows : {0, 1, 8, 15, 16}) {
    check_both({{DType::Float32, {rows, 20}}, {DType::Float32, {3, 20, 17}}},
               [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {1}, {}, {})}; });
    check_both({{DType::Float64, {4, 20, 2, rows}}, {DType::Float64, {3, 2, 20, 5, 7}}},
               [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {2}, {2}, {1})}; });
  }
}

TEST(Dot, SumsOverNothing) {
  for (int64_t outside : {0, 3})
    check_both({{DType::Float32, {outside, 0, 20}}, {DType::Float32, {outside, 0, 5}}},
               [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {0, 1}, {0, 1}, {}, {})}; });
}

// Sums that are made in parts: of one dimension that divides and one that does not, of several that become parts in all or in part.
TEST(Dot, LongSums) {
  struct Case {
    std::vector<int64_t> sums;
    size_t parts;  // dimensions of the result's parts; 0: one sum
  };
  for (DType t : {DType::Float32, DType::Float64})
    for (const Case& c : {Case{{33000}, 1}, Case{{33013}, 0}, Case{{3, 100, 110}, 2}, Case{{30, 10, 11, 10}, 1}}) {
      In a{t, c.sums}, b = a;
      a.sizes.push_back(3);
      b.sizes.insert(b.sizes.begin(), 5);
      std::vector<int64_t> of_a, of_b;
      for (size_t d = 0; d < c.sums.size(); ++d) {
        of_a.push_back(static_cast<int64_t>(d));
        of_b.push_back(static_cast<int64_t>(d) + 1);
      }
      Options options;
      options.tolerance = 1e-4;
      Report report = check(
          {a, b}, [&](const Values& v) { return Values{prim::dot_general(v[0], v[1], of_a, of_b, {}, {})}; }, options);
      EXPECT_EQ(report.kernels.back().find("reduce") != std::string::npos, c.parts > 0) << report.kernels.back();
    }
}

// Of two dimensions that are neighbours in one operand alone: 1,024 elements are one sum with any vectors, more are parts.
TEST(Dot, SumsOverSeveralDimensions) {
  for (int64_t outer : {4, 5}) {
    Report report =
        check({{DType::Float32, {48, outer, 256}, -1, 1}, {DType::Float32, {256, outer, 64}, -1, 1}},
              [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1, 2}, {1, 0}, {}, {})}; });
    EXPECT_EQ(report.kernels.back().find("reduce") != std::string::npos, outer == 5) << report.kernels.back();
  }
}

Options of_unknown_sizes() {
  Options options;
  options.symbolic = true;
  options.compile.size_classes = true;
  return options;
}

// Parts of even length, and what is left; a batch stands before or behind the sum. With AVX2, whose panels are narrow, shorter sums are one.
TEST(Dot, LongSumsOfUnknownSize) {
  const Options options = of_unknown_sizes();
  for (int64_t sum : {16400, 32768, 32769}) {
    Report report = check(
        {{DType::Float32, {sum, 20}, 0, 1}, {DType::Float32, {33, sum}, 0, 1}},
        [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {0}, {1}, {}, {})}; }, options);
    EXPECT_NE(report.kernels.back().find("reduce"), std::string::npos) << report.kernels.back();
    check(
        {{DType::Float32, {2, sum, 7}, 0, 1}, {DType::Float32, {sum, 9, 2}, 0, 1}},
        [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {0}, {0}, {2})}; }, options);
  }
  // Neighbours are one sum.
  Report report = check(
      {{DType::Float32, {328, 51, 20}, 0, 1}, {DType::Float32, {33, 328, 51}, 0, 1}},
      [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {0, 1}, {1, 2}, {}, {})}; }, options);
  EXPECT_NE(report.kernels.back().find("reduce"), std::string::npos) << report.kernels.back();
}

// Rows of an image that are long enough are cut for each image.
TEST(Dot, LongRowsOfUnknownSize) {
  const Options options = of_unknown_sizes();
  for (int64_t sum : {8191, 8192, 8200}) {
    Report report = check(
        {{DType::Float32, {2, 17, sum}, 0, 1}, {DType::Float32, {2, 33, sum}, 0, 1}},
        [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {0, 2}, {0, 2}, {}, {})}; }, options);
    EXPECT_NE(report.kernels.back().find("reduce"), std::string::npos) << report.kernels.back();
    check(
        {{DType::Float32, {2, 3, 7, sum}, 0, 1}, {DType::Float32, {9, 3, sum, 2}, 0, 1}},
        [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1, 3}, {1, 2}, {0}, {3})}; }, options);
  }
}

// Few columns are a panel of whole vectors.
TEST(Dot, FewColumns) {
  for (int64_t columns : {2, 15, 17, 49, 70})
    for (int64_t rows : {1, 7, 50}) {
      auto product = [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {0}, {}, {}) + 1}; };
      check_both({{DType::Float32, {rows, 20}}, {DType::Float32, {20, columns}}}, product);
      check_both({{DType::BFloat16, {rows, 20}}, {DType::BFloat16, {20, columns}}}, product);
    }
}

TEST(Dot, Dtypes) {
  for (DType t : {DType::Float64, DType::BFloat16, DType::Float16, DType::Int32, DType::Int64, DType::UInt8})
    check_both({{t, {19, 21}, 0, 3}, {t, {21, 35}, 0, 3}},
               [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {0}, {}, {})}; });
}

// Of bfloat16, whose products are added up in pairs where the processor does that: operands along k and across, odd sums, batches of
// heads, what is computed on the way, and what follows.
TEST(Dot, Pairs) {
  constexpr DType t = DType::BFloat16;
  for (int64_t k : {0, 1, 2, 3, 37, 64}) {
    auto product = [](int64_t of_a, int64_t of_b) {
      return [=](const Values& v) { return Values{prim::dot_general(v[0], v[1], {of_a}, {of_b}, {}, {})}; };
    };
    check_both({{t, {50, k}}, {t, {k, 70}}}, product(1, 0));
    check_both({{t, {50, k}}, {t, {70, k}}}, product(1, 1));
    check_both({{t, {k, 50}}, {t, {k, 70}}}, product(0, 0));
    check_both({{t, {k, 50}}, {t, {70, k}}}, product(0, 1));
  }
  check_both({{t, {2, 20, 3, 33}}, {t, {2, 40, 3, 33}}},
             [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {3}, {3}, {0, 2}, {0, 2})}; });
  check_both(
      {{DType::Float32, {300, 200}}, {DType::Float32, {100, 200}}, {t, {100}}},
      [](const Values& v) {
        auto brain = [](Value x) { return prim::convert(prim::convert(x, t), DType::Float32); };
        Value y = prim::dot_general(brain(v[0] * 2), brain(v[1]), {1}, {1}, {}, {});
        Value bias = prim::broadcast(prim::convert(v[2], DType::Float32), ops::shape_of(y), {1});
        return Values{prim::convert(ops::erf(y + bias), t), y};
      },
      2e-2);
  // Two products of one packed operand, which is packed along both of its dimensions.
  check({{t, {64, 80}}, {t, {90, 80}}, {t, {64, 90}}}, [](const Values& v) {
    return Values{prim::dot_general(v[0], v[1], {1}, {1}, {}, {}), prim::dot_general(v[2], v[1], {1}, {0}, {}, {}),
                  prim::dot_general(v[0], v[2], {0}, {0}, {}, {})};
  });
}

// Of bytes in int32, whose four products are added up at once where the processor does that: exact in any case.
TEST(Dot, Bytes) {
  auto wide = [](Value x) { return prim::convert(x, DType::Int32); };
  for (DType a : {DType::Int8, DType::UInt8})
    for (DType b : {DType::Int8, DType::UInt8})
      for (int64_t k : {0, 3, 16, 37, 130}) {
        bool of_a = k % 2, of_b = a == b;
        In first{a, {of_a ? k : 50, of_a ? 50 : k}, a == DType::Int8 ? -128.0 : 0.0, a == DType::Int8 ? 127.0 : 255.0},
            second{
                b, {of_b ? 70 : k, of_b ? k : 70}, b == DType::Int8 ? -128.0 : 0.0, b == DType::Int8 ? 127.0 : 255.0};
        check_both({first, second}, [=](const Values& v) {
          return Values{prim::dot_general(wide(v[0]), wide(v[1]), {of_a ? 0 : 1}, {of_b ? 1 : 0}, {}, {})};
        });
      }
  check_both({{DType::Int8, {3, 33, 20}, -128, 127}, {DType::UInt8, {3, 20, 17}, 0, 255}, {DType::Int32, {17}, -9, 9}},
             [=](const Values& v) {
               Value y = prim::dot_general(wide(v[0]), wide(v[1]), {2}, {1}, {0}, {0});
               return Values{y + prim::broadcast(v[2], ops::shape_of(y), {2})};
             });
}

// Tiles where the target has them and the numbers allow it, in every layout.
TEST(Dot, TilesInAllLayouts) {
  struct Case {
    DType dtype;
    const char* target;
    Numbers numbers;
    bool tiles;
  };
  constexpr const char *kTiles = "x86-64+avx512+bf16+amx", *kPairs = "x86-64+avx512+bf16", *kPlain = "x86-64+avx512";
  for (const Case& c : {Case{DType::BFloat16, kTiles, Numbers::Default, true},
                        {DType::BFloat16, kTiles, Numbers::Strict, false},
                        {DType::BFloat16, kPairs, Numbers::Default, false},
                        {DType::BFloat16, kPlain, Numbers::Default, false},
                        {DType::Int8, kTiles, Numbers::Strict, true},
                        {DType::Int8, kPlain, Numbers::Default, false},
                        {DType::Float32, kTiles, Numbers::Default, false}})
    for (bool of_a : {false, true})
      for (bool of_b : {false, true}) {
        ir::Graph graph(ir::Level::Primitives);
        ir::Facts facts(std::vector<int64_t>{});
        {
          ops::Builder builder(graph, facts);
          Value a = graph.add_input({c.dtype, {64, 64}, false}), b = graph.add_input({c.dtype, {64, 64}, false});
          if (c.dtype == DType::Int8) {
            a = prim::convert(a, DType::Int32);
            b = prim::convert(b, DType::Int32);
          }
          graph.add_output(prim::dot_general(a, b, {of_a}, {of_b}, {}, {}));
        }
        CompilerOptions options;
        options.target = c.target;
        options.numbers = c.numbers;
        bool tiles = false;
        for (const std::string& text : kernel_texts(graph, facts, options))
          tiles |= text.find("tile_product") != text.npos;
        EXPECT_EQ(tiles, c.tiles) << name(c.dtype) << ' ' << c.target << ' ' << of_a << of_b;
      }
}

// In every layout, but not where sums of floats have one order. Bytes are pairs of 16-bit integers on every x86-64 processor that does not
// add up four products at a time.
TEST(Dot, WordsInAllLayouts) {
  struct Case {
    DType dtype;
    const char* target;
    bool strict;
    const char* product;
  };
  for (const Case& c : {Case{DType::BFloat16, "x86-64+avx512+bf16", false, "pair_product"},
                        {DType::BFloat16, "x86-64+avx512+bf16", true, ""},
                        {DType::Int8, "x86-64+avx2", false, "pair_product"},
                        {DType::Int8, "x86-64", true, "pair_product"},
                        {DType::UInt8, "x86-64+avx512", false, "pair_product"},
                        {DType::Int8, "x86-64+avx512+vnni", true, "quad_product"},
                        {DType::UInt8, "x86-64+avx512+bf16", false, "quad_product"},
                        {DType::Int8, "aarch64", false, ""}})
    for (bool of_a : {false, true})
      for (bool of_b : {false, true}) {
        ir::Graph graph(ir::Level::Primitives);
        ir::Facts facts(std::vector<int64_t>{});
        {
          ops::Builder builder(graph, facts);
          Value a = graph.add_input({c.dtype, {64, 64}, false}), b = graph.add_input({c.dtype, {64, 64}, false});
          if (is_integral(c.dtype)) {
            a = prim::convert(a, DType::Int32);
            b = prim::convert(b, DType::Int32);
          }
          graph.add_output(prim::dot_general(a, b, {of_a}, {of_b}, {}, {}));
        }
        CompilerOptions options;
        options.target = c.target;
        options.numbers = c.strict ? Numbers::Strict : Numbers::Default;
        std::string product;
        for (const std::string& text : kernel_texts(graph, facts, options))
          for (const char* each : {"pair_product", "quad_product"})
            if (text.find(each) != text.npos) product += each;
        EXPECT_EQ(product, c.product) << name(c.dtype) << ' ' << c.target << ' ' << of_a << of_b;
      }
}

// Results that no cache holds, with rows of whole lines, and with rows that begin within lines.
TEST(Dot, PastTheCaches) {
  for (int64_t n : {2112, 2100})
    check_both({{DType::Float32, {1030, 2}}, {DType::Float32, {2, n}}},
               [](const Values& v) { return Values{prim::dot_general(v[0], v[1], {1}, {0}, {}, {})}; });
}

// Where the second operand is beyond the second cache, its next panel is asked for, whatever panels hold on this target.
TEST(Dot, LargeOnEveryTarget) {
  for (DType dtype : {DType::BFloat16, DType::Float32, DType::Int8})
    for (const char* target : {"x86-64", "x86-64+avx2", "x86-64+avx512", "x86-64+avx512+vnni", "x86-64+avx512+bf16",
                               "x86-64+avx512+bf16+amx", "aarch64"})
      for (bool of_b : {false, true})
        for (int64_t k : {1024, 1023}) {
          ir::Graph graph(ir::Level::Primitives);
          ir::Facts facts(std::vector<int64_t>{});
          {
            ops::Builder builder(graph, facts);
            Value a = graph.add_input({dtype, {1024, k}, false}),
                  b = graph.add_input({dtype, of_b ? ir::Shape{2048, k} : ir::Shape{k, 2048}, false});
            if (dtype == DType::Int8) {
              a = prim::convert(a, DType::Int32);
              b = prim::convert(b, DType::Int32);
            }
            graph.add_output(prim::dot_general(a, b, {1}, {of_b}, {}, {}));
          }
          CompilerOptions options;
          options.target = target;
          bool asks = false, tiles = false;
          for (const std::string& text : kernel_texts(graph, facts, options)) {
            asks |= text.find("prefetch") != text.npos;
            tiles |= text.find("tile_product") != text.npos;
          }
          EXPECT_TRUE(asks || tiles) << name(dtype) << ' ' << target << ' ' << of_b << ' ' << k;
        }
}

TEST(Dot, PrologueAndEpilogue) {
  Report r = check(
      {{DType::Float32, {64, 48}}, {DType::Float32, {96, 48}}, {DType::Float32, {96}}, {DType::Float32, {64, 96}}},
      [](const Values& v) {
        Value y = prim::dot_general(v[0] * v[0] * 2, v[1], {1}, {1}, {}, {});
        Value z = y + prim::broadcast(v[2], ops::shape_of(y), {1});
        return Values{z * 0.5 * (1 + ops::erf(z)) + v[3]};
      });
  EXPECT_EQ(r.kernels_after, 2);  // the packed weight, and everything else
}

// What reads columns of memory is no epilogue of a product on a CPU: a kernel of its own turns squares.
TEST(Dot, TurnedEpilogues) {
  for (bool turned : {false, true}) {
    ir::Graph graph(ir::Level::Primitives);
    ir::Facts facts;
    {
      ops::Builder builder(graph, facts);
      Value a = graph.add_input({DType::Float32, Shape{2048, 64}, false});
      Value b = graph.add_input({DType::Float32, Shape{64, 256}, false});
      Value c = graph.add_input({DType::Float32, turned ? Shape{256, 2048} : Shape{2048, 256}, false});
      Value product = prim::dot_general(a, b, {1}, {0}, {}, {}), other = turned ? prim::transpose(c, {1, 0}) : c;
      graph.add_output(prim::binary("add", product, other));
    }
    CompilerOptions options;
    options.target = "x86-64+avx2";
    options.threads = 1;
    EXPECT_EQ(kernel_texts(graph, facts, options).size(), turned ? 3 : 2) << turned;  // one packs an operand
  }
  check_both({{DType::Float32, {50, 33}}, {DType::Float32, {33, 70}}, {DType::Float32, {70, 50}}}, [](const Values& v) {
    return Values{prim::dot_general(v[0], v[1], {1}, {0}, {}, {}) + prim::transpose(v[2], {1, 0})};
  });
}

TEST(Convolution, Forms) {
  auto conv = [](ir::Expr stride, ir::Expr low, ir::Expr high, ir::Expr xd, ir::Expr wd, ir::Expr groups) {
    return [=](const Values& v) {
      return Values{
          prim::convolution(v[0], v[1], {stride, stride}, {low, low}, {high, high}, {xd, xd}, {wd, wd}, groups)};
    };
  };
  std::vector<In> in = {{DType::Float32, {2, 4, 9, 8}}, {DType::Float32, {6, 4, 3, 2}}};
  check(in, conv(1, 0, 0, 1, 1, 1));
  check(in, conv(2, 1, 1, 1, 1, 1));
  check(in, conv(1, 2, 1, 2, 2, 1));
  check(in, conv(1, -1, 1, 1, 1, 1));
  check({{DType::Float32, {2, 4, 9, 8}}, {DType::Float32, {6, 2, 3, 2}}}, conv(1, 1, 0, 1, 1, 2));
  check({{DType::Float32, {2, 3, 8, 8}}, {DType::Float32, {5, 3, 4, 4}}}, conv(4, 0, 0, 1, 1, 1));
  check({{DType::Float32, {2, 3, 8}}, {DType::Float32, {5, 3, 4}}},
        [](const Values& v) { return Values{prim::convolution(v[0], v[1], {1}, {0}, {0}, {1}, {1}, 1)}; });
}

// Rows of results side by side, as many as there are, more, and some of them twice; and rows shorter than a vector. What is added to a result may
// lie where the result does, so that no row may be computed twice.
TEST(Convolution, RowsSideBySide) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{8, 16}, {13, 19}, {7, 7}, {3, 20}, {17, 40}})
    for (int64_t taps : {3, 7}) {
      std::vector<ir::Expr> border(2, taps / 2);
      auto convolved = [&](const Values& v) {
        return prim::convolution(v[0], v[1], {1, 1}, border, border, {1, 1}, {1, 1}, 5);
      };
      std::vector<In> in = {{DType::Float32, {2, 5, rows, columns}}, {DType::Float32, {5, 1, taps, taps}}};
      check_both(in, [&](const Values& v) { return Values{convolved(v)}; });
      in.push_back(in[0]);
      check(in, [&](const Values& v) {
        return Values{prim::binary("add", convolved(v), prim::unary("exp", prim::unary("sin", v[2])))};
      });
      in[0].sizes[2] = 2 * rows;
      in.pop_back();
      check_both(in, [&](const Values& v) {
        return Values{prim::convolution(v[0], v[1], {2, 2}, border, border, {1, 1}, {1, 1}, 5)};
      });
    }
}

// Most taps meet the border alone, and some convolutions have none that meets the image.
TEST(Convolution, KernelsThatReachBeyondTheImage) {
  struct Sizes {
    int64_t image, taps, low, high, stride, x_dilation, w_dilation;
  };
  for (const Sizes& s : {Sizes{5, 31, 15, 15, 1, 1, 1},
                         {4, 16, 22, 23, 1, 1, 3},
                         {3, 20, 19, 4, 2, 2, 1},
                         {2, 9, 14, 1, 1, 1, 2},
                         {2, 20, 1, 40, 5, 1, 2},
                         {2, 6, 13, -2, 1, 1, 2}}) {
    auto build = [&](const Values& v) {
      return Values{prim::convolution(v[0], v[1], {s.stride, 1}, {s.low, 1}, {s.high, 0}, {s.x_dilation, 1},
                                      {s.w_dilation, 1}, 1)};
    };
    check_both({{DType::Float32, {2, 3, s.image, 3}}, {DType::Float32, {4, 3, s.taps, 2}}}, build);
    check_both({{DType::Float32, {1, 1, s.image, 3}}, {DType::Float32, {1, 1, s.taps, 2}}}, build);
  }
}

TEST(Convolution, OneOutputInEachGroup) {
  auto conv = [](ir::Expr stride, ir::Expr xd, ir::Expr wd) {
    return [=](const Values& v) {
      return Values{prim::convolution(v[0], v[1], {stride, stride}, {1, 1}, {1, 2}, {xd, xd}, {wd, wd}, 5)};
    };
  };
  for (int64_t channels : {1, 2})
    for (int64_t kernel : {3, 8}) {  // few places, or many
      std::vector<In> in = {{DType::Float32, {2, 5 * channels, 9, 10}},
                            {DType::Float32, {5, channels, kernel, kernel - 1}}};
      check_both(in, conv(1, 1, 1));
      check_both(in, conv(2, 1, 1));
      check_both(in, conv(1, 2, 1));
      check_both(in, conv(1, 2, 2));
    }
  check({{DType::BFloat16, {2, 5, 9, 8}}, {DType::BFloat16, {5, 1, 3, 3}}}, conv(1, 1, 1));
}

// As gradients by weights are: few results, each a long sum, for enough outputs to fill vectors and for fewer.
TEST(Convolution, LongSums) {
  auto conv = [](ir::Expr stride, ir::Expr border, ir::Expr dilation, ir::Expr groups) {
    return [=](const Values& v) {
      return Values{prim::convolution(v[0], v[1], {stride, stride}, {border, border}, {border, border}, {1, 1},
                                      {dilation, dilation}, groups)};
    };
  };
  for (int64_t outputs : {3, 37}) {
    check_both({{DType::Float32, {8, 3, 9, 8}}, {DType::Float32, {outputs, 3, 7, 7}}}, conv(1, 1, 1, 1));
    check_both({{DType::Float32, {8, 3, 13, 14}}, {DType::Float32, {outputs, 3, 7, 6}}}, conv(1, 1, 2, 1));
    check_both({{DType::Float32, {8, 3, 13, 14}}, {DType::Float32, {outputs, 3, 7, 6}}}, conv(2, 2, 2, 1));
    check_both({{DType::Float32, {8, 6, 9, 8}}, {DType::Float32, {2 * outputs, 3, 7, 6}}}, conv(1, 1, 1, 2));
  }
  check({{DType::Float32, {20, 3, 2, 1}}, {DType::Float32, {21, 3, 0, 1}}}, conv(1, 0, 1, 1));
}

// The kernel is as large as the image, and results are sums along rows of places.
TEST(Convolution, SumsOverImages) {
  auto conv = [](ir::Expr border, ir::Expr groups) {
    return [=](const Values& v) {
      Shape sides(2, border), one(2, 1);
      return Values{prim::convolution(v[0], v[1], one, sides, sides, one, one, groups)};
    };
  };
  for (int64_t outputs : {3, 40}) {
    check_both({{DType::Float32, {50, 2, 3, 33}, -0.5, 0.5}, {DType::Float32, {outputs, 2, 3, 33}, -0.5, 0.5}},
               conv(0, 1));
    check_both({{DType::Float32, {50, 4, 3, 33}, -0.5, 0.5}, {DType::Float32, {2 * outputs, 2, 3, 33}, -0.5, 0.5}},
               conv(0, 2));
    check_both({{DType::Float32, {50, 2, 3, 33}, -0.5, 0.5}, {DType::Float32, {outputs, 2, 3, 33}, -0.5, 0.5}},
               conv(1, 1));
    check_both({{DType::Float64, {5, 2, 3, 33}, -0.5, 0.5}, {DType::Float64, {outputs, 2, 3, 33}, -0.5, 0.5}},
               conv(1, 1));
  }
}

// Three taps down the first dimension, in six products for four rows: rows that fill four and others, borders that cut and that add, what
// remains of the kernel of any size, sums that follow.
TEST(Convolution, Winograd) {
  auto conv = [](Shape low, Shape high, Shape dilation) {
    return [=](const Values& v) {
      Shape one(low.size(), 1);
      Value y = prim::convolution(v[0], v[1], one, low, high, one, dilation, 1);
      return Values{ops::maximum(y, ops::zeros_like(y)) + 1, ops::sum(y, {0, 2, 3}) * 0.001};
    };
  };
  auto image = [](std::vector<int64_t> sizes) { return In{DType::Float32, std::move(sizes), -0.5, 0.5}; };
  auto products = [](const Report& r) {
    return std::count_if(r.kernels.begin(), r.kernels.end(),
                         [](const std::string& k) { return k.starts_with("contraction [6,"); });
  };
  for (int64_t rows : {7, 8}) {
    std::vector<In> in = {image({6, 32, rows, 14}), image({33, 32, 3, 3})};
    check_both(in, conv({1, 1}, {1, 1}, {1, 1}));
    EXPECT_EQ(products(check(in, conv({1, 2}, {1, 1}, {1, 2}))), 1);
  }
  for (int64_t rows : {3, 4}) {
    std::vector<In> few = {image({9, 32, rows, 20}), image({33, 32, 3, 3})};
    check_both(few, conv({1, 1}, {1, 1}, {1, 1}));
    EXPECT_EQ(products(check(few, conv({1, 1}, {1, 1}, {1, 1}))), 1);
  }
  check_both({image({4, 33, 11, 15}), image({32, 33, 3, 4})}, conv({-1, 2}, {2, -1}, {1, 1}));
  check_both({image({2, 32, 12, 30}), image({40, 32, 3, 1})}, conv({0, 0}, {0, 0}, {1, 1}));
  check_both({image({2, 32, 23, 24}), image({33, 32, 3, 3})}, conv({1, 1}, {1, 1}, {1, 1}));
  // As gradients by weights are: three rows of results, of places that fill four rows and others.
  for (int64_t rows : {7, 8}) {
    std::vector<In> places = {image({33, 3, rows, 14}), image({32, 3, rows, 14})};
    check_both(places, conv({1, 1}, {1, 1}, {1, 1}));
    EXPECT_EQ(products(check(places, conv({1, 1}, {1, 1}, {1, 1}))), 1);
  }
  check_both({image({32, 2, 14, 15}), image({40, 2, 12, 13})}, conv({1, -1}, {-1, 3}, {1, 1}));
  check_both({image({32, 2, 9, 6, 7}), image({32, 2, 8, 5, 7})}, conv({1, 1, 0}, {0, 1, 1}, {1, 1, 1}));
  check_both({image({2, 32, 6, 5, 9}), image({32, 32, 3, 2, 3})}, conv({1, 0, 1}, {1, 1, 1}, {1, 1, 1}));
  Options eager;
  eager.symbolic = eager.compile.size_classes = true;
  check({image({3, 32, 13, 14}), image({33, 32, 3, 3})}, conv({1, 1}, {1, 1}, {1, 1}), eager);
  check({image({33, 2, 13, 14}), image({32, 2, 13, 14})}, conv({1, 1}, {1, 1}, {1, 1}), eager);
  Options strict;
  strict.compile.numbers = Numbers::Strict;
  std::vector<In> in = {image({2, 32, 18, 17}), image({33, 32, 3, 3})};
  EXPECT_EQ(products(check(in, conv({1, 1}, {1, 1}, {1, 1}), strict)), 0);
}

// Two taps of each remainder by the step down the first dimension, in three products for two rows, four for three or five for four: steps, images
// that are spread, so that each remainder of a place has taps of its own, and gradients by weights of such.
TEST(Convolution, WinogradOfTwoTaps) {
  struct Steps {
    Shape step, distance, dilation;
  };
  auto conv = [](Shape low, Shape high, const Steps& s) {
    return [=](const Values& v) {
      return Values{prim::convolution(v[0], v[1], s.step, low, high, s.distance, s.dilation, 1)};
    };
  };
  auto image = [](std::vector<int64_t> sizes) { return In{DType::Float32, std::move(sizes), -0.5, 0.5}; };
  auto expect = [](const std::vector<In>& in, const auto& f, int64_t products, int64_t count) {
    check_both(in, f);
    std::vector<std::string> kernels = check(in, f).kernels;
    EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(),
                            [&](const std::string& k) { return k.starts_with(str("contraction [", products, ",")); }),
              count)
        << str(kernels);
  };
  const Steps steps = {{2, 2}, {1, 1}, {1, 1}};
  expect({image({6, 32, 14, 14}), image({33, 32, 4, 4})}, conv({1, 1}, {1, 1}, steps), 5, 1);
  expect({image({10, 32, 7, 18}), image({33, 32, 4, 4})}, conv({1, 1}, {1, 1}, steps), 4, 1);
  expect({image({15, 32, 5, 18}), image({33, 32, 4, 3})}, conv({1, 1}, {0, 1}, steps), 3, 1);
  expect({image({5, 33, 20, 9}), image({32, 33, 6, 2})}, conv({0, 1}, {1, 0}, {{3, 1}, {1, 1}, {1, 1}}), 4, 1);
  expect({image({5, 32, 8, 9}), image({33, 32, 2, 3})}, conv({-1, 1}, {1, 1}, {{1, 1}, {1, 1}, {1, 1}}), 5, 1);
  expect({image({2, 32, 14, 6, 5}), image({32, 32, 4, 2, 3})},
         conv({1, 0, 1}, {1, 1, 1}, {{2, 1, 1}, {1, 1, 1}, {1, 1, 1}}), 5, 1);
  // Five rows fill neither tiles of four nor of three; of three taps by steps of two one remainder has one.
  expect({image({10, 32, 10, 14}), image({33, 32, 4, 4})}, conv({1, 1}, {1, 1}, steps), 5, 0);
  expect({image({6, 32, 14, 14}), image({33, 32, 3, 3})}, conv({1, 1}, {1, 1}, steps), 5, 0);
  const Steps spread = {{1, 1}, {2, 2}, {1, 1}};
  expect({image({6, 32, 7, 7}), image({33, 32, 4, 4})}, conv({2, 2}, {2, 2}, spread), 5, 4);
  expect({image({29, 32, 3, 3}), image({33, 32, 4, 4})}, conv({2, 2}, {3, 3}, spread), 4, 2);
  const Steps places = {{1, 1}, {1, 1}, {2, 2}};
  expect({image({33, 6, 14, 14}), image({32, 6, 7, 7})}, conv({1, 1}, {1, 1}, places), 5, 1);
  expect({image({32, 31, 7, 7}), image({33, 31, 3, 3})}, conv({1, 1}, {0, 0}, places), 4, 1);
  expect({image({33, 6, 21, 14}), image({32, 6, 7, 12})}, conv({0, 1}, {3, 0}, {{1, 1}, {1, 1}, {3, 1}}), 5, 1);
  Options strict;
  strict.compile.numbers = Numbers::Strict;
  check({image({6, 32, 14, 14}), image({33, 32, 4, 4})}, conv({1, 1}, {1, 1}, steps), strict);
}

// An image that is turned is written once, with its border; so are weights that all remainders read.
TEST(Convolution, TurnsOnce) {
  auto image = [](std::vector<int64_t> sizes) { return In{DType::Float32, std::move(sizes), -0.5, 0.5}; };
  auto conv = [](Shape step, Shape border, Shape distance) {
    return [=](const Values& v) {
      return Values{prim::convolution(v[0], v[1], step, border, border, distance, {1, 1}, 1)};
    };
  };
  auto copies = [](const std::vector<std::string>& kernels) {
    return std::count_if(kernels.begin(), kernels.end(), [](const std::string& k) { return k.starts_with("loops"); });
  };
  auto kernels = check({image({2, 20, 18, 18}), image({33, 20, 3, 3})}, conv({2, 2}, {1, 1}, {1, 1})).kernels;
  EXPECT_EQ(copies(kernels), 3) << str(kernels);  // of the image, the weights and the result
  kernels = check({image({6, 32, 7, 7}), image({33, 32, 4, 4})}, conv({1, 1}, {2, 2}, {2, 2})).kernels;
  EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(),
                          [](const std::string& k) { return k.starts_with("loops [4, 4, 32, 33]"); }),
            1)
      << str(kernels);
}

// Each bound from both sides, and of images one where the sets of weights are made once.
TEST(Convolution, WinogradFromSomeSizesOn) {
  auto takes = [](std::vector<int64_t> x, std::vector<int64_t> w, bool lasting = false) {
    ir::Graph graph(ir::Level::Primitives);
    ir::Facts facts;
    ops::Builder builder(graph, facts);
    auto input = [&](const std::vector<int64_t>& sizes) {
      return graph.add_input({DType::Float32, Shape(sizes.begin(), sizes.end()), false});
    };
    Value image = input(x), weights = input(w);
    Shape one = {1, 1};
    Conv c(prim::convolution(image, weights, one, one, one, one, one, 1).node->args);
    c.x = prim::transpose(c.x, channels_to_end(4));
    Machine machine = machine_of("x86-64+avx2", 1);
    return takes_winograd(c, {facts, machine, false, {false, lasting}});
  };
  EXPECT_TRUE(takes({2, 32, 16, 16}, {32, 32, 3, 3}));
  EXPECT_FALSE(takes({2, 31, 16, 16}, {32, 31, 3, 3}));
  EXPECT_FALSE(takes({2, 32, 16, 16}, {31, 32, 3, 3}));
  EXPECT_FALSE(takes({2, 32, 15, 17}, {32, 32, 3, 3}));
  EXPECT_TRUE(takes({8, 32, 8, 8}, {32, 32, 3, 3}));
  EXPECT_TRUE(takes({1, 32, 6, 86}, {32, 32, 3, 3}));
  EXPECT_FALSE(takes({1, 32, 5, 103}, {32, 32, 3, 3}));
  EXPECT_TRUE(takes({1, 32, 4, 128}, {32, 32, 3, 3}));
  EXPECT_TRUE(takes({1, 32, 3, 171}, {32, 32, 3, 3}));
  EXPECT_FALSE(takes({1, 32, 2, 256}, {32, 32, 3, 3}));
  EXPECT_TRUE(takes({1, 32, 8, 16}, {32, 32, 3, 3}, true));
  EXPECT_FALSE(takes({1, 32, 8, 16}, {32, 32, 3, 3}));
  EXPECT_FALSE(takes({1, 32, 127, 1}, {32, 32, 3, 3}, true));
}

// Volumes of two planes beside a kernel of three: their planes are channels, and only pairs of planes that meet are multiplied.
TEST(Convolution, ShortVolumes) {
  auto conv = [](Shape low, Shape high, Shape step) {
    return [=](const Values& v) {
      return Values{prim::convolution(v[0], v[1], step, low, high, {1, 1, 1}, {1, 1, 1}, 1)};
    };
  };
  std::vector<In> in = {{DType::Float32, {3, 8, 2, 7, 6}, -0.5, 0.5}, {DType::Float32, {20, 8, 3, 3, 3}, -0.5, 0.5}};
  check_both(in, conv({1, 1, 1}, {1, 1, 1}, {1, 1, 1}));
  check_both(in, conv({2, 0, 1}, {1, 1, 0}, {2, 1, 2}));
  Report r = check(in, conv({1, 1, 1}, {1, 1, 1}, {1, 1, 1}));
  EXPECT_TRUE(std::any_of(r.kernels.begin(), r.kernels.end(), [](const std::string& k) {
    return k.find("contraction") == 0 && k.find("40]") != k.npos;
  })) << r.kernels.front();
}

// A step as long as the kernel: each element makes a patch.
TEST(Convolution, PatchesFromElements) {
  auto conv = [](Shape low, Shape high, Shape distance) {
    return
        [=](const Values& v) { return Values{prim::convolution(v[0], v[1], {1, 1}, low, high, distance, {1, 1}, 1)}; };
  };
  std::vector<In> in = {{DType::Float32, {2, 5, 6, 7}}, {DType::Float32, {4, 5, 2, 3}}};
  check_both(in, conv({1, 2}, {1, 2}, {2, 3}));
  check_both(in, conv({1, 2}, {2, 3}, {2, 3}));  // with a border more
  check_both(in, conv({1, 2}, {0, -2}, {2, 3}));
  check_both(in, conv({0, 1}, {1, 2}, {2, 3}));
}

// The gradient by the weights of patches: a kernel of few places, far from each other, and a result whose rows are short beside the
// image's. Nothing is summed for places that a row has more.
TEST(Convolution, FewResultsInLongRows) {
  auto conv = [](const Values& v) {
    return Values{prim::convolution(v[0], v[1], {1, 1}, {0, 0}, {0, 0}, {1, 1}, {8, 8}, 1)};
  };
  auto small = [](std::vector<int64_t> sizes) { return In{DType::Float32, std::move(sizes), -0.5, 0.5}; };
  check_both({small({3, 4, 56, 64}), small({20, 4, 7, 8})}, conv);
  check_both({small({3, 4, 57, 66}), small({20, 4, 7, 8})}, conv);
}

}  // namespace
}  // namespace brasa::compiler
