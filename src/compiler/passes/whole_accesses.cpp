#include <algorithm>

#include "compiler/passes/passes.h"

namespace brasa::compiler {

using ir::Expr;

namespace {

// Elements of 2 bytes that a thread reads or writes at once.
constexpr int64_t kNeighbours = 8;

// Of a product one factor will do: the first that is a multiple in this call.
bool is_multiple(Expr e, ir::Facts& facts) {
  e = facts.known(e);
  if (provably_divisible(e, kNeighbours)) return true;
  bool factors =
      ir::is_symbol(e) || (e->kind == ir::ExprKind::Mul && std::all_of(e->args.begin(), e->args.end(), ir::is_symbol));
  if (!factors || !facts.has_hint(e)) return false;
  const std::vector<Expr>& symbols = *e->symbols;
  auto multiple = [&](Expr s) { return facts.hint(s) % kNeighbours == 0; };
  auto found = std::find_if(symbols.begin(), symbols.end(), multiple);
  return facts.equal(ir::mod(found == symbols.end() ? symbols.back() : *found, kNeighbours), 0);
}

// The dimensions along which elements are neighbours, then the steps between those. After a 'no' the other answers are worthless.
void ask_of(const ir::Shape& shape, const std::vector<Expr>& strides, ir::Facts& facts) {
  for (size_t d = 0; d < shape.size(); ++d) {
    bool neighbours = strides.empty() ? d + 1 == shape.size() : strides[d].is(1);
    if (neighbours && !is_multiple(shape[d], facts)) return;
  }
  for (Expr s : strides)
    if (!s.is(0) && !s.is(1) && !is_multiple(s, facts)) return;
}

}  // namespace

void ask_for_whole_accesses(Primitives& p, const PassContext& context) {
  if (!context.machine.gpu || !context.size_classes) return;
  for (const ir::Output& out : p.graph->outputs()) ask_of(type_of(out.value).shape, {}, context.facts);
  for (const ir::Input& in : p.graph->inputs()) ask_of(type_of(in.value).shape, in.strides, context.facts);
}

}  // namespace brasa::compiler
