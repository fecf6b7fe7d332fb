#include "tensor/traced.h"

#include <algorithm>

#include "ops/bodies.h"
#include "ops/builder.h"
#include "ops/decompose.h"
#include "support/lazy.h"
#include "transforms/tangent.h"

namespace brasa::eager {
namespace {

// Loops of compositions that have derivatives of their own are no part of these: such a row gives what its derivative reads.
bool is_loop(const ir::Node& n) {
  static constinit Lazy<const ops::Row&> loop([]() -> auto& { return ops::at("prim::scan_loop"); });
  return n.op == &*loop;
}

// The results of a node that derivatives read. The numbers that a composed row with a derivative of its own gives beside its first result are made
// for that one: a norm's statistics, which are few beside what is read for them, or a system's factors, with whatever belongs to these.
std::vector<ir::Value> kept_of(ir::Node& n) {
  std::vector<ir::Value> out;
  const ops::Row* row = n.op == ir::input_op() ? nullptr : &ops::row_of(n);
  bool loop = is_loop(n), own = row && row->vjp, all = own && row->costly, beside = false;
  for (uint32_t r = 1; r < n.types.size() && own && !row->is_primitive(); ++r)
    beside = beside || transforms::has_tangent(n.out(r));
  for (uint32_t r = 0; r < n.types.size(); ++r)
    if (all || (beside && r > 0) || (loop && transforms::has_tangent(n.out(r)))) out.push_back(n.out(r));
  return out;
}

}  // namespace

bool has_kept(const ir::Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](ir::Node* n) { return !kept_of(*n).empty(); });
}

bool may_be_traced(const ops::Row& row) { return row.compose && !row.is_primitive() && !differentiated_whole(row); }

std::vector<ir::Value> Traced::build(std::span<const ir::Value> inputs) const {
  ir::Graph side;
  std::vector<bool> present;
  {
    // As many values are kept for every target.
    ops::TargetScope no_target([](const ops::Row&, const ir::Args&) { return false; });
    ops::Builder builder(side, ops::Builder::current().facts(), differentiated_whole);
    std::vector<ir::Value> values;
    for (ir::Value v : inputs) values.push_back(side.add_input(ir::type_of(v)));
    std::vector<ir::Value> results = functional_.build(values);
    std::vector<ir::Output> checks = std::exchange(side.outputs(), {});
    for (ir::Value v : results) {
      present.push_back(static_cast<bool>(v));
      if (v) side.add_output(v);
    }
    auto is_result = [&](ir::Value v) {
      return std::any_of(side.outputs().begin(), side.outputs().end(),
                         [&](const ir::Output& o) { return o.value == v; });
    };
    for (ir::Node* n : ir::live_nodes(side))
      for (ir::Value v : kept_of(*n))
        if (!is_result(v)) side.add_output(v);
    for (ir::Output& o : checks) side.add_check(o.value, std::move(o.check));
  }
  own_results_.store(present.size(), std::memory_order_relaxed);
  std::vector<ir::Value> made = ops::inlined(side, inputs), out;
  size_t next = 0;
  for (bool p : present) out.push_back(p ? made[next++] : ir::Value{});
  out.insert(out.end(), made.begin() + static_cast<std::ptrdiff_t>(next), made.end());
  return out;
}

}  // namespace brasa::eager
