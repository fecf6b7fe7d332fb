#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/loops/rare.h"
#include "compiler/targets/emitter.h"
#include "ir/text.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

size_t Emitter::combinations(Ranges ranges, bool vector) const {
  size_t n = vector ? vector_.copies : 1;
  for (Ranges r = ranges & analysis_.kind(ForKind::Unroll); r; r &= r - 1)
    n *= analysis_.loops()[std::countr_zero(r)].extent().constant();
  return n;
}

size_t Emitter::combination(Ranges ranges, bool vector) const {
  size_t at = 0;
  for (Ranges r = ranges & analysis_.kind(ForKind::Unroll); r; r &= r - 1) {
    int loop = std::countr_zero(r);
    at = at * analysis_.loops()[loop].extent().constant() + unrolled_[loop];
  }
  return vector ? at * vector_.copies + vector_.copy : at;
}

void Emitter::set_result(const Node* n, const Values& results) {
  Ranges r = analysis_.of(n);
  Values& all = frames_.back().values[n];
  if (all.empty()) all.resize(combinations(r, in_vector(r)) * results.size());
  size_t at = combination(r, in_vector(r)) * results.size();
  std::copy(results.begin(), results.end(), all.begin() + static_cast<ptrdiff_t>(at));
}

llvm::Value* Emitter::eval(Value v) {
  const Node* n = v.node;
  if (auto it = decided_.find(n); it != decided_.end()) return it->second;
  Ranges r = analysis_.of(n);
  size_t at = combination(r, in_vector(r)) * n->types.size() + v.index;
  for (size_t i = frames_.size(); i-- > 0;) {
    auto it = frames_[i].values.find(n);
    if (it != frames_[i].values.end() && it->second[at]) return it->second[at];
  }
  if (loop_kind(n->op) == LoopOp::Load && load_transposed(n)) return eval(v);
  Values results = with_room([&] { return emit_node(n); });
  set_result(n, results);
  return results[v.index];
}

Emitter::Values Emitter::emit_node(const Node* n) {
  auto kind = loop_kind(n->op);
  if (int i = graph_.input_index(Value{const_cast<Node*>(n), 0}); i >= 0) return {emit_number(static_cast<size_t>(i))};
  if (!kind) return {emit_scalar(n)};
  switch (*kind) {
    case LoopOp::Index: {
      LaneIndex index = lane_index(at_copy(n->arg<ir::Expr>(0)));
      if (!index.offsets.empty())
        return {b_.CreateAdd(splat(eval_expr(index.base), vector_.lanes), behind_base(index))};
      if (!index.linear) return {eval_lanes(index.whole)};
      if (index.stride.is(0)) return {eval_expr(index.base)};
      return {eval_lanes(index.base + index.stride * vector_.lane)};
    }
    case LoopOp::Bind: {
      llvm::Value* x = eval(n->arg<Value>(0));
      return {convert(x, type_of(n->arg<Value>(0)).dtype, DType::Int64)};
    }
    case LoopOp::Load: return {emit_load(n)};
    case LoopOp::Unlikely: return {emit_unlikely(n)};
    case LoopOp::Scale: return {emit_scale(n)};
    case LoopOp::PairProduct: return {emit_pair_product(n)};
    case LoopOp::QuadProduct: return {emit_quad_product(n)};
    default:
      fail_internal(
          str("code generator: ", ir::print(*n), " is used as a value before it is computed in\n", ir::print(graph_)));
  }
}

// Its bits stand in the low end of the slot.
llvm::Value* Emitter::emit_number(size_t input) {
  DType t = type_of(graph_.inputs()[input].value).dtype;
  llvm::Type* memory = memory_type(t);
  auto bits = static_cast<unsigned>(memory->getPrimitiveSizeInBits());
  return from_memory(b_.CreateBitCast(b_.CreateTrunc(buffers_[input], b_.getIntNTy(bits)), memory), t);
}

// Lanes behind a loop's end hold what no element is: zeros, which may be rare.
llvm::Value* Emitter::any_lane(llvm::Value* condition) {
  return lanes_of(condition) > 1 ? b_.CreateOrReduce(full_mask(condition)) : condition;
}

