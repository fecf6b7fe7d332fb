#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

namespace {

// How many times a view gives each element of its operand; sizes that nobody knows count as one.
int64_t times(const Node* view) {
  const ir::Shape &from = type_of(view->arg<Value>(0)).shape, &to = view->types[0].shape;
  auto known = [](Expr e) { return e.is_constant() ? e.constant() : 1; };
  if (prim_of(view) == Prim::Window) return known(view->arg<Expr>(2));
  if (prim_of(view) != Prim::Broadcast) return 1;
  int64_t out = 1;
  std::vector<int64_t> dims = int_args(view, 2);
  for (int64_t d = 0; d < std::ssize(to); ++d) {
    auto at = std::find(dims.begin(), dims.end(), d) - dims.begin();
    if (at == std::ssize(dims) || from[at].is(1)) out *= known(to[d]);
  }
  return out;
}

// Along the last dimension, where vectors lie: along others a vector has all of its lanes or none.
bool has_border(const Node* n) {
  if (prim_of(n) == Prim::Concat) return n->arg<Expr>(1).is(static_cast<int64_t>(n->types[0].rank()) - 1);
  if (prim_of(n) != Prim::Pad) return false;
  for (size_t list : {2, 3})
    if (const auto& border = n->arg<std::vector<Expr>>(list); !border.empty() && !border.back().is(0)) return true;
  return false;
}

}  // namespace

// Windows that overlap much read each element often, and ask each time whether it lies in the border.
void write_borders(Primitives& p, const PassContext& context) {
  constexpr int64_t kOften = 8;
  if (context.machine.gpu) return;
  for (const Node* n : p.graph->nodes()) {
    if (is_view(prim_of(n))) continue;
    n->for_each_input([&](Value v) {
      int64_t reads = 1;
      for (; is_view(prim_of(v)) && !p.in_memory.count(v); v = v.node->arg<Value>(0))
        reads = std::min(reads * std::min(times(v.node), kOften), kOften);
      if (reads >= kOften && has_border(v.node)) in_memory(v, p);
    });
  }
}

}  // namespace brasa::compiler
