#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "compiler/targets/emitter.h"
#include "ops/table.h"
#include "support/checked.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

using ir::ExprKind;

namespace {

// Symbols that exist only while offsets are looked for.
constexpr uint32_t kPartId = 0xF1000000;

// Whether it is known to be such a number, of which a GPU divides by two or three instructions, while it takes two dozen with 64 bits.
bool fits_in_32_bits(Expr e) { return e->min >= 0 && e->max <= std::numeric_limits<uint32_t>::max(); }

bool is_power_of_two(Expr e) { return e.is_constant() && std::has_single_bit(static_cast<uint64_t>(e.constant())); }

}  // namespace

// Puts in what is known at this place: unroll indices as numbers, the vector loop's index as start + lane.
Expr Emitter::at_copy(Expr e) {
  Ranges special = analysis_.kind(ForKind::Unroll);
  if (vector_.loop >= 0) special |= Ranges{1} << vector_.loop;
  // Of a short loop that is spelled out, too, so that equal places are one.
  for (Ranges rest = analysis_.of(e) & ~special; rest; rest &= rest - 1)
    if (known_iteration(std::countr_zero(rest))) special |= rest & -rest;
  if (!(analysis_.of(e) & special)) return e;
  return ir::substitute(e, [&](Expr s) -> std::optional<Expr> {
    if (s->kind != ExprKind::Range) return std::nullopt;
    int loop = analysis_.loop_of(s);
    if (loop == vector_.loop)
      return vector_.symbol + (vector_.first + int64_t{vector_.lanes} * vector_.copy) + vector_.lane;
    if (analysis_.loops()[loop].kind == ForKind::Unroll) return Expr(unrolled_[loop]);
    if (auto* iteration = known_iteration(loop)) return Expr(iteration->getSExtValue());
    return std::nullopt;
  });
}

const llvm::ConstantInt* Emitter::known_iteration(int loop) const {
  llvm::Value* at = range_values_[static_cast<size_t>(loop)];
  return at ? llvm::dyn_cast<llvm::ConstantInt>(at) : nullptr;
}

llvm::Value* Emitter::bound(Expr symbol) { return eval(Value{const_cast<ir::Node*>(analysis_.binds().at(symbol)), 0}); }

bool Emitter::varies(Expr e) {
  if (vector_.loop < 0 || vector_.lanes == 1) return false;
  return std::any_of(e->symbols->begin(), e->symbols->end(), [&](Expr s) {
    return s == vector_.lane || (s->kind == ExprKind::Value && lanes_of(bound(s)) > 1);
  });
}

// e = base + stride * lane with uniform base and stride, or false. Quotients and remainders stay linear where a whole
// vector falls into one row, which the known multiples of start and divisor show.
bool Emitter::split(Expr e, Expr& base, Expr& stride) {
  if (!varies(e)) {
    base = e;
    stride = 0;
    return true;
  }
  Expr b, s;
  switch (e->kind) {
    case ExprKind::Range:
      base = 0;
      stride = 1;
      return e == vector_.lane;
    case ExprKind::Add: {
      base = e->value;
      stride = 0;
      for (Expr a : e->args) {
        if (!split(a, b, s)) return false;
        base = base + b;
        stride = stride + s;
      }
      return true;
    }
    case ExprKind::Mul: {
      Expr factor = e->value;
      bool found = false;
      for (Expr a : e->args) {
        if (!varies(a)) {
          factor = factor * a;
        } else if (found || !split(a, b, s)) {
          return false;
        } else {
          found = true;
        }
      }
      base = b * factor;
      stride = s * factor;
      return true;
    }
    case ExprKind::FloorDiv:
    case ExprKind::Mod: {
      Expr divisor = e->args[1];
      if (varies(divisor) || !split(e->args[0], b, s) || !s.is_constant() || s.constant() < 1) return false;
      int64_t row = s.constant() * vector_.lanes;
      if (!provably_divisible(b, row) || !provably_divisible(divisor, row)) return false;
      base = e->kind == ExprKind::FloorDiv ? floordiv(b, divisor) : mod(b, divisor);
      stride = e->kind == ExprKind::FloorDiv ? Expr(0) : s;
      return true;
    }
    default: return false;
  }
}

