#include "transforms/vmap.h"

#include <algorithm>

#include "ops/algebra.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "transforms/control_flow.h"
#include "transforms/tangent.h"

namespace brasa::transforms {
namespace {

using ir::Expr;
using ir::Node;
using ir::Shape;
using ir::Value;

Shape behind(Expr count, const Shape& shape) {
  Shape out = {count};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

Value spread(Value v, Expr count) { return ops::broadcast_to(v, behind(count, ops::shape_of(v))); }

std::vector<Value> mapped_results(const Node& n, const std::vector<Value>& operands, const std::vector<bool>& mapped,
                                  Expr count) {
  const ops::Row& row = ops::row_of(n);
  if (row.kind == ops::Kind::Loop) return control_flow(row).batch(n, operands, mapped, count);
  if (row.batch) return row.batch(n, operands, mapped, count);
  BRASA_CHECK(row.is_pointwise() || detaches(row), row.name(), " cannot be done for many calls at once");
  ir::Args args;
  size_t i = 0;
  for (const ir::Arg& a : n.args) {
    if (!a.is<Value>()) {
      args.push_back(a);
      continue;
    }
    args.push_back(ir::Arg(mapped[i] ? operands[i] : spread(operands[i], count)));
    ++i;
  }
  return ops::Builder::current().call(row, std::move(args));
}

}  // namespace

std::unique_ptr<ir::Graph> vmap(const ir::Graph& graph, ir::Facts& facts, const std::vector<bool>& marked, Expr count) {
  std::unique_ptr<ir::Graph> one = ops::decompose(graph, facts, detaches);
  auto out = std::make_unique<ir::Graph>(one->level());
  out->name = graph.name;
  ops::Builder builder(*out, facts, detaches);
  ir::ValueMap map;
  std::vector<bool> is_mapped(one->nodes().size());  // by the id of the node in `one`
  for (size_t i = 0; i < one->inputs().size(); ++i) {
    const ir::Input& in = one->inputs()[i];
    ir::Type t = ir::type_of(in.value);
    std::vector<Expr> strides = in.strides;
    if (marked[i]) {
      // Calls lie one behind the other; another layout is a copy of the caller's.
      BRASA_CHECK(strides.empty(), "vmap: input ", i, " is not contiguous");
      t.shape = behind(count, t.shape);
      t.weak = false;
    }
    is_mapped[in.value.node->id] = marked[i];
    map.set(in.value, out->add_input(std::move(t), in.name, std::move(strides)));
  }
  for (Node* n : live_nodes(*one)) {
    if (n->op == ir::input_op()) continue;
    std::vector<Value> operands;
    std::vector<bool> mapped;
    n->for_each_input([&](Value v) {
      operands.push_back(map(v));
      mapped.push_back(is_mapped[v.node->id]);
    });
    std::vector<Value> results;
    if (std::find(mapped.begin(), mapped.end(), true) == mapped.end()) {
      ir::Args args;
      for (const ir::Arg& a : n->args) args.push_back(map(a));
      results = builder.call(ops::row_of(*n), std::move(args));
    } else {
      is_mapped[n->id] = true;
      results = mapped_results(*n, operands, mapped, count);
    }
    for (uint32_t r = 0; r < results.size(); ++r) map.set(n->out(r), results[r]);
  }
  for (const ir::Output& o : one->outputs()) {
    BRASA_CHECK(o.into < 0, "vmap: input ", o.into, " would be written by many calls");
    bool mapped = is_mapped[o.value.node->id];
    Value v = map(o.value);
    if (o.check.empty())
      out->add_output(mapped ? v : spread(v, count));
    else
      out->add_check(mapped ? ops::prim::reduce(v, {0}, "and") : v, o.check);
  }
  return out;
}

}  // namespace brasa::transforms
