#include <brasa/ops_generated.h>
#include <brasa/tensor.h>

// C++ operators.
namespace brasa {

// a ∘ b by a's method; a number on the left by what `swapped` does with b.
#define BRASA_BINARY(symbol, method, swapped)                                      \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return a.method(b); } \
  Tensor operator symbol(const Tensor& a, const Scalar& b) { return a.method(b); } \
  Tensor operator symbol(const Scalar& a, const Tensor& b) { return swapped; }
BRASA_BINARY(+, add, b.add(a))
BRASA_BINARY(-, sub, rsub(b, a))
BRASA_BINARY(*, mul, b.mul(a))
BRASA_BINARY(/, div, b.reciprocal().mul(a))
BRASA_BINARY(%, remainder, remainder(a, b))
BRASA_BINARY(==, eq, b.eq(a))
BRASA_BINARY(!=, ne, b.ne(a))
BRASA_BINARY(<, lt, b.gt(a))
BRASA_BINARY(<=, le, b.ge(a))
BRASA_BINARY(>, gt, b.lt(a))
BRASA_BINARY(>=, ge, b.le(a))
BRASA_BINARY(&, bitwise_and, b.bitwise_and(a))
BRASA_BINARY(|, bitwise_or, b.bitwise_or(a))
BRASA_BINARY(^, bitwise_xor, b.bitwise_xor(a))
#undef BRASA_BINARY

Tensor Tensor::operator-() const { return neg(); }
Tensor Tensor::operator~() const { return bitwise_not(); }
Tensor& Tensor::operator+=(const Tensor& o) { return add_(o); }
Tensor& Tensor::operator+=(const Scalar& o) { return add_(o); }
Tensor& Tensor::operator-=(const Tensor& o) { return sub_(o); }
Tensor& Tensor::operator-=(const Scalar& o) { return sub_(o); }
Tensor& Tensor::operator*=(const Tensor& o) { return mul_(o); }
Tensor& Tensor::operator*=(const Scalar& o) { return mul_(o); }
Tensor& Tensor::operator/=(const Tensor& o) { return div_(o); }
Tensor& Tensor::operator/=(const Scalar& o) { return div_(o); }
Tensor& Tensor::operator&=(const Tensor& o) { return bitwise_and_(o); }
Tensor& Tensor::operator|=(const Tensor& o) { return bitwise_or_(o); }
Tensor& Tensor::operator^=(const Tensor& o) { return bitwise_xor_(o); }

}  // namespace brasa
