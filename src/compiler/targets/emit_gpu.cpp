#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_set>

#include "compiler/targets/emitter.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

// Parameters: the slots, one each; of several calls one array, of which the grid's second number picks the call's. One block computes one
// iteration of the block loops.
void Emitter::set_up_gpu_kernel() {
  auto* pointer = llvm::PointerType::get(b_.getContext(), 1);
  auto* table = llvm::ArrayType::get(b_.getInt64Ty(), static_cast<uint64_t>(layout_.calls) * layout_.slots());
  std::vector<llvm::Type*> parameters(layout_.addresses, pointer);
  parameters.insert(parameters.end(), layout_.numbers + layout_.sizes.size(), b_.getInt64Ty());
  if (layout_.calls > 1) parameters = {b_.getPtrTy()};
  start_function(graph_.name, b_.getVoidTy(), parameters);
  if (layout_.calls > 1) {
    function_->addParamAttr(0, llvm::Attribute::getWithByValType(b_.getContext(), table));
    function_->addParamAttr(0, llvm::Attribute::getWithAlignment(b_.getContext(), llvm::Align(sizeof(int64_t))));
  }
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  llvm::LLVMContext& c = b_.getContext();
  auto note = [&](const char* key, int64_t value) {
    llvm::Metadata* items[] = {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(c, key),
                               llvm::ValueAsMetadata::get(b_.getInt32(static_cast<uint32_t>(value)))};
    module_.getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(c, items));
  };
  note("kernel", 1);
  note("maxntidx", layout_.threads);
  // So that one block reads while another one computes; more would lack registers.
  constexpr int64_t kMostOfTwo = 256;
  if (layout_.threads <= kMostOfTwo || !layout_.scratch_bytes.is(0)) note("minctasm", 2);

  llvm::Value* first = nullptr;
  if (layout_.calls > 1) {
    auto* call =
        b_.CreateZExt(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y, {}, {}), b_.getInt64Ty());
    first = b_.CreateMul(call, i64(static_cast<int64_t>(layout_.slots())));
  }
  size_t at = 0;
  auto slot = [&]() -> llvm::Value* {
    size_t i = at++;
    if (!first) return function_->getArg(static_cast<unsigned>(i));
    llvm::Value* place = b_.CreateAdd(first, i64(static_cast<int64_t>(i)));
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateInBoundsGEP(table, function_->getArg(0), {i64(0), place}));
  };
  while (at < layout_.addresses) {
    llvm::Value* address = slot();
    if (first) address = b_.CreateIntToPtr(address, pointer);
    buffers_.push_back(b_.CreateAddrSpaceCast(address, b_.getPtrTy()));
  }
  while (at < graph_.inputs().size()) buffers_.push_back(slot());
  for (ir::Expr s : layout_.sizes) sizes_[s] = slot();
  begin_ = number_of_block();
  thread_ = b_.CreateZExt(b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {}), b_.getInt64Ty());
  for (const For& f : analysis_.loops()) aligned_ |= f.kind == ForKind::Unroll && f.width > 1;
  llvm::Value* rest = thread_;
  for (size_t i : thread_loops()) {
    llvm::Value* extent = i64(analysis_.loops()[i].extent().constant());
    range_values_[i] = b_.CreateURem(rest, extent);
    rest = b_.CreateUDiv(rest, extent);
  }
}

// Blocks begin in the order of their numbers. What adds up tensors goes through them from their ends: there the cache has what was written last,
// and what reads them next, from their beginnings, finds there what was read last.
llvm::Value* Emitter::number_of_block() {
  llvm::Value* number = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  const auto& nodes = graph_.nodes();
  if (std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return loop_kind(n->op) == LoopOp::Reduce; })) {
    llvm::Value* count = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x, {}, {});
    number = b_.CreateSub(b_.CreateSub(count, b_.getInt32(1)), number);
  }
  return b_.CreateZExt(number, b_.getInt64Ty());
}