// The rare value is computed in a branch that is entered if any lane needs it. What is emitted there is not known outside.
llvm::Value* Emitter::emit_unlikely(const Node* n) {
  llvm::Value *condition = eval(n->arg<Value>(0)), *usual = eval(n->arg<Value>(2));
  usual = splat(usual, lanes_of(condition));
  llvm::Value* any = any_lane(condition);
  auto* before = b_.GetInsertBlock();
  llvm::BasicBlock* last = nullptr;
  llvm::Value* chosen = nullptr;
  with_frame([&] {
    emit_if(any, [&] {
      llvm::Value* rare = target_.gpu ? eval(n->arg<Value>(1)) : call_rare(n);
      match(rare, usual);
      chosen = b_.CreateSelect(condition, rare, usual);
      last = b_.GetInsertBlock();
    });
  });
  auto* branch = llvm::cast<llvm::BranchInst>(before->getTerminator());
  branch->setMetadata(llvm::LLVMContext::MD_prof, llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 2000));
  auto* phi = b_.CreatePHI(chosen->getType(), 2);
  phi->addIncoming(chosen, last);
  phi->addIncoming(usual, before);
  return phi;
}

llvm::Value* Emitter::emit_select(const Node* n) {
  if (llvm::Value* x = load_chosen(n)) return x;
  llvm::Value* c = eval(n->arg<Value>(0));
  auto side = [&](size_t i) {
    Value v = n->arg<Value>(i);
    auto branch = branches_.find({n, i});
    return branch != branches_.end() ? in_branch(v, i == 1 ? c : b_.CreateNot(c), branch->second) : eval(v);
  };
  llvm::Value *a = side(1), *b = side(2);
  match(a, b);
  return b_.CreateSelect(c, splat(a, lanes_of(c)), splat(b, lanes_of(c)));
}

// The value if any lane needs it, else 0. What is emitted there is not known outside.
llvm::Value* Emitter::in_branch(Value v, llvm::Value* needed, std::span<const Value> first) {
  for (Value other : first) eval(other);
  llvm::Value* any = any_lane(needed);
  auto* before = b_.GetInsertBlock();
  llvm::BasicBlock* last = nullptr;
  llvm::Value* value = nullptr;
  with_frame([&] {
    emit_if(any, [&] {
      value = eval(v);
      last = b_.GetInsertBlock();
    });
  });
  auto* phi = b_.CreatePHI(value->getType(), 2);
  phi->addIncoming(value, last);
  phi->addIncoming(llvm::Constant::getNullValue(value->getType()), before);
  return phi;
}

// By a function of the module's own: it is compiled once for all copies of a loop's body, and the body is short without it.
llvm::Value* Emitter::call_rare(const Node* n) {
  RareBody rare = rare_body(n, kernel_);
  Values operands;
  int lanes = 1;
  for (Value v : rare.operands) {
    operands.push_back(eval(v));
    lanes = std::max(lanes, lanes_of(operands.back()));
  }
  for (llvm::Value*& v : operands) v = splat(v, lanes);
  llvm::Function*& function = rare_[{n, lanes}];
  if (!function) function = Emitter(module_, target_, rare.math).run_as_function("rare", lanes);
  return b_.CreateCall(function, operands);
}

