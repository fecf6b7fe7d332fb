#include <algorithm>
#include <functional>

#include "compiler/fusion/indexing.h"
#include "compiler/libraries/library.h"
#include "compiler/passes/transform.h"
#include "ir/copy.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

namespace {

using Nodes = std::vector<const Node*>;

// What must come before each node besides its operands, so that a call is computed where its first result is.
std::unordered_map<const Node*, Nodes> further_operands(const LibraryGroups& groups) {
  std::unordered_map<const Node*, Nodes> out;
  for (const auto& [last, group] : groups) {
    const Covered& c = group.covered;
    std::unordered_set<const Node*> inside(c.inside.begin(), c.inside.end());
    inside.insert(last);
    for (const Node* result : c.results) {
      out[last].push_back(result);
      for (const Node* n : inside)
        n->for_each_input([&](Value v) {
          while (!inside.count(v.node) && (is_view(prim_of(v)) || widens(v.node))) v = v.node->arg<Value>(0);
          if (!inside.count(v.node)) out[result].push_back(v.node);
        });
    }
  }
  return out;
}

// Copies the graph in an order in which results of one call come together, where it has another one.
void bring_together(Primitives& p) {
  std::unordered_map<const Node*, Nodes> further = further_operands(p.groups);
  if (std::all_of(further.begin(), further.end(), [](const auto& of) {
        return std::all_of(of.second.begin(), of.second.end(), [&](const Node* n) { return n->id < of.first->id; });
      }))
    return;
  auto graph = std::make_unique<ir::Graph>(p.graph->level());
  graph->name = p.graph->name;
  ir::ValueMap map;
  ir::copy_inputs(*graph, *p.graph, map);
  std::unordered_map<const Node*, const Node*> copies;
  std::function<void(const Node*)> visit = [&](const Node* n) {
    if (n->op == ir::input_op() || copies.count(n)) return;
    n->for_each_input([&](Value v) { with_room([&] { visit(v.node); }); });
    if (auto more = further.find(n); more != further.end())
      for (const Node* m : more->second) with_room([&] { visit(m); });
    copies[n] = ir::copy_node(*graph, *n, map);
  };
  for (const Node* n : live_nodes(*p.graph)) visit(n);
  for (const ir::Output& o : p.graph->outputs()) graph->outputs().push_back({map(o.value), o.into, o.check});

  std::unordered_set<Value> in_memory;
  for (Value v : p.in_memory)
    if (Value copy = map.find(v)) in_memory.insert(copy);
  LibraryGroups groups;
  for (auto& [last, group] : p.groups) {
    for (Nodes* nodes : {&group.covered.inside, &group.covered.results})
      for (const Node*& n : *nodes) n = copies.at(n);
    for (Value& v : group.covered.operands) v = map(v);
    groups.emplace(copies.at(last), std::move(group));
  }
  p.graph = std::move(graph);
  p.in_memory = std::move(in_memory);
  p.groups = std::move(groups);
}

}  // namespace

void group_library_calls(Primitives& p, const PassContext& context) {
  std::vector<Node*> live = live_nodes(*p.graph);
  std::unordered_map<const Node*, int> uses = ir::count_uses(*p.graph);
  std::unordered_set<const Node*> taken;
  // Whether nobody else reads what is computed inside but the results and what others compute again.
  auto closed = [&](const Node* last, const Covered& covered) {
    const Nodes &inside = covered.inside, &results = covered.results, &repeated = covered.repeated;
    auto among = [](const Nodes& nodes, const Node* n) {
      return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
    };
    std::unordered_map<const Node*, int> reads;
    auto note = [&](const Node* n) { n->for_each_input([&](Value v) { ++reads[v.node]; }); };
    note(last);
    for (const Node* n : inside) note(n);
    return std::all_of(inside.begin(), inside.end(), [&](const Node* n) {
      if (taken.count(n)) return false;
      if (among(results, n)) return true;
      return (reads[n] == uses[n] || among(repeated, n)) && !p.in_memory.count({const_cast<Node*>(n), 0});
    });
  };
  for (size_t k = live.size(); k-- > 0;) {
    const Node* n = live[k];
    if (taken.count(n)) continue;
    for (const Implementation* i : context.machine.libraries.of_groups(n->op)) {
      auto covered = i->covers(*p.graph, *n);
      if (!covered || !closed(n, *covered)) continue;
      taken.insert(covered->inside.begin(), covered->inside.end());
      for (Value v : covered->operands)
        if (!ir::is_input(v)) p.in_memory.insert(v);
      p.groups.emplace(n, LibraryGroup{i, std::move(*covered)});
      break;
    }
  }
  bring_together(p);
}

}  // namespace brasa::compiler
