#include "transforms/recompute.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/text.h"
#include "ops/algebra.h"
#include "ops/interpreter.h"
#include "transforms/memory.h"
#include "transforms/partition.h"
#include "transforms/vjp.h"

namespace brasa::transforms {
namespace {

using ir::Value;
using ops::Array;
using namespace ops;  // NOLINT: the algebra on Values

constexpr uint32_t kFunction = 7;

Array numbers(int64_t rows, int64_t columns) {
  Array a{DType::Float64, {rows, columns}, {}};
  a.data.resize(static_cast<size_t>(rows * columns) * sizeof(double));
  for (int64_t i = 0; i < rows * columns; ++i) {
    double v = 0.1 * static_cast<double>(i * i % 7 - 3);
    std::memcpy(a.data.data() + i * sizeof v, &v, sizeof v);
  }
  return a;
}

// y = sum(tanh(tanh(x a) b)), its gradients, and which nodes are whose.
struct Example {
  ir::Facts facts;
  std::unique_ptr<ir::Graph> graph = std::make_unique<ir::Graph>(ir::Level::Primitives);
  std::vector<bool> forward;
  Keeping keeping;

  explicit Example(uint32_t of_first_layer) {
    {
      ops::Builder builder(*graph, facts);
      Value x = graph->add_input({DType::Float64, {3, 2}, false}, "x");
      Value a = graph->add_input({DType::Float64, {2, 2}, false}, "a");
      Value b = graph->add_input({DType::Float64, {2, 2}, false}, "b");
      Value inner = ops::tanh(ops::matmul2(x, a));
      Value h = inner * inner;
      keeping.origin.assign(graph->nodes().size(), of_first_layer);
      Value last = ops::tanh(ops::matmul2(h, b)), y = ops::sum(last, {0, 1});
      graph->add_output(y);
      forward.assign(graph->nodes().size(), true);
      keeping.origin.resize(graph->nodes().size(), 0);
      Value d = (scalar(1., DType::Float64) - last * last);
      Value dh = ops::matmul2(d, prim::transpose(b, {1, 0}));
      Value da =
          ops::matmul2(prim::transpose(x, {1, 0}), dh * (inner + inner) * (scalar(1., DType::Float64) - inner * inner));
      graph->add_output(da);
      graph->add_output(ops::matmul2(prim::transpose(h, {1, 0}), d));
    }
    forward.resize(graph->nodes().size(), false);
    keeping.origin.resize(graph->nodes().size(), Keeping::kDerived);
    keeping.repeats_cheap = false;
  }

  static std::vector<Array> inputs() { return {numbers(3, 2), numbers(2, 2), numbers(2, 2)}; }
};

int count(const ir::Graph& g, const char* op) {
  auto nodes = ir::live_nodes(g);
  return static_cast<int>(
      std::count_if(nodes.begin(), nodes.end(), [&](const ir::Node* n) { return n->op->name() == op; }));
}

TEST(Recompute, NothingWithoutReason) {
  Example e(0);
  EXPECT_EQ(recompute(*e.graph, e.forward, e.facts, e.keeping), nullptr);
}

TEST(Recompute, ACheckpointedFunctionRunsAgainAndGivesTheSame) {
  Example e(kFunction);
  auto again = recompute(*e.graph, e.forward, e.facts, e.keeping);
  ASSERT_TRUE(again);
  EXPECT_EQ(count(*again, "prim::dot_general"), count(*e.graph, "prim::dot_general") + 1) << ir::print(*again);
  EXPECT_EQ(count(*again, "prim::later"), 1) << ir::print(*again);
  std::vector<Array> before = ops::evaluate(*e.graph, Example::inputs()),
                     now = ops::evaluate(*again, Example::inputs());
  ASSERT_EQ(before.size(), now.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].data, now[i].data) << i;
}

// A derivative that is made of the forward part alone is there before the backward part begins.
TEST(Recompute, WaitsForWhatComesFromBehind) {
  ir::Facts facts;
  ir::Graph graph(ir::Level::Primitives);
  Keeping keeping;
  std::vector<bool> forward;
  {
    ops::Builder builder(graph, facts);
    Value x = graph.add_input({DType::Float64, {3, 2}, false}, "x");
    Value inner = ops::tanh(x), h = ops::sum(inner, {1});
    keeping.origin.assign(graph.nodes().size(), kFunction);
    Value last = ops::tanh(h);
    graph.add_output(ops::sum(last, {0}));
    forward.assign(graph.nodes().size(), true);
    keeping.origin.resize(graph.nodes().size(), 0);
    auto spread = [](Value v) { return ops::broadcast_to(ops::unsqueeze(v, 1), {3, 2}); };
    Value behind = spread(ops::exp(last));
    Value early = spread(ops::cos(h)) * inner;
    graph.add_output(behind * early);
  }
  forward.resize(graph.nodes().size(), false);
  keeping.origin.resize(graph.nodes().size(), Keeping::kDerived);
  keeping.repeats_cheap = false;
  auto again = recompute(graph, forward, facts, keeping);
  ASSERT_TRUE(again);
  ASSERT_EQ(count(*again, "prim::later"), 1) << ir::print(*again);
  for (const ir::Node* n : ir::live_nodes(*again)) {
    if (n->op->name() != "prim::later") continue;
    std::vector<const ir::Node*> open{n->inputs()[1].node};
    bool waits = false;  // for what the end of the forward part made
    while (!open.empty() && !waits) {
      const ir::Node* from = open.back();
      open.pop_back();
      waits = from->op->name() == "prim::exp";
      from->for_each_input([&](Value v) { open.push_back(v.node); });
    }
    EXPECT_TRUE(waits) << ir::print(*again);
  }
}

TEST(Recompute, TheLeastBudgetKeepsNothing) {
  Example e(0);
  std::vector<Value> gradients{e.graph->outputs()[1].value, e.graph->outputs()[2].value};
  auto kept = [&](double budget) {
    e.keeping.budget = budget;
    Cut c = cut(*e.graph, e.forward, {e.graph->outputs()[0].value}, gradients, e.facts, e.keeping);
    return std::count_if(c.kept.begin(), c.kept.end(), [](Value v) { return !ir::is_input(v); });
  };
  EXPECT_GE(kept(1), 2);
  EXPECT_LT(kept(0.5), kept(1));
  EXPECT_EQ(kept(0), 0);
}

// A stream that each of its layers adds to, its gradients, and which nodes are whose.
struct Stream {
  static constexpr int kLayers = 8;
  ir::Facts facts;
  ir::Graph graph{ir::Level::Primitives};
  Keeping keeping;
  std::vector<bool> forward;

