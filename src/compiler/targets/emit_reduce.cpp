#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <numeric>
#include <optional>

#include "compiler/fusion/indexing.h"
#include "compiler/targets/emitter.h"
#include "ops/combiner.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

const std::string& combiner_of(const Node* n) { return n->arg<std::string>(2); }
const std::vector<Value>& items_of(const Node* n) { return n->arg<std::vector<Value>>(0); }

}  // namespace

Emitter::Values Emitter::combine(const std::string& combiner, const Values& a, const Values& b, DType t) {
  if (combiner == "argmax" || combiner == "argmin") {
    ScalarOp better = combiner == "argmax" ? ScalarOp::Gt : ScalarOp::Lt;
    llvm::Value* win = emit_compare(better, b[0], a[0], t);
    llvm::Value* tie = emit_compare(ScalarOp::Eq, b[0], a[0], t);
    if (is_floating(t)) {
      llvm::Value *a_nan = emit_compare(ScalarOp::Ne, a[0], a[0], t),
                  *b_nan = emit_compare(ScalarOp::Ne, b[0], b[0], t);
      win = b_.CreateOr(win, b_.CreateAnd(b_nan, b_.CreateNot(a_nan)));
      tie = b_.CreateOr(tie, b_.CreateAnd(a_nan, b_nan));
    }
    win = b_.CreateOr(win, b_.CreateAnd(tie, b_.CreateICmpSLT(b[1], a[1])));
    return {b_.CreateSelect(win, b[0], a[0]), b_.CreateSelect(win, b[1], a[1])};
  }
  if (is_reduced_floating(t)) {
    auto wide = [&](llvm::Value* x) { return convert(x, t, DType::Float32); };
    return {convert(combine(combiner, {wide(a[0])}, {wide(b[0])}, DType::Float32)[0], DType::Float32, t)};
  }
  return {emit_binary(ops::scalar_op(ops::combiner_of(combiner)), a[0], b[0], t)};
}

// What is accumulated comes in the order of its places, but for strict numbers: of equals the one that was there stays.
Emitter::Values Emitter::later(const std::string& combiner, const Values& a, const Values& b, DType t) {
  if (!combiner.starts_with("arg") || target_.strict) return combine(combiner, a, b, t);
  llvm::Value* win = b_.CreateNot(emit_compare(combiner == "argmax" ? ScalarOp::Le : ScalarOp::Ge, b[0], a[0], t));
  if (is_floating(t)) win = b_.CreateAnd(win, emit_compare(ScalarOp::Eq, a[0], a[0], t));
  return {b_.CreateSelect(win, b[0], a[0]), b_.CreateSelect(win, b[1], a[1])};
}

// Whether elements are accumulated in the order of their places. They are not where a block's threads, each of which takes steps through a row, run
// one after the other, as emulated ones do.
bool Emitter::comes_in_order(const Node* n) const {
  if (n->types.size() == 1) return true;
  const Node* place = items_of(n)[1].node;
  while (scalar_op_of(place->op) == ScalarOp::Convert) place = place->arg<Value>(0).node;
  if (loop_kind(place->op) != LoopOp::Index) return true;
  Ranges serial = analysis_.closed(n) & analysis_.kind(ForKind::Serial),
         unroll = analysis_.closed(n) & analysis_.kind(ForKind::Unroll);
  if (std::has_single_bit(serial | unroll)) return true;
  std::optional<int64_t> before;
  for (Ranges kind : {serial, unroll})
    for (Ranges r = kind; r; r &= r - 1) {
      std::optional<Expr> step =
          coefficient(place->arg<Expr>(0), analysis_.loops()[static_cast<size_t>(std::countr_zero(r))].range);
      std::optional<int64_t> now = step ? step->maybe_constant() : std::nullopt;
      if (!now || (before && *now > *before)) return false;
      before = now;
    }
  return true;
}

