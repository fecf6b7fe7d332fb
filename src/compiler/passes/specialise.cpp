#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Value;

namespace {

// Loops over a small kernel are expanded, and steps of 1 and single groups have forms of their own.
void ask_of_convolution(const ir::Node* n, ir::Facts& facts) {
  constexpr int64_t kSmall = 11;
  const ir::Shape &w = type_of(n->arg<Value>(1)).shape, &result = n->types[0].shape;
  auto ask = [&](Expr e) {
    if (!e.is_constant() && facts.has_hint(e) && facts.hint(e) <= kSmall) facts.equal(e, Expr(facts.hint(e)));
  };
  for (size_t list : {2, 5, 6})  // strides, dilations
    for (Expr e : n->arg<std::vector<Expr>>(list)) ask(e);
  // Where zeros are between elements, the border decides which places of the kernel meet which elements.
  for (size_t d = 0; d + 2 < w.size(); ++d)
    if (!facts.known(n->arg<std::vector<Expr>>(5)[d]).is(1)) ask(n->arg<std::vector<Expr>>(3)[d]);
  facts.equal(n->arg<Expr>(7), Expr(1));
  if (kernel_is_small(w, result, facts))
    for (size_t d = 2; d < w.size(); ++d) ask(w[d]);
}

}  // namespace

void specialise(Primitives& p, const PassContext& context) {
  ir::Facts& facts = context.facts;
  for (const ir::Node* n : p.graph->nodes())
    if (prim_of(n) == Prim::Convolution && !context.machine.gpu) ask_of_convolution(n, facts);
  auto known = [&](ir::Shape shape) {
    for (Expr& e : shape) e = facts.known(e);
    return shape;
  };
  // An operand without elements is not read: its indices are 0, and code would move such a load out of the loops that never run.
  auto unread = [&](Value v) {
    if (!v || !ir::is_input(v) || !is_empty(type_of(v).shape)) return v;
    return ops::prim::full(0, type_of(v).shape, type_of(v).dtype);
  };
  transform(p, facts, nullptr, [&](const ir::Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    for (ir::Arg& a : args) {
      if (auto* e = a.get_if<Expr>())
        a = ir::Arg(facts.known(*e));
      else if (auto* list = a.get_if<std::vector<Expr>>())
        a = ir::Arg(known(*list));
    }
    // No kernel has a loop that never runs.
    if (std::all_of(n->types.begin(), n->types.end(), [&](const ir::Type& t) { return is_empty(known(t.shape)); })) {
      std::vector<Value> out;
      for (const ir::Type& t : n->types) out.push_back(ops::prim::full(0, known(t.shape), t.dtype));
      return out;
    }
    if (prim_of(n) == Prim::Reduce) return {reduced(args[0].get<Value>(), int_args(n, 1), args[2].get<std::string>())};
    for (ir::Arg& a : args) {
      if (auto* v = a.get_if<Value>()) {
        a = ir::Arg(unread(*v));
      } else if (auto* list = a.get_if<std::vector<Value>>()) {
        std::vector<Value> items = *list;
        std::transform(items.begin(), items.end(), items.begin(), unread);
        a = ir::Arg(std::move(items));
      }
    }
    return {};
  });
}

}  // namespace brasa::compiler