  // `activated`: what a layer multiplies by the second matrix follows from a product by cheap work; else that work comes before the first one.
  Stream(int64_t rows, bool activated) {
    {
      ops::Builder builder(graph, facts);
      Value x = graph.add_input({DType::Float64, {rows, 4}, false}, "x");
      Value w = graph.add_input({DType::Float64, {16, 4}, false}, "w"), up = prim::transpose(w, {1, 0});
      std::vector<Value> wide, inner, stream{x};
      for (int i = 0; i < kLayers; ++i) {
        wide.push_back(ops::matmul2(activated ? stream.back() : ops::sin(stream.back()), up));
        inner.push_back(activated ? ops::sin(wide.back()) : ops::tanh(wide.back()));
        stream.push_back(stream.back() + ops::matmul2(inner.back(), w));
      }
      graph.add_output(ops::sum(stream.back(), {0, 1}));
      forward.assign(graph.nodes().size(), true);
      Value ct = ops::exp(stream.back());
      for (int i = kLayers; i-- > 0;) {
        graph.add_output(ops::matmul2(prim::transpose(inner[i], {1, 0}), ct));
        Value d =
            ops::matmul2(ct, up) * (activated ? ops::cos(wide[i]) : scalar(1., DType::Float64) - inner[i] * inner[i]);
        Value in = activated ? stream[i] : ops::sin(stream[i]);
        graph.add_output(ops::matmul2(prim::transpose(in, {1, 0}), d));
        ct = ct + ops::matmul2(d, w) * ops::cos(stream[i]);
      }
      graph.add_output(ct);
    }
    forward.resize(graph.nodes().size(), false);
    keeping.origin.assign(graph.nodes().size(), Keeping::kDerived);
    for (size_t i = 0; i < forward.size(); ++i)
      if (forward[i]) keeping.origin[i] = 0;
    keeping.repeats_cheap = false;
  }
};

// In one graph a budget is one of all that lies in memory at once: cheap work of which all follows from the first value, such as a stream that
// each layer adds to, would lie there as a whole.
TEST(Recompute, ABudgetBoundsThePeak) {
  Stream s(16, false);
  std::vector<Array> inputs{numbers(16, 4), numbers(16, 4)};
  std::vector<Array> before = ops::evaluate(s.graph, inputs);
  int64_t last = peak_bytes(s.graph, s.facts), most = last;
  EXPECT_GE(most, Stream::kLayers * int64_t{16 * (16 + 4) * 8});  // of each layer the wide values, and what it adds
  for (double budget : {0.75, 0.5, 0.0}) {
    s.keeping.budget = budget;
    auto again = recompute(s.graph, s.forward, s.facts, s.keeping);
    ASSERT_TRUE(again) << budget;
    EXPECT_LT(peak_bytes(*again, s.facts), last) << budget << "\n" << ir::print(*again);
    last = peak_bytes(*again, s.facts);
    std::vector<Array> now = ops::evaluate(*again, inputs);
    ASSERT_EQ(before.size(), now.size());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].data, now[i].data) << i;
  }
  EXPECT_LT(last, most / 2);
}

// Activations between products are computed again, the stream is not: nothing that reads the same would do it on its way.
TEST(Recompute, SparesActivationsBetweenProducts) {
  Stream s(int64_t{1} << 16, true);
  EXPECT_EQ(recompute(s.graph, s.forward, s.facts, s.keeping), nullptr);
  s.keeping.spare = Keeping::Spare::Activations;
  auto again = recompute(s.graph, s.forward, s.facts, s.keeping);
  ASSERT_TRUE(again);
  EXPECT_EQ(count(*again, "prim::sin"), 2 * Stream::kLayers);
  for (const char* op : {"prim::add", "prim::dot_general"}) EXPECT_EQ(count(*again, op), count(s.graph, op)) << op;
  EXPECT_LT(peak_bytes(*again, s.facts), peak_bytes(s.graph, s.facts) * 3 / 4);
  for (const ir::Node* n : ir::live_nodes(*again)) {
    bool waits_for_product = n->op->name() == "prim::later" && n->inputs()[1].node->op->name() == "prim::dot_general";
    EXPECT_FALSE(waits_for_product);
  }
}

}  // namespace
}  // namespace brasa::transforms