Emitter::Values Emitter::neutral(const Node* n, int lanes) {
  std::string_view c = combiner_of(n);
  if (c.starts_with("arg")) c.remove_prefix(3);
  DType t = n->types[0].dtype;
  llvm::Type* type = register_type(t);
  ops::Number neutral = ops::identity(c, t);
  llvm::Value* v;
  if (is_reduced_floating(t))
    v = convert(llvm::ConstantFP::get(b_.getFloatTy(), neutral.as_double()), DType::Float32, t);
  else if (is_floating(t))
    v = llvm::ConstantFP::get(type, neutral.as_double());
  else
    v = number(type, neutral.as_int());
  Values out{splat(v, lanes)};
  // Where nothing is better than what stands for nothing, all are equal, and the first one is the result.
  if (n->types.size() == 2) out.push_back(splat(number(register_type(n->types[1].dtype), 0), lanes));
  return out;
}

void Emitter::start_reduce(const Node* n) {
  Accumulators a;
  Ranges free = analysis_.of(n), closed_vector = analysis_.closed(n) & analysis_.kind(ForKind::Vector);
  int lanes = in_vector(free) ? vector_.lanes : 1;
  bool scalars = false;
  if (closed_vector && target_.baseline) {
    if (depends_on_order(n)) {
      start_elements(n, a);
      accumulators_[n] = std::move(a);
      return;
    }
  } else if (closed_vector) {
    int loop = std::countr_zero(closed_vector);
    const For& f = analysis_.loops()[loop];
    a.closes_vector = true;
    lanes = f.width;
    a.copies = f.unroll;
    scalars = f.width > 1 && !ends_masked(loop);
  }
  size_t count = combinations(free, in_vector(free)), results = n->types.size();
  auto make = [&](Values& slots, size_t how_many, int width) {
    Values start = neutral(n, width);
    for (size_t i = 0; i < how_many * results; ++i) {
      llvm::Value* initial = start[i % results];
      slots.push_back(stack(initial->getType()));
      b_.CreateStore(initial, slots.back());
    }
  };
  make(a.vectors, count * a.copies, lanes);
  if (scalars) make(a.scalars, count, 1);
  accumulators_[n] = std::move(a);
}

Emitter::Values Emitter::read_slots(std::span<llvm::Value* const> slots) {
  Values out;
  for (llvm::Value* s : slots) out.push_back(b_.CreateLoad(llvm::cast<llvm::AllocaInst>(s)->getAllocatedType(), s));
  return out;
}

void Emitter::accumulate(const Node* n) {
  Accumulators& a = accumulators_.at(n);
  Ranges free = analysis_.of(n);
  size_t at = combination(free, in_vector(free)), results = n->types.size();
  bool in_scalars = a.closes_vector && vector_.lanes == 1 && !a.scalars.empty() && !a.by_element;
  size_t place = in_scalars || a.by_element ? at : at * a.copies + (a.closes_vector ? vector_.copy : 0);
  llvm::Value** slots = (in_scalars ? a.scalars : a.vectors).data() + place * results;
  llvm::Value* of_element = a.by_element ? accumulator_of_element(n, a, place) : nullptr;
  if (of_element) slots = &of_element;
  Values old = of_element ? Values{read_element(n, of_element)} : read_slots({slots, results}), items, next;
  if (llvm::Value* sum = add_word_product(n, old[0])) {
    next = {sum};
  } else if (const Node* product = fused_product(items_of(n)[0], n, analysis_.inside(n))) {
    next = {fused(product, old[0])};
  } else {
    for (size_t r = 0; r < results; ++r) items.push_back(splat(eval(items_of(n)[r]), lanes_of(old[r])));
    DType t = n->types[0].dtype;
    next = comes_in_order(n) ? later(combiner_of(n), old, items, t) : combine(combiner_of(n), old, items, t);
  }
  for (size_t r = 0; r < results; ++r) {
    if (a.closes_vector && vector_.mask && !in_scalars) next[r] = b_.CreateSelect(vector_.mask, next[r], old[r]);
    b_.CreateStore(next[r], slots[r]);
  }
}

