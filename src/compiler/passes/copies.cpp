#include <algorithm>

#include "compiler/libraries/library.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

void place_library_operands(Primitives& p, const PassContext& context) {
  transform(
      p, context.facts, [&](const ir::Node* n) { return context.machine.libraries.find(*n) != nullptr; },
      [&](const ir::Node* n, ir::Args& args, Primitives& out) {
        const Implementation* how = context.machine.libraries.find(*n);
        if (how->place) {
          how->place(args, *out.graph, out.in_memory);
          return ops::Builder::current().call(ops::row_of(*n), args);
        }
        auto placed = [&](Value v) {
          int i = out.graph->input_index(v);
          if (i < 0) return v;
          const ir::Input& in = out.graph->inputs()[i];
          return in.strides.empty() && !(how->prepare && in.by_value) ? v : copied(v, out);
        };
        for (ir::Arg& a : args) {
          if (a.is<Value>()) {
            a = placed(a.get<Value>());
          } else if (auto* list = a.get_if<std::vector<Value>>()) {
            std::vector<Value> all = *list;
            for (Value& v : all) v = placed(v);
            a = all;
          }
        }
        return ops::Builder::current().call(ops::row_of(*n), args);
      });
}

void copy_inputs(Primitives& p, const PassContext& context) {
  const ir::Graph& g = *p.graph;
  auto moves = [&](const ir::Output& o) {
    return o.into >= 0 && ir::is_input(o.value) && !(o.value == g.inputs()[o.into].value);
  };
  if (std::none_of(g.outputs().begin(), g.outputs().end(), moves)) return;
  ops::Builder builder(*p.graph, context.facts);
  for (ir::Output& o : p.graph->outputs())
    if (moves(o)) o.value = copied(o.value, p);
}

}  // namespace brasa::compiler
