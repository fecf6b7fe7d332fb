#include "compiler/fusion/indexing.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/passes.h"

namespace brasa::compiler {

using ir::Expr;

namespace {

// A row of fewer elements is shorter than a vector, whose loop's begin and end would take longer than the row.
constexpr int64_t kShort = 8;
// Fewer elements do not make up for the time that code for one length more takes to compile.
constexpr int64_t kMany = 1 << 14;

// Whether the rows' length is, or becomes, known.
bool ask_of(const ir::Shape& shape, const PassContext& context) {
  if (shape.size() < 2) return false;
  ir::Facts& facts = context.facts;
  Expr last = facts.known(shape.back());
  if (last.is_constant() || at_least(last, kShort, context)) return false;
  if (!at_least(facts.known(ir::product(shape)), kMany, context)) return false;
  for (Expr s : *last->symbols) facts.equal(s, facts.hint(s));
  return true;
}

// So few short rows one behind the other in an operand that they are no vector's either. Of a result, whose sizes may be a call's numbers, it
// would be code for each pair of numbers.
void ask_of_few(const ir::Shape& shape, const PassContext& context) {
  Expr rows = context.facts.known(shape[shape.size() - 2]);
  if (rows.is_constant() || at_least(rows, kShort, context)) return;
  for (Expr s : *rows->symbols) context.facts.equal(s, context.facts.hint(s));
}

// How far apart rows lie that follow each other, or nearly: a vector takes neighbouring ones.
void ask_of_steps(const ir::Input& in, const PassContext& context) {
  const ir::Shape& shape = type_of(in.value).shape;
  if (shape.size() < 2 || in.strides.empty() || !context.facts.known(shape.back()).is_constant()) return;
  for (Expr s : in.strides)
    if (ir::is_symbol(s) && context.facts.hint(s) < 2 * kShort) context.facts.equal(s, context.facts.hint(s));
}

}  // namespace

void ask_for_short_rows(Primitives& p, const PassContext& context) {
  if (context.machine.gpu || !context.size_classes) return;
  for (const ir::Input& in : p.graph->inputs())
    if (ask_of(type_of(in.value).shape, context)) ask_of_few(type_of(in.value).shape, context);
  for (const ir::Output& out : p.graph->outputs()) ask_of(type_of(out.value).shape, context);
  // Sums along rows of what is in no memory, such as the differences of pairs of short rows.
  for (const ir::Node* n : p.graph->nodes()) {
    if (prim_of(n) != Prim::Reduce) continue;
    const ir::Shape& shape = type_of(n->arg<ir::Value>(0)).shape;
    if (!shape.empty() && ir::is_symbol(shape.back())) ask_of(shape, context);
  }
  for (const ir::Input& in : p.graph->inputs()) ask_of_steps(in, context);
}

}  // namespace brasa::compiler
