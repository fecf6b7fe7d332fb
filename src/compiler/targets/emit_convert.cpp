#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <cmath>

#include "compiler/targets/emitter.h"
#include "support/error.h"

namespace brasa::compiler {

llvm::Value* Emitter::brain_to_float(llvm::Value* bits) {
  if (llvm::Value* rounded = rounded_to_brain(bits)) return rounded;
  llvm::Type* i32 = like(b_.getInt32Ty(), bits);
  return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bits, i32), number(i32, 16)), like(b_.getFloatTy(), bits));
}

// What was a float before it was rounded, as a float: a GPU rounds two at once into a register, the upper one of which is that. It rounds single
// ones in the unit for exponentials, a quarter as many at a time.
llvm::Value* Emitter::rounded_to_brain(llvm::Value* bits) {
  auto* cast = target_.native_brain ? llvm::dyn_cast<llvm::BitCastInst>(bits) : nullptr;
  auto* call = cast ? llvm::dyn_cast<llvm::CallInst>(cast->getOperand(0)) : nullptr;
  if (!call || call->getIntrinsicID() != llvm::Intrinsic::nvvm_f2bf16_rn) return nullptr;
  llvm::Value* x = call->getArgOperand(0);
  llvm::Value* both = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_ff2bf16x2_rn, {}, {x, number(x->getType(), 0)});
  return b_.CreateBitCast(both, x->getType());
}

// Rounds to nearest even; a NaN stays one even if its set bits are all in the lower half.
llvm::Value* Emitter::float_to_brain(llvm::Value* x) {
  if (target_.native_brain) return b_.CreateBitCast(quick(llvm::Intrinsic::nvvm_f2bf16_rn, x), b_.getInt16Ty());
  if (llvm::Value* narrow = vector_to_brain(x)) return narrow;
  llvm::Type* i32 = like(b_.getInt32Ty(), x);
  llvm::Value* bits = b_.CreateBitCast(x, i32);
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(bits, number(i32, 16)), number(i32, 1));
  llvm::Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(odd, number(i32, 0x7fff)));
  llvm::Value* quiet = b_.CreateOr(bits, number(i32, 0x400000));
  llvm::Value* r = b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded);
  return b_.CreateTrunc(b_.CreateLShr(r, number(i32, 16)), like(b_.getInt16Ty(), x));
}

// By the instruction, which takes denormal numbers as 0; null where they must stay, or there is none for so many lanes.
llvm::Value* Emitter::vector_to_brain(llvm::Value* x) {
  int lanes = lanes_of(x);
  if (!flushes_ || (lanes != 8 && lanes != 16)) return nullptr;
  auto id =
      lanes == 16 ? llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512 : llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_256;
  return b_.CreateBitCast(b_.CreateCall(llvm::Intrinsic::getDeclaration(&module_, id), {x}), like(b_.getInt16Ty(), x));
}

// From and to a format of 16 or 8 bits.
llvm::Value* Emitter::narrow_to_float(llvm::Value* bits, DType from) {
  if (from == DType::BFloat16) return brain_to_float(bits);
  llvm::Type *i32 = like(b_.getInt32Ty(), bits), *f32 = like(b_.getFloatTy(), bits);
  if (from == DType::Float8_e5m2) {  // the upper half of a float16
    llvm::Type* i16 = like(b_.getInt16Ty(), bits);
    return narrow_to_float(b_.CreateShl(b_.CreateZExt(bits, i16), number(i16, 8)), DType::Float16);
  }
  if (from == DType::Float16 && target_.native_half)
    return b_.CreateFPExt(b_.CreateBitCast(bits, like(b_.getHalfTy(), bits)), f32);
  const DTypeInfo& format = info_of(from);
  int lost = 24 - format.digits, width = static_cast<int>(8 * format.bytes), sign_bit = 1 << (width - 1);
  llvm::Value* wide = b_.CreateZExt(bits, i32);
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(wide, number(i32, sign_bit)), number(i32, 32 - width));
  llvm::Value* rest = b_.CreateShl(b_.CreateAnd(wide, number(i32, sign_bit - 1)), number(i32, lost));
  // The exponent is rebased by an exact product, which also normalises denormals.
  double rebase = std::ldexp(1.0, 126 + format.min_exponent);
  llvm::Value* value = b_.CreateFMul(b_.CreateBitCast(rest, f32), llvm::ConstantFP::get(f32, rebase));
  llvm::Value* special = b_.CreateICmpUGE(rest, number(i32, format.beyond << lost));
  llvm::Value* r = b_.CreateSelect(special, b_.CreateOr(rest, number(i32, 0x7f800000)), b_.CreateBitCast(value, i32));
  return b_.CreateBitCast(b_.CreateOr(r, sign), f32);
}

