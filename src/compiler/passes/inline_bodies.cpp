#include <algorithm>

#include "compiler/libraries/library.h"
#include "compiler/passes/simplify.h"
#include "compiler/passes/transform.h"
#include "ops/branch.h"
#include "ops/loop.h"

namespace brasa::compiler {
namespace {

bool is_branch(const ir::Node* n) { return n->op == &ops::at("prim::cond"); }
// A loop whose steps are counted before it runs.
bool is_counted(const ir::Node* n) {
  return n->op == &ops::at("prim::scan_loop") && ops::LoopNode(*n).steps.is_constant();
}

}  // namespace

void inline_bodies(Primitives& p, const PassContext& context) {
  auto inlines = [&](const ir::Node* n) {
    return ops::kind_of(*n) == ops::Kind::Loop && !context.machine.libraries.find(*n) &&
           (is_branch(n) || is_counted(n));
  };
  auto any = [&] {
    std::vector<ir::Node*> live = ir::live_nodes(*p.graph);
    return std::any_of(live.begin(), live.end(), inlines);
  };
  while (any()) {  // bodies may hold bodies
    transform(p, context.facts, inlines, [](const ir::Node* n, ir::Args& args, Primitives&) {
      return is_branch(n) ? ops::selected(ops::BranchNode(args)) : ops::unrolled(ops::LoopNode(args, n->types.size()));
    });
    simplify(p, context);
  }
}

}  // namespace brasa::compiler
