#include "ops/branch.h"

#include "ops/positions.h"
#include "support/error.h"

namespace brasa::ops {

std::vector<Value> cond(Value predicate, const std::vector<Value>& operands, const BodyFunction& yes,
                        const BodyFunction& no) {
  std::vector<Type> types;
  for (Value v : operands) types.push_back(type_of(v));
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  bodies.push_back(body_of(types, yes));
  std::vector<Type> expected = result_types(*bodies[0]);
  bodies.push_back(body_of(types, [&](std::span<const Value> in) {
    std::vector<Value> results = no(in);
    BRASA_CHECK(results.size() == expected.size(), "cond: true_fn gives ", expected.size(), " values, and false_fn ",
                results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Type &a = expected[i], &b = type_of(results[i]);
      bool same = a.dtype == b.dtype && a.rank() == b.rank();
      for (size_t d = 0; same && d < a.shape.size(); ++d) same = same_size(a.shape[d], b.shape[d]);
      BRASA_CHECK(same, "cond: result ", i, " of true_fn is ", a, ", and of false_fn ", b);
      results[i] = with_sizes(results[i], a.shape);
    }
    return results;
  }));
  Closed c = closed(std::move(bodies));
  return call_all("prim::cond", {predicate, operands, c.sizes, c.bodies[0], c.bodies[1]});
}

BranchNode::BranchNode(const Args& args)
    : predicate(args[0].get<Value>()),
      operands(args[1].get<std::vector<Value>>()),
      sizes(args[2].get<std::vector<Expr>>()),
      yes(*args[3].get<ir::Body>()),
      no(*args[4].get<ir::Body>()) {}

std::vector<Value> selected(const BranchNode& n) {
  ir::Graph& graph = Builder::current().graph();
  auto side = [&](const ir::Graph& body, Value taken) {
    size_t before = graph.outputs().size();
    std::vector<Value> results = inlined(*outside(body, n.sizes), n.operands);
    for (size_t i = before; i < graph.outputs().size(); ++i)
      if (ir::Output& o = graph.outputs()[i]; !o.check.empty()) o.value = logical_or(o.value, logical_not(taken));
    return results;
  };
  std::vector<Value> out = side(n.yes, n.predicate), no = side(n.no, logical_not(n.predicate));
  for (size_t i = 0; i < out.size(); ++i) {
    const Shape& shape = shape_of(out[i]);
    Value other = shape_of(no[i]) == shape ? no[i] : prim::reshape(no[i], shape);
    out[i] = prim::select(broadcast_to(n.predicate, shape), out[i], other);
  }
  return out;
}

}  // namespace brasa::ops
