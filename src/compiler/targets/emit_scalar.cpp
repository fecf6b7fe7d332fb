#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "compiler/targets/emitter.h"
#include "ops/number.h"
#include "ops/table.h"
#include "support/error.h"

namespace brasa::compiler {

llvm::Value* Emitter::constant_of(const ir::Arg& value, DType t) {
  llvm::Type* type = register_type(t);
  double number = 0;
  int64_t integer = 0;
  if (auto* d = value.get_if<double>()) {
    number = *d;
    integer = ops::truncated(*d);
  } else if (auto* b = value.get_if<bool>()) {
    number = static_cast<double>(integer = *b);
  } else {
    integer = value.get<ir::Expr>().constant();
    number = static_cast<double>(integer);
  }
  if (t == DType::Bool) return b_.getInt1(value.is<double>() ? number != 0 : integer != 0);
  if (is_narrow_floating(t)) return convert(llvm::ConstantFP::get(b_.getFloatTy(), number), DType::Float32, t);
  if (t == DType::Float32) return llvm::ConstantFP::get(type, static_cast<double>(static_cast<float>(number)));
  if (is_floating(t)) return llvm::ConstantFP::get(type, number);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(integer), true);
}

llvm::Value* Emitter::emit_scalar(const Node* n) {
  llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  // Operands are emitted from here too, each with its own flags.
  b_.setFastMathFlags(exact_.count(n) ? llvm::FastMathFlags() : flags_);
  DType to = n->types[0].dtype;
  ops::Kind kind = ops::kind_of(*n);
  if (kind == ops::Kind::Full) return constant_of(n->args[0], to);
  if (kind == ops::Kind::SizeValue) return eval_expr(at_copy(n->arg<ir::Expr>(0)));
  ScalarOp op = scalar_op_of(n->op);
  auto operand = [&](size_t i) { return eval(n->arg<Value>(i)); };
  auto dtype = [&](size_t i) { return type_of(n->arg<Value>(i)).dtype; };
  if (op == ScalarOp::Convert) return convert(operand(0), dtype(0), to);
  if (op == ScalarOp::Philox) return emit_philox(operand(0), operand(1), operand(2));
  if (op == ScalarOp::Bitcast) {
    llvm::Value* x = operand(0);
    return b_.CreateBitCast(x, like(register_type(to), x));
  }
  if (op == ScalarOp::Select) return emit_select(n);
  if (ops::is_comparison(op)) {
    if (llvm::Value* lanes = compare_indices(op, n)) return lanes;
    if (llvm::Value* found = compare_with_common(op, n)) return found;
  }
  if (llvm::Value* sum = emit_fused(op, n)) return sum;
  DType t = dtype(0);
  if (is_narrow_floating(t) && (op == ScalarOp::Neg || op == ScalarOp::Abs)) {
    llvm::Value* bits = operand(0);
    uint64_t sign = uint64_t{1} << (8 * size_of(t) - 1);
    return op == ScalarOp::Neg ? b_.CreateXor(bits, sign) : b_.CreateAnd(bits, sign - 1);
  }
  // Other narrow floats are computed in float32; usually the graph says so itself.
  DType wide = is_narrow_floating(t) ? DType::Float32 : t;
  auto input = [&](size_t i) { return convert(operand(i), t, wide); };
  if (is_function({op, t}) && !target_.gpu) {
    Values operands;
    for (size_t i = 0; i < n->args.size(); ++i) operands.push_back(operand(i));
    return call_function({op, t}, std::move(operands));
  }
  if (n->args.size() == 1) return convert(emit_unary(op, input(0), wide), wide, t);
  llvm::Value *a = input(0), *b = input(1);
  match(a, b);
  if (ops::is_comparison(op)) return emit_compare(op, a, b, wide);
  if (target_.gpu && wide == DType::Float32 && kernel_.reciprocals.count(n))
    return quick(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, b);
  return convert(emit_binary(op, a, b, wide), wide, t);
}

