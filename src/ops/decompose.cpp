#include "ops/decompose.h"

#include <algorithm>
#include <utility>

#include "ir/copy.h"
#include "ops/builder.h"
#include "ops/primitives.h"
#include "support/error.h"

namespace brasa::ops {
namespace {
thread_local const TargetScope* current_target = nullptr;
}

TargetScope::TargetScope(Takes takes) : takes_(std::move(takes)), outer_(current_target) { current_target = this; }
TargetScope::~TargetScope() { current_target = outer_; }
bool TargetScope::takes(const Row& row, const Args& args) {
  return current_target && current_target->takes_(row, args);
}

namespace {

// The composition of a primitive that has one, in the shapes that the primitive states: of a square matrix's two sizes each may name another.
std::vector<Value> composed(const Row& row, const Args& args) {
  std::vector<Value> results = row.compose(args);
  std::vector<Type> stated = row.type(args);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] && ir::type_of(results[i]).shape != stated[i].shape)
      results[i] = prim::reshape(results[i], stated[i].shape);
  return results;
}

}  // namespace

std::vector<Value> taken_or_composed(const char* name, Args args) {
  const Row& row = at(name);
  return TargetScope::takes(row, args) ? Builder::current().call(row, std::move(args)) : composed(row, args);
}

namespace {

// The nodes that `values` are made of without those that `map` has, in topological order.
std::vector<Node*> missing_nodes(const ir::Graph& graph, const std::vector<Value>& values, const ir::ValueMap& map) {
  std::vector<bool> reached(graph.nodes().size());
  for (Value v : values) reached[v.node->id] = true;
  std::vector<Node*> out;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    Node* n = graph.nodes()[i];
    bool known = false;
    for (uint32_t r = 0; r < n->types.size(); ++r) known = known || map.find(n->out(r));
    if (!reached[i] || known) continue;
    n->for_each_input([&](Value v) { reached[v.node->id] = true; });
    out.push_back(n);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

void decompose(const ir::Graph& graph, const std::vector<Value>& values, ir::Graph& out, ir::ValueMap& map,
               ir::Facts& facts, const std::function<bool(const Row&)>& keep, Whole whole) {
  // What is expanded is not asked for by compositions either.
  const TargetScope* target = whole == Whole::AsTarget ? current_target : nullptr;
  TargetScope scope([&, target](const Row& row, const Args& args) {
    return target && (!keep || keep(row)) && target->takes_(row, args);
  });
  Builder builder(out, facts, keep);
  for (Node* n : missing_nodes(graph, values, map)) {
    BRASA_ASSERT(n->op != ir::input_op(), "a graph is decomposed without one of its inputs");
    std::vector<Value> results;
    const Row& row = row_of(*n);
    ir::Args args = ir::mapped(n->args, map);
    bool expands = row.is_primitive() && row.compose && !TargetScope::takes(row, args);
    try {
      results = expands ? composed(row, args) : builder.call(row, std::move(args));
    } catch (const IndexError& e) {
      fail_index(str(e.what(), " (in ", n->op->name(), ")"));
    } catch (const Error& e) {
      fail(str(e.what(), " (in ", n->op->name(), ")"));
    }
    BRASA_ASSERT(results.size() == n->types.size(), n->op->name(), " changed its number of results");
    for (uint32_t i = 0; i < results.size(); ++i)
      if (results[i]) map.set(n->out(i), results[i]);
  }
}

std::unique_ptr<ir::Graph> decompose(const ir::Graph& graph, ir::Facts& facts,
                                     const std::function<bool(const Row&)>& keep, Whole whole) {
  auto out = std::make_unique<ir::Graph>(keep ? graph.level() : ir::Level::Primitives);
  out->name = graph.name;
  ir::ValueMap map;
  ir::copy_inputs(*out, graph, map);
  std::vector<Value> values;
  for (const ir::Output& o : graph.outputs()) values.push_back(o.value);
  decompose(graph, values, *out, map, facts, keep, whole);
  // The graph's own outputs keep their positions; checks that compositions added follow.
  std::vector<ir::Output> checks = std::exchange(out->outputs(), {});
  for (const ir::Output& o : graph.outputs()) {
    if (o.check.empty())
      out->add_output(map(o.value), o.into);
    else
      out->outputs().push_back({map(o.value), -1, o.check});
  }
  for (ir::Output& o : checks) out->add_check(o.value, std::move(o.check));
  return out;
}

}  // namespace brasa::ops
