#include "compiler/targets/emitter.h"
#include "support/error.h"

namespace brasa::compiler {

llvm::Value* Emitter::brain_to_float(llvm::Value* bits) {
  llvm::Type* i32 = like(b_.getInt32Ty(), bits);
  return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bits, i32), number(i32, 16)), like(b_.getFloatTy(), bits));
}

// Rounds to nearest even; a NaN stays one even if its set bits are all in the lower half.
llvm::Value* Emitter::float_to_brain(llvm::Value* x) {
  llvm::Type* i32 = like(b_.getInt32Ty(), x);
  llvm::Value* bits = b_.CreateBitCast(x, i32);
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, number(i32, 16)), number(i32, 1));
  llvm::Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, number(i32, 0x7fff)));
  llvm::Value* quiet = b_.CreateOr(bits, number(i32, 0x400000));
  llvm::Value* r = b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded);
  return b_.CreateTrunc(b_.CreateLShr(r, number(i32, 16)), like(b_.getInt16Ty(), x));
}

llvm::Value* Emitter::half_to_float(llvm::Value* bits) {
  if (target_.native_half) {
    llvm::Value* h = b_.CreateBitCast(bits, like(b_.getHalfTy(), bits));
    return b_.CreateFPExt(h, like(b_.getFloatTy(), bits));
  }
  // The exponent is rebased by an exact product, which also normalises denormals.
  llvm::Type *i32 = like(b_.getInt32Ty(), bits), *f32 = like(b_.getFloatTy(), bits);
  llvm::Value* wide = b_.CreateZExt(bits, i32);
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(wide, number(i32, 0x8000)), number(i32, 16));
  llvm::Value* rest = b_.CreateShl(b_.CreateAnd(wide, number(i32, 0x7fff)), number(i32, 13));
  llvm::Value* value = b_.CreateFMul(b_.CreateBitCast(rest, f32), llvm::ConstantFP::get(f32, 0x1p112));
  llvm::Value* special = b_.CreateICmpUGE(rest, number(i32, 0x7c00 << 13));
  llvm::Value* r = b_.CreateSelect(special, b_.CreateOr(rest, number(i32, 0x7f800000)), b_.CreateBitCast(value, i32));
  return b_.CreateBitCast(b_.CreateOr(r, sign), f32);
}

llvm::Value* Emitter::float_to_half(llvm::Value* x) {
  llvm::Type *i32 = like(b_.getInt32Ty(), x), *i16 = like(b_.getInt16Ty(), x);
  if (target_.native_half) {
    llvm::Value* h = b_.CreateFPTrunc(x, like(b_.getHalfTy(), x));
    return b_.CreateBitCast(h, i16);
  }
  llvm::Value* bits = b_.CreateBitCast(x, i32);
  llvm::Value* magnitude = b_.CreateAnd(bits, number(i32, 0x7fffffff));
  llvm::Value* sign = b_.CreateLShr(b_.CreateAnd(bits, number(i32, 0x80000000)), number(i32, 16));
  // Normal: the exponent is rebased, and the 13 bits that go are rounded to even; a carry may well reach infinity.
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, number(i32, 13)), number(i32, 1));
  llvm::Value* normal =
      b_.CreateLShr(b_.CreateAdd(b_.CreateSub(magnitude, number(i32, 0x38000000 - 0xfff)), odd), number(i32, 13));
  // Denormal: adding 1/2, whose last place is float16's smallest number, rounds at the right bit.
  llvm::Value* shifted =
      b_.CreateFAdd(b_.CreateBitCast(magnitude, x->getType()), llvm::ConstantFP::get(x->getType(), 0.5));
  llvm::Value* denormal = b_.CreateSub(b_.CreateBitCast(shifted, i32), number(i32, 0x3f000000));
  llvm::Value* r = b_.CreateSelect(b_.CreateICmpULT(magnitude, number(i32, 0x38800000)), denormal, normal);
  r = b_.CreateSelect(b_.CreateICmpUGE(magnitude, number(i32, 0x47800000)), number(i32, 0x7c00), r);
  r = b_.CreateSelect(b_.CreateICmpUGT(magnitude, number(i32, 0x7f800000)), number(i32, 0x7e00), r);
  return b_.CreateTrunc(b_.CreateOr(r, sign), i16);
}

llvm::Value* Emitter::convert(llvm::Value* x, DType from, DType to) {
  if (from == to) return x;
  if (from == DType::Float16) return convert(half_to_float(x), DType::Float32, to);
  if (from == DType::BFloat16) return convert(brain_to_float(x), DType::Float32, to);
  if (to == DType::Float16) return float_to_half(convert(x, from, DType::Float32));
  if (to == DType::BFloat16) return float_to_brain(convert(x, from, DType::Float32));
  llvm::Type* type = like(register_type(to), x);
  if (to == DType::Bool) {
    if (is_floating(from)) return b_.CreateFCmpUNE(x, number(x->getType(), 0));
    return b_.CreateICmpNE(x, number(x->getType(), 0));
  }
  if (is_floating(from) && is_floating(to))
    return size_of(to) > size_of(from) ? b_.CreateFPExt(x, type) : b_.CreateFPTrunc(x, type);
  if (is_floating(to)) return is_signed(from) ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  if (is_floating(from)) {
    // Narrow integers wrap, so they go through a wider one. What does not fit even there is any number, but not poison.
    bool narrow = size_of(to) < 4;
    llvm::Value* wide = b_.CreateFPToSI(x, narrow ? like(b_.getInt32Ty(), x) : type);
    wide = b_.CreateFreeze(wide);
    return narrow ? b_.CreateTrunc(wide, type) : wide;
  }
  return b_.CreateIntCast(x, type, is_signed(from));
}

}  // namespace brasa::compiler