// What runs along a scan's loop is one element, which all lanes of a vector loop hold; beside a vector loop around it, a vector a copy.
void Emitter::start_scan(const Node* n) {
  int loop = analysis_.loop_of(n->arg<Expr>(1));
  Ranges kept = analysis_.of(n) & ~(Ranges{1} << loop);
  const For& f = analysis_.loops()[loop];
  bool lanes_run = f.kind == ForKind::Vector && !target_.baseline;
  Accumulators a;
  llvm::Value* start = neutral(n, in_vector(kept) ? vector_.lanes : lanes_run ? f.width : 1)[0];
  for (size_t i = combinations(kept, in_vector(kept)); i > 0; --i) {
    a.vectors.push_back(stack(start->getType()));
    b_.CreateStore(start, a.vectors.back());
  }
  accumulators_[n] = std::move(a);
}

// Along lanes, each time twice as many elements are combined as before, by themselves; what came before them joins at the end, so that
// one operation leads from vector to vector. Factors multiply to what leads across as many elements.
void Emitter::emit_scan(const Node* n) {
  Ranges along = Ranges{1} << analysis_.loop_of(n->arg<Expr>(1)), kept = analysis_.of(n) & ~along;
  llvm::Value* slot = accumulators_.at(n).vectors[combination(kept, in_vector(kept))];
  llvm::Value *before = read_slots({&slot, 1})[0], *item = eval(n->arg<Value>(0));
  DType t = n->types[0].dtype;
  llvm::Value* factor = n->arg(3).is_none() ? nullptr : eval(n->arg<Value>(3));
  auto joined = [&](llvm::Value* a, llvm::Value* b) {
    if (factor && fuses_ && combiner_of(n) == "add" && (t == DType::Float32 || t == DType::Float64))
      return fused(a, factor, b);
    if (factor) a = emit_binary(ScalarOp::Mul, a, factor, t);
    return combine(combiner_of(n), {a}, {b}, t)[0];
  };
  int lanes = vector_.lanes;
  if (!in_vector(along) || lanes == 1) {
    if (factor) factor = splat(factor, lanes_of(before));
    llvm::Value* sum = joined(before, splat(item, lanes_of(before)));
    b_.CreateStore(sum, slot);
    bool alike = !in_vector(kept) && lanes_of(sum) > 1;
    return set_result(n, {alike ? b_.CreateExtractElement(sum, uint64_t{0}) : sum});
  }
  llvm::Value *none = neutral(n, lanes)[0], *run = splat(item, lanes);
  llvm::Value* one = factor ? llvm::ConstantFP::get(none->getType(), 1) : nullptr;
  if (factor) factor = splat(factor, lanes);
  if (vector_.mask) run = b_.CreateSelect(vector_.mask, run, none);
  if (vector_.mask && factor) factor = b_.CreateSelect(vector_.mask, factor, one);
  for (int step = 1; step < lanes; step *= 2) {
    std::vector<int> places(static_cast<size_t>(lanes));
    for (int i = 0; i < lanes; ++i) places[i] = i < step ? i : lanes + i - step;
    run = joined(b_.CreateShuffleVector(none, run, places), run);
    if (factor) factor = emit_binary(ScalarOp::Mul, b_.CreateShuffleVector(one, factor, places), factor, t);
  }
  llvm::Value* sums = joined(before, run);
  auto last = [&](llvm::Value* v) {
    return b_.CreateShuffleVector(v, std::vector<int>(static_cast<size_t>(lanes), lanes - 1));
  };
  // A product that underflows takes as long as a hundred others: none is made twice, though its last lane comes later than one of its own.
  bool products = factor || combiner_of(n) == "mul";
  b_.CreateStore(products ? last(sums) : joined(before, last(run)), slot);
  set_result(n, {sums});
}

// Null where the reduction is another one, or the target has no instruction that adds its products up.
llvm::Value* Emitter::add_word_product(const Node* n, llvm::Value* sum) {
  const Node* item = items_of(n)[0].node;
  if (combiner_of(n) != "add") return nullptr;
  if (loop_kind(item->op) == LoopOp::PairProduct) return add_pair_product(item, sum);
  return loop_kind(item->op) == LoopOp::QuadProduct ? add_quad_product(item, sum) : nullptr;
}

