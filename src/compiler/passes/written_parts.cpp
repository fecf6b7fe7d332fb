#include <algorithm>

#include "compiler/passes/passes.h"
#include "ir/rewrite.h"
#include "ops/primitives/interp.h"
#include "support/lazy.h"

// Part of a tensor that gets what it has already in most places, as a cache of keys and values does at a token: the choice is made for the
// whole tensor, element by element, so that a kernel can make it where the tensor is and writes what changes alone.
namespace brasa::compiler {
namespace {

using ir::Arg;
using ir::Match;
using ir::Rule;
using Dims = std::vector<Expr>;

bool all(const Dims& v, int64_t n) {
  return std::all_of(v.begin(), v.end(), [n](Expr e) { return e.is(n); });
}
bool is_truth(Match& m, std::string_view name, bool value) {
  const ir::Node* n = m.get<Value>(name).node;
  return n->op->name() == "prim::full" && n->args[0].is<bool>() && n->args[0].get<bool>() == value;
}
// `o` for the part and `z` for the rest say where the part is, of which the operand `x` has the same elements.
bool is_part(Match& m) {
  return is_truth(m, "o", true) && is_truth(m, "z", false) && all(m.get<Dims>("g"), 0) && all(m.get<Dims>("t"), 1) &&
         m.type("x").shape == m.result().shape;
}

constexpr Rule kRules[] = {
    {"select(pad(o, z, l, h, g), pad(select(c, a, slice(x, l, n, t)), v, l, h, g), y) -> "
     "select(pad(o, z, l, h, g), select(pad(c, z, l, h, g), pad(a, v, l, h, g), x), y)",
     is_part},
    {"select(pad(o, z, l, h, g), pad(reshape(select(c, a, reshape(slice(x, l, n, t), p)), n), v, l, h, g), y) -> "
     "select(pad(o, z, l, h, g), select(pad(reshape(c, n), z, l, h, g), pad(reshape(a, n), v, l, h, g), x), y)",
     is_part},
};

}  // namespace

void choose_written_parts(Primitives& p, const PassContext& context) {
  if (!context.machine.gpu) return;
  static constinit Lazy<ir::RuleSet> rules(
      [] { return ir::RuleSet(kRules, [](std::string_view name) { return ops::find(str("prim::", name)); }); });
  p.graph = rewrite(*p.graph, *rules);
}

}  // namespace brasa::compiler
