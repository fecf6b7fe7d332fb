#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"

// An operand whose neighbours along a kernel's last dimension lie apart, and that is read there again and again, as the rows of a matrix are
// by the distances between all of them: a copy in the order of reading costs one such pass, and every other one reads whole vectors.
namespace brasa::compiler {

namespace {

constexpr int64_t kOften = 8;        // reads of each element
constexpr int64_t kLarge = 1 << 14;  // elements of a kernel that is worth one more

// What the operand's first broadcast from memory repeats; nothing where that is not memory seen through views.
Value repeated(Value operand, const Primitives& p) {
  Value below;
  for (Value v = operand;; v = v.node->arg<Value>(0)) {
    if (prim_of(v) == Prim::Input || p.in_memory.count(v)) return below;
    if (!is_view(prim_of(v))) return {};
    if (prim_of(v) == Prim::Broadcast) below = v.node->arg<Value>(0);
  }
}

// Along the operand's last dimension it is read in steps, of which the repeated value's own order has none.
bool in_steps(Value operand, Value repeats, const Primitives& p) {
  Index at = probe(type_of(operand).shape);
  if (at.empty()) return false;
  Expr last = at.back();
  auto step = [&](Expr place) {
    std::optional<Expr> s = coefficient(place, last);
    return s && !s->is(0) ? s : std::nullopt;
  };
  std::optional<Expr> there, in_memory;
  for (Value v = operand;; v = v.node->arg<Value>(0)) {
    if (v == repeats) there = step(linearise(at, type_of(v).shape));
    if (!is_view(prim_of(v)) || p.in_memory.count(v)) {
      in_memory = step(place_in(*p.graph, v, at));
      break;
    }
    at = view_index(v.node, at);
  }
  return there && there->is(1) && in_memory && !in_memory->is(1);
}

}  // namespace

void gather_strided_reads(Primitives& p, const PassContext& context) {
  if (context.machine.gpu) return;
  for (const Node* n : p.graph->nodes()) {
    if (prim_of(n) != Prim::Pointwise) continue;
    n->for_each_input([&](Value v) {
      Value repeats = is_view(prim_of(v)) ? repeated(v, p) : Value{};
      if (!repeats || !is_view(prim_of(repeats)) || !in_steps(v, repeats, p)) return;
      Expr all = type_of(v).numel(), once = type_of(repeats).numel();
      if (at_least(all, kLarge, context) && at_least(all - once * kOften, 0, context)) in_memory(repeats, p);
    });
  }
}

}  // namespace brasa::compiler