llvm::Value* Emitter::add_pair_product(const Node* item, llvm::Value* sum) {
  int lanes = lanes_of(sum);
  if (!target_.pairs || !is_floating(item->types[0].dtype)) return nullptr;
  if (lanes != 4 && lanes != 8 && lanes != 16) return nullptr;
  auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
            : lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                         : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
  llvm::Function* add = llvm::Intrinsic::getDeclaration(&module_, id);
  auto operand = [&](size_t i) {
    return b_.CreateBitCast(splat(eval(item->arg<Value>(i)), lanes), add->getFunctionType()->getParamType(1));
  };
  llvm::Value *a = operand(0), *b = operand(1);
  return b_.CreateCall(add, {sum, a, b});
}

Emitter::Values Emitter::fold_list(const std::string& combiner, std::vector<Values> list, DType t) {
  while (list.size() > 1) {
    std::vector<Values> half;
    for (size_t i = 0; i + 1 < list.size(); i += 2) half.push_back(combine(combiner, list[i], list[i + 1], t));
    if (list.size() % 2) half.push_back(list.back());
    list = std::move(half);
  }
  return list[0];
}

Emitter::Values Emitter::fold_lanes(const std::string& combiner, const Values& v, DType t) {
  Values now = v;
  while (lanes_of(now[0]) > 1) {
    int lanes = lanes_of(now[0]);
    if (lanes % 2) {
      std::vector<Values> list(lanes);
      for (int i = 0; i < lanes; ++i)
        for (llvm::Value* x : now) list[i].push_back(b_.CreateExtractElement(x, i));
      return fold_list(combiner, std::move(list), t);
    }
    auto half = [&](llvm::Value* x, int first) {
      std::vector<int> places(lanes / 2);
      std::iota(places.begin(), places.end(), first);
      return lanes == 2 ? b_.CreateExtractElement(x, first) : b_.CreateShuffleVector(x, places);
    };
    Values low, high;
    for (llvm::Value* x : now) {
      low.push_back(half(x, 0));
      high.push_back(half(x, lanes / 2));
    }
    now = combine(combiner, low, high, t);
  }
  return now;
}

void Emitter::finish_reduce(const Node* n) {
  Accumulators a = std::move(accumulators_.at(n));
  accumulators_.erase(n);
  Ranges free = analysis_.of(n);
  size_t results = n->types.size();
  DType t = n->types[0].dtype;
  auto read = [&](const Values& slots, size_t place) { return read_slots({slots.data() + place * results, results}); };
  std::vector<Values> all;
  for_combinations(free, in_vector(free), [&] {
    size_t at = combination(free, in_vector(free));
    std::vector<Values> list;
    if (a.by_element) {
      list.push_back({fold_elements(n, a, at)});
    } else {
      for (int c = 0; c < a.copies; ++c) list.push_back(read(a.vectors, at * a.copies + c));
    }
    Values v = fold_list(combiner_of(n), std::move(list), t);
    if (a.closes_vector) v = fold_lanes(combiner_of(n), v, t);
    if (!a.scalars.empty()) {
      Values rest = a.by_element ? Values{read_element(n, a.scalars[at])} : read(a.scalars, at);
      v = combine(combiner_of(n), v, rest, t);
    }
    all.push_back(std::move(v));
  });
  all = reduce_threads(n, std::move(all));
  auto next = all.begin();
  for_combinations(free, in_vector(free), [&] { set_result(n, *next++); });
}

// Over unroll and thread loops alone: there is nothing to carry around a loop.
void Emitter::emit_small_reduce(const Node* n) {
  std::vector<Values> list;
  int lanes = 1;
  const Node* product = fused_product(items_of(n)[0], n, analysis_.inside(n));
  bool odd = false;
  for_combinations(analysis_.closed(n), false, [&] {
    // Of two products that are added, one is fused.
    odd = !odd;
    if (product && !odd) {
      list.back()[0] = fused(product, list.back()[0]);
      return;
    }
    Values& v = list.emplace_back();
    for (Value item : items_of(n)) v.push_back(eval(item));
    for (llvm::Value* x : v) lanes = std::max(lanes, lanes_of(x));
  });
  for (Values& v : list)
    for (llvm::Value*& x : v) x = splat(x, lanes);
  set_result(
      n, reduce_threads(n, std::vector<Values>(1, fold_list(combiner_of(n), std::move(list), n->types[0].dtype)))[0]);
}

}  // namespace brasa::compiler
