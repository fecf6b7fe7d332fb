#include <algorithm>
#include <bit>

#include "compiler/fusion/indexing.h"
#include "compiler/targets/emitter.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

// 64 lanes of the widest elements.
constexpr int64_t kZeroBytes = 512;

// Elements at so many places by lane, all within two vectors: each is read once, and given to the lanes that share it.
llvm::Value* load_offsets(llvm::IRBuilder<>& b, const std::vector<int64_t>& offsets, llvm::Type* scalar,
                          llvm::Value* at, llvm::Align align, llvm::Value* mask) {
  auto lanes = static_cast<int>(offsets.size());
  auto count = static_cast<int>(*std::max_element(offsets.begin(), offsets.end())) + 1;
  int width = std::min(lanes, static_cast<int>(std::bit_floor(static_cast<unsigned>(count))));
  // Two vectors, which may overlap; nothing behind the last element is read.
  auto part = [&](int first) -> llvm::Value* {
    auto* type = llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width));
    llvm::Value* from = b.CreateConstInBoundsGEP1_64(scalar, at, static_cast<uint64_t>(first));
    if (!mask) return b.CreateAlignedLoad(type, from, align);
    // Those that a lane asks for which the mask has; the first lanes of all elements, then the second ones, …
    std::vector<std::vector<int>> readers(static_cast<size_t>(width));
    for (int lane = 0; lane < lanes; ++lane)
      if (int64_t place = offsets[lane] - first; place >= 0 && place < width) readers[place].push_back(lane);
    llvm::Value *read = nullptr, *none = llvm::Constant::getNullValue(mask->getType());
    for (size_t turn = 0; turn < offsets.size(); ++turn) {
      std::vector<int> lane;
      for (const std::vector<int>& r : readers) lane.push_back(turn < r.size() ? r[turn] : lanes);
      if (std::all_of(lane.begin(), lane.end(), [&](int l) { return l == lanes; })) break;
      llvm::Value* some = b.CreateShuffleVector(mask, none, lane);
      read = read ? b.CreateOr(read, some) : some;
    }
    return b.CreateMaskedLoad(type, from, align, read, llvm::Constant::getNullValue(type));
  };
  llvm::Value *low = part(0), *high = count > width ? part(count - width) : low;
  std::vector<int> places;
  for (int64_t offset : offsets) {
    auto place = static_cast<int>(offset);
    places.push_back(place < width ? place : 2 * width - count + place);
  }
  llvm::Value* x = b.CreateShuffleVector(low, high, places);
  return mask ? b.CreateSelect(mask, x, llvm::Constant::getNullValue(x->getType())) : x;
}

}  // namespace

Emitter::BufferRef Emitter::place_of(Value buffer) {
  DType t = type_of(buffer).dtype;
  if (int i = graph_.input_index(buffer); i >= 0) return {buffers_[i], t};
  llvm::Value*& array = arrays_[buffer.node];
  if (!array) {
    BRASA_ASSERT(loop_kind(buffer.node->op) == LoopOp::Table, "a stage is read before it is made");
    std::vector<llvm::Constant*> items;
    for (Expr e : buffer.node->arg<std::vector<Expr>>(0)) {
      auto bits = static_cast<uint64_t>(e.constant());
      if (t == DType::Float64)
        items.push_back(llvm::ConstantExpr::getBitCast(b_.getInt64(bits), b_.getDoubleTy()));
      else if (t == DType::Float32)
        items.push_back(llvm::ConstantExpr::getBitCast(b_.getInt32(static_cast<uint32_t>(bits)), b_.getFloatTy()));
      else
        items.push_back(llvm::ConstantInt::get(memory_type(t), bits));
    }
    auto* type = llvm::ArrayType::get(memory_type(t), items.size());
    auto* global = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                            llvm::ConstantArray::get(type, items), "table");
    global->setAlignment(llvm::Align(8));
    array = global;
  }
  return {array, t};
}