Emitter::LaneIndex Emitter::lane_index(Expr e) {
  LaneIndex out;
  out.whole = e;
  out.linear = split(e, out.base, out.stride);
  if (!out.linear && !target_.gpu) find_offsets(out);
  return out;
}

// Quotients and remainders by numbers that divide what symbols are known to be multiples of, as a loop's start is of its steps, leave each lane
// at the same place behind the others every time. A symbol is written as so many multiples, which divisions take apart.
void Emitter::find_offsets(LaneIndex& index) {
  std::vector<Expr> symbols;
  bool by_lane_alone = true;
  Expr e = ir::substitute(index.whole, [&](Expr s) -> std::optional<Expr> {
    if (s->kind == ExprKind::Value && lanes_of(bound(s)) > 1) by_lane_alone = false;
    if (s->kind != ExprKind::Size || s->divisor <= 1) return std::nullopt;
    size_t i = std::find(symbols.begin(), symbols.end(), s) - symbols.begin();
    if (i == symbols.size()) symbols.push_back(s);
    return Expr::size(kPartId + static_cast<uint32_t>(i)) * s->divisor;
  });
  if (!by_lane_alone) return;
  auto at_lane = [&](int64_t lane) {
    return ir::substitute(e, [&](Expr s) { return s == vector_.lane ? std::optional(Expr(lane)) : std::nullopt; });
  };
  Expr first = at_lane(0);
  std::vector<int64_t> offsets{0};
  for (int lane = 1; lane < vector_.lanes; ++lane) {
    Expr behind = at_lane(lane) - first;
    if (!behind.is_constant()) return;
    offsets.push_back(behind.constant());
  }
  int64_t least = *std::min_element(offsets.begin(), offsets.end());
  for (int64_t& o : offsets) o -= least;
  index.offsets = std::move(offsets);
  index.base = ir::substitute(first + least, [&](Expr s) -> std::optional<Expr> {
    if (s->kind != ExprKind::Size || s->id < kPartId || s->id - kPartId >= symbols.size()) return std::nullopt;
    Expr whole = symbols[s->id - kPartId];
    return floordiv(whole, Expr(whole->divisor));
  });
}

// One a lane: what comes on top of the base.
llvm::Value* Emitter::behind_base(const LaneIndex& index) {
  if (index.linear) return splat(eval_lanes(index.stride * vector_.lane), vector_.lanes);
  std::vector<llvm::Constant*> offsets;
  for (int64_t o : index.offsets) offsets.push_back(b_.getInt64(static_cast<uint64_t>(o)));
  return llvm::ConstantVector::get(offsets);
}

// The nearest number of 32 bits: compares as the index does with every number between the two ends of that range.
llvm::Value* Emitter::in_32_bits(llvm::Value* index) {
  llvm::Value* low = i64(std::numeric_limits<int32_t>::min());
  llvm::Value* high = i64(std::numeric_limits<int32_t>::max());
  index = intrinsic(llvm::Intrinsic::smax, {intrinsic(llvm::Intrinsic::smin, {index, high}), low});
  return b_.CreateTrunc(index, b_.getInt32Ty());
}