// By AVX-512's instruction, in registers of 16, 32 or 64 bytes: one is filled up, or there are several.
llvm::Value* Emitter::emit_scale(const Node* n) {
  llvm::Value *x = eval(n->arg<Value>(0)), *by = eval(n->arg<Value>(1));
  match(x, by);
  bool is_double = n->types[0].dtype == DType::Float64;
  unsigned lanes = static_cast<unsigned>(lanes_of(x)), most = is_double ? 8 : 16;
  unsigned width = std::clamp(std::bit_ceil(lanes), most / 4, most);
  constexpr llvm::Intrinsic::ID kFloat[] = {llvm::Intrinsic::x86_avx512_mask_scalef_ps_128,
                                            llvm::Intrinsic::x86_avx512_mask_scalef_ps_256,
                                            llvm::Intrinsic::x86_avx512_mask_scalef_ps_512};
  constexpr llvm::Intrinsic::ID kDouble[] = {llvm::Intrinsic::x86_avx512_mask_scalef_pd_128,
                                             llvm::Intrinsic::x86_avx512_mask_scalef_pd_256,
                                             llvm::Intrinsic::x86_avx512_mask_scalef_pd_512};
  auto id = (is_double ? kDouble : kFloat)[std::countr_zero(4 * width / most)];
  auto part = [&](llvm::Value* v, unsigned from) {
    if (lanes == 1) return b_.CreateVectorSplat(width, v);
    llvm::SmallVector<int> places;
    for (unsigned i = 0; i < width; ++i) places.push_back(from + i < lanes ? static_cast<int>(from + i) : -1);
    return b_.CreateShuffleVector(v, places);
  };
  llvm::SmallVector<llvm::Value*> parts;
  for (unsigned from = 0; from < lanes; from += width) {
    llvm::Value *a = part(x, from), *k = part(by, from);
    llvm::Type* mask = b_.getIntNTy(std::max(8U, width));
    llvm::SmallVector<llvm::Value*> operands{a, k, a, llvm::Constant::getAllOnesValue(mask)};
    if (width == most) operands.push_back(b_.getInt32(4));  // rounded as all else
    parts.push_back(b_.CreateIntrinsic(id, {}, operands));
  }
  llvm::Value* all = llvm::concatenateVectors(b_, parts);
  if (lanes == 1) return b_.CreateExtractElement(all, b_.getInt32(0));
  llvm::SmallVector<int> places(lanes);
  std::iota(places.begin(), places.end(), 0);
  return b_.CreateShuffleVector(all, places);
}

llvm::Value* Emitter::emit_pair_product(const Node* n) {
  llvm::Value *a = eval(n->arg<Value>(0)), *b = eval(n->arg<Value>(1));
  match(a, b);
  if (!is_floating(n->types[0].dtype)) return integer_pair_product(a, b);
  llvm::Type* f32 = like(b_.getFloatTy(), a);
  auto low = [&](llvm::Value* x) { return b_.CreateBitCast(b_.CreateShl(x, number(x->getType(), 16)), f32); };
  auto high = [&](llvm::Value* x) { return b_.CreateBitCast(b_.CreateAnd(x, number(x->getType(), -65536)), f32); };
  llvm::Value* of_high = b_.CreateFMul(high(a), high(b));
  return fuses_ ? fused(low(a), low(b), of_high) : b_.CreateFAdd(b_.CreateFMul(low(a), low(b)), of_high);
}

llvm::Value* Emitter::integer_pair_product(llvm::Value* a, llvm::Value* b) {
  int lanes = lanes_of(a);
  bool x86 = target_.triple.starts_with("x86_64");
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  if (x86 && lanes == 4) id = llvm::Intrinsic::x86_sse2_pmadd_wd;
  if (x86 && lanes == 8) id = llvm::Intrinsic::x86_avx2_pmadd_wd;
  if (x86 && lanes == 16) id = llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  if (id != llvm::Intrinsic::not_intrinsic) {
    auto* halves = llvm::FixedVectorType::get(b_.getInt16Ty(), static_cast<unsigned>(2 * lanes));
    return b_.CreateIntrinsic(id, {}, {b_.CreateBitCast(a, halves), b_.CreateBitCast(b, halves)});
  }
  auto high = [&](llvm::Value* x) { return b_.CreateAShr(x, number(x->getType(), 16)); };
  auto low = [&](llvm::Value* x) { return high(b_.CreateShl(x, number(x->getType(), 16))); };
  return b_.CreateAdd(b_.CreateMul(low(a), low(b)), b_.CreateMul(high(a), high(b)));
}