llvm::Value* Emitter::call_function(MathFunction f, Values operands) {
  if (operands.size() == 2) match(operands[0], operands[1]);
  int lanes = lanes_of(operands[0]);
  std::string name = str(ops::name(f.op), ".", brasa::name(f.dtype), ".", lanes);
  llvm::Function* function = module_.getFunction(name);
  if (!function) {
    ExpandedMath body = function_body(f, target_.math_instructions());
    function = Emitter(module_, target_, body).run_as_function(name, lanes);
  }
  return b_.CreateCall(function, operands);
}

// Adding and subtracting 2^23 (2^52) leaves an integer, rounded to even; the sign is put back for -0.
llvm::Value* Emitter::round_to_even(llvm::Value* x) {
  if (target_.native_rounding) return intrinsic(llvm::Intrinsic::roundeven, {x});
  llvm::Value* magic =
      llvm::ConstantFP::get(x->getType(), x->getType()->getScalarType()->isFloatTy() ? 0x1p23 : 0x1p52);
  llvm::Value* a = intrinsic(llvm::Intrinsic::fabs, {x});
  llvm::Value* r = b_.CreateFSub(b_.CreateFAdd(a, magic), magic);
  r = b_.CreateSelect(b_.CreateFCmpOLT(a, magic), r, a);
  return intrinsic(llvm::Intrinsic::copysign, {r, x});
}

// A GPU's instruction for float32. LLVM does not know by itself that loads may move before it.
llvm::Value* Emitter::quick(unsigned id, llvm::Value* x) {
  llvm::CallInst* call = b_.CreateIntrinsic(id, {}, {x});
  call->addFnAttr(llvm::Attribute::WillReturn);
  call->setDoesNotThrow();
  return call;
}

llvm::Value* Emitter::emit_unary(ScalarOp op, llvm::Value* x, DType t) {
  bool floating = is_floating(t);
  switch (op) {
    case ScalarOp::Neg: return floating ? b_.CreateFNeg(x) : b_.CreateNeg(x);
    case ScalarOp::BitNot: return b_.CreateNot(x);
    case ScalarOp::Abs:
      if (floating) return intrinsic(llvm::Intrinsic::fabs, {x});
      return is_signed(t) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b_.getFalse()) : x;
    case ScalarOp::Sign: return emit_sign(x, t);
    case ScalarOp::Round:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc: return floating ? emit_rounding(op, x) : x;
    case ScalarOp::Exp2:  // where math.h keeps it for a GPU's instruction: 2 ulp off, and 0 for what would be denormal
      if (target_.gpu && t == DType::Float32) return quick(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, x);
      break;
    case ScalarOp::Rsqrt:  // likewise
      if (target_.gpu && t == DType::Float32) return quick(llvm::Intrinsic::nvvm_rsqrt_approx_f, x);
      break;
    case ScalarOp::Sqrt:
      if (floating) return intrinsic(llvm::Intrinsic::sqrt, {x});
      break;
    default: break;
  }
  fail(str("prim::", ops::name(op), " is not available in generated kernels for ", name(t)));
}

llvm::Value* Emitter::emit_sign(llvm::Value* x, DType t) {
  if (t == DType::Bool) return x;
  llvm::Type* type = x->getType();
  llvm::Value *zero = number(type, 0), *one = number(type, 1);
  if (is_floating(t)) {
    llvm::Value* r = b_.CreateSelect(b_.CreateFCmpOGT(x, zero), one, zero);
    r = b_.CreateSelect(b_.CreateFCmpOLT(x, zero), number(type, -1), r);
    return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, r);
  }
  llvm::Value* r = b_.CreateZExt(b_.CreateICmpNE(x, zero), type);
  return is_signed(t) ? b_.CreateSelect(b_.CreateICmpSLT(x, zero), number(type, -1), r) : r;
}

llvm::Value* Emitter::emit_rounding(ScalarOp op, llvm::Value* x) {
  if (op == ScalarOp::Round) return round_to_even(x);
  bool ceil = op == ScalarOp::Ceil, trunc = op == ScalarOp::Trunc;
  if (target_.native_rounding)
    return intrinsic(ceil ? llvm::Intrinsic::ceil : trunc ? llvm::Intrinsic::trunc : llvm::Intrinsic::floor, {x});
  // From the nearest integer one step towards the wanted side.
  llvm::Value* a = trunc ? intrinsic(llvm::Intrinsic::fabs, {x}) : x;
  llvm::Value* r = round_to_even(a);
  llvm::Value* step = number(x->getType(), ceil ? 1 : -1);
  llvm::Value* off = ceil ? b_.CreateFCmpOLT(r, a) : b_.CreateFCmpOGT(r, a);
  r = b_.CreateSelect(off, b_.CreateFAdd(r, step), r);
  return intrinsic(llvm::Intrinsic::copysign, {r, x});
}

