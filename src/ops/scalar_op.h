#pragma once

#include <cstdint>
#include <string_view>

namespace brasa::ops {

struct Row;

// _(enumerator, name) for each operator on single elements. All else that is known of one stands in the row of this name
// (primitives/pointwise.cpp).
// clang-format off
#define BRASA_SCALAR_OPS(_) \
  _(Neg, "neg") _(Abs, "abs") _(Sign, "sign") _(BitNot, "bit_not") \
  _(Floor, "floor") _(Ceil, "ceil") _(Trunc, "trunc") _(Round, "round") \
  _(Exp, "exp") _(Exp2, "exp2") _(Expm1, "expm1") _(Log, "log") _(Log2, "log2") _(Log10, "log10") _(Log1p, "log1p") \
  _(Sin, "sin") _(Cos, "cos") _(Tan, "tan") _(Asin, "asin") _(Acos, "acos") _(Atan, "atan") \
  _(Sinh, "sinh") _(Cosh, "cosh") _(Tanh, "tanh") _(Asinh, "asinh") _(Acosh, "acosh") _(Atanh, "atanh") \
  _(Sqrt, "sqrt") _(Rsqrt, "rsqrt") \
  _(Erf, "erf") _(Erfc, "erfc") _(Erfinv, "erfinv") _(Lgamma, "lgamma") _(Digamma, "digamma") \
  _(Add, "add") _(Sub, "sub") _(Mul, "mul") _(Div, "div") _(Rem, "rem") _(Pow, "pow") _(Atan2, "atan2") \
  _(Max, "max") _(Min, "min") _(Nextafter, "nextafter") \
  _(BitAnd, "bit_and") _(BitOr, "bit_or") _(BitXor, "bit_xor") _(Shl, "shl") _(Shr, "shr") \
  _(Eq, "eq") _(Ne, "ne") _(Lt, "lt") _(Le, "le") _(Gt, "gt") _(Ge, "ge") \
  _(Select, "select") _(Convert, "convert") _(Bitcast, "bitcast") \
  _(Real, "real") _(Imag, "imag") _(Complex, "complex") _(Philox, "philox")
// clang-format on

enum class ScalarOp : uint8_t {
  None,
#define BRASA_SCALAR_ENUMERATOR(Enumerator, name) Enumerator,
  BRASA_SCALAR_OPS(BRASA_SCALAR_ENUMERATOR)
#undef BRASA_SCALAR_ENUMERATOR
};

/// Of two operands of one dtype, with a bool result.
constexpr bool is_comparison(ScalarOp op) { return op >= ScalarOp::Eq && op <= ScalarOp::Ge; }
/// "bit_and", as in prim::bit_and; "" of None.
std::string_view name(ScalarOp op);
/// None for a name that is none of them.
ScalarOp scalar_op_of(std::string_view name);
const Row& row_of(ScalarOp op);

}  // namespace brasa::ops
