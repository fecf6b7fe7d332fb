#include "compiler/passes/contraction.h"
#include "compiler/passes/passes.h"

namespace brasa::compiler {

using ir::Expr;

namespace {

// A row of fewer elements is shorter than a vector, whose loop's begin and end would take longer than the row.
constexpr int64_t kShort = 8;
// Fewer elements do not make up for the time that code for one length more takes to compile.
constexpr int64_t kMany = 1 << 15;

void ask_of(const ir::Shape& shape, const PassContext& context) {
  if (shape.size() < 2) return;
  Expr last = context.facts.known(shape.back());
  if (last.is_constant() || at_least(last, kShort, context)) return;
  if (at_least(context.facts.known(ir::product(shape)), kMany, context))
    context.facts.equal(last, context.facts.hint(last));
}

}  // namespace

void ask_for_short_rows(Primitives& p, const PassContext& context) {
  if (context.machine.gpu || !context.size_classes) return;
  for (const ir::Input& in : p.graph->inputs()) ask_of(type_of(in.value).shape, context);
  for (const ir::Output& out : p.graph->outputs()) ask_of(type_of(out.value).shape, context);
}

}  // namespace brasa::compiler