llvm::Value* Emitter::extremum(bool max, llvm::Value* a, llvm::Value* b, DType t) {
  if (t == DType::Bool) return max ? b_.CreateOr(a, b) : b_.CreateAnd(a, b);
  if (!is_floating(t)) {
    auto id = is_signed(t) ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                           : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
    return intrinsic(id, {a, b});
  }
  if (target_.native_extrema && t == DType::Float32)
    return b_.CreateBinaryIntrinsic(max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a, b);
  // The comparison picks `a` where b is NaN too late, so a NaN in b is asked for by itself; one in a loses no comparison.
  llvm::Value* win = max ? b_.CreateFCmpOGT(b, a) : b_.CreateFCmpOLT(b, a);
  llvm::Value* best = b_.CreateSelect(win, b, a);
  // An instruction of x86-64, which LLVM would take apart to make one selection of both.
  if (!target_.gpu && !target_.baseline) best = b_.CreateArithmeticFence(best, best->getType());
  return b_.CreateSelect(b_.CreateFCmpUNO(b, b), b, best);
}

// Vectors of small numbers as doubles, whose truncated quotient is exact; others lane by lane.
llvm::Value* Emitter::divide_longs(llvm::Value* a, llvm::Value* b) {
  llvm::IRBuilder<>::FastMathFlagGuard flags(b_);
  b_.clearFastMathFlags();
  auto small = [&](llvm::Value* v) {
    llvm::Value* above = b_.CreateAdd(v, number(v->getType(), int64_t{1} << 51));
    return b_.CreateICmpULT(above, number(v->getType(), int64_t{1} << 52));
  };
  llvm::Value *a_is_small = small(a), *b_is_small = small(b);
  llvm::Value* all = b_.CreateAndReduce(b_.CreateAnd(a_is_small, b_is_small));
  llvm::Value *x = integer_to_double(a), *y = integer_to_double(b);
  llvm::Value* near = double_to_integer(emit_rounding(ScalarOp::Trunc, b_.CreateFDiv(x, y)));
  auto* before = b_.GetInsertBlock();
  llvm::Value* far = nullptr;
  llvm::BasicBlock* last = nullptr;
  emit_if(b_.CreateNot(all), [&] {
    far = b_.CreateSDiv(a, b);
    last = b_.GetInsertBlock();
  });
  auto* phi = b_.CreatePHI(near->getType(), 2);
  phi->addIncoming(near, before);
  phi->addIncoming(far, last);
  return phi;
}

llvm::Value* Emitter::divide(llvm::Value* a, llvm::Value* b, DType t, bool remainder) {
  llvm::Type* type = a->getType();
  llvm::Value *zero = number(type, 0), *one = number(type, 1);
  if (t == DType::Bool) return remainder ? zero : b_.CreateAnd(a, b);
  bool constant = llvm::isa<llvm::Constant>(b);
  llvm::Value* none = b_.CreateICmpEQ(b, zero);
  llvm::Value* quotient;
  if (lanes_of(a) > 1 && size_of(t) <= 4 && !constant) {
    // There is no vector division of integers, and double has bits to spare: the truncated quotient is exact.
    llvm::Type* wide = like(b_.getDoubleTy(), a);
    auto to_float = [&](llvm::Value* v) { return is_signed(t) ? b_.CreateSIToFP(v, wide) : b_.CreateUIToFP(v, wide); };
    llvm::Value* q = b_.CreateFDiv(to_float(a), to_float(b_.CreateSelect(none, one, b)));
    quotient = b_.CreateTrunc(b_.CreateFPToSI(q, like(b_.getInt64Ty(), a)), type);
    if (size_of(t) < 4) quotient = b_.CreateTrunc(b_.CreateFPToSI(q, like(b_.getInt32Ty(), a)), type);
  } else if (is_signed(t)) {
    // The processor traps on 0 and on the one quotient that overflows.
    llvm::Value* minus = b_.CreateICmpEQ(b, number(type, -1));
    llvm::Value* safe = b_.CreateSelect(b_.CreateOr(none, minus), one, b);
    bool longs = lanes_of(a) > 1 && !constant && !target_.gpu;
    quotient = b_.CreateSelect(minus, b_.CreateNeg(a), longs ? divide_longs(a, safe) : b_.CreateSDiv(a, safe));
  } else {
    quotient = b_.CreateUDiv(a, b_.CreateSelect(none, one, b));
  }
  llvm::Value* r = remainder ? b_.CreateSub(a, b_.CreateMul(quotient, b)) : quotient;
  return b_.CreateSelect(none, zero, r);
}

