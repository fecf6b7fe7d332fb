#include <array>

#include "compiler/targets/emitter.h"

// Philox4x32-10: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3". Words are the lower halves of 64-bit lanes.
namespace brasa::compiler {
namespace {

using Words = std::array<llvm::Value*, 4>;
using Key = std::array<llvm::Value*, 2>;

constexpr int kRounds = 10;

class Philox {
 public:
  Philox(llvm::IRBuilder<>& b, int lanes) : b_(b), lanes_(lanes) {}

  llvm::Value* low(llvm::Value* v) { return b_.CreateAnd(v, like(0xffffffff, v)); }
  llvm::Value* high(llvm::Value* v) { return b_.CreateLShr(v, like(32, v)); }
  static llvm::Value* like(uint64_t v, llvm::Value* x) { return llvm::ConstantInt::get(x->getType(), v); }

  Words counter(llvm::Value* block) { return {low(block), high(block), like(0, block), like(0, block)}; }
  Key key(llvm::Value* seed) { return {low(seed), high(seed)}; }
  /// A key may be one for all lanes.
  Words round(const Words& c, const Key& k) {
    // The mask says that a multiplication of halves is enough.
    llvm::Value *p = b_.CreateMul(low(c[0]), like(0xD2511F53, c[0])),
                *q = b_.CreateMul(low(c[2]), like(0xCD9E8D57, c[2]));
    return {b_.CreateXor(b_.CreateXor(high(q), c[1]), wide(k[0])), low(q),
            b_.CreateXor(b_.CreateXor(high(p), c[3]), wide(k[1])), low(p)};
  }
  Key next(const Key& k) {
    return {low(b_.CreateAdd(k[0], like(0x9E3779B9, k[0]))), low(b_.CreateAdd(k[1], like(0xBB67AE85, k[1])))};
  }

 private:
  llvm::Value* wide(llvm::Value* v) {
    return lanes_ > 1 && !v->getType()->isVectorTy() ? b_.CreateVectorSplat(lanes_, v) : v;
  }
  llvm::IRBuilder<>& b_;
  int lanes_;
};

}  // namespace

// The four words of each block, by a function of the module's own, with its rounds as a loop: it is compiled once, however many
// vectors a kernel computes. Vectors that draw from one block share the call.
llvm::Function* Emitter::philox_function(llvm::Type* seed_type, llvm::Type* block_type) {
  auto lanes_of_type = [](llvm::Type* t) {
    return t->isVectorTy() ? static_cast<int>(llvm::cast<llvm::FixedVectorType>(t)->getNumElements()) : 1;
  };
  int lanes = lanes_of_type(block_type);
  std::string name = str("philox.", lanes_of_type(seed_type), ".", lanes);
  if (llvm::Function* known = module_.getFunction(name)) return known;
  llvm::LLVMContext& context = module_.getContext();
  auto* result = llvm::ArrayType::get(block_type, 4);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, {seed_type, block_type}, false),
                                   llvm::GlobalValue::InternalLinkage, name, module_);
  set_attributes(*f, target_);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::WillReturn);
  f->setDoesNotAccessMemory();

  auto* entry = llvm::BasicBlock::Create(context, "entry", f);
  auto* body = llvm::BasicBlock::Create(context, "round", f);
  auto* end = llvm::BasicBlock::Create(context, "end", f);
  llvm::IRBuilder<> b(entry);
  Philox philox(b, lanes);
  Words first = philox.counter(f->getArg(1));
  Key first_key = philox.key(f->getArg(0));
  b.CreateBr(body);

  b.SetInsertPoint(body);
  std::vector<llvm::PHINode*> phis;
  auto phi = [&](llvm::Value* start) {
    phis.push_back(b.CreatePHI(start->getType(), 2));
    phis.back()->addIncoming(start, entry);
    return phis.back();
  };
  llvm::Value* count = phi(b.getInt32(0));
  Words words = {phi(first[0]), phi(first[1]), phi(first[2]), phi(first[3])};
  Key key = {phi(first_key[0]), phi(first_key[1])};
  Words next = philox.round(words, key);
  Key next_key = philox.next(key);
  llvm::Value* done = b.CreateAdd(count, b.getInt32(1));
  llvm::Value* again[] = {done, next[0], next[1], next[2], next[3], next_key[0], next_key[1]};
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(again[i], body);
  b.CreateCondBr(b.CreateICmpEQ(done, b.getInt32(kRounds)), end, body);

  b.SetInsertPoint(end);
  llvm::Value* out = llvm::UndefValue::get(result);
  for (unsigned i = 0; i < 4; ++i) out = b.CreateInsertValue(out, next[i], i);
  b.CreateRet(out);
  return f;
}

// Of each 64 indices the first 16 take word 0 of 16 blocks, the next 16 word 1, and so on.
llvm::Value* Emitter::emit_philox(llvm::Value* seed, llvm::Value* offset, llvm::Value* index) {
  int lanes = std::max(lanes_of(index), std::max(lanes_of(seed), lanes_of(offset)));
  index = splat(index, lanes);
  offset = splat(offset, lanes);
  auto like = [](uint64_t v, llvm::Value* x) { return Philox::like(v, x); };
  llvm::Value* lane = b_.CreateAnd(index, like(15, index));
  llvm::Value* block =
      b_.CreateAdd(b_.CreateLShr(offset, like(2, offset)),
                   b_.CreateAdd(b_.CreateShl(b_.CreateLShr(index, like(6, index)), like(4, index)), lane));
  Words words;
  if (target_.gpu) {
    Philox philox(b_, lanes);
    words = philox.counter(block);
    Key key = philox.key(seed);
    for (int i = 0; i < kRounds; ++i, key = philox.next(key)) words = philox.round(words, key);
  } else {
    llvm::Value* all = b_.CreateCall(philox_function(seed->getType(), block->getType()), {seed, block});
    for (unsigned i = 0; i < 4; ++i) words[i] = b_.CreateExtractValue(all, i);
  }
  llvm::Value* which = b_.CreateAnd(b_.CreateLShr(index, like(4, index)), like(3, index));
  llvm::Value* word = words[3];
  for (unsigned i = 3; i-- > 0;) word = b_.CreateSelect(b_.CreateICmpEQ(which, like(i, which)), words[i], word);
  return b_.CreateTrunc(word, Emitter::like(b_.getInt32Ty(), word));
}

}  // namespace brasa::compiler
