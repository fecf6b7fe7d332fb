#include "transforms/bodies.h"

#include "ops/bodies.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"

namespace brasa::transforms {

using ir::Value;

std::vector<Value> all_inputs(const ir::Graph& body, std::span<const Value> operands) {
  std::vector<Value> in(operands.begin(), operands.end());
  for (size_t i = operands.size(); i < body.inputs().size(); ++i)
    in.push_back(ops::full(0, ops::shape_of(body.inputs()[i].value), DType::Bool));
  return in;
}

Pushed pushed(const ir::Graph& body, std::span<const Value> operands, std::vector<bool> moves,
              std::span<const Value> tangents) {
  moves.resize(body.inputs().size());
  Forward f = jvp(body, ops::Builder::current().facts(), moves);
  std::vector<Value> in = all_inputs(body, operands);
  in.insert(in.end(), tangents.begin(), tangents.end());
  std::vector<Value> made = ops::inlined(*f.graph, in), all;  // by output; absent at checks
  size_t next = 0;
  for (const ir::Output& o : f.graph->outputs()) all.push_back(o.check.empty() ? made[next++] : Value{});
  Pushed out;
  for (size_t i = 0; i < body.outputs().size(); ++i) {
    if (!all[i]) continue;
    Value tangent = f.tangent_of[i] < 0 ? Value{} : all[static_cast<size_t>(f.tangent_of[i])];
    out.results.push_back(all[i]);
    out.tangents.push_back(tangent ? of_shape(tangent, ops::shape_of(all[i])) : tangent);
  }
  return out;
}

}  // namespace brasa::transforms
