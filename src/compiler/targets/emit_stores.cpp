#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>

#include "compiler/fusion/indexing.h"
#include "compiler/targets/emitter.h"
#include "support/error.h"

// Stores, and updates of what lies in memory.
namespace brasa::compiler {

using ir::Node;

void Emitter::emit_store(const Node* n) {
  BufferRef p = place_of(n->arg<Value>(0));
  llvm::Value* value = eval(n->arg<Value>(2));
  llvm::Value* mask = n->args[3].is_none() ? nullptr : eval(n->arg<Value>(3));
  if (mask == b_.getTrue()) mask = nullptr;
  const auto& combiner = n->arg<std::string>(5);
  auto body = [&] {
    if (combiner.empty())
      store_to(p, at_copy(n->arg<Expr>(1)), value, mask, streamed_.count(n) > 0);
    else
      combine_to(p, at_copy(n->arg<Expr>(1)), value, mask, combiner);
  };
  if (Ranges missing = threads_missing(n)) {
    with_frame([&] { emit_if(first_thread_of(missing), body); });
  } else {
    body();
  }
}

// Stores that differ by one place in an unroll loop, and by as many as that has iterations from lane to lane, write neighbours. False for
// others.
bool Emitter::store_interleaved(const Node* n) {
  Ranges unrolled = analysis_.inside(n) & analysis_.kind(ForKind::Unroll);
  if (target_.gpu || target_.baseline || !std::has_single_bit(unrolled) || vector_.lanes == 1) return false;
  int loop = std::countr_zero(unrolled);
  auto count = static_cast<int>(analysis_.loops()[loop].extent().constant());
  BufferRef p = place_of(n->arg<Value>(0));
  bool plain = n->args[3].is_none() && n->arg<std::string>(5).empty();
  if (!plain || (vector_.mask && !target_.has_masks(size_of(p.dtype))) || count < 2 ||
      !std::has_single_bit(static_cast<unsigned>(count)))
    return false;
  auto index_at = [&](int i) {
    unrolled_[loop] = i;
    return lane_index(at_copy(n->arg<Expr>(1)));
  };
  vector_.copy = 0;
  LaneIndex first = index_at(0);
  bool even = first.linear && first.stride.is(count);
  for (int i = 1; i < count; ++i) {
    LaneIndex next = index_at(i);
    even = even && next.linear && next.stride.is(count) && (next.base - first.base).is(i);
  }
  unrolled_[loop] = 0;
  if (!even) return false;
  int lanes = vector_.lanes;
  std::vector<int> places;
  for (int i = 0; i < lanes * count; ++i) places.push_back(i % count * lanes + i / count);
  auto interleaved = [&](const Values& parts) {
    return b_.CreateShuffleVector(llvm::concatenateVectors(b_, parts), places);
  };
  for (vector_.copy = 0; vector_.copy < vector_.copies; ++vector_.copy) {
    Values parts;
    for (unrolled_[loop] = 0; unrolled_[loop] < count; ++unrolled_[loop])
      parts.push_back(splat(to_memory(eval(n->arg<Value>(2)), p.dtype), lanes));
    llvm::Value *whole = interleaved(parts), *at = address(p, index_at(0).base);
    llvm::Align align(size_of(p.dtype));
    if (vector_.mask)
      b_.CreateMaskedStore(whole, at, align, interleaved(Values(static_cast<size_t>(count), vector_.mask)));
    else
      b_.CreateAlignedStore(whole, at, align);
  }
  vector_.copy = 0;
  unrolled_[loop] = 0;
  return true;
}

void Emitter::emit_prefetch(const Node* n) {
  if (target_.baseline) return;
  BufferRef p = place_of(n->arg<Value>(0));
  llvm::Value* at = b_.CreateGEP(memory_type(p.dtype), p.base, eval_expr(at_copy(n->arg<Expr>(1))));
  at = unless_streamed(n->arg<Value>(0), at);
  // To read, of data; LLVM counts levels from the furthest.
  auto locality = static_cast<uint32_t>(4 - n->arg<Expr>(4).constant());
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                     {at, b_.getInt32(0), b_.getInt32(locality), b_.getInt32(1)});
}