llvm::Value* Emitter::float_to_narrow(llvm::Value* x, DType to) {
  const DTypeInfo& format = info_of(to);
  int fraction = format.digits - 1, lost = 23 - fraction, width = static_cast<int>(8 * format.bytes);
  llvm::Type *i32 = like(b_.getInt32Ty(), x), *result = like(register_type(to), x);
  if (to == DType::Float16 && target_.native_half)
    return b_.CreateBitCast(b_.CreateFPTrunc(x, like(b_.getHalfTy(), x)), result);
  auto bits_of = [](float v) { return static_cast<int64_t>(std::bit_cast<uint32_t>(v)); };
  llvm::Value* bits = b_.CreateBitCast(x, i32);
  llvm::Value* magnitude = b_.CreateAnd(bits, number(i32, 0x7fffffff));
  llvm::Value* sign = b_.CreateLShr(b_.CreateAnd(bits, number(i32, 0x80000000)), number(i32, 32 - width));
  // Normal: the exponent is rebased, and the bits that go are rounded to even; a carry may well reach what is beyond.
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, number(i32, lost)), number(i32, 1));
  int64_t rebase = static_cast<int64_t>(126 + format.min_exponent) << 23, below_half = (1 << (lost - 1)) - 1;
  llvm::Value* normal = b_.CreateAdd(b_.CreateSub(magnitude, number(i32, rebase - below_half)), odd);
  normal = b_.CreateLShr(normal, number(i32, lost));
  // Denormal: adding a power of 2, whose last place is the format's smallest number, rounds at the right bit.
  float magic = std::ldexp(1.0F, format.min_exponent - fraction + 23);
  llvm::Value* shifted =
      b_.CreateFAdd(b_.CreateBitCast(magnitude, x->getType()), llvm::ConstantFP::get(x->getType(), magic));
  llvm::Value* denormal = b_.CreateSub(b_.CreateBitCast(shifted, i32), number(i32, bits_of(magic)));
  float least = std::ldexp(1.0F, format.min_exponent);
  llvm::Value* r = b_.CreateSelect(b_.CreateICmpULT(magnitude, number(i32, bits_of(least))), denormal, normal);
  llvm::Value* beyond = number(i32, format.beyond);
  r = b_.CreateSelect(b_.CreateICmpUGT(r, beyond), beyond, r);
  r = b_.CreateSelect(b_.CreateICmpUGT(magnitude, number(i32, 0x7f800000)), number(i32, format.nan), r);
  return b_.CreateTrunc(b_.CreateOr(r, sign), result);
}

llvm::Value* Emitter::convert(llvm::Value* x, DType from, DType to) {
  if (from == to) return x;
  if (is_narrow_floating(from)) return convert(narrow_to_float(x, from), DType::Float32, to);
  if (to == DType::BFloat16) return float_to_brain(convert(x, from, DType::Float32));
  if (is_narrow_floating(to)) return float_to_narrow(convert(x, from, DType::Float32), to);
  llvm::Type* type = like(register_type(to), x);
  if (to == DType::Bool) {
    if (is_floating(from)) return b_.CreateFCmpUNE(x, number(x->getType(), 0));
    return b_.CreateICmpNE(x, number(x->getType(), 0));
  }
  if (is_floating(from) && is_floating(to))
    return size_of(to) > size_of(from) ? b_.CreateFPExt(x, type) : b_.CreateFPTrunc(x, type);
  if (is_floating(to)) return is_signed(from) ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  if (to == DType::UInt64 && is_floating(from)) {
    // The processor converts to signed numbers.
    llvm::Value *half = llvm::ConstantFP::get(x->getType(), 0x1p63), *upper = b_.CreateFCmpOGE(x, half);
    llvm::Value* low = b_.CreateFreeze(b_.CreateFPToSI(b_.CreateSelect(upper, b_.CreateFSub(x, half), x), type));
    return b_.CreateSelect(upper, b_.CreateXor(low, number(type, INT64_MIN)), low);
  }
  if (is_floating(from)) {
    // Narrow integers wrap, so they go through a wider one. What does not fit even there is any number, but not poison.
    bool narrow = size_of(to) < 4;
    llvm::Value* wide = b_.CreateFreeze(b_.CreateFPToSI(x, narrow ? like(b_.getInt32Ty(), x) : type));
    return narrow ? b_.CreateTrunc(wide, type) : wide;
  }
  return b_.CreateIntCast(x, type, is_signed(from));
}

}  // namespace brasa::compiler
