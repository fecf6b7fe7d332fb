#include "program/program.h"

#include <brasa/error.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "ops/builder.h"
#include "ops/table.h"
#include "runtime/device.h"
#include "transforms/derived.h"

namespace brasa::program {
namespace {

using ir::Expr;

// x[s0, s1] with strides, a number by value, and y[s2] that takes the sum; the results are y, x itself, nothing, and what is fresh.
Program example() {
  auto graph = std::make_unique<ir::Graph>();
  graph->name = "example";
  Expr s0 = Expr::size(0, 2), s1 = Expr::size(1), s2 = Expr::size(2), stride = Expr::size(3);
  ir::Value x = graph->add_input({DType::Float32, {s0, s1}}, "x", {stride, 1});
  ir::Value n = graph->add_input({DType::Float64, {}, true}, "n", {}, true);
  graph->add_input({DType::Float32, {s0, s2}}, "y");
  ir::Facts facts({4, 5, 5, 7});
  facts.equal(s1, s2);
  facts.equal(s0, Expr(1));
  ops::Builder builder(*graph, facts);
  ir::Value sum = builder.record(ops::at("aten::add.Tensor"), {x, n})[0];
  ir::Value fresh = builder.record(ops::at("aten::exp"), {sum})[0];
  graph->add_output(sum, 2);
  graph->add_output(fresh);
  using From = Result::From;
  Program p(std::move(graph), runtime::host(),
            {{From::Output, 0}, {From::Input, 0}, {From::Nothing, 0}, {From::Output, 1}});
  p.conditions = Conditions(facts.facts());
  return p;
}

TEST(Program, ItsTextIsReadBack) {
  Program p = example();
  std::string text = program::print(p);
  EXPECT_TRUE(
      text.starts_with("program on cpu gives output 0, input 0, nothing, output 1\ngraph operators \"example\" {"))
      << text;
  EXPECT_NE(text.find("where [s2 == s1"), text.npos) << text;
  EXPECT_NE(text.find("by value"), text.npos) << text;
  Program again = program::parse(text, transforms::find_row);
  EXPECT_EQ(program::print(again), text);
  EXPECT_EQ(again.device, p.device);
  EXPECT_EQ(again.results, p.results);
  EXPECT_EQ(again.reads, p.reads);
  EXPECT_EQ(again.conditions.facts(), p.conditions.facts());
  EXPECT_TRUE(again.graph->inputs()[1].by_value);
}

TEST(Program, SymbolsAreReadFromSizesAndStrides) {
  Program p = example();
  const int64_t x[] = {4, 5}, strides[] = {9, 1}, y[] = {4, 6}, dense[] = {6, 1};
  compiler::Operand inputs[] = {
      {nullptr, DType::Float32, x, strides}, {nullptr, DType::Float64, {}, {}}, {nullptr, DType::Float32, y, dense}};
  SymbolValues symbols;
  p.bind(inputs, symbols);
  EXPECT_EQ(symbols.vec(), (std::vector<int64_t>{4, 5, 6, 9}));
  EXPECT_FALSE(p.conditions.hold(symbols.data())) << "s1 and s2 differ";
}

TEST(Program, WhatIsNotWrittenSoIsAnError) {
  std::string text = program::print(example());
  auto with = [&](std::string_view from, std::string_view to) {
    std::string out = text;
    size_t at = out.find(from);
    EXPECT_NE(at, out.npos) << from;
    return out.replace(at, from.size(), to);
  };
  for (const std::string& wrong :
       {std::string(), std::string("program"), with("program on", "program in"), with("cpu", "abacus"),
        with("cpu", "emu:99"), with("gives", "takes"), with("output 0", "output 9"), with("output 0", "output x"),
        with("nothing", "something"), with("input 0", "input -1"), with("output 1\n", "output 1,\n"),
        with("s2 == s1", "s2 = s1"), with("s2 == s1", "s9 == s1"), with("by value", "by name")})
    EXPECT_THROW(program::parse(wrong, transforms::find_row), Error) << wrong;
}

// Texts with characters, words and lines that are missing, doubled, moved or replaced.
TEST(Program, DamagedTextsAreReadOrAreErrors) {
  const std::string text = program::print(example());
  const char* given = std::getenv("BRASA_FUZZ_SEED");
  std::mt19937 pick(given ? static_cast<uint32_t>(std::atoi(given)) : 1);
  auto below = [&](size_t n) { return pick() % n; };
  auto part = [&](const std::string& of) {
    size_t at = below(of.size()), n = 1 + below(below(4) ? 6 : 60);
    return std::pair{at, std::min(n, of.size() - at)};
  };
  constexpr std::string_view kPieces[] = {
      "-1",  "9999999999999999999", "s0", "(", ")", "[", "]", "{", "\"", "%9", "\n", "//", "f32", "0", "*", "\\",
      "\xff"};
  int read = 0, wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string t = text;
    for (size_t k = 0, n = 1 + below(3); k < n && !t.empty(); ++k) {
      auto [at, size] = part(t);
      auto [from, length] = part(text);
      switch (below(4)) {
        case 0: t.erase(at, size); break;
        case 1: t.insert(at, text, from, length); break;
        case 2: t.replace(at, size, text, from, length); break;
        default: t.replace(at, below(2), kPieces[below(std::size(kPieces))]);
      }
    }
    try {
      Program p = program::parse(t, transforms::find_row);
      program::print(p);
      ++read;
    } catch (const Error&) {
      ++wrong;
    } catch (const std::exception& e) {
      FAIL() << e.what() << "\ntext " << i << ":\n" << t;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(wrong, 1000);
}

TEST(Program, ReadsWhatItsOutputsDependOn) {
  Program p = example();
  EXPECT_EQ(p.reads, (std::vector<bool>{true, true, false}));
}

}  // namespace
}  // namespace brasa::program