// The terms of a place that go on with a vector loop. What stays is one address outside of it, and the same one for all that is spelled out and
// reads there.
Expr Emitter::of_vectors(Expr place) const {
  if (vector_.loop < 0 || target_.gpu || !analysis_.kind(ForKind::Unroll) || place->kind != ir::ExprKind::Add) return 0;
  Expr out(0);
  for (Expr term : place->args)
    if (contains_symbol(term, vector_.symbol)) out = out + term;
  return out;
}

// The constant part of an index stays apart, where it becomes the displacement of an address.
llvm::Value* Emitter::address(const BufferRef& p, Expr index) {
  int64_t constant = index->kind == ir::ExprKind::Add || index.is_constant() ? index->value : 0;
  llvm::Type* t = memory_type(p.dtype);
  llvm::Value* at = p.base;
  Expr before = target_.gpu ? Expr(0) : divided_before(index);
  Expr rest = index - before - constant, along = of_vectors(rest);
  for (Expr part : {before, rest - along, along})
    if (!part.is(0)) at = b_.CreateInBoundsGEP(t, at, eval_expr(part));
  return constant ? b_.CreateConstInBoundsGEP1_64(t, at, static_cast<uint64_t>(constant)) : at;
}

llvm::Value* Emitter::from_memory(llvm::Value* v, DType t) {
  return t == DType::Bool ? b_.CreateICmpNE(v, number(v->getType(), 0)) : v;
}

llvm::Value* Emitter::to_memory(llvm::Value* v, DType t) {
  return t == DType::Bool ? b_.CreateZExt(v, like(b_.getInt8Ty(), v)) : v;
}

// The node's own mask and that of the loop's last, partial vector.
llvm::Value* Emitter::full_mask(llvm::Value* mask) {
  if (!mask) return vector_.mask;
  mask = splat(mask, vector_.lanes);
  return vector_.mask ? b_.CreateAnd(mask, vector_.mask) : mask;
}

llvm::Value* Emitter::every_lane(llvm::Value* mask) {
  return mask ? mask : llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), vector_.lanes));
}

// One a lane.
llvm::Value* Emitter::addresses(const BufferRef& p, const LaneIndex& index) {
  bool based = index.linear || !index.offsets.empty();
  llvm::Value* lanes = based ? behind_base(index) : splat(eval_lanes(index.whole), vector_.lanes);
  return b_.CreateInBoundsGEP(memory_type(p.dtype), based ? address(p, index.base) : p.base, lanes);
}

// What is read where a mask says that nothing is, so that there is no branch. Its address must differ from every buffer's, or
// reading through it could be turned into a masked read.
llvm::Value* Emitter::zeros() {
  auto* zeros = module_.getNamedGlobal("zero");
  if (!zeros) {
    auto* type = llvm::ArrayType::get(b_.getInt64Ty(), kZeroBytes / 8);
    zeros = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                     llvm::Constant::getNullValue(type), "zero", nullptr,
                                     llvm::GlobalValue::NotThreadLocal, target_.gpu ? 1 : 0);
    zeros->setAlignment(llvm::Align(16));
  }
  return target_.gpu ? b_.CreateAddrSpaceCast(zeros, b_.getPtrTy()) : zeros;
}

// Of what is read where a condition holds. Neighbours that a GPU's thread reads differ by their displacement alone, and become one access.
llvm::Value* Emitter::address_or_zeros(const BufferRef& p, Expr index, llvm::Value* condition) {
  if (!target_.gpu) return b_.CreateSelect(condition, address(p, index), zeros());
  constexpr int64_t kNeighbours = 16;
  llvm::Type* t = memory_type(p.dtype);
  int64_t constant = index->kind == ir::ExprKind::Add || index.is_constant() ? index->value : 0;
  int64_t displacement = constant & (kNeighbours - 1);
  // The first of the neighbours may lie before the buffer.
  llvm::Value* first = b_.CreateGEP(t, p.base, eval_expr(index - displacement));
  return b_.CreateGEP(t, b_.CreateSelect(condition, first, zeros()), i64(displacement));
}

