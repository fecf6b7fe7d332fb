#include "ops/decompose.h"

#include <utility>

#include "ir/copy.h"
#include "ops/builder.h"
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

std::unique_ptr<ir::Graph> decompose(const ir::Graph& graph, ir::Facts& facts,
                                     const std::function<bool(const Row&)>& keep, Whole whole) {
  // What is expanded is not asked for by compositions either.
  const TargetScope* target = whole == Whole::AsTarget ? current_target : nullptr;
  TargetScope scope([&, target](const Row& row, const Args& args) {
    return target && (!keep || keep(row)) && target->takes_(row, args);
  });
  auto out = std::make_unique<ir::Graph>(keep ? graph.level() : ir::Level::Primitives);
  out->name = graph.name;
  Builder builder(*out, facts, keep);
  ir::ValueMap map;
  ir::copy_inputs(*out, graph, map);
  for (const Node* n : live_nodes(graph)) {
    if (n->op == ir::input_op()) continue;
    std::vector<Value> results;
    const Row& row = row_of(*n);
    ir::Args args = ir::mapped(n->args, map);
    bool expands = row.is_primitive() && row.compose && !TargetScope::takes(row, args);
    try {
      results = expands ? row.compose(args) : builder.call(row, std::move(args));
    } catch (const IndexError& e) {
      fail_index(str(e.what(), " (in ", n->op->name(), ")"));
    } catch (const Error& e) {
      fail(str(e.what(), " (in ", n->op->name(), ")"));
    }
    BRASA_ASSERT(results.size() == n->types.size(), n->op->name(), " changed its number of results");
    for (uint32_t i = 0; i < results.size(); ++i)
      if (results[i]) map.set({const_cast<Node*>(n), i}, results[i]);
  }
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
