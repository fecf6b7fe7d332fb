#include <unordered_map>

#include "compiler/libraries/rows.h"
#include "ops/table.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

// For one primitive the first that takes a call runs it.
constexpr const Implementation* kTable[] = {
    &kSort,  &kCholesky, &kLu,  &kLdl, &kLdlSolve, &kLuPermutation, &kTriangularSolve, &kJoinParts, &kQr,
    &kGeqrf, &kEigh,     &kSvd, &kEig, &kFft,      &kSparseMm,      &kSplitParts,      &kConcat,
};

}  // namespace

std::span<const Implementation* const> implementations() { return kTable; }

const Implementation* implementation_of(const ir::Node& n) {
  static const auto* by_op = [] {
    auto* m = new std::unordered_multimap<const ir::Op*, const Implementation*>;
    for (const Implementation* i : kTable) {
      const ir::Op* op = ops::find(i->primitive);
      BRASA_ASSERT(op, "no primitive ", i->primitive);
      m->emplace(op, i);
    }
    return m;
  }();
  if (!by_op->count(n.op)) return nullptr;
  for (const Implementation* i : kTable)
    if (i->primitive == n.op->name() && (!i->supports || i->supports(n))) return i;
  return nullptr;
}

int64_t LibraryCall::integer(size_t arg) const {
  return ir::evaluate(args[arg].get<ir::Expr>(), [&](const ir::ExprNode& s) { return symbols[s.id]; });
}

std::vector<int64_t> LibraryCall::integers(size_t arg) const {
  std::vector<int64_t> out;
  for (ir::Expr e : args[arg].get<std::vector<ir::Expr>>())
    out.push_back(ir::evaluate(e, [&](const ir::ExprNode& s) { return symbols[s.id]; }));
  return out;
}

}  // namespace brasa::compiler
