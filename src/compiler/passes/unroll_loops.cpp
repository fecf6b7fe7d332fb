#include <algorithm>

#include "compiler/libraries/library.h"
#include "compiler/passes/simplify.h"
#include "compiler/passes/transform.h"
#include "ops/loop.h"

namespace brasa::compiler {

void unroll_loops(Primitives& p, const PassContext& context) {
  auto unrolls = [&](const ir::Node* n) {
    return ops::kind_of(*n) == ops::Kind::Loop && ops::LoopNode(*n).steps.is_constant() &&
           !context.machine.libraries.find(*n);
  };
  std::vector<ir::Node*> live = ir::live_nodes(*p.graph);
  if (std::none_of(live.begin(), live.end(), unrolls)) return;
  transform(p, context.facts, unrolls, [](const ir::Node* n, ir::Args& args, Primitives&) {
    return ops::unrolled(ops::LoopNode(args, n->types.size()));
  });
  simplify(p, context);
}

}  // namespace brasa::compiler