// The next kernel may begin to start now; and this one waits for all that ran before it, so that what it reads is there. What nobody
// writes it asks for before.
void Emitter::start_early() {
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), false);
  auto instruction = [&](const char* text) {
    b_.CreateCall(type, llvm::InlineAsm::get(type, text, "~{memory}", true));
  };
  instruction("griddepcontrol.launch_dependents;");
  std::unordered_set<ir::Value> unwritten;
  for (const Node* n : graph_.nodes())
    if (loop_kind(n->op) == LoopOp::Unwritten)
      for (ir::Value buffer : n->arg<std::vector<ir::Value>>(0)) unwritten.insert(buffer);
  if (!unwritten.empty()) {
    flat_places()(begin_);
    for (ir::Node* n : readable())
      if (unwritten.count(n->arg<ir::Value>(0))) for_combinations(analysis_.of(n), false, [&] { eval({n, 0}); });
  }
  instruction("griddepcontrol.wait;");
}

// What is read in any case, from places that follow from the loops alone, of what the kernel does not write.
std::vector<ir::Node*> Emitter::sure_loads() const {
  auto kind = [](const Node* n) { return loop_kind(n->op); };
  std::function<bool(const Node*)> of_indices = [&](const Node* n) {
    if (kind(n)) return kind(n) == LoopOp::Index;
    bool all = true;
    n->for_each_input([&](ir::Value v) { all = all && of_indices(v.node); });
    return all;
  };
  auto masked_by_indices = [&](const Node* n, size_t mask) {
    return n->args[mask].is_none() || of_indices(n->arg<ir::Value>(mask).node);
  };
  std::unordered_set<const Node*> sure;
  std::unordered_set<ir::Value> written;
  std::function<void(const Node*)> add = [&](const Node* n) {
    if (!sure.insert(n).second) return;
    with_room([&] { n->for_each_input([&](ir::Value v) { add(v.node); }); });
  };
  for (const Node* n : graph_.nodes()) {
    if (kind(n) == LoopOp::Store) written.insert(n->arg<ir::Value>(0));
    constexpr size_t kMaskOfStore = 3;
    if (kind(n) == LoopOp::Reduce || (kind(n) == LoopOp::Store && masked_by_indices(n, kMaskOfStore))) add(n);
  }
  std::vector<ir::Node*> out;
  for (ir::Node* n : graph_.nodes()) {
    if (kind(n) != LoopOp::Load || !sure.count(n) || !masked_by_indices(n, 2)) continue;
    ir::Value buffer = n->arg<ir::Value>(0);
    if (ir::is_input(buffer) && !written.count(buffer) && !reads_values(n->arg<ir::Expr>(1))) out.push_back(n);
  }
  return out;
}

// Of these, what can be read as the loops around have begun.
std::vector<ir::Node*> Emitter::readable() {
  if (!sure_loads_) sure_loads_ = sure_loads();
  auto begun = [&](const Node* n) {
    for (Ranges r = analysis_.of(n) & ~analysis_.kind(ForKind::Unroll); r; r &= r - 1)
      if (!range_values_[std::countr_zero(r)]) return false;
    return true;
  };
  std::vector<ir::Node*> out;
  std::copy_if(sure_loads_->begin(), sure_loads_->end(), std::back_inserter(out), begun);
  return out;
}

// A thread asks memory for all that it can before it exchanges anything with others, or writes: what it asks for later it waits for once
// more.
void Emitter::read_first() {
  for (ir::Node* n : readable()) for_combinations(analysis_.of(n), false, [&] { eval({n, 0}); });
}

// For how many iterations of a loop, which is in the first of them, a thread reads at once: more registers would leave fewer threads.
int Emitter::iterations_to_read(int loop, int count) {
  constexpr int64_t kBytes = 256;
  if (!target_.gpu) return count;
  int64_t bytes = 0;
  for (const Node* n : readable()) {
    if (!(analysis_.of(n) >> loop & 1)) continue;
    bytes +=
        static_cast<int64_t>(combinations(analysis_.of(n), false)) * std::max<int64_t>(size_of(n->types[0].dtype), 2);
  }
  return static_cast<int>(std::clamp<int64_t>(kBytes / std::max<int64_t>(bytes, 1), 1, count));
}

// The loops over threads, that of neighbouring ones first.
std::vector<size_t> Emitter::thread_loops() const {
  std::vector<size_t> out;
  for (size_t i = analysis_.loops().size(); i-- > 0;)
    if (analysis_.kind(ForKind::Thread) >> i & 1) out.push_back(i);
  std::stable_partition(out.begin(), out.end(), [&](size_t i) { return analysis_.loops()[i].width > 1; });
  return out;
}

