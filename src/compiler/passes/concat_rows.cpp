#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {
namespace {

using ir::Value;

// Behind the dimension of a concatenation there are others, and all that it puts together lies in memory as rows of these do.
bool joins_rows(const ir::Graph& g, const ir::Node* n) {
  if (prim_of(n) != Prim::Concat || n->arg<Expr>(1).constant() + 1 == std::ssize(n->types[0].shape)) return false;
  auto lies_in_rows = [&](Value v) {
    int i = g.input_index(v);
    return i >= 0 && g.inputs()[i].strides.empty() && !g.inputs()[i].by_value;
  };
  const auto& parts = n->arg<std::vector<Value>>(0);
  return std::all_of(parts.begin(), parts.end(), lies_in_rows) &&
         std::any_of(g.outputs().begin(), g.outputs().end(), [&](const ir::Output& o) { return o.value.node == n; });
}

}  // namespace

void join_concatenated_rows(Primitives& p, const PassContext& context) {
  if (context.machine.gpu) return;
  const ir::Graph& g = *p.graph;
  transform(
      p, context.facts, [&](const ir::Node* n) { return joins_rows(g, n); },
      [](const ir::Node* n, ir::Args& args, Primitives&) {
        auto dim = static_cast<size_t>(args[1].get<Expr>().constant());
        auto one_row = [&](const ir::Shape& shape) {
          ir::Shape out(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(dim));
          out.push_back(ir::product(ir::Shape(shape.begin() + static_cast<std::ptrdiff_t>(dim), shape.end())));
          return out;
        };
        std::vector<Value> rows;
        for (Value v : args[0].get<std::vector<Value>>())
          rows.push_back(ops::prim::reshape(v, one_row(type_of(v).shape)));
        Value joined = ops::prim::concat(rows, static_cast<int64_t>(dim));
        return std::vector{ops::prim::reshape(joined, n->types[0].shape)};
      });
}

}  // namespace brasa::compiler
