#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>

#include "compiler/fusion/indexing.h"
#include "compiler/targets/emitter.h"

// Rows of concatenations and of what has a border: whether a place lies in a part is asked of each element, and comes out alike all along the
// part. So the loop goes from one end of a part to the next, with comparisons decided before. Of parts that are written past the caches vectors
// may lie in several, and ask for each lane.
namespace brasa::compiler {

using ir::Node;

namespace {

constexpr size_t kMostBorders = 32;
// Longer bodies take too long to compile twice.
constexpr int kLongBody = 128;

bool is(const Node* n, LoopOp op) { return loop_kind(n->op) == op; }

// What is not 0 as such an expression is not always 0.
bool is_polynomial(Expr e) {
  switch (e->kind) {
    case ir::ExprKind::Add:
    case ir::ExprKind::Mul: return std::all_of(e->args.begin(), e->args.end(), is_polynomial);
    case ir::ExprKind::Constant:
    case ir::ExprKind::Size:
    case ir::ExprKind::Range: return true;
    default: return false;
  }
}

// Where what a comparison says changes along the loop; places outside of the loop, too.
std::vector<Expr> changes(ScalarOp op, Expr ahead, int64_t step) {
  switch (op) {
    case ScalarOp::Lt:
    case ScalarOp::Ge: return {step > 0 ? floordiv(-ahead, step) + 1 : ceildiv(ahead, -step)};
    case ScalarOp::Le:
    case ScalarOp::Gt: return {step > 0 ? ceildiv(-ahead, step) : floordiv(ahead, -step) + 1};
    case ScalarOp::Eq:
    case ScalarOp::Ne:
      if (step == 1 || step == -1) return {ahead * -step, ahead * -step + 1};
      return {};
    default: return {};
  }
}

}  // namespace

std::optional<Emitter::Border> Emitter::border_at(const Node* comparison, int loop) const {
  std::vector<Expr> index;
  for (const ir::Arg& a : comparison->args) {
    const Node* n = a.get<Value>().node;
    auto* constant = is_constant(n) ? n->args[0].get_if<Expr>() : nullptr;
    if (is(n, LoopOp::Index))
      index.push_back(n->arg<Expr>(0));
    else if (constant && n->types[0].dtype == DType::Int64)
      index.push_back(*constant);
    else
      return std::nullopt;
  }
  Expr range = analysis_.loops()[loop].range, ahead = index[1] - index[0];
  std::optional<Expr> step = coefficient(ahead, range);
  if (!step || !step->is_constant() || step->is(0)) return std::nullopt;
  ahead = ahead - *step * range;
  bool known = std::all_of(ahead->symbols->begin(), ahead->symbols->end(), [&](Expr s) {
    return s->kind == ir::ExprKind::Size || (s->kind == ir::ExprKind::Range && range_values_[analysis_.loop_of(s)]);
  });
  if (!known || changes(scalar_op_of(comparison->op), ahead, step->constant()).empty()) return std::nullopt;
  return Border{comparison, ahead, step->constant(), loop};
}

bool Emitter::only_stores(const Loop& loop) {
  return loop.closes.empty() && loop.carries.empty() &&
         std::all_of(loop.body.begin(), loop.body.end(),
                     [](const Item& item) { return item.node && is(item.node, LoopOp::Store); });
}

// Sums of a few elements, within each vector, and stores of what follows from them.
bool Emitter::stores_and_sums(const Loop& loop) const {
  auto sums = [&](const Node* n) { return is(n, LoopOp::Reduce) && !(analysis_.closed(n) >> loop.loop & 1); };
  std::function<bool(const Loop&)> only_sums = [&](const Loop& inner) {
    return inner.carries.empty() && std::all_of(inner.closes.begin(), inner.closes.end(), sums) &&
           std::all_of(inner.body.begin(), inner.body.end(),
                       [&](const Item& item) { return item.loop ? only_sums(*item.loop) : sums(item.node); });
  };
  return loop.closes.empty() && loop.carries.empty() &&
         std::all_of(loop.body.begin(), loop.body.end(), [&](const Item& item) {
           return item.loop ? only_sums(*item.loop) : sums(item.node) || is(item.node, LoopOp::Store);
         });
}

// None where no read waits for them, or where the body is too long to be there twice.
std::vector<Emitter::Border> Emitter::borders_of(const Loop& loop) const {
  const For& f = analysis_.loops()[loop.loop];
  if (target_.gpu || f.width == 1 || !only_stores(loop)) return {};
  std::vector<Border> out;
  bool masks = false;
  int nodes = 0;
  for (const Node* n : graph_.nodes()) {
    if (!(analysis_.of(n) >> loop.loop & 1)) continue;
    ++nodes;
    if (is(n, LoopOp::Load))
      masks = masks || (!n->args[2].is_none() && (analysis_.of(n->arg<Value>(2).node) >> loop.loop & 1));
    else if (ops::is_comparison(scalar_op_of(n->op)))
      if (std::optional<Border> border = border_at(n, loop.loop)) out.push_back(*border);
  }
  return masks && nodes <= kLongBody && out.size() <= kMostBorders ? out : std::vector<Border>{};
}

// What masks of a loop of a few steps ask, as of a tile: mostly it is so for all of it, which is asked once then.
std::vector<Emitter::Border> Emitter::asked_of_tile(const Loop& loop, int copies) const {
  constexpr int64_t kSteps = 4;
  const For& f = analysis_.loops()[loop.loop];
  Expr extent = f.extent();
  int64_t step = int64_t{f.width} * copies;
  bool tile = extent.is_constant() && extent.constant() % step == 0 && extent.constant() <= kSteps * step;
  if (target_.gpu || f.width == 1 || !tile || !loop.carries.empty()) return {};
  std::vector<Border> out;
  std::function<void(const Node*)> add = [&](const Node* mask) {
    ScalarOp op = scalar_op_of(mask->op);
    if (op == ScalarOp::BitAnd) {
      for (size_t i : {0, 1}) add(mask->arg<Value>(i).node);
    } else if (op == ScalarOp::Lt || op == ScalarOp::Le || op == ScalarOp::Gt || op == ScalarOp::Ge) {
      if (!(analysis_.of(mask) >> loop.loop & 1)) return;
      if (std::optional<Border> border = border_at(mask, loop.loop)) out.push_back(*border);
    }
  };
  for (const Node* n : graph_.nodes()) {
    size_t mask = is(n, LoopOp::Load) ? 2 : is(n, LoopOp::Store) ? 3 : 0;
    if (mask && !n->args[mask].is_none()) add(n->arg<Value>(mask).node);
  }
  return out;
}

// What masks ask of the iterations of an unrolled loop, alike for all lanes, as whether a square tile has so many rows: mostly it has them all, and
// then vectors along its rows are read whole.
std::vector<Emitter::Border> Emitter::asked_of_copies(const Loop& loop) const {
  std::vector<Border> out;
  if (target_.gpu || analysis_.loops()[loop.loop].width == 1 || !loop.carries.empty() || is_long(loop.loop)) return out;
  for (const Node* n : graph_.nodes()) {
    if (!is(n, LoopOp::Load) || n->args[2].is_none() || !(analysis_.of(n) >> loop.loop & 1)) continue;
    const Node* mask = n->arg<Value>(2).node;
    ScalarOp op = scalar_op_of(mask->op);
    Ranges copies = analysis_.of(mask) & analysis_.kind(ForKind::Unroll);
    if ((op != ScalarOp::Lt && op != ScalarOp::Ge) || !std::has_single_bit(copies)) continue;
    if (std::optional<Border> border = border_at(mask, std::countr_zero(copies))) out.push_back(*border);
  }
  return out;
}

llvm::Value* Emitter::holds_throughout(const std::vector<Border>& asked) {
  llvm::Value* all = b_.getTrue();
  for (const Border& border : asked)
    for (Expr i : {Expr(0), analysis_.loops()[border.loop].extent() - 1}) {
      llvm::Value* ahead = eval_expr(border.ahead + i * border.step);
      all = b_.CreateAnd(all, emit_compare(scalar_op_of(border.comparison->op), i64(0), ahead, DType::Int64));
    }
  return all;
}

// Once for where these comparisons hold all along their loops, and once for any case.
void Emitter::emit_decided(const std::vector<Border>& asked, const std::function<void()>& where_all,
                           const std::function<void()>& otherwise) {
  llvm::Value* all = holds_throughout(asked);
  emit_if(all, [&] {
    const auto others = decided_;
    for (const Border& border : asked) decided_[border.comparison] = b_.getTrue();
    with_frame(where_all);
    decided_ = others;
  });
  emit_if(b_.CreateNot(all), [&] { with_frame(otherwise); });
}

// The places along the loop where a comparison changes, in order; none where their order is not known, or where they are many.
std::vector<Expr> Emitter::parts_of(const std::vector<Border>& borders) const {
  constexpr size_t kMost = 2;
  std::vector<Expr> out;
  for (const Border& border : borders)
    for (Expr e : changes(scalar_op_of(border.comparison->op), border.ahead, border.step)) {
      if (std::find(out.begin(), out.end(), e) != out.end()) continue;
      auto behind = std::find_if(out.begin(), out.end(), [&](Expr o) { return (o - e)->min >= 0; });
      bool ordered = std::all_of(out.begin(), behind, [&](Expr o) { return (e - o)->min >= 0; });
      if (!ordered || out.size() == kMost) return {};
      out.insert(behind, e);
    }
  return out;
}

// Whether places are even steps along the loop. Of others, quotients of its index, lanes are known where vectors begin at whole steps.
bool Emitter::goes_evenly(const Loop& loop) const {
  Expr range = analysis_.loops()[loop.loop].range;
  return std::all_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node* n) {
    if (!(analysis_.of(n) >> loop.loop & 1)) return true;
    size_t place = is(n, LoopOp::Load) || is(n, LoopOp::Store) ? 1 : 0;
    auto* e = place < n->args.size() ? n->args[place].get_if<Expr>() : nullptr;
    return !e || coefficient(*e, range);
  });
}