// As far as is known of where it begins and of the index.
llvm::Align Emitter::alignment(ir::Value buffer, ir::Expr index) {
  int64_t size = size_of(type_of(buffer).dtype),
          align = aligned_ && (ir::is_input(buffer) || is_shared(buffer.node)) ? 16 : size;
  while (align > size && !provably_divisible(index * size, align)) align /= 2;
  return llvm::Align(static_cast<uint64_t>(align));
}

// Writes without reading what is there, by every thread for itself.
bool Emitter::plain_store(const Node* n) const {
  return loop_kind(n->op) == LoopOp::Store && n->arg<std::string>(5).empty() && !threads_missing(n);
}

// All that is read and computed comes before the first write, so that accesses of neighbours can become one; writes under one
// condition share its branch.
void Emitter::emit_stores(std::span<const Node* const> stores) {
  struct Write {
    llvm::Value *mask, *value, *at;
    llvm::Align align;
  };
  std::vector<Write> writes;
  for (const Node* n : stores) {
    for_combinations(analysis_.inside(n), false, [&] {
      BufferRef p = place_of(n->arg<ir::Value>(0));
      ir::Expr index = at_copy(n->arg<ir::Expr>(1));
      llvm::Value* value = to_memory(eval(n->arg<ir::Value>(2)), p.dtype);
      llvm::Value* mask = n->args[3].is_none() ? nullptr : eval(n->arg<ir::Value>(3));
      writes.push_back({mask, value, address(p, index), alignment(n->arg<ir::Value>(0), index)});
    });
  }
  for (size_t i = 0; i < writes.size();) {
    size_t first = i;
    auto write = [&] {
      for (; i < writes.size() && writes[i].mask == writes[first].mask; ++i)
        b_.CreateAlignedStore(writes[i].value, writes[i].at, writes[i].align);
    };
    writes[i].mask ? emit_if(writes[i].mask, write) : write();
  }
}

// All that is read comes before the first write here, too: many reads are under way together.
void Emitter::emit_whole_stage(const Node* n) {
  BufferRef array = place_of(ir::Value{const_cast<Node*>(n), 0});
  std::vector<std::pair<llvm::Value*, llvm::Value*>> writes;
  for_combinations(analysis_.inside(n), false, [&] {
    llvm::Value* value = to_memory(eval(n->arg<ir::Value>(0)), array.dtype);
    writes.emplace_back(value, address(array, at_copy(place_in_stage(n))));
  });
  for (auto [value, at] : writes) b_.CreateStore(value, at);
  if (is_shared(n)) barrier();
}

void Emitter::barrier() { b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {}); }

llvm::Value* Emitter::shared_array(llvm::Type* type, int64_t elements) {
  auto* array = llvm::ArrayType::get(type, static_cast<uint64_t>(elements));
  auto* global =
      new llvm::GlobalVariable(module_, array, false, llvm::GlobalValue::InternalLinkage, llvm::PoisonValue::get(array),
                               graph_.name + "_shared", nullptr, llvm::GlobalValue::NotThreadLocal, 3);
  global->setAlignment(llvm::Align(16));
  return b_.CreateAddrSpaceCast(global, b_.getPtrTy());
}

// In the memory that a launch gives each block.
llvm::Value* Emitter::given_array(int64_t offset) {
  constexpr const char* kName = "given_to_block";
  auto* given = module_.getNamedGlobal(kName);
  if (!given) {
    auto* type = llvm::ArrayType::get(b_.getInt8Ty(), 0);
    given = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::ExternalLinkage, nullptr, kName, nullptr,
                                     llvm::GlobalValue::NotThreadLocal, 3);
    given->setAlignment(llvm::Align(16));
  }
  llvm::Value* at = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), given, static_cast<uint64_t>(offset));
  return b_.CreateAddrSpaceCast(at, b_.getPtrTy());
}

// Thread loops that a store does not mention: one thread writes for all of them.
Ranges Emitter::threads_missing(const Node* store) const {
  return analysis_.kind(ForKind::Thread) & ~analysis_.inside(store);
}