// Elements so far apart lie in as many vectors of neighbours; more of them take longer than an instruction that gathers.
bool Emitter::few_steps(const LaneIndex& index) const {
  constexpr int64_t kMost = 4;
  return index.linear && index.stride.is_constant() && index.stride.constant() > 1 &&
         index.stride.constant() <= kMost && vector_.lanes >= 4 && !target_.gpu;
}

// The vectors of neighbours in which the lanes' elements lie. All end where the last lane's element does: nothing behind it may be read.
std::vector<Emitter::Neighbours> Emitter::neighbours(int64_t stride) const {
  int lanes = vector_.lanes;
  std::vector<Neighbours> out;
  for (int64_t j = 0; j < stride; ++j) {
    int64_t first = std::min(j * lanes, (lanes - 1) * stride + 1 - lanes);
    Neighbours part{first, std::vector<int>(static_cast<size_t>(lanes), -1)};
    for (int i = 0; i < lanes; ++i)
      if (std::min(i * stride / lanes, stride - 1) == j) part.places[i] = static_cast<int>(i * stride - first);
    out.push_back(std::move(part));
  }
  return out;
}

// What belongs to lanes, at the places of their elements among the neighbours; nothing at the others.
llvm::Value* Emitter::spread(llvm::Value* v, const Neighbours& part) {
  int lanes = vector_.lanes;
  std::vector<int> from(static_cast<size_t>(lanes), lanes);
  for (int i = 0; i < lanes; ++i)
    if (part.places[i] >= 0) from[part.places[i]] = i;
  return b_.CreateShuffleVector(v, llvm::Constant::getNullValue(v->getType()), from);
}

llvm::Value* Emitter::load_strided(llvm::Type* type, llvm::Value* at, int64_t stride, llvm::Align align,
                                   llvm::Value* mask) {
  int lanes = vector_.lanes;
  llvm::Value* out = nullptr;
  std::vector<int> places;
  for (const Neighbours& part : neighbours(stride)) {
    llvm::Value* from = b_.CreateConstInBoundsGEP1_64(llvm::cast<llvm::VectorType>(type)->getElementType(), at,
                                                      static_cast<uint64_t>(part.first));
    llvm::Value* x = mask ? static_cast<llvm::Value*>(b_.CreateMaskedLoad(type, from, align, spread(mask, part),
                                                                          llvm::Constant::getNullValue(type)))
                          : b_.CreateAlignedLoad(type, from, align);
    if (!out) {
      out = x;
      places = part.places;
      continue;
    }
    for (int i = 0; i < lanes; ++i)
      if (part.places[i] >= 0) places[i] = lanes + part.places[i];
    out = b_.CreateShuffleVector(out, x, places);
    for (int i = 0; i < lanes; ++i)
      if (places[i] >= 0) places[i] = i;
  }
  return out;
}

// Where masks are no registers of their own, from where there are zeros if no lane is in `any`. Most vectors have all lanes or none, and only
// those at a border are read through the mask: element by element, or by an instruction whose reads memory does not send ahead for.
llvm::Value* Emitter::load_at_border(const Read& read, llvm::Value* at, llvm::Value* mask, llvm::Value* any) {
  llvm::Value* all = b_.CreateAndReduce(mask);
  llvm::Value* whole = read(b_.CreateSelect(all, at, zeros()), nullptr);
  auto* before = b_.GetInsertBlock();
  llvm::Value* some = nullptr;
  llvm::BasicBlock* behind = nullptr;
  emit_if(b_.CreateAnd(any, b_.CreateNot(all)), [&] {
    some = read(at, mask);
    behind = b_.GetInsertBlock();
  });
  auto* x = b_.CreatePHI(whole->getType(), 2);
  x->addIncoming(whole, before);
  x->addIncoming(some, behind);
  return x;
}