// Whether elements may be computed once more after they were stored: nothing that is read may lie where something is written.
bool Emitter::may_repeat(const Loop& loop) const {
  auto elements = [](const Node* n) { return type_of(n->arg<Value>(0)).shape[0]; };
  auto overwrites = [&](const Node* store, const Node* load) {
    if (load->arg<Value>(0) == store->arg<Value>(0)) return true;
    // A result lies where an operand did that has as many elements, each at its own place.
    Expr apart = load->arg<Expr>(1) - store->arg<Expr>(1);
    return elements(load) == elements(store) && (apart.is(0) || !is_polynomial(apart));
  };
  return stores_and_sums(loop) && std::all_of(loop.body.begin(), loop.body.end(), [&](const Item& item) {
           if (item.loop || is(item.node, LoopOp::Reduce)) return true;
           if (!item.node->arg<std::string>(5).empty() || reads_values(item.node->arg<Expr>(1))) return false;
           return std::none_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node* n) {
             return is(n, LoopOp::Load) && (analysis_.of(n) >> loop.loop & 1) && overwrites(item.node, n);
           });
         });
}

// All elements up to `end`, part by part, with code of its own for each part. Rows within one vector have no parts where masks cost nothing, nor have
// those within two of which little is read.
void Emitter::emit_parts(const std::vector<Border>& borders, const std::vector<Expr>& parts, const Loop& loop,
                         llvm::Value* end) {
  auto each_part = [&] { with_frame([&] { emit_each_part(borders, parts, loop, end); }); };
  if (!target_.masks) return each_part();
  constexpr int kLittle = 2;
  const int width = analysis_.loops()[loop.loop].width;
  auto reads = std::count_if(graph_.nodes().begin(), graph_.nodes().end(),
                             [&](const Node* n) { return is(n, LoopOp::Load) && (analysis_.of(n) >> loop.loop & 1); });
  auto last = [&](int64_t begin) { with_frame([&] { emit_vector_part(loop, i64(begin), end, width, 1, end, 1); }); };
  llvm::Value *some = b_.CreateICmpSGT(end, i64(0)), *longer = b_.CreateICmpSGT(end, i64(width));
  emit_if(b_.CreateAnd(some, b_.CreateNot(longer)), [&] { last(0); });
  if (reads > kLittle) return emit_if(longer, each_part);
  llvm::Value* long_row = b_.CreateICmpSGT(end, i64(2 * width));
  emit_if(b_.CreateAnd(longer, b_.CreateNot(long_row)), [&] {
    with_frame([&] { emit_vector_part(loop, i64(0), i64(width), width, 1, nullptr, 1); });
    last(width);
  });
  emit_if(long_row, each_part);
}