llvm::Value* Emitter::first_thread_of(Ranges threads) {
  llvm::Value* first = b_.getTrue();
  for (; threads; threads &= threads - 1)
    first = b_.CreateAnd(first, b_.CreateICmpEQ(range_values_[std::countr_zero(threads)], i64(0)));
  return first;
}

// Exchanges every value with the thread of the warp whose number differs in the bits of `distance`.
Emitter::Values Emitter::shuffle(const Values& v, int distance) {
  Values out;
  for (llvm::Value* x : v) {
    llvm::Type* type = x->getType();
    auto bits = static_cast<unsigned>(type->getPrimitiveSizeInBits());
    llvm::Value* raw = b_.CreateBitCast(x, b_.getIntNTy(bits));
    auto exchange = [&](llvm::Value* word) {
      return b_.CreateIntrinsic(
          llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
          {b_.getInt32(0xffffffff), word, b_.getInt32(static_cast<uint32_t>(distance)), b_.getInt32(31)});
    };
    if (bits == 64) {
      llvm::Value* low = exchange(b_.CreateTrunc(raw, b_.getInt32Ty()));
      llvm::Value* high = exchange(b_.CreateTrunc(b_.CreateLShr(raw, i64(32)), b_.getInt32Ty()));
      raw =
          b_.CreateOr(b_.CreateZExt(low, b_.getInt64Ty()), b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), i64(32)));
    } else {
      raw = b_.CreateTrunc(exchange(b_.CreateZExt(raw, b_.getInt32Ty())), raw->getType());
    }
    out.push_back(b_.CreateBitCast(raw, type));
  }
  return out;
}

// Arrays of so many elements for `count` values of a reduction, once `write` has filled them.
std::vector<Emitter::Values> Emitter::through_shared(const Node* n, int64_t elements, size_t count,
                                                     const std::function<void(const Values& to, size_t value)>& write) {
  std::vector<Values> out;
  std::map<int64_t, size_t> used;
  for (size_t i = 0; i < count; ++i) out.push_back(exchange_arrays(n, elements, used));
  barrier();
  for (size_t i = 0; i < count; ++i) write(out[i], i);
  barrier();
  return out;
}

// For each result of a reduction, an array that the threads of a block share. The kernel's other reductions have it before and after this
// one, as a block has little of such memory; `used`: how many of each size this one has already.
Emitter::Values Emitter::exchange_arrays(const Node* n, int64_t elements, std::map<int64_t, size_t>& used) {
  Values out;
  for (const ir::Type& t : n->types) {
    int64_t bytes = elements * size_of(t.dtype);
    std::vector<llvm::Value*>& arrays = exchanged_[bytes];
    size_t i = used[bytes]++;
    if (i == arrays.size()) arrays.push_back(shared_array(b_.getInt8Ty(), bytes));
    out.push_back(arrays[i]);
  }
  return out;
}

void Emitter::write_shared(const Node* n, const Values& arrays, llvm::Value* at, const Values& v) {
  for (size_t r = 0; r < v.size(); ++r) {
    DType t = n->types[r].dtype;
    b_.CreateStore(to_memory(v[r], t), b_.CreateGEP(memory_type(t), arrays[r], at));
  }
}

Emitter::Values Emitter::read_shared(const Node* n, const Values& arrays, llvm::Value* at) {
  Values out;
  for (size_t r = 0; r < arrays.size(); ++r) {
    DType t = n->types[r].dtype;
    out.push_back(from_memory(b_.CreateLoad(memory_type(t), b_.CreateGEP(memory_type(t), arrays[r], at)), t));
  }
  return out;
}