// Of a loop whose vectors are whole but for the last one: memory does not send ahead for reads through a mask.
llvm::Value* Emitter::load_mostly_whole(const Read& read, llvm::Value* at, llvm::Value* mask) {
  auto* whole = llvm::BasicBlock::Create(b_.getContext(), "whole", function_);
  auto* part = llvm::BasicBlock::Create(b_.getContext(), "part", function_);
  auto* behind = llvm::BasicBlock::Create(b_.getContext(), "behind", function_);
  b_.CreateCondBr(vector_.whole, whole, part);
  b_.SetInsertPoint(whole);
  llvm::Value* all = read(at, nullptr);
  b_.CreateBr(behind);
  b_.SetInsertPoint(part);
  llvm::Value* some = read(at, mask);
  b_.CreateBr(behind);
  b_.SetInsertPoint(behind);
  auto* x = b_.CreatePHI(all->getType(), 2);
  x->addIncoming(all, whole);
  x->addIncoming(some, part);
  return x;
}

// Vectors that a mask leaves nothing of lie beside each other mostly, and to gather nothing takes as long as to gather.
llvm::Value* Emitter::unless_masked_out(const std::function<llvm::Value*()>& gather, llvm::Value* mask,
                                        llvm::Value* otherwise) {
  auto* before = b_.GetInsertBlock();
  llvm::Value *any = b_.CreateOrReduce(mask), *gathered = nullptr;
  llvm::BasicBlock* behind = nullptr;
  emit_if(any, [&] {
    with_frame([&] { gathered = gather(); });
    behind = b_.GetInsertBlock();
  });
  auto* x = b_.CreatePHI(otherwise->getType(), 2);
  x->addIncoming(otherwise, before);
  x->addIncoming(gathered, behind);
  return x;
}

// On a GPU a bfloat16 is widened by one instruction from a word whose half it is, in two where it was taken out of it first. Neighbours read the
// same word. Null where it is not known which half it is.
llvm::Value* Emitter::load_half_of_word(const Node* n, const BufferRef& p, Expr index, llvm::Value* condition) {
  constexpr uint64_t kWord = 4;
  if (!target_.gpu || p.dtype != DType::BFloat16) return nullptr;
  for (int half : {0, 1}) {
    Expr first = index - half;
    if (llvm::Align align = alignment(n->arg<Value>(0), first); align.value() >= kWord) {
      llvm::Value* at = condition ? address_or_zeros(p, first, condition) : address(p, first);
      llvm::Value* word = b_.CreateAlignedLoad(b_.getInt32Ty(), at, align);
      if (half) word = b_.CreateLShr(word, b_.getInt32(16));
      return from_memory(b_.CreateBitCast(b_.CreateTrunc(word, b_.getInt16Ty()), memory_type(p.dtype)), p.dtype);
    }
  }
  return nullptr;
}