void Emitter::emit_each_part(const std::vector<Border>& borders, const std::vector<Expr>& parts, const Loop& loop,
                             llvm::Value* end) {
  in_each_part(borders, parts, end, [&](llvm::Value* begin, llvm::Value* until) { emit_part(loop, begin, until); });
}

// Rows of which all have a place in one part, or none of them: what is asked of a row alone is decided for those between two borders.
bool Emitter::emit_rows_in_parts(const Loop& loop) {
  bool rows = loop.closes.empty() && loop.carries.empty() && loop.body.size() == 1 && loop.body[0].loop;
  if (target_.gpu || target_.baseline || !rows) return false;
  const Loop& row = *loop.body[0].loop;
  if (analysis_.loops()[row.loop].kind != ForKind::Vector || borders_of(row).empty()) return false;
  std::vector<Border> borders;
  for (const Node* n : graph_.nodes())
    if (ops::is_comparison(scalar_op_of(n->op)) && (analysis_.of(n) >> loop.loop & 1))
      if (std::optional<Border> border = border_at(n, loop.loop)) borders.push_back(*border);
  const std::vector<Expr> parts = parts_of(borders);
  if (parts.empty()) return false;
  llvm::Value* end = eval_expr(at_copy(analysis_.loops()[loop.loop].extent()));
  in_each_part(borders, parts, end, [&](llvm::Value* begin, llvm::Value* until) {
    emit_counted(begin, until, i64(1), false, [&](llvm::Value* i) {
      range_values_[loop.loop] = i;
      emit_block(loop.body);
    });
    range_values_[loop.loop] = nullptr;
  });
  return true;
}

