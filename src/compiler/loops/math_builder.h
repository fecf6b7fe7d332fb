#pragma once

#include <span>

#include "compiler/loops/builder.h"
#include "compiler/loops/math.h"

// Scalar arithmetic written as expressions; shared by the math_*.cpp files.
namespace brasa::compiler::math {

/// Where expressions put their nodes while one is alive in this thread.
class Context {
 public:
  Context(LoopBuilder& b, ExpandedMath& out, MathInstructions has, bool strict = true)
      : b(b), out(out), has(has), strict(strict), outer(current_) {
    current_ = this;
  }
  ~Context() { current_ = outer; }
  Context(const Context&) = delete;
  static Context& current() { return *current_; }

  LoopBuilder& b;
  ExpandedMath& out;
  int exact_depth = 0;
  bool coarse = false;  // of what is made now only reduced floats are made
  const MathInstructions has;
  const bool strict;

 private:
  Context* outer;
  static thread_local Context* current_;
};

/// Arithmetic inside is rounded operation by operation: error-free transformations rely on it.
struct Exactly {
  Exactly() { ++Context::current().exact_depth; }
  ~Exactly() { --Context::current().exact_depth; }
};

struct X {
  ir::Value v;
  DType type() const { return ir::type_of(v).dtype; }
  bool is_double() const { return type() == DType::Float64; }
};

using ops::ScalarOp;
X op(ScalarOp op, X a);
X op(ScalarOp op, X a, X b);
X constant(double v, DType t);
X constant(int64_t v, DType t);
/// A number of x's dtype.
X like(X x, double v);
X like(X x, int64_t v);
inline X like(X x, int v) { return like(x, int64_t{v}); }

#define BRASA_MATH_OPERATOR(symbol, name)                                               \
  inline X operator symbol(X a, X b) { return op(ScalarOp::name, a, b); }               \
  inline X operator symbol(X a, double b) { return op(ScalarOp::name, a, like(a, b)); } \
  inline X operator symbol(double a, X b) { return op(ScalarOp::name, like(b, a), b); }
BRASA_MATH_OPERATOR(+, Add)
BRASA_MATH_OPERATOR(-, Sub)
BRASA_MATH_OPERATOR(*, Mul)
BRASA_MATH_OPERATOR(/, Div)
BRASA_MATH_OPERATOR(<, Lt)
BRASA_MATH_OPERATOR(<=, Le)
BRASA_MATH_OPERATOR(>, Gt)
BRASA_MATH_OPERATOR(>=, Ge)
BRASA_MATH_OPERATOR(==, Eq)
BRASA_MATH_OPERATOR(!=, Ne)
#undef BRASA_MATH_OPERATOR
inline X operator-(X a) { return op(ScalarOp::Neg, a); }
inline X operator&(X a, X b) { return op(ScalarOp::BitAnd, a, b); }
inline X operator|(X a, X b) { return op(ScalarOp::BitOr, a, b); }
inline X operator^(X a, X b) { return op(ScalarOp::BitXor, a, b); }
inline X operator!(X a) { return op(ScalarOp::BitNot, a); }

X select(X condition, X a, X b);
X unlikely(X condition, X rare, X usual);
X convert(X x, DType t);
X bitcast(X x, DType t);
X shl(X x, int64_t by);
/// Arithmetic.
X shr(X x, int64_t by);
inline X abs(X x) { return op(ScalarOp::Abs, x); }
inline X sqrt(X x) { return op(ScalarOp::Sqrt, x); }
inline X round(X x) { return op(ScalarOp::Round, x); }
inline X trunc(X x) { return op(ScalarOp::Trunc, x); }

/// The integer dtype of a floating dtype's bits, and back.
DType bits_type(DType t);
X bits(X x);
X from_bits(X bits);
/// Bits with all but the sign cleared.
X sign_bits(X x);
/// |x| with the sign of `sign_bits` flipped in.
X flip_sign(X x, X sign_bits);
/// Smaller of x and limit, NaN if x is one; and the larger.
X at_most(X x, double limit);
X at_least(X x, double limit);
/// 1 / x for x >= 2^-126, on a GPU in float32 by its instruction.
X reciprocal(X x);
/// x · 2^n for a number n without a fraction, or -infinity, where there is an instruction.
X scaled(X x, X n);
/// 2^n for an integer n in the exponent's range.
X power_of_two(X n, DType t);
/// c[0] + c[1] x + …
X polynomial(X x, std::span<const double> c);
/// By x's dtype; with c[i] · factor · step^i.
X polynomial(X x, std::span<const double> float_c, std::span<const double> double_c, double factor = 1,
             double step = 1);
X is_nan(X x);
X infinity(X like);
X nan(X like);

// _(scalar operator, function) for each that no processor has an instruction for: math_exp.cpp, math_trig.cpp, math_special.cpp.
// The second list is of those that are rare enough in float32 to be written for float64 alone, where the same formula has bits to spare.
// clang-format off
#define BRASA_MATH_FUNCTIONS(_) \
  _(Exp, exp) _(Exp2, exp2) _(Expm1, expm1) _(Log, log) _(Log2, log2) _(Log10, log10) _(Log1p, log1p) \
  _(Sinh, sinh) _(Cosh, cosh) _(Tanh, tanh) _(Rsqrt, rsqrt) \
  _(Sin, sin) _(Cos, cos) _(Tan, tan) _(Asin, asin) _(Acos, acos) _(Atan, atan) _(Erf, erf) _(Erfc, erfc) _(Erfinv, erfinv)
#define BRASA_MATH_DOUBLE_FUNCTIONS(_) \
  _(Asinh, asinh) _(Acosh, acosh) _(Atanh, atanh) _(Lgamma, lgamma) _(Digamma, digamma)
// clang-format on
#define BRASA_MATH_FUNCTION(Operator, function) X function(X x);
BRASA_MATH_FUNCTIONS(BRASA_MATH_FUNCTION)
BRASA_MATH_DOUBLE_FUNCTIONS(BRASA_MATH_FUNCTION)
#undef BRASA_MATH_FUNCTION
/// 1 + erf x in float32: 1 or less as erfc(-x).
X one_plus_erf(X x);
/// The same bits as 1 + exp(x).
X one_plus_exp(X x);
/// 1 + tanh x in float32 on a GPU: as 2 / (1 + e^-2x).
X one_plus_tanh(X x);
/// 2^x where that is a normal number.
X exp2_of_normal(X x);
X pow(X x, X y);
X atan2(X y, X x);
// math_integer.cpp.
X rem(X x, X y);
X int_pow(X x, X y);
X next_after(X x, X y);

/// e^(high + low) for a small correction `low`, where high is in the range of the result.
X exp_of_sum(X high, X low);

/// a + b and a * b as a rounded result and what rounding left out; float64.
struct Pair {
  X high, low;
};
Pair two_sum(X a, X b);
Pair two_product(X a, X b);

}  // namespace brasa::compiler::math