// Combines over the closed thread loops, of threads that are not neighbours: all others are. Those of a warp exchange their values first.
std::vector<Emitter::Values> Emitter::reduce_far_threads(const Node* n, std::vector<Values> all) {
  Ranges closed = analysis_.closed(n) & analysis_.kind(ForKind::Thread);
  int64_t near = 1, far = 1;
  for (size_t i : thread_loops()) {
    bool closes = closed >> i & 1;
    BRASA_ASSERT(closes || far == 1, "a reduction over threads closes the nearest or the farthest ones");
    (closes ? far : near) *= analysis_.loops()[i].extent().constant();
  }
  const std::string& combiner = n->arg<std::string>(2);
  DType t = n->types[0].dtype;
  constexpr int64_t kWarp = 32;
  int64_t together = kWarp % near == 0 && near * far % kWarp == 0 ? kWarp / near : 1;
  for (Values& now : all)
    for (int64_t d = near * together / 2; d >= near; d /= 2)
      now = combine(combiner, now, shuffle(now, static_cast<int>(d)), t);
  far /= together;
  if (far == 1) return all;
  llvm::Value* first = b_.CreateURem(thread_, i64(near));
  llvm::Value* row = b_.CreateUDiv(thread_, i64(near * together));
  llvm::Value* slot = b_.CreateAdd(b_.CreateMul(row, i64(near)), first);
  llvm::Value* writes = b_.CreateICmpEQ(b_.CreateURem(b_.CreateUDiv(thread_, i64(near)), i64(together)), i64(0));
  std::vector<Values> arrays =
      through_shared(n, layout_.threads / together, all.size(), [&](const Values& to, size_t v) {
        auto write = [&] { write_shared(n, to, slot, all[v]); };
        together > 1 ? emit_if(writes, write) : write();
      });
  for (size_t v = 0; v < all.size(); ++v) {
    std::vector<Values> list;
    for (int64_t i = 0; i < far; ++i) list.push_back(read_shared(n, arrays[v], b_.CreateAdd(first, i64(i * near))));
    all[v] = fold_list(combiner, std::move(list), t);
  }
  return all;
}

// Combines each value over the closed thread loops, which are the innermost ones: `group` neighbours share a result. All threads
// of the block come here together.
std::vector<Emitter::Values> Emitter::reduce_threads(const Node* n, std::vector<Values> all) {
  Ranges closed = analysis_.closed(n) & analysis_.kind(ForKind::Thread);
  if (!closed) return all;
  if (!(closed >> thread_loops()[0] & 1)) return reduce_far_threads(n, std::move(all));
  int64_t group = 1, block = layout_.threads;
  for (Ranges r = closed; r; r &= r - 1) group *= analysis_.loops()[std::countr_zero(r)].extent().constant();
  const std::string& combiner = n->arg<std::string>(2);
  DType t = n->types[0].dtype;
  bool power = std::has_single_bit(static_cast<uint64_t>(group));
  // Within a warp; threads of a last, partial warp may not be asked for values.
  int64_t warp = group % 32 == 0 ? 32 : (power && group < 32 && block % 32 == 0) ? group : 1;
  for (Values& now : all)
    for (int64_t d = warp / 2; d >= 1; d /= 2) now = combine(combiner, now, shuffle(now, static_cast<int>(d)), t);
  if (warp == group) return all;

  // One value a warp (or thread) goes through shared memory; every thread reads its group's.
  int64_t parts = group / warp, slots = block / warp;
  llvm::Value* slot = b_.CreateUDiv(thread_, i64(warp));
  llvm::Value* writes = b_.CreateICmpEQ(b_.CreateURem(thread_, i64(warp)), i64(0));
  std::vector<Values> arrays = through_shared(n, slots, all.size(), [&](const Values& to, size_t v) {
    emit_if(writes, [&] { write_shared(n, to, slot, all[v]); });
  });
  llvm::Value* first = b_.CreateMul(b_.CreateUDiv(thread_, i64(group)), i64(parts));
  for (size_t v = 0; v < all.size(); ++v) {
    auto read = [&](llvm::Value* at) { return read_shared(n, arrays[v], at); };
    if (parts <= 32) {
      std::vector<Values> list;
      for (int64_t i = 0; i < parts; ++i) list.push_back(read(b_.CreateAdd(first, i64(i))));
      all[v] = fold_list(combiner, std::move(list), t);
      continue;
    }
    Values start = read(first), slots_now;
    for (llvm::Value* x : start) {
      slots_now.push_back(stack(x->getType()));
      b_.CreateStore(x, slots_now.back());
    }
    emit_counted(i64(1), i64(parts), i64(1), true, [&](llvm::Value* i) {
      Values next = combine(combiner, read_slots(slots_now), read(b_.CreateAdd(first, i)), t);
      for (size_t r = 0; r < start.size(); ++r) b_.CreateStore(next[r], slots_now[r]);
    });
    all[v] = read_slots(slots_now);
  }
  return all;
}

}  // namespace brasa::compiler
