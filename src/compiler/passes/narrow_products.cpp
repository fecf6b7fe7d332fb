#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

namespace prim = ops::prim;

namespace {

// The product's views with a narrow product, which is summed up in float32 all the same and rounded once.
Value narrowed(Value v, DType narrow) {
  if (is_view(prim_of(v))) {
    Value x = narrowed(v.node->arg<Value>(0), narrow);
    return x ? again(v.node, x) : Value{};
  }
  Value a = before_widening(v.node->arg<Value>(0), narrow), b = before_widening(v.node->arg<Value>(1), narrow);
  if (!a || !b) return {};
  ir::Args args = v.node->args;
  args[0] = a;
  args[1] = b;
  return ops::Builder::current().call(ops::row_of(*v.node), std::move(args))[0];
}

}  // namespace

void narrow_products(Primitives& p, const PassContext& context) {
  if (!context.machine.gpu) return;
  std::unordered_map<const Node*, int> uses = ir::count_uses(*p.graph);
  auto of_product = [&](const Node* n) {
    if (!converts(n) || !is_reduced_floating(n->types[0].dtype)) return false;
    Value v = n->arg<Value>(0);
    if (type_of(v).dtype != DType::Float32) return false;
    for (; is_view(prim_of(v)); v = v.node->arg<Value>(0))
      if (uses[v.node] > 1) return false;
    return prim_of(v) == Prim::Dot && uses[v.node] == 1;
  };
  transform(p, context.facts, of_product, [](const Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    Value v = narrowed(args[0].get<Value>(), n->types[0].dtype);
    return v ? std::vector{v} : std::vector<Value>{};
  });
}

}  // namespace brasa::compiler