llvm::Value* Emitter::emit_load(const Node* n) {
  BufferRef p = place_of(n->arg<Value>(0));
  llvm::Type* scalar = memory_type(p.dtype);
  llvm::Value* mask = n->args[2].is_none() ? nullptr : eval(n->arg<Value>(2));
  LaneIndex index = lane_index(at_copy(n->arg<Expr>(1)));
  llvm::Align align = target_.gpu ? alignment(n->arg<Value>(0), index.whole) : llvm::Align(size_of(p.dtype));

  if (index.linear && index.stride.is(0)) {
    llvm::Value* condition = mask;
    if (mask && lanes_of(mask) > 1) condition = b_.CreateOrReduce(full_mask(mask));
    if (llvm::Value* x = load_half_of_word(n, p, index.base, condition)) return x;
    llvm::Value* at = condition ? address_or_zeros(p, index.base, condition) : address(p, index.base);
    llvm::Value* x = b_.CreateAlignedLoad(scalar, at, align);
    if (mask && lanes_of(mask) > 1)
      x = b_.CreateSelect(mask, splat(x, lanes_of(mask)), llvm::Constant::getNullValue(like(scalar, mask)));
    return from_memory(x, p.dtype);
  }

  int lanes = vector_.lanes;
  auto* type = llvm::FixedVectorType::get(scalar, lanes);
  auto* zero = llvm::Constant::getNullValue(type);
  bool masked = mask && lanes_of(mask) > 1, reversed = index.linear && index.stride.is(-1),
       neighbours = reversed || (index.linear && index.stride.is(1)),
       readable = target_.has_masks(size_of(p.dtype)) || !(masked || vector_.mask), few = few_steps(index) && readable;
  bool near = !index.offsets.empty() && index.span() <= 2 * lanes && readable;
  // A masked read of no element is slow where there is no memory: it looks whether there is a fault to suppress.
  bool looks = (neighbours || few || near) && mask && !target_.gpu, by_lane = looks && lanes_of(mask) > 1;
  llvm::Value* condition = looks ? mask : nullptr;
  if (looks && !by_lane) mask = nullptr;
  llvm::Value* common = mask && !masked && !vector_.mask && !target_.gpu && !target_.masks ? mask : nullptr;
  mask = full_mask(mask);
  if (by_lane) condition = b_.CreateOrReduce(mask);
  llvm::Value* x;
  if (neighbours || few || near) {
    llvm::Value* at = address(p, reversed ? index.base - (lanes - 1) : index.base);
    if (condition) at = b_.CreateSelect(condition, at, zeros());
    Read read = [&](llvm::Value* from, llvm::Value* some) -> llvm::Value* {
      if (reversed && some) some = b_.CreateVectorReverse(some);
      if (near) return load_offsets(b_, index.offsets, scalar, from, align, some);
      if (few) return load_strided(type, from, index.stride.constant(), align, some);
      llvm::Value* row = some ? static_cast<llvm::Value*>(b_.CreateMaskedLoad(type, from, align, some, zero))
                              : b_.CreateAlignedLoad(type, from, align);
      return reversed ? b_.CreateVectorReverse(row) : row;
    };
    int64_t span = near ? index.span() : few ? lanes * index.stride.constant() : lanes;
    // The lanes of a mask are no lanes of what is read where these share elements. Of a loop that goes from border to border masked vectors
    // lie at one.
    bool mostly_border = borders_ && neighbours && readable;
    bool border = by_lane && (!target_.masks || near) && !mostly_border && span * size_of(p.dtype) <= kZeroBytes;
    x = border                     ? load_at_border(read, at, mask, condition)
        : vector_.whole && !masked ? load_mostly_whole(read, at, mask)
                                   : read(at, mask);
  } else {
    auto from = [&](llvm::Value* at) {
      // Without masks in registers each lane would be asked for: one answer for all of them chooses where they read.
      if (!common) return b_.CreateMaskedGather(type, at, align, every_lane(mask), zero);
      return b_.CreateMaskedGather(type, b_.CreateSelect(common, at, splat(zeros(), lanes)), align, every_lane({}));
    };
    auto gather = [&]() -> llvm::Value* {
      if (!short_.count(n)) return from(addresses(p, index));
      ShortPlaces places = short_places(index.whole);
      return gather_beside(n, p, places, mask, common, [&] { return from(short_addresses(p, places)); });
    };
    x = masked && !target_.gpu && !target_.baseline ? unless_masked_out(gather, mask, zero) : gather();
  }
  return from_memory(x, p.dtype);
}

