#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>

#include "compiler/targets/emitter.h"

// Baseline code: a vector loop runs element by element, as LLVM is fast where there are no vectors. Sums have the accumulators that
// optimized code has, one for each lane of each copy, and join them as it does, so that results are the same to the bit.
namespace brasa::compiler {

// Whether the result depends on the order of the items: rounding does, and which zero or NaN is the larger one.
bool Emitter::depends_on_order(const Node* reduction) const {
  return reduction->types.size() == 1 && is_floating(reduction->types[0].dtype);
}

void Emitter::emit_elements(const Loop& loop) {
  const For& f = analysis_.loops()[loop.loop];
  Expr n = at_copy(f.extent());
  llvm::Value* end = eval_expr(n);
  int64_t step = int64_t{f.width} * f.unroll;
  bool accumulates = step > 1 && std::any_of(accumulators_.begin(), accumulators_.end(), [&](const auto& a) {
                       return a.second.by_element && (analysis_.closed(a.first) >> loop.loop & 1);
                     });
  bool masked = f.width > 1 && ends_masked(loop.loop);
  // Where full steps of all copies end, and where single vectors do.
  llvm::Value *steps = nullptr, *vectors = nullptr;
  if (accumulates) {
    auto whole = [&](int64_t width) { return b_.CreateNSWSub(end, b_.CreateURem(end, i64(width))); };
    steps = whole(step);
    vectors = masked ? end : whole(f.width);
  }
  emit_counted(i64(0), end, i64(1), n->min >= 1, [&](llvm::Value* i) {
    enter_vector(loop.loop, 1, 1, i);
    if (accumulates) {
      llvm::Value *in_step = b_.CreateURem(i, i64(step)), *in_vector = b_.CreateURem(i, i64(f.width));
      llvm::Value* at = b_.CreateSelect(b_.CreateICmpSLT(i, steps), in_step, in_vector);
      vector_.accumulator = b_.CreateSelect(b_.CreateICmpSLT(i, vectors), at, i64(step));
    }
    emit_block(loop.body);
    vector_ = {};
  });
}

void Emitter::start_elements(const Node* n, Accumulators& a) {
  int loop = std::countr_zero(analysis_.closed(n) & analysis_.kind(ForKind::Vector));
  const For& f = analysis_.loops()[loop];
  a.closes_vector = a.by_element = true;
  a.lanes = f.width;
  a.copies = f.unroll;
  bool scalars = f.width > 1 && !ends_masked(loop);
  llvm::Type* t = register_type(n->types[0].dtype);
  llvm::Value* none = neutral(n, 1)[0];
  int64_t of_vectors = int64_t{a.lanes} * a.copies;
  for (size_t i = combinations(analysis_.of(n), false); i > 0; --i) {
    a.vectors.push_back(stack(t, of_vectors + 1, 64));
    auto at = [&](llvm::Value* place) { return b_.CreateInBoundsGEP(t, a.vectors.back(), place); };
    emit_counted(i64(0), i64(of_vectors + 1), i64(1), true, [&](llvm::Value* e) { b_.CreateStore(none, at(e)); });
    if (scalars) a.scalars.push_back(at(i64(of_vectors)));
  }
}

llvm::Value* Emitter::accumulator_of_element(const Node* n, const Accumulators& a, size_t place) {
  llvm::Value* array = a.vectors[place];
  if (!vector_.accumulator) return array;
  return b_.CreateInBoundsGEP(register_type(n->types[0].dtype), array, vector_.accumulator);
}

llvm::Value* Emitter::read_element(const Node* n, llvm::Value* from) {
  return b_.CreateLoad(register_type(n->types[0].dtype), from);
}

// Joins the accumulators in their array: neighbouring copies, then halves of what is left, as fold_list and fold_lanes do.
llvm::Value* Emitter::fold_elements(const Node* n, const Accumulators& a, size_t place) {
  llvm::Type* t = register_type(n->types[0].dtype);
  auto at = [&](llvm::Value* e) { return b_.CreateInBoundsGEP(t, a.vectors[place], e); };
  auto join = [&](int64_t count, const std::function<llvm::Value*(llvm::Value*)>& first, int64_t apart) {
    emit_counted(i64(0), i64(count), i64(1), true, [&](llvm::Value* e) {
      llvm::Value *from = first(e), *x = read_element(n, at(from));
      llvm::Value* y = read_element(n, at(b_.CreateAdd(from, i64(apart))));
      b_.CreateStore(combine(n->arg<std::string>(2), {x}, {y}, n->types[0].dtype)[0], at(e));
    });
  };
  int64_t lanes = a.lanes;
  for (int64_t copies = a.copies; copies > 1; copies = (copies + 1) / 2) {
    join(copies / 2 * lanes, [&](llvm::Value* e) { return b_.CreateAdd(e, b_.CreateAnd(e, i64(-lanes))); }, lanes);
    if (copies % 2)
      emit_counted(i64(0), i64(lanes), i64(1), true, [&](llvm::Value* e) {
        llvm::Value* last = read_element(n, at(b_.CreateAdd(e, i64((copies - 1) * lanes))));
        b_.CreateStore(last, at(b_.CreateAdd(e, i64(copies / 2 * lanes))));
      });
  }
  for (int64_t half = lanes / 2; half > 0; half /= 2) join(half, [](llvm::Value* e) { return e; }, half);
  return read_element(n, a.vectors[place]);
}

// The smaller or larger integer by a comparison: LLVM's fast selection of instructions knows no intrinsic for it. Null for other intrinsics.
llvm::Value* Emitter::chosen_of_two(unsigned id, llvm::ArrayRef<llvm::Value*> args) {
  using P = llvm::CmpInst::Predicate;
  P first = P::BAD_ICMP_PREDICATE;
  if (id == llvm::Intrinsic::smin) first = P::ICMP_SLT;
  if (id == llvm::Intrinsic::smax) first = P::ICMP_SGT;
  if (id == llvm::Intrinsic::umin) first = P::ICMP_ULT;
  if (id == llvm::Intrinsic::umax) first = P::ICMP_UGT;
  if (first == P::BAD_ICMP_PREDICATE) return nullptr;
  return b_.CreateSelect(b_.CreateICmp(first, args[0], args[1]), args[0], args[1]);
}

}  // namespace brasa::compiler