// Two indices whose difference changes by a constant from lane to lane: numbers of 32 bits that the code knows are compared with
// what the difference is at the first lane, instead of vectors of 64-bit indices. Null for others.
llvm::Value* Emitter::compare_indices(ScalarOp op, const ir::Node* n) {
  if (vector_.loop < 0 || vector_.lanes == 1) return nullptr;
  auto index = [&](size_t i) -> std::optional<Expr> {
    const ir::Node* v = n->arg<Value>(i).node;
    if (std::optional<LoopOp> kind = loop_kind(v->op); kind)
      return kind == LoopOp::Index ? std::optional(at_copy(v->arg<Expr>(0))) : std::nullopt;
    auto* constant = ops::kind_of(*v) == ops::Kind::Full ? v->args[0].get_if<Expr>() : nullptr;
    return constant && v->types[0].dtype == DType::Int64 ? std::optional(*constant) : std::nullopt;
  };
  std::optional<Expr> a = index(0), b = index(1);
  if (!a || !b) return nullptr;
  LaneIndex ahead = lane_index(*b - *a);
  bool by_lane = !ahead.offsets.empty();
  if (!ahead.linear && !by_lane && op == ScalarOp::Eq)
    return a->is_constant() ? leaves_rest(*b, *a) : leaves_rest(*a, *b);
  if (!by_lane && (!ahead.linear || !ahead.stride.is_constant() || ahead.stride.is(0))) return nullptr;
  // a < b where -behind the base - constant < rest.
  int64_t constant = ahead.base->kind == ExprKind::Add || ahead.base.is_constant() ? ahead.base->value : 0;
  constexpr int64_t kLargest = int64_t{1} << 30;
  int64_t farthest = by_lane ? ahead.span() : std::abs(ahead.stride.constant());
  if (std::abs(constant) > kLargest || farthest > kLargest / vector_.lanes) return nullptr;
  std::vector<llvm::Constant*> turns;
  for (int lane = 0; lane < vector_.lanes; ++lane) {
    int64_t behind = by_lane ? ahead.offsets[static_cast<size_t>(lane)] : ahead.stride.constant() * lane;
    turns.push_back(llvm::ConstantInt::get(b_.getInt32Ty(), static_cast<uint64_t>(-behind - constant), true));
  }
  llvm::Value* rest = splat(in_32_bits(eval_expr(ahead.base - constant)), vector_.lanes);
  return emit_compare(op, llvm::ConstantVector::get(turns), rest, DType::Int32);
}

// Places that are known numbers apart, by lane or by copy, and a number that all have in common, as a row's label is: how far it lies behind the
// first place is found once, and equals one of these numbers of 32 bits or none. Null for others.
llvm::Value* Emitter::compare_with_common(ScalarOp op, const ir::Node* n) {
  constexpr int64_t kLargest = int64_t{1} << 30;
  if (op != ScalarOp::Eq && op != ScalarOp::Ne) return nullptr;
  for (size_t i : {0, 1}) {
    const ir::Node* place = n->arg<Value>(i).node;
    Value common = n->arg<Value>(1 - i);
    if (loop_kind(place->op) != LoopOp::Index || type_of(common).dtype != DType::Int64) continue;
    Ranges apart = analysis_.of(place) & ~analysis_.of(common.node), copies = analysis_.kind(ForKind::Unroll);
    if (in_vector(analysis_.of(common.node)) || !(in_vector(apart) || (target_.gpu && apart & copies))) continue;
    LaneIndex at = lane_index(at_copy(place->arg<Expr>(0)));
    if (!at.linear || !at.stride.is_constant() || at.stride.constant() < 0) continue;
    int64_t first = at.base->kind == ExprKind::Add || at.base.is_constant() ? at.base->value : 0;
    if (first < 0 || first > kLargest || at.stride.constant() > kLargest / vector_.lanes) continue;
    llvm::Value* behind = b_.CreateSub(eval(common), eval_expr(at.base - first));
    llvm::Value* near = b_.CreateSelect(b_.CreateICmpULT(behind, i64(2 * kLargest)),
                                        b_.CreateTrunc(behind, b_.getInt32Ty()), b_.getInt32(UINT32_MAX));
    std::vector<llvm::Constant*> places;
    for (int lane = 0; lane < vector_.lanes; ++lane)
      places.push_back(b_.getInt32(static_cast<uint32_t>(first + at.stride.constant() * lane)));
    if (places.size() == 1) return emit_compare(op, near, places[0], DType::Int32);
    return emit_compare(op, splat(near, vector_.lanes), llvm::ConstantVector::get(places), DType::Int32);
  }
  return nullptr;
}

// Whether places a constant apart, divided by a number that the code knows, leave this rest: what the first lane leaves decides for all.
// Null for others.
llvm::Value* Emitter::leaves_rest(Expr remainder, Expr rest) {
  if (remainder->kind != ExprKind::Mod || !remainder->args[1].is_constant() || !rest.is_constant()) return nullptr;
  constexpr int64_t kLargest = int64_t{1} << 24;
  LaneIndex place = lane_index(remainder->args[0]);
  int64_t divisor = remainder->args[1].constant();
  bool fits = place.linear && place.stride.is_constant() && std::abs(place.stride.constant()) < kLargest;
  if (!fits || divisor < 1 || divisor > kLargest || rest.constant() < 0 || rest.constant() >= divisor) return nullptr;
  std::vector<llvm::Constant*> turns;
  for (int lane = 0; lane < vector_.lanes; ++lane)
    turns.push_back(b_.getInt32(static_cast<uint32_t>(floor_mod(place.stride.constant() * lane, divisor))));
  llvm::Value* missing = b_.CreateTrunc(eval_expr(mod(rest - place.base, divisor)), b_.getInt32Ty());
  return emit_compare(ScalarOp::Eq, llvm::ConstantVector::get(turns), splat(missing, vector_.lanes), DType::Int32);
}

