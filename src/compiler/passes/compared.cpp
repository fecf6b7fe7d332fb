#include <unordered_set>

#include "compiler/fusion/indexing.h"
#include "compiler/loops/ops.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {
namespace {

bool asks_equality(const Node* n) {
  ops::ScalarOp op = scalar_op_of(n->op);
  return op == ops::ScalarOp::Eq || op == ops::ScalarOp::Ne;
}

bool is_made_of(Value v, Value part) {
  std::unordered_set<const Node*> seen{v.node};
  std::vector<const Node*> open{v.node};
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    if (n == part.node) return true;
    n->for_each_input([&](Value i) {
      if (i.node->id >= part.node->id && seen.insert(i.node).second) open.push_back(i.node);
    });
  }
  return false;
}

}  // namespace

void keep_compared(Primitives& p, const PassContext& context) {
  transform(p, context.facts, asks_equality, [](const Node*, ir::Args& args, Primitives& out) -> std::vector<Value> {
    Value a = below_views(args[0].get<Value>()), b = below_views(args[1].get<Value>());
    if (a == b || !is_floating(type_of(a).dtype)) return {};
    for (auto [part, whole] : {std::pair(a, b), std::pair(b, a)})
      if (prim_of(part) == Prim::Pointwise && is_made_of(whole, part)) in_memory(part, out);
    return {};
  });
}

}  // namespace brasa::compiler