llvm::Value* Emitter::shift(bool left, llvm::Value* a, llvm::Value* b, DType t) {
  llvm::Type* type = a->getType();
  auto width = static_cast<int64_t>(type->getScalarSizeInBits());
  // A negative distance is a huge unsigned one.
  llvm::Value* outside = b_.CreateICmpUGE(b, number(type, width));
  if (!left && is_signed(t)) return b_.CreateAShr(a, b_.CreateSelect(outside, number(type, width - 1), b));
  llvm::Value* safe = b_.CreateSelect(outside, number(type, 0), b);
  return b_.CreateSelect(outside, number(type, 0), left ? b_.CreateShl(a, safe) : b_.CreateLShr(a, safe));
}

llvm::Value* Emitter::emit_binary(ScalarOp op, llvm::Value* a, llvm::Value* b, DType t) {
  bool floating = is_floating(t), truth = t == DType::Bool;
  switch (op) {
    case ScalarOp::Add: return floating ? b_.CreateFAdd(a, b) : truth ? b_.CreateOr(a, b) : b_.CreateAdd(a, b);
    case ScalarOp::Sub: return floating ? b_.CreateFSub(a, b) : truth ? b_.CreateXor(a, b) : b_.CreateSub(a, b);
    case ScalarOp::Mul: return floating ? b_.CreateFMul(a, b) : truth ? b_.CreateAnd(a, b) : b_.CreateMul(a, b);
    case ScalarOp::Div: return floating ? b_.CreateFDiv(a, b) : divide(a, b, t, false);
    case ScalarOp::Max: return extremum(true, a, b, t);
    case ScalarOp::Min: return extremum(false, a, b, t);
    default: break;
  }
  if (!floating) switch (op) {
      case ScalarOp::Rem: return divide(a, b, t, true);
      case ScalarOp::BitAnd: return b_.CreateAnd(a, b);
      case ScalarOp::BitOr: return b_.CreateOr(a, b);
      case ScalarOp::BitXor: return b_.CreateXor(a, b);
      case ScalarOp::Shl: return shift(true, a, b, t);
      case ScalarOp::Shr: return shift(false, a, b, t);
      default: break;
    }
  fail(str("prim::", ops::name(op), " is not available in generated kernels for ", name(t)));
}

llvm::Value* Emitter::emit_compare(ScalarOp op, llvm::Value* a, llvm::Value* b, DType t) {
  using P = llvm::CmpInst::Predicate;
  if (is_narrow_floating(t)) {
    a = convert(a, t, DType::Float32);
    b = convert(b, t, DType::Float32);
  }
  auto compare = [&](P floating, P with_sign, P without) {
    if (is_floating(t)) return b_.CreateFCmp(floating, a, b);
    return b_.CreateICmp(is_signed(t) ? with_sign : without, a, b);
  };
  switch (op) {
    case ScalarOp::Eq: return compare(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ);
    case ScalarOp::Ne: return compare(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE);
    case ScalarOp::Lt: return compare(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT);
    case ScalarOp::Le: return compare(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE);
    case ScalarOp::Gt: return compare(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT);
    case ScalarOp::Ge: return compare(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE);
    default: fail_internal(str("prim::", ops::name(op), " is no comparison"));
  }
}

}  // namespace brasa::compiler
