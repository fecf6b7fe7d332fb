#include "compiler/loops/branches.h"

#include <set>

#include "compiler/loops/math.h"
#include "compiler/loops/ops.h"

namespace brasa::compiler {
namespace {

using ir::Node;
using ops::ScalarOp;

// Simple instructions that make up for a branch that was not foreseen.
constexpr int kLong = 40;

int cost_of(const Node* n) {
  constexpr int kFunction = 24, kDivision = 4, kIntegerDivision = 64;  // integers are divided lane by lane
  ScalarOp op = scalar_op_of(n->op);
  if (op == ScalarOp::None || n->inputs().empty()) return loop_kind(n->op) == LoopOp::Load ? 1 : 0;
  DType t = ir::type_of(n->arg<ir::Value>(0)).dtype;
  if (is_function({op, t})) return kFunction;
  if (op == ScalarOp::Sqrt) return kDivision;
  if (op == ScalarOp::Div || op == ScalarOp::Rem) return is_floating(t) ? kDivision : kIntegerDivision;
  return 1;
}

// Computed where its loops are, and not where it is needed.
bool is_made_in_loops(const Node* n) {
  auto kind = loop_kind(n->op);
  return kind == LoopOp::Reduce || kind == LoopOp::Scan || makes_array(n);
}

// Nothing is emitted where no other node needs it.
bool is_only_a_value(const Node* n) {
  auto kind = loop_kind(n->op);
  return scalar_op_of(n->op) != ScalarOp::None || kind == LoopOp::Load || kind == LoopOp::Unlikely ||
         kind == LoopOp::Scale;
}

bool is_element(ir::Value v) { return ir::type_of(v).rank() == 0; }

// The branches in which a node is computed are a path in a tree: a node that two branches need is computed in what is around both.
struct Place {
  int parent, depth, cost;
  Branch branch;
};

}  // namespace

std::map<Branch, std::vector<ir::Value>> branches_of(const ir::Graph& graph) {
  constexpr int kUnused = -1, kOutside = 0;
  std::vector<Place> places{{kOutside, 0, 0, {}}};
  std::vector<int> place(graph.nodes().size(), kUnused);
  std::vector<std::pair<int, ir::Value>> edges;
  auto common = [&](int a, int b) {
    if (a == kUnused) return b;
    while (a != b) {
      int& deeper = places[a].depth >= places[b].depth ? a : b;
      deeper = places[deeper].parent;
    }
    return a;
  };
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node* n = graph.nodes()[i];
    if (place[n->id] == kUnused && is_only_a_value(n)) continue;
    if (place[n->id] == kUnused || is_made_in_loops(n)) place[n->id] = kOutside;
    int here = place[n->id];
    for (int p = here, cost = cost_of(n); p != kOutside; p = places[p].parent) places[p].cost += cost;
    bool select = scalar_op_of(n->op) == ScalarOp::Select;
    for (size_t a = 0; a < n->args.size(); ++a) {
      int inside = here;
      if (select && a > 0) {
        inside = static_cast<int>(places.size());
        places.push_back({here, places[here].depth + 1, 0, {n, a}});
      }
      n->args[a].for_each_value([&](ir::Value v) {
        place[v.node->id] = common(place[v.node->id], inside);
        edges.push_back({inside, v});
      });
    }
  }
  std::map<Branch, std::vector<ir::Value>> out;
  for (const Place& p : places)
    if (p.cost >= kLong) out[p.branch];
  std::set<std::pair<int, const Node*>> seen;
  for (auto [inside, v] : edges)
    for (int p = inside; p != place[v.node->id] && is_element(v) && seen.insert({p, v.node}).second;
         p = places[p].parent)
      if (auto it = out.find(places[p].branch); it != out.end()) it->second.push_back(v);
  return out;
}

}  // namespace brasa::compiler