void Emitter::store_to(const BufferRef& p, Expr e, llvm::Value* value, llvm::Value* mask, bool streamed) {
  llvm::Align align(size_of(p.dtype));
  value = to_memory(value, p.dtype);
  LaneIndex index = lane_index(e);
  bool uniform = index.linear && index.stride.is(0);
  if (uniform && lanes_of(value) == 1 && (!mask || lanes_of(mask) == 1)) {
    llvm::Value* at = address(p, index.base);
    if (!mask)
      b_.CreateAlignedStore(value, at, align);
    else
      emit_if(mask, [&] { b_.CreateAlignedStore(value, at, align); });
    return;
  }
  // Nothing is written at once: a vector's place may lie behind the buffer, where writing nothing takes hundreds of steps.
  if (mask && lanes_of(mask) == 1 && !target_.gpu)
    return with_frame([&] { emit_if(mask, [&] { store_to(p, e, value, nullptr, streamed); }); });
  llvm::Value* whole = mask ? nullptr : vector_.whole;  // null: to be found from the mask
  bool asks = mask || whole;
  mask = full_mask(mask);
  value = splat(value, vector_.lanes);
  if (few_steps(index) && target_.masks) {
    llvm::Value* at = address(p, index.base);
    for (const Neighbours& part : neighbours(index.stride.constant()))
      b_.CreateMaskedStore(spread(value, part),
                           b_.CreateConstInBoundsGEP1_64(memory_type(p.dtype), at, static_cast<uint64_t>(part.first)),
                           align, spread(every_lane(mask), part));
    return;
  }
  if (!index.linear || !index.stride.is(1)) {
    b_.CreateMaskedScatter(value, addresses(p, index), align, every_lane(mask));
    return;
  }
  llvm::Value* at = address(p, index.base);
  auto masked = [&] { b_.CreateMaskedStore(value, at, align, mask); };
  auto plain = [&] {
    llvm::StoreInst* store = b_.CreateAlignedStore(value, at, align);
    if (!streamed) return;
    store->setAlignment(llvm::Align(static_cast<uint64_t>(size_of(p.dtype) * vector_.lanes)));
    auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b_.getContext(), one));
  };
  if (mask && !target_.masks && asks) {
    // Where masks are no registers of their own, writing through one takes as long as 20 other instructions.
    if (!whole) whole = lanes_of(mask) > 1 ? b_.CreateAndReduce(mask) : mask;
    emit_if(whole, plain);
    emit_if(b_.CreateNot(whole), masked);
  } else {
    mask ? masked() : plain();
  }
}

void Emitter::combine_to(const BufferRef& p, Expr e, llvm::Value* value, llvm::Value* mask,
                         const std::string& combiner) {
  LaneIndex index = lane_index(e);
  bool uniform = index.linear && index.stride.is(0);
  int lanes = vector_.lanes;
  if (lanes == 1 || (uniform && lanes_of(value) == 1 && (!mask || lanes_of(mask) == 1) && !vector_.mask)) {
    llvm::Value* at = address(p, index.base);
    auto update = [&] { combine_one(at, p.dtype, value, combiner); };
    mask ? emit_if(mask, update) : update();
    return;
  }
  // Lanes may hit the same element, so they go one after the other.
  mask = full_mask(mask);
  llvm::Value* indices = splat(index.linear ? b_.CreateAdd(splat(eval_expr(index.base), lanes),
                                                           splat(eval_lanes(index.stride * vector_.lane), lanes))
                                            : eval_lanes(index.whole),
                               lanes);
  value = splat(value, lanes);
  for (int i = 0; i < lanes; ++i) {
    auto update = [&] {
      llvm::Value* at = b_.CreateInBoundsGEP(memory_type(p.dtype), p.base, b_.CreateExtractElement(indices, i));
      combine_one(at, p.dtype, b_.CreateExtractElement(value, i), combiner);
    };
    mask ? emit_if(b_.CreateExtractElement(mask, i), update) : update();
  }
}

void Emitter::combine_one(llvm::Value* pointer, DType dtype, llvm::Value* value, const std::string& combiner) {
  llvm::Type* scalar = memory_type(dtype);
  llvm::Align align(size_of(dtype));
  auto combined = [&](llvm::Value* memory) {
    llvm::Value* old = from_memory(memory, dtype);
    return to_memory(combine(combiner, {old}, {value}, dtype)[0], dtype);
  };
  bool alone = !analysis_.flat() && !analysis_.kind(ForKind::Thread);
  if (alone) {
    b_.CreateAlignedStore(combined(b_.CreateAlignedLoad(scalar, pointer, align)), pointer, align);
    return;
  }
  auto order = llvm::AtomicOrdering::Monotonic;
  if (combiner == "add" && (is_integral(dtype) || dtype == DType::Float32 || dtype == DType::Float64)) {
    b_.CreateAtomicRMW(is_integral(dtype) ? llvm::AtomicRMWInst::Add : llvm::AtomicRMWInst::FAdd, pointer, value, align,
                       order);
    return;
  }
  // Reads, combines and tries to write until nobody was in between.
  llvm::Type* bits = b_.getIntNTy(static_cast<unsigned>(size_of(dtype) * 8));
  llvm::Value* first = b_.CreateAlignedLoad(bits, pointer, align);
  auto* before = b_.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b_.getContext(), "retry", function_);
  auto* exit = llvm::BasicBlock::Create(b_.getContext(), "done", function_);
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  auto* old = b_.CreatePHI(bits, 2);
  old->addIncoming(first, before);
  llvm::Value* wanted = b_.CreateBitCast(combined(b_.CreateBitCast(old, scalar)), bits);
  auto* swap = b_.CreateAtomicCmpXchg(pointer, old, wanted, align, order, order);
  old->addIncoming(b_.CreateExtractValue(swap, 0), b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateExtractValue(swap, 1), exit, loop);
  b_.SetInsertPoint(exit);
}

}  // namespace brasa::compiler