// A choice for all lanes between reads of neighbours is one read of where the chosen ones lie. Null for others.
llvm::Value* Emitter::load_chosen(const Node* select) {
  DType t = select->types[0].dtype;
  if (target_.gpu || vector_.lanes == 1 || vector_.lanes * size_of(t) > kZeroBytes) return nullptr;
  llvm::Value* at = place_chosen(Value{const_cast<Node*>(select), 0}, t);
  if (!at) return nullptr;
  auto* type = llvm::FixedVectorType::get(memory_type(t), vector_.lanes);
  llvm::Align align(size_of(t));
  llvm::Value* x = vector_.mask ? static_cast<llvm::Value*>(b_.CreateMaskedLoad(type, at, align, vector_.mask,
                                                                                llvm::Constant::getNullValue(type)))
                                : b_.CreateAlignedLoad(type, at, align);
  return from_memory(x, t);
}

// Where a value's lanes lie beside each other in memory; null where they do not, or where it is not known.
llvm::Value* Emitter::place_chosen(Value v, DType t) {
  const Node* n = v.node;
  if (scalar_op_of(n->op) == ScalarOp::Select) {
    if (branches_.count({n, 1}) || branches_.count({n, 2})) return nullptr;
    llvm::Value* condition = eval(n->arg<Value>(0));
    if (lanes_of(condition) > 1) return nullptr;
    llvm::Value *a = place_chosen(n->arg<Value>(1), t), *b = a ? place_chosen(n->arg<Value>(2), t) : nullptr;
    return b ? b_.CreateSelect(condition, a, b) : nullptr;
  }
  if (loop_kind(n->op) == LoopOp::Load) {
    BufferRef p = place_of(n->arg<Value>(0));
    LaneIndex index = lane_index(at_copy(n->arg<Expr>(1)));
    llvm::Value* mask = n->args[2].is_none() ? nullptr : eval(n->arg<Value>(2));
    if (!index.linear || !index.stride.is(1) || (mask && lanes_of(mask) > 1)) return nullptr;
    return mask ? address_or_zeros(p, index.base, mask) : address(p, index.base);
  }
  bool full = is_constant(n);
  auto* constant = full ? llvm::dyn_cast<llvm::Constant>(eval(v)) : nullptr;
  return constant && constant->isNullValue() ? zeros() : nullptr;
}

void Emitter::start_stage(const Node* n) {
  const ir::Type& t = n->types[0];
  if (target_.gpu && is_shared(n)) {
    auto given = layout_.scratch_offsets.find(n);
    if (!arrays_.count(n))
      arrays_[n] = given == layout_.scratch_offsets.end() ? shared_array(memory_type(t.dtype), t.shape[0].constant())
                                                          : given_array(given->second.constant());
    // Whoever still reads the contents of the last iteration has to be done.
    if (analysis_.of(n) & analysis_.kind(ForKind::Serial)) barrier();
    return;
  }
  if (auto it = layout_.scratch_offsets.find(n); it != layout_.scratch_offsets.end()) {
    BRASA_ASSERT(!target_.gpu, "a thread's own stage of ", t, " is too large for a GPU");
    arrays_[n] = b_.CreateInBoundsGEP(b_.getInt8Ty(), scratch_, eval_expr(it->second));
  } else if (!arrays_.count(n)) {
    arrays_[n] = stack(memory_type(t.dtype), layout_.stack_bytes.at(n) / size_of(t.dtype), 64);
  }
}

Expr Emitter::place_in_stage(const Node* n) {
  Expr index(0);
  for (Expr r : n->arg<std::vector<Expr>>(1)) index = index * r->args[0] + r;
  return index;
}

void Emitter::emit_stage_element(const Node* n) {
  Value array{const_cast<Node*>(n), 0};
  BufferRef p = place_of(array);
  Expr index = at_copy(place_in_stage(n));
  llvm::Value* value = eval(n->arg<Value>(0));
  if (target_.gpu)
    b_.CreateAlignedStore(to_memory(value, p.dtype), address(p, index), alignment(array, index));
  else
    store_to(p, index, value, nullptr);
}

}  // namespace brasa::compiler