void Emitter::in_each_part(const std::vector<Border>& borders, const std::vector<Expr>& parts, llvm::Value* end,
                           const std::function<void(llvm::Value* begin, llvm::Value* end)>& part) {
  const auto others = decided_;
  llvm::Value* begin = i64(0);
  for (size_t i = 0; i <= parts.size(); ++i) {
    llvm::Value* until = end;
    if (i < parts.size())
      until = intrinsic(llvm::Intrinsic::smax, {begin, intrinsic(llvm::Intrinsic::smin, {end, eval_expr(parts[i])})});
    for (const Border& border : borders) {
      ScalarOp op = scalar_op_of(border.comparison->op);
      auto passed = changes(op, border.ahead, border.step);
      std::erase_if(passed,
                    [&](Expr e) { return std::find(parts.begin(), parts.begin() + i, e) == parts.begin() + i; });
      bool rises = border.step > 0, holds_first = op == ScalarOp::Ne;
      if (op == ScalarOp::Lt || op == ScalarOp::Le) holds_first = !rises;
      if (op == ScalarOp::Gt || op == ScalarOp::Ge) holds_first = rises;
      decided_[border.comparison] = b_.getInt1(holds_first != (passed.size() % 2 == 1));
    }
    with_frame([&] { part(begin, until); });
    begin = until;
  }
  decided_ = others;
}

void Emitter::emit_part(const Loop& loop, llvm::Value* begin, llvm::Value* end) {
  const For& f = analysis_.loops()[loop.loop];
  emit_part(loop, begin, end, f.width, f.unroll);
}

