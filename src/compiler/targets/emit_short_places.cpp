#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <limits>
#include <span>

#include "compiler/fusion/indexing.h"
#include "compiler/targets/emitter.h"

// Places that lanes were given one by one, as those of a gather, in 32 bits where memory is short enough for that: a processor multiplies and
// gathers twice as many of them at once. Those of one row are often near each other, and are read as vectors then.
namespace brasa::compiler {

using ir::Node;

namespace {

// Longer bodies take too long to compile twice.
constexpr int kLongBody = 128;

// An instruction that takes lanes in any order: of one vector or, where masks are registers, of two. None where the target has not got one.
struct Permutation {
  unsigned bits = 0, lanes = 0;
  bool of_two = false;
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
};
Permutation permutation_of(llvm::FixedVectorType* type, const Target& target) {
  using namespace llvm::Intrinsic;
  static constexpr Permutation kOne[] = {{32, 8, false, x86_avx2_permps}};
  static constexpr Permutation kTwo[] = {
      {16, 8, true, x86_avx512_vpermi2var_hi_128},  {16, 16, true, x86_avx512_vpermi2var_hi_256},
      {16, 32, true, x86_avx512_vpermi2var_hi_512}, {32, 4, true, x86_avx512_vpermi2var_ps_128},
      {32, 8, true, x86_avx512_vpermi2var_ps_256},  {32, 16, true, x86_avx512_vpermi2var_ps_512},
      {64, 4, true, x86_avx512_vpermi2var_pd_256},  {64, 8, true, x86_avx512_vpermi2var_pd_512}};
  for (const Permutation& p : target.masks ? std::span<const Permutation>(kTwo) : kOne)
    if (p.bits == type->getScalarSizeInBits() && p.lanes == type->getNumElements()) return p;
  return {};
}

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

// Whether the lanes' own places follow from where they are along one dimension, and other dimensions read by the same ones. Loops in pieces go
// through a dimension by two ranges, of which the outer one steps by what the inner one counts.
bool Emitter::shares_places(const Node* load, int loop) const {
  const For& f = analysis_.loops()[loop];
  const Ranges vector = Ranges{1} << loop;
  Ranges folded = 0, own = 0;
  for (const Node* n : graph_.nodes()) folded |= analysis_.closed(n);
  auto in_pieces = [&](Expr place) {
    return std::all_of(place->symbols->begin(), place->symbols->end(), [&](Expr s) {
      if (s->kind != ir::ExprKind::Range || s == f.range || (folded >> analysis_.loop_of(s) & 1)) return true;
      return coefficient(place, s) == std::optional(Expr(f.extent()->max));
    });
  };
  std::vector<const Node*> left;
  for (Expr s : *load->arg<Expr>(1)->symbols)
    if (s->kind == ir::ExprKind::Value && (analysis_.of(analysis_.binds().at(s)) & vector))
      left.push_back(analysis_.binds().at(s));
  std::unordered_set<const Node*> seen;
  while (!left.empty()) {
    const Node* n = left.back();
    left.pop_back();
    if (!(analysis_.of(n) & vector) || !seen.insert(n).second) continue;
    own |= analysis_.of(n);
    std::optional<LoopOp> kind = loop_kind(n->op);
    if (kind == LoopOp::Load && !in_pieces(n->arg<Expr>(1))) return false;
    if (kind == LoopOp::Index && !in_pieces(n->arg<Expr>(0))) return false;
    n->for_each_input([&](Value v) { left.push_back(v.node); });
  }
  return (analysis_.of(load) & ~own & ~folded & ~vector) != 0;
}

// Whether all of these places fit; null where there are none, and `loads` are those that have some.
llvm::Value* Emitter::places_are_short(const Loop& loop, std::unordered_set<const Node*>& loads) {
  shared_places_.clear();
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
    if (shares_places(n, loop.loop)) shared_places_.insert(n);
    if (std::find(reaches.begin(), reaches.end(), *reach) == reaches.end()) reaches.push_back(*reach);
  }
  if (reaches.empty() || nodes > kLongBody) return nullptr;
  llvm::Value* all = b_.getTrue();
  for (Expr e : reaches)
    all = b_.CreateAnd(all, b_.CreateICmpSLT(eval_expr(e), i64(std::numeric_limits<int32_t>::max())));
  return all;
}

// Of a load for which that holds.
Emitter::ShortPlaces Emitter::short_places(Expr place) {
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
  return {base, behind};
}

llvm::Value* Emitter::short_addresses(const BufferRef& p, const ShortPlaces& places) {
  return b_.CreateInBoundsGEP(memory_type(p.dtype), address(p, places.base), places.behind);
}

// The lanes at these places of two vectors in a row.
llvm::Value* Emitter::permuted(llvm::Value* low, llvm::Value* high, llvm::Value* places) {
  auto* type = llvm::cast<llvm::FixedVectorType>(low->getType());
  Permutation by = permutation_of(type, target_);
  llvm::Type* element = by.bits == 16 ? b_.getInt16Ty() : by.bits == 32 ? b_.getFloatTy() : b_.getDoubleTy();
  auto* elements = llvm::FixedVectorType::get(element, by.lanes);
  llvm::Value* at = b_.CreateZExtOrTrunc(places, llvm::FixedVectorType::get(b_.getIntNTy(by.bits), by.lanes));
  low = b_.CreateBitCast(low, elements);
  high = b_.CreateBitCast(high, elements);
  llvm::Value* x;
  if (by.of_two) {
    x = b_.CreateIntrinsic(by.id, {}, {low, at, high});
  } else {
    llvm::Value* in_low = b_.CreateICmpULT(places, number(places->getType(), by.lanes));
    x = b_.CreateSelect(in_low, b_.CreateIntrinsic(by.id, {}, {low, at}), b_.CreateIntrinsic(by.id, {}, {high, at}));
  }
  return b_.CreateBitCast(x, type);
}

// Places that many rows share, as those of an image that is made larger, lie mostly in the two vectors that begin where the first lane's element does.
// They are read at once, unless they end behind the buffer, and their lanes are put in order: a gather reads them one by one.
llvm::Value* Emitter::gather_beside(const Node* load, const BufferRef& p, const ShortPlaces& places, llvm::Value* mask,
                                    llvm::Value* common, const std::function<llvm::Value*()>& gather) {
  int lanes = vector_.lanes;
  auto* type = llvm::FixedVectorType::get(memory_type(p.dtype), static_cast<unsigned>(lanes));
  Value buffer = load->arg<Value>(0);
  if (!shared_places_.count(load) || graph_.input_index(buffer) < 0 || !permutation_of(type, target_).lanes)
    return gather();
  llvm::Value* start = b_.CreateExtractElement(places.behind, uint64_t{0});
  llvm::Value* relative = b_.CreateSub(places.behind, splat(start, lanes));
  llvm::Value* within = b_.CreateICmpULT(relative, number(relative->getType(), 2 * lanes));
  if (mask && !common) within = b_.CreateOr(within, b_.CreateNot(mask));
  llvm::Value* first = b_.CreateAdd(eval_expr(places.base), b_.CreateSExt(start, b_.getInt64Ty()));
  llvm::Value* last = eval_expr(type_of(buffer).numel() - 2 * lanes);
  llvm::Value* inside = b_.CreateAnd(b_.CreateICmpSGE(first, i64(0)), b_.CreateICmpSLE(first, last));
  if (common) inside = b_.CreateAnd(inside, common);
  auto* beside = llvm::BasicBlock::Create(b_.getContext(), "beside", function_);
  auto* apart = llvm::BasicBlock::Create(b_.getContext(), "apart", function_);
  auto* behind = llvm::BasicBlock::Create(b_.getContext(), "behind", function_);
  b_.CreateCondBr(b_.CreateAnd(b_.CreateAndReduce(within), inside), beside, apart);
  b_.SetInsertPoint(beside);
  llvm::Value* at = b_.CreateInBoundsGEP(memory_type(p.dtype), p.base, first);
  auto vector = [&](int i) {
    return b_.CreateAlignedLoad(type, b_.CreateConstInBoundsGEP1_64(type, at, i), llvm::Align(size_of(p.dtype)));
  };
  llvm::Value* near = permuted(vector(0), vector(1), relative);
  if (mask && !common) near = b_.CreateSelect(mask, near, llvm::Constant::getNullValue(type));
  b_.CreateBr(behind);
  b_.SetInsertPoint(apart);
  llvm::Value* far = nullptr;
  with_frame([&] { far = gather(); });
  b_.CreateBr(behind);
  b_.SetInsertPoint(behind);
  auto* x = b_.CreatePHI(type, 2);
  x->addIncoming(near, beside);
  x->addIncoming(far, apart);
  return x;
}

}  // namespace brasa::compiler
