#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "compiler/fusion/fuse.h"
#include "compiler/lowering/lower.h"
#include "compiler/pipeline.h"
#include "compiler/report.h"
#include "compiler/run/plan.h"
#include "ir/legality.h"
#include "ir/text.h"
#include "ops/table.h"
#include "support/error.h"

// One step of the pipeline on a graph's text: golden/*.txt holds `pass: <name>`, `target:` and `library:` (or `library: none`) where the machine is another one,
// `numbers: strict`, `sizes:` of a single operator's example call, `lasting:` inputs, the graph, `---`, and what the step makes of it: the graph, and facts that it asked for. With
// BRASA_UPDATE_GOLDEN=1 the files are written anew.
namespace brasa::compiler {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(BRASA_TEST_DATA).parent_path() / "compiler" / "golden";

std::vector<int64_t> numbers(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<int64_t>(in), {}};
}

std::string result_of(const std::string& pass, const std::string& text, const std::string& target,
                      std::string_view library, Numbers level, const std::vector<int64_t>& sizes,
                      const std::vector<int64_t>& lasting) {
  Primitives p;
  p.graph = ir::parse(text, [](std::string_view name) { return ops::find(name); });
  ir::Facts facts(sizes);
  Machine machine = machine_of(target, 2);
  machine.one_order = level == Numbers::Strict;
  if (!library.empty()) machine.libraries = Libraries({&library, library != "none" ? size_t{1} : 0});
  for (auto passes : {algebra_passes(), form_passes()})
    for (const GraphPass& each : passes)
      if (each.name == pass) {
        std::vector<bool> lasts(p.graph->inputs().size()), rewritten(lasts.size());
        for (int64_t i : lasting) lasts.at(i) = true;
        for (const ir::Output& o : p.graph->outputs())
          if (o.into >= 0 && lasts[o.into]) rewritten[o.into] = true;
        constexpr int64_t kRoom = 1 << 30;
        each.run(p, {facts, machine, !sizes.empty(), lasts, false, rewritten, kRoom});
        p.defined ? ir::check_legal(*p.graph, p.defined->first) : ir::check_legal(*p.graph);
        std::string out = str(p);
        for (const ir::Fact& f : facts.facts()) out += str(f, "\n");
        return out;
      }
  if (pass == "loops") {
    CompilerOptions options;
    options.target = target;
    options.threads = 2;
    options.numbers = level;
    std::string out;
    for (const std::string& kernel : kernel_texts(*p.graph, facts, options)) out += kernel;
    return out;
  }
  FusedGraph fused = fuse(*p.graph, {}, machine);
  if (pass == "fuse") return str(fused);
  if (pass == "plan") return str(plan(*p.graph, std::move(fused), machine.gpu ? Together::WhereSmall : Together::None));
  std::string out;
  BRASA_CHECK(pass == "schedule", "there is no pass ", pass);
  for (const Group& g : fused.groups) {
    Schedule s = schedule(g, machine);
    out += describe(g, s) + "\n";
    EXPECT_EQ(str(parse_schedule(str(s), g.domain)), str(s));
  }
  return out;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, Text) {
  fs::path path = kFolder / (GetParam() + ".txt");
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  std::string text = all.str(), pass, target = "x86-64+avx2", library, line;
  size_t end = text.find("\n---\n");
  std::string before = text.substr(0, end == std::string::npos ? end : end + 1);
  std::string after = end == std::string::npos ? "" : text.substr(end + 5);
  std::stringstream head(before);
  std::string graph;
  std::vector<int64_t> sizes, lasting;
  Numbers level = Numbers::Default;
  while (std::getline(head, line)) {
    if (line.starts_with("pass: "))
      pass = line.substr(6);
    else if (line.starts_with("target: "))
      target = line.substr(8);
    else if (line.starts_with("library: "))
      library = line.substr(9);
    else if (line.starts_with("numbers: "))
      level = numbers_named(line.substr(9));
    else if (line.starts_with("sizes: "))
      sizes = numbers(line.substr(7));
    else if (line.starts_with("lasting: "))
      lasting = numbers(line.substr(9));
    else
      graph += line + "\n";
  }
  std::string result = result_of(pass, graph, target, library, level, sizes, lasting);
  if (std::getenv("BRASA_UPDATE_GOLDEN"))
    std::ofstream(path) << before << "---\n" << result;
  else
    EXPECT_EQ(result, after) << path;
}

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(kFolder)) out.push_back(entry.path().stem());
  std::sort(out.begin(), out.end());
  return out;
}

INSTANTIATE_TEST_SUITE_P(Passes, Golden, ::testing::ValuesIn(files()), [](const auto& info) { return info.param; });

TEST(Schedule, OtherTextIsAnError) {
  Domain d{{8, 100}, {false, true}, {}};
  Schedule s = parse_schedule(
      "parallel d0 [8] in pieces of 2; vector d1 [100] reduced; width 8; stage %1 %2; first {grain 7}", d);
  EXPECT_EQ(s.axes[0].piece, 2);
  EXPECT_TRUE(s.axes[1].reduced);
  EXPECT_EQ(s.width, 8);
  EXPECT_EQ(s.staged, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(s.before.at(0).grain, 7);
  for (const char* text : {"parallel d0 [9]", "parallel d2 [8]", "vector d1 [100]", "width", "width 8;", "tile",
                           "first {grain 7", "width 8 9"})
    EXPECT_THROW(parse_schedule(text, d), Error) << text;
}

TEST(Schedule, LoweringObeysIt) {
  // Another schedule than the heuristics' gives other loops, without any of the heuristics.
  auto graph = ir::parse(
      "graph primitives \"\" {\n  %0 = input: f32[64, 64] \"\"\n  %1 = prim::exp(%0): f32[64, 64]\n  return %1\n}\n",
      [](std::string_view name) { return ops::find(name); });
  FusedGraph fused = fuse(*graph, {}, Machine());
  const Group& g = fused.groups.at(0);
  std::string text =
      ir::print(*lower(g, parse_schedule("parallel d0 [64]; vector d1 [64]; width 4; unroll 3", g.domain))[0].loops);
  EXPECT_NE(text.find("kind=\"parallel\""), std::string::npos) << text;
  EXPECT_NE(text.find("width=4, unroll=3"), std::string::npos) << text;
}

TEST(Pipeline, EveryPassHasAGoldenText) {
  for (auto passes : {algebra_passes(), form_passes()})
    for (const GraphPass& pass : passes) {
      bool found = false;
      for (const std::string& file : files()) found |= file.starts_with(pass.name);
      EXPECT_TRUE(found) << pass.name;
    }
}

}  // namespace
}  // namespace brasa::compiler
