#include "tensor/traced.h"

#include <algorithm>

#include "ir/copy.h"
#include "ops/bodies.h"
#include "ops/builder.h"
#include "transforms/tangent.h"

namespace brasa::eager {
namespace {

bool is_loop(const ir::Node& n) {
  static const ops::Row& loop = ops::at("prim::scan_loop");
  return n.op == &loop;
}

// A composition with a derivative of its own reads its results, which it may have for that alone.
bool runs_loops(const ir::Node& n) {
  if (n.op == ir::input_op()) return false;
  const ops::Row& row = ops::row_of(n);
  if (row.is_primitive()) return is_loop(n);
  ir::Graph side(ir::Level::Primitives);
  ir::ValueMap map;
  n.for_each_input([&](ir::Value v) { map.set(v, side.add_input(ir::type_of(v))); });
  ops::Builder builder(side, ops::Builder::current().facts());
  builder.call(row, ir::mapped(n.args, map));
  return has_loops(side);
}

}  // namespace

bool has_loops(const ir::Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const ir::Node* n) { return is_loop(*n); });
}

bool may_be_traced(const ops::Row& row) {
  const ir::Schema& schema = row.schema;
  return row.compose && !row.is_primitive() && !differentiated_whole(row) &&
         std::none_of(schema.returns.begin(), schema.returns.end(), [](const ir::Return& r) { return r.list; }) &&
         std::none_of(schema.params.begin(), schema.params.end(), [](const ir::Param& p) { return p.mutated; });
}

std::vector<ir::Value> Traced::build(std::span<const ir::Value> inputs) const {
  ir::Graph side;
  std::vector<bool> present;
  {
    ops::Builder builder(side, ops::Builder::current().facts(), differentiated_whole);
    std::vector<ir::Value> values;
    for (ir::Value v : inputs) values.push_back(side.add_input(ir::type_of(v)));
    std::vector<ir::Value> results = functional_.build(values);
    std::vector<ir::Output> checks = std::exchange(side.outputs(), {});
    for (ir::Value v : results) {
      present.push_back(static_cast<bool>(v));
      if (v) side.add_output(v);
    }
    for (ir::Node* n : ir::live_nodes(side)) {
      if (!runs_loops(*n)) continue;
      for (uint32_t r = 0; r < n->types.size(); ++r)
        if (transforms::has_tangent(n->out(r))) side.add_output(n->out(r));
    }
    for (ir::Output& o : checks) side.add_check(o.value, std::move(o.check));
  }
  std::vector<ir::Value> made = ops::inlined(side, inputs), out;
  size_t next = 0;
  for (bool p : present) out.push_back(p ? made[next++] : ir::Value{});
  out.insert(out.end(), made.begin() + static_cast<std::ptrdiff_t>(next), made.end());
  return out;
}

}  // namespace brasa::eager