llvm::Value* Emitter::emit_quad_product(const Node* n) {
  llvm::Value *a = eval(n->arg<Value>(0)), *b = eval(n->arg<Value>(1));
  match(a, b);
  if (llvm::Value* sum = add_quad_product(n, number(a->getType(), 0))) return sum;
  llvm::Value *all = nullptr, *high = number(a->getType(), 24);
  for (int i = 0; i < 4; ++i) {
    llvm::Value* up = number(a->getType(), 24 - 8 * i);
    llvm::Value* x = b_.CreateMul(b_.CreateAShr(b_.CreateShl(a, up), high), b_.CreateLShr(b_.CreateShl(b, up), high));
    all = all ? b_.CreateAdd(all, x) : x;
  }
  return all;
}

// Null where the target has no instruction for so many lanes.
llvm::Value* Emitter::add_quad_product(const Node* n, llvm::Value* sum) {
  int lanes = lanes_of(sum);
  if (!target_.quads || (lanes != 4 && lanes != 8 && lanes != 16)) return nullptr;
  auto id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
            : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                         : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  llvm::Value *a = splat(eval(n->arg<Value>(0)), lanes), *b = splat(eval(n->arg<Value>(1)), lanes);
  return b_.CreateIntrinsic(id, {}, {sum, b, a});
}

llvm::Type* Emitter::register_type(DType t) {
  if (is_complex(t)) fail(str("generated kernels do not compute with ", name(t), " yet"));
  if (t == DType::Bool) return b_.getInt1Ty();
  if (is_floating(t) && !is_narrow_floating(t)) return size_of(t) == 4 ? b_.getFloatTy() : b_.getDoubleTy();
  return b_.getIntNTy(static_cast<unsigned>(8 * size_of(t)));
}

llvm::Type* Emitter::memory_type(DType t) { return t == DType::Bool ? b_.getInt8Ty() : register_type(t); }

int Emitter::lanes_of(llvm::Value* v) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return t ? static_cast<int>(t->getNumElements()) : 1;
}

llvm::Value* Emitter::splat(llvm::Value* v, int lanes) {
  if (lanes == 1 || lanes_of(v) == lanes) return v;
  BRASA_ASSERT(lanes_of(v) == 1, "vectors of ", lanes_of(v), " and ", lanes, " lanes meet");
  return b_.CreateVectorSplat(lanes, v);
}

void Emitter::match(llvm::Value*& a, llvm::Value*& b) {
  int lanes = std::max(lanes_of(a), lanes_of(b));
  a = splat(a, lanes);
  b = splat(b, lanes);
}

llvm::Type* Emitter::like(llvm::Type* scalar, llvm::Value* shape) {
  int lanes = lanes_of(shape);
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

llvm::Value* Emitter::number(llvm::Type* t, int64_t v) {
  llvm::Type* scalar = t->getScalarType();
  if (scalar->isFloatingPointTy()) return llvm::ConstantFP::get(t, static_cast<double>(v));
  return llvm::ConstantInt::get(t, static_cast<uint64_t>(v), true);
}

llvm::AllocaInst* Emitter::stack(llvm::Type* t, int64_t count, int align) {
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  auto* a = entry.CreateAlloca(t, count == 1 ? nullptr : entry.getInt64(count));
  if (align) a->setAlignment(llvm::Align(align));
  return a;
}

llvm::Value* Emitter::intrinsic(unsigned id, llvm::ArrayRef<llvm::Value*> args, llvm::ArrayRef<llvm::Type*> types) {
  if (llvm::Value* chosen = target_.baseline ? chosen_of_two(id, args) : nullptr) return chosen;
  std::vector<llvm::Type*> overloads(types.begin(), types.end());
  if (overloads.empty()) overloads.push_back(args[0]->getType());
  return b_.CreateIntrinsic(static_cast<llvm::Intrinsic::ID>(id), overloads, args);
}

llvm::Value* Emitter::lane_numbers(int lanes, llvm::Type* scalar) {
  std::vector<llvm::Constant*> items;
  for (int i = 0; i < lanes; ++i) items.push_back(llvm::ConstantInt::get(scalar, i));
  return lanes == 1 ? items[0] : llvm::ConstantVector::get(items);
}

}  // namespace brasa::compiler
