#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/targets/emitter.h"
#include "support/error.h"

// Products of matrices by the tiles of x86-64 (AMX): 8 registers of 16 rows of 64 bytes.
namespace brasa::compiler {

namespace {

constexpr int64_t kSide = 16;      // rows of a tile, and words in each
constexpr int64_t kRowBytes = 64;  // of a tile
constexpr int kFirstOfA = 4, kFirstOfB = 6;

llvm::Intrinsic::ID product_of(const std::string& kind) {
  if (kind == "bf16") return llvm::Intrinsic::x86_tdpbf16ps;
  if (kind == "ss") return llvm::Intrinsic::x86_tdpbssd;
  if (kind == "su") return llvm::Intrinsic::x86_tdpbsud;
  if (kind == "us") return llvm::Intrinsic::x86_tdpbusd;
  BRASA_ASSERT(kind == "uu", "no tiles of kind ", kind);
  return llvm::Intrinsic::x86_tdpbuud;
}

}  // namespace

// All of them are whole: operands are filled up with zeros.
void Emitter::configure_tiles() {
  BRASA_ASSERT(target_.tiles, target_.text, " has no tiles");
  std::vector<uint8_t> config(64);
  config[0] = 1;  // the palette
  for (int tile = 0; tile < 8; ++tile) {
    config[16 + 2 * tile] = kRowBytes;  // bytes of a row, 16 bits
    config[48 + tile] = kSide;          // rows
  }
  llvm::Constant* bytes = llvm::ConstantDataArray::get(b_.getContext(), config);
  auto* global =
      new llvm::GlobalVariable(module_, bytes->getType(), true, llvm::GlobalValue::PrivateLinkage, bytes, "tiles");
  global->setAlignment(llvm::Align(64));
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {global});
}

void Emitter::release_tiles() { b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {}); }

void Emitter::emit_tile_product(const Node* n) {
  auto expr = [&](size_t i) { return at_copy(n->arg<Expr>(i)); };
  BufferRef a = place_of(n->arg<Value>(0)), b = place_of(n->arg<Value>(1)),
            out = place_of(Value{const_cast<Node*>(n), 0});
  int64_t across = n->arg<Expr>(7).constant() / kSide, along = n->arg<Expr>(8).constant() / kSide;
  int64_t wide_row = along * kRowBytes;  // of b, and of the result
  llvm::Value *row_of_a = eval_expr(expr(3) * size_of(a.dtype)), *step_of_a = eval_expr(expr(4) * size_of(a.dtype));
  llvm::Value *first_of_a = address(a, expr(2)), *first_of_b = address(b, expr(5));
  auto tile = [&](int64_t i) { return b_.getInt8(static_cast<uint8_t>(i)); };
  auto bytes_on = [&](llvm::Value* p, llvm::Value* bytes) { return b_.CreateInBoundsGEP(b_.getInt8Ty(), p, bytes); };
  auto call = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> args) { b_.CreateIntrinsic(id, {}, args); };
  for (int64_t t = 0; t < across * along; ++t) call(llvm::Intrinsic::x86_tilezero, {tile(t)});
  emit_counted(i64(0), eval_expr(expr(6)), i64(1), false, [&](llvm::Value* step) {
    llvm::Value* at_a = bytes_on(first_of_a, b_.CreateNSWMul(step, step_of_a));
    llvm::Value* at_b = bytes_on(first_of_b, b_.CreateNSWMul(step, i64(kSide * wide_row)));
    for (int64_t j = 0; j < along; ++j)
      call(llvm::Intrinsic::x86_tileloadd64, {tile(kFirstOfB + j), bytes_on(at_b, i64(j * kRowBytes)), i64(wide_row)});
    for (int64_t i = 0; i < across; ++i) {
      llvm::Value* from = bytes_on(at_a, b_.CreateNSWMul(row_of_a, i64(i * kSide)));
      call(llvm::Intrinsic::x86_tileloadd64, {tile(kFirstOfA + i), from, row_of_a});
      for (int64_t j = 0; j < along; ++j)
        call(product_of(tile_kind(n)), {tile(i * along + j), tile(kFirstOfA + i), tile(kFirstOfB + j)});
    }
  });
  for (int64_t i = 0; i < across; ++i)
    for (int64_t j = 0; j < along; ++j)
      call(llvm::Intrinsic::x86_tilestored64,
           {tile(i * along + j), bytes_on(out.base, i64(i * kSide * wide_row + j * kRowBytes)), i64(wide_row)});
}

}  // namespace brasa::compiler
