#include "interpreted.h"

#include "compare.h"
#include "ir/copy.h"
#include "ops/builder.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "support/error.h"
#include "transforms/vjp.h"

namespace brasa::test {

using ir::Arg;
using ir::Expr;
using ops::Array;

namespace {

ir::Args arguments(const Call& call, const std::vector<ir::Value>& inputs) {
  ir::Args args;
  for (const CallArg& a : call.args) {
    if (auto* literal = std::get_if<Arg>(&a)) {
      args.push_back(*literal);
    } else if (auto* one = std::get_if<int>(&a)) {
      args.push_back(*one < 0 ? Arg() : Arg(inputs[*one]));
    } else {
      std::vector<ir::Value> list;
      for (int i : std::get<std::vector<int>>(a)) list.push_back(i < 0 ? ir::Value{} : inputs[i]);
      args.push_back(Arg(std::move(list)));
    }
  }
  return args;
}

}  // namespace

Recorded record(const Call& call, bool symbolic) {
  Recorded out;
  ir::Graph& graph = *out.graph;
  std::vector<ir::Value> inputs;
  for (const CallTensor& t : call.tensors) {
    ir::Type type{t.array.dtype, {}, t.weak};
    for (int64_t s : t.array.shape) {
      type.shape.push_back(symbolic ? Expr::size(static_cast<uint32_t>(out.hints.size())) : Expr(s));
      if (symbolic) out.hints.push_back(s);
    }
    inputs.push_back(graph.add_input(std::move(type)));
    out.arrays.push_back(t.array);
  }
  out.facts = ir::Facts(out.hints);
  ir::Args args = arguments(call, inputs);
  if (call.row->random) {
    args.back() = Arg(graph.add_input({DType::Int64, {Expr(2)}, false}, "key"));
    Array key = ops::make_array(DType::Int64, {2});
    ops::set_int(key, 0, 2147483647);
    out.arrays.push_back(std::move(key));
  }
  ops::Builder builder(graph, out.facts);
  for (ir::Value v : builder.record(*call.row, std::move(args))) graph.add_output(v);
  return out;
}

std::vector<Array> evaluate(const ir::Graph& graph, const Recorded& r, const std::vector<Array>& arrays) {
  if (r.hints.empty()) return ops::evaluate(graph, arrays);
  auto sized = [&](Expr e) { return Expr(ir::evaluate(e, [&](const ir::ExprNode& n) { return r.hints.at(n.id); })); };
  return ops::evaluate(*ir::with_sizes(graph, sized), arrays);
}

Outcome run_interpreter(const Call& call, bool symbolic) {
  Recorded recorded = record(call, symbolic);
  ir::Graph& graph = *recorded.graph;
  std::vector<Array>& arrays = recorded.arrays;
  auto run = [&](const ir::Graph& g) { return evaluate(g, recorded, arrays); };
  Outcome out;
  size_t count = graph.outputs().size();
  if (call.cotangents.empty()) {
    out.outputs = run(graph);
    out.outputs.resize(count);
    return out;
  }
  BRASA_CHECK(call.cotangents.size() <= count, call.row->name(), " gives ", count, " results, expected ",
              call.cotangents.size());
  std::vector<bool> needs = call.needs_gradient, has_cotangent;
  needs.resize(graph.inputs().size());
  for (const auto& ct : call.cotangents) {
    has_cotangent.push_back(ct.has_value());
    if (ct) arrays.push_back(*ct);
  }
  has_cotangent.resize(count);
  transforms::JointGraph joint = transforms::joint(graph, recorded.facts, needs, has_cotangent);
  std::vector<Array> all = run(*joint.graph);
  out.outputs.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  for (size_t i = 0; i < call.tensors.size(); ++i)
    out.gradients.push_back(joint.gradient_of[i] < 0 ? std::nullopt : std::optional(all[joint.gradient_of[i]]));
  return out;
}

std::string describe(const Array& a) { return verify::describe({a.dtype, a.shape, a.data, {}}); }

}  // namespace brasa::test