// Whole vectors, the last of which ends with the part, where that does no harm. Without masks what is shorter than a long vector is in short ones.
void Emitter::emit_part(const Loop& loop, llvm::Value* begin, llvm::Value* end, int width, int copies) {
  constexpr int kShort = 8;
  anywhere_ = begin != i64(0);
  llvm::Value* done = begin;
  auto vectors = [&](int side_by_side) {
    llvm::Value* length = whole_steps(b_.CreateNSWSub(end, begin), int64_t{width} * side_by_side);
    llvm::Value* stop = b_.CreateNSWAdd(begin, length);
    emit_vector_part(loop, done, stop, width, side_by_side, nullptr, -1);
    done = stop;
  };
  vectors(copies);
  if (copies > 1) vectors(1);
  anywhere_ = true;
  emit_if(b_.CreateICmpSLT(done, end), [&] {
    auto some = [&] {
      if (target_.masks) return emit_vector_part(loop, done, end, width, 1, end, 1);
      width > kShort ? emit_part(loop, done, end, kShort, 1) : emit_vector_part(loop, done, end, 1, 1, nullptr, -1);
    };
    if (!may_repeat(loop)) return some();
    llvm::Value *last = b_.CreateNSWSub(end, i64(width)), *fits = b_.CreateICmpSGE(last, begin);
    emit_if(fits, [&] { with_frame([&] { emit_vector_part(loop, last, end, width, 1, nullptr, 1); }); });
    emit_if(b_.CreateNot(fits), [&] { with_frame(some); });
  });
  anywhere_ = false;
}

// Whole vectors from `begin` to `end`.
void Emitter::emit_between(const std::vector<Border>& borders, const Loop& loop, llvm::Value* begin, llvm::Value* end,
                           int copies) {
  const For& f = analysis_.loops()[loop.loop];
  std::vector<Expr> places;
  for (const Border& border : borders)
    for (Expr e : changes(scalar_op_of(border.comparison->op), border.ahead, border.step))
      if (std::find(places.begin(), places.end(), e) == places.end()) places.push_back(e);
  Values change;
  for (Expr e : places) change.push_back(eval_expr(e));
  auto* before = b_.GetInsertBlock();
  auto* between = llvm::BasicBlock::Create(b_.getContext(), "between", function_);
  auto* behind = llvm::BasicBlock::Create(b_.getContext(), "behind", function_);
  b_.CreateCondBr(b_.CreateICmpSLT(begin, end), between, behind);
  b_.SetInsertPoint(between);
  auto* at = b_.CreatePHI(b_.getInt64Ty(), 2);
  at->addIncoming(begin, before);
  llvm::Value *next = nullptr, *until = end;
  for (llvm::Value* c : change)
    until = b_.CreateSelect(b_.CreateICmpSGT(c, at), intrinsic(llvm::Intrinsic::smin, {until, c}), until);
  const auto others = decided_;
  with_frame([&] {
    for (const Border& border : borders) {
      llvm::Value* ahead = b_.CreateNSWAdd(eval_expr(border.ahead), b_.CreateNSWMul(at, i64(border.step)));
      decided_[border.comparison] = emit_compare(scalar_op_of(border.comparison->op), i64(0), ahead, DType::Int64);
    }
    llvm::Value *left = b_.CreateNSWSub(until, at),
                *whole = b_.CreateNSWSub(until, b_.CreateURem(left, i64(int64_t{f.width} * copies)));
    emit_vector_part(loop, at, whole, f.width, copies, nullptr, -1);
    decided_ = others;
    llvm::Value* some = b_.CreateNSWAdd(b_.CreateNSWSub(until, whole), i64(f.width - 1));
    next = b_.CreateNSWAdd(whole, b_.CreateNSWSub(some, b_.CreateURem(some, i64(f.width))));
    emit_vector_part(loop, whole, next, f.width, 1, nullptr, -1);
  });
  at->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), between, behind);
  b_.SetInsertPoint(behind);
}

}  // namespace brasa::compiler