namespace {

// 3·2⁵¹, whose last digit is worth 1: integers between -2⁵¹ and 2⁵¹ are digits of the double that is so much greater.
constexpr double kIntegers = 0x1.8p52;

}  // namespace

llvm::Value* Emitter::integer_to_double(llvm::Value* v) {
  llvm::Constant* shift = llvm::ConstantFP::get(like(b_.getDoubleTy(), v), kIntegers);
  llvm::Value* bits = b_.CreateBitCast(shift, v->getType());
  return b_.CreateFSub(b_.CreateBitCast(b_.CreateAdd(v, bits), shift->getType()), shift);
}

llvm::Value* Emitter::double_to_integer(llvm::Value* v) {
  llvm::Constant* shift = llvm::ConstantFP::get(v->getType(), kIntegers);
  llvm::Type* integers = like(b_.getInt64Ty(), v);
  return b_.CreateSub(b_.CreateBitCast(b_.CreateFAdd(v, shift), integers), b_.CreateBitCast(shift, integers));
}

// Of integers between -2⁵⁰ and 2⁵⁰, as all places are. No processor divides vectors of integers. The nearest double to a quotient never lies
// beyond an integer that the quotient does not reach; a divisor that is the same for all lanes is divided by once, as x + ½ is so far from its
// multiples that the product with its reciprocal, whose two roundings are less than that, lies between the same ones.
llvm::Value* Emitter::divide_lanes(ExprKind kind, llvm::Value* a, llvm::Value* d) {
  llvm::IRBuilder<>::FastMathFlagGuard flags(b_);
  b_.clearFastMathFlags();
  bool once = lanes_of(d) == 1;
  if (!once) match(a, d);
  llvm::Value *x = integer_to_double(a), *y, *r;
  if (once) {
    llvm::Value* divisor = b_.CreateSIToFP(d, b_.getDoubleTy());
    llvm::Value* reciprocal = b_.CreateFDiv(llvm::ConstantFP::get(b_.getDoubleTy(), 1), divisor);
    y = splat(divisor, lanes_of(a));
    r = b_.CreateFMul(b_.CreateFAdd(x, llvm::ConstantFP::get(x->getType(), 0.5)), splat(reciprocal, lanes_of(a)));
  } else {
    y = integer_to_double(d);
    r = b_.CreateFDiv(x, y);
  }
  r = emit_rounding(ScalarOp::Floor, r);
  if (kind == ExprKind::Mod) r = b_.CreateFSub(x, b_.CreateFMul(r, y));
  return double_to_integer(r);
}

