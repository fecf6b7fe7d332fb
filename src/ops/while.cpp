#include "ops/while.h"

#include "ops/positions.h"
#include "support/error.h"

namespace brasa::ops {

std::vector<Value> while_loop(const std::vector<Value>& carried, const std::vector<Value>& others,
                              const BodyFunction& go_on, const BodyFunction& step) {
  std::vector<Value> operands = carried;
  operands.insert(operands.end(), others.begin(), others.end());
  std::vector<Type> types;
  for (Value v : operands)
    types.push_back({dtype_of(v), shape_of(v), types.size() >= carried.size() && type_of(v).weak});
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  bodies.push_back(body_of(types, go_on));
  bodies.push_back(body_of(types, [&](std::span<const Value> in) {
    std::vector<Value> results = step(in);
    BRASA_CHECK(results.size() == carried.size(), "while_loop: a step gives ", results.size(), " of ", carried.size(),
                " states");
    for (size_t i = 0; i < results.size(); ++i) {
      BRASA_CHECK(dtype_of(results[i]) == dtype_of(in[i]), "while_loop: a state is ", type_of(in[i]),
                  " before a step, and ", type_of(results[i]), " after it");
      results[i] = with_sizes(results[i], shape_of(in[i]));
    }
    return results;
  }));
  Closed c = closed(std::move(bodies));
  return call_all("prim::while_loop",
                  {operands, c.sizes, Expr(static_cast<int64_t>(carried.size())), c.bodies[0], c.bodies[1]});
}

WhileNode::WhileNode(const Args& args)
    : operands(args[0].get<std::vector<Value>>()),
      sizes(args[1].get<std::vector<Expr>>()),
      carried(static_cast<size_t>(args[2].get<Expr>().constant())),
      go_on(*args[3].get<ir::Body>()),
      step(*args[4].get<ir::Body>()) {}

}  // namespace brasa::ops
