#include <algorithm>
#include <limits>

#include "compiler/fusion/indexing.h"
#include "compiler/targets/emitter.h"

// Places that lanes were given one by one, as those of a gather, in 32 bits where memory is short enough for that: a processor multiplies and
// gathers twice as many of them at once.
namespace brasa::compiler {

using ir::Node;

namespace {

// Longer bodies take too long to compile twice.
constexpr int kLongBody = 128;

}  // namespace

// By how much the lanes' elements lie behind what they share, at most; nothing where the place is no sum of such terms, or where no lane has a
// place of its own.
std::optional<Expr> Emitter::reach_by_lanes(Expr place, int loop) const {
  Expr range = analysis_.loops()[loop].range, reach(0);
  bool own = false;
  for (Expr s : *place->symbols) {
    bool given = s->kind == ir::ExprKind::Value && (analysis_.of(analysis_.binds().at(s)) >> loop & 1);
    if (!given && s != range) continue;
    std::optional<Expr> step = coefficient(place, s);
    if (!step) return std::nullopt;
    bool known = std::all_of((*step)->symbols->begin(), (*step)->symbols->end(), [&](Expr t) {
      return t->kind == ir::ExprKind::Size || (t->kind == ir::ExprKind::Range && range_values_[analysis_.loop_of(t)]);
    });
    if (!known) return std::nullopt;
    Expr last = given ? max(s->args[0] - 1, 0) : Expr(analysis_.loops()[loop].width);
    reach = reach + max(*step, -*step) * last;
    own = own || given;
  }
  return own ? std::optional(reach) : std::nullopt;
}

// Whether all of these places fit; null where there are none, and `loads` are those that have some.
llvm::Value* Emitter::places_are_short(const Loop& loop, std::unordered_set<const Node*>& loads) {
  const For& f = analysis_.loops()[loop.loop];
  bool gathers = !target_.gpu && !target_.baseline && (target_.masks || target_.wide_masks);
  if (!gathers || f.width == 1 || !loop.carries.empty()) return nullptr;
  std::vector<Expr> reaches;
  int nodes = 0;
  for (const Node* n : graph_.nodes()) {
    if (!(analysis_.of(n) >> loop.loop & 1)) continue;
    ++nodes;
    if (loop_kind(n->op) != LoopOp::Load) continue;
    std::optional<Expr> reach = reach_by_lanes(n->arg<Expr>(1), loop.loop);
    if (!reach) continue;
    loads.insert(n);
    if (std::find(reaches.begin(), reaches.end(), *reach) == reaches.end()) reaches.push_back(*reach);
  }
  if (reaches.empty() || nodes > kLongBody) return nullptr;
  llvm::Value* all = b_.getTrue();
  for (Expr e : reaches)
    all = b_.CreateAnd(all, b_.CreateICmpSLT(eval_expr(e), i64(std::numeric_limits<int32_t>::max())));
  return all;
}

// One a lane, of a load for which that holds.
llvm::Value* Emitter::short_addresses(const BufferRef& p, Expr place) {
  Expr base = place;
  llvm::Value* behind = nullptr;
  for (Expr s : *place->symbols) {
    if (!varies(s)) continue;
    Expr step = *coefficient(place, s);
    base = base - step * s;
    llvm::Value* v = s == vector_.lane ? lane_numbers(vector_.lanes, b_.getInt32Ty())
                                       : b_.CreateTrunc(bound(s), like(b_.getInt32Ty(), bound(s)));
    if (!step.is(1)) v = b_.CreateNSWMul(v, splat(b_.CreateTrunc(eval_expr(step), b_.getInt32Ty()), vector_.lanes));
    behind = behind ? b_.CreateNSWAdd(behind, v) : v;
  }
  return b_.CreateInBoundsGEP(memory_type(p.dtype), address(p, base), behind);
}

}  // namespace brasa::compiler