llvm::Value* Emitter::eval_any(Expr e, const std::function<llvm::Value*(Expr)>& symbol,
                               std::span<ExprValues* const> known) {
  if (e.is_constant()) return i64(e.constant());
  for (ExprValues* values : known)
    if (auto it = values->find(e); it != values->end()) return it->second;
  auto arg = [&](size_t i) { return with_room([&] { return eval_any(e->args[i], symbol, known); }); };
  llvm::Value* r = nullptr;
  switch (e->kind) {
    case ExprKind::Constant: break;
    case ExprKind::Size:
    case ExprKind::Range:
    case ExprKind::Value: return symbol(e);
    case ExprKind::Mul:
    case ExprKind::Add: {
      bool add = e->kind == ExprKind::Add;
      auto put = [&](llvm::Value* a) {
        if (r) match(r, a);
        r = !r ? a : add ? b_.CreateNSWAdd(r, a) : b_.CreateNSWMul(r, a);
      };
      for (size_t i = 0; i < e->args.size(); ++i) put(arg(i));
      if (e->value != (add ? 0 : 1)) put(number(r->getType(), e->value));
      break;
    }
    case ExprKind::FloorDiv:
    case ExprKind::Mod: {
      llvm::Value *a = arg(0), *d = arg(1);
      // A divisor is positive wherever it matters; a loop that never runs may still divide by an extent of 0 here.
      if (e->args[1]->min < 1) d = intrinsic(llvm::Intrinsic::smax, {d, number(d->getType(), 1)});
      if (std::max(lanes_of(a), lanes_of(d)) > 1 && !is_power_of_two(e->args[1])) {
        r = divide_lanes(e->kind, a, d);
        break;
      }
      match(a, d);
      if (e->args[0]->min >= 0) {
        bool is_short = target_.gpu && fits_in_32_bits(e->args[0]) && fits_in_32_bits(e->args[1]);
        for (llvm::Value** v : {&a, &d})
          if (is_short) *v = b_.CreateTrunc(*v, b_.getInt32Ty());
        r = e->kind == ExprKind::FloorDiv ? b_.CreateUDiv(a, d) : b_.CreateURem(a, d);
        if (is_short) r = b_.CreateZExt(r, b_.getInt64Ty());
      } else {
        llvm::Value *q = b_.CreateSDiv(a, d), *rest = b_.CreateNSWSub(a, b_.CreateNSWMul(q, d));
        llvm::Value* below = b_.CreateICmpSLT(rest, number(rest->getType(), 0));
        r = e->kind == ExprKind::FloorDiv ? b_.CreateAdd(q, b_.CreateSExt(below, q->getType()))
                                          : b_.CreateSelect(below, b_.CreateAdd(rest, d), rest);
      }
      break;
    }
    case ExprKind::Min:
    case ExprKind::Max: {
      llvm::Value *x = arg(0), *y = arg(1);
      match(x, y);
      r = intrinsic(e->kind == ExprKind::Min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax, {x, y});
      break;
    }
  }
  known[0]->emplace(e, r);
  return r;
}

llvm::Value* Emitter::eval_expr(Expr e) {
  // What reads no value of the body is the same in the blocks inside of this one.
  ExprValues here;
  std::vector<ExprValues*> known = {&here};
  if (std::none_of(e->symbols->begin(), e->symbols->end(), [](Expr s) { return s->kind == ExprKind::Value; })) {
    known.clear();
    for (size_t i = frames_.size(); i-- > 0;) known.push_back(&frames_[i].exprs);
  }
  return eval_any(
      e,
      [&](Expr s) -> llvm::Value* {
        if (s == vector_.symbol && vector_.loop >= 0) return vector_.start;
        if (s->kind == ExprKind::Size) return sizes_.at(s);
        if (s->kind == ExprKind::Value) return bound(s);
        llvm::Value* v = range_values_[analysis_.loop_of(s)];
        BRASA_ASSERT(v, "the loop ", s, " is not around its use");
        return v;
      },
      known);
}

// The terms of a place whose divisions were made outside of this block, as `divide_before` makes them: with the buffer they are one address,
// which is the same in all iterations. Among other terms LLVM would find that some share no bits, and what is joined by `or` stays in the loop.
Expr Emitter::divided_before(Expr place) const {
  auto is_division = [](Expr e) { return e->kind == ExprKind::FloorDiv || e->kind == ExprKind::Mod; };
  auto is_known = [&](Expr e) {
    return std::any_of(frames_.begin(), frames_.end() - 1, [&](const Frame& f) { return f.exprs.contains(e); });
  };
  auto is_before = [&](Expr term) {
    const std::vector<Expr> self{term}, &factors = term->kind == ExprKind::Mul ? term->args : self;
    auto stays = [&](Expr e) { return e->kind == ExprKind::Size || (is_division(e) && is_known(e)); };
    return std::any_of(factors.begin(), factors.end(), is_division) &&
           std::all_of(factors.begin(), factors.end(), stays);
  };
  if (place->kind != ExprKind::Add) return is_before(place) ? place : Expr(0);
  Expr sum(0);
  for (Expr term : place->args)
    if (is_before(term)) sum = sum + term;
  return sum;
}

llvm::Value* Emitter::eval_lanes(Expr e) {
  ExprValues here;
  ExprValues* known[] = {&here};
  return eval_any(
      e,
      [&](Expr s) -> llvm::Value* {
        if (vector_.loop >= 0 && s == vector_.lane) return lane_numbers(vector_.lanes, b_.getInt64Ty());
        return eval_expr(s);
      },
      known);
}

}  // namespace brasa::compiler
