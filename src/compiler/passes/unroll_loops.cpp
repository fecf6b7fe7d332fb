#include "compiler/libraries/library.h"
#include "compiler/passes/transform.h"
#include "ops/loop.h"

namespace brasa::compiler {

void unroll_loops(Primitives& p, const PassContext& context) {
  auto unknown = [&](const ir::Node* n) {
    return n->op != ir::input_op() && ops::row_of(*n).kind == ops::Kind::Loop &&
           ops::LoopNode(*n).steps.is_constant() && !context.machine.libraries.find(*n);
  };
  transform(p, context.facts, unknown, [](const ir::Node* n, ir::Args& args, Primitives&) {
    return ops::unrolled(ops::LoopNode(args, n->types.size()));
  });
}

}  // namespace brasa::compiler
