#include "compiler/loops/math_builder.h"

#include <limits>
#include <vector>

#include "support/error.h"

namespace brasa::compiler::math {

thread_local Context* Context::current_ = nullptr;

namespace {

X made(ir::Value v) {
  Context& c = Context::current();
  if (c.exact_depth > 0) c.out.exact.insert(v.node);
  return {v};
}

}  // namespace

X op(ScalarOp op, X a) { return made(Context::current().b.op(op, {a.v})); }
X op(ScalarOp op, X a, X b) { return made(Context::current().b.op(op, {a.v, b.v})); }
X constant(double v, DType t) { return {Context::current().b.constant(v, t)}; }
X constant(int64_t v, DType t) { return {Context::current().b.constant(v, t)}; }
X like(X x, double v) {
  return is_floating(x.type()) ? constant(v, x.type()) : constant(static_cast<int64_t>(v), x.type());
}
X like(X x, int64_t v) {
  return is_floating(x.type()) ? constant(static_cast<double>(v), x.type()) : constant(v, x.type());
}

X select(X c, X a, X b) { return {Context::current().b.op(ScalarOp::Select, {c.v, a.v, b.v})}; }
X unlikely(X c, X rare, X usual) { return {Context::current().b.unlikely(c.v, rare.v, usual.v)}; }
X convert(X x, DType t) { return {Context::current().b.convert(x.v, t)}; }
X bitcast(X x, DType t) { return {Context::current().b.bitcast(x.v, t)}; }
X shl(X x, int64_t by) { return op(ScalarOp::Shl, x, like(x, by)); }
X shr(X x, int64_t by) { return op(ScalarOp::Shr, x, like(x, by)); }

// A GPU has instructions that keep NaN, a CPU such that give their second operand where one is.
X at_most(X x, double limit) {
  X l = like(x, limit);
  return Context::current().has.gpu ? op(ScalarOp::Min, x, l) : select(l < x, l, x);
}
X at_least(X x, double limit) {
  X l = like(x, limit);
  return Context::current().has.gpu ? op(ScalarOp::Max, x, l) : select(l > x, l, x);
}

DType bits_type(DType t) { return t == DType::Float64 ? DType::Int64 : DType::Int32; }
X bits(X x) { return bitcast(x, bits_type(x.type())); }
X from_bits(X b) { return bitcast(b, b.type() == DType::Int64 ? DType::Float64 : DType::Float32); }
X sign_bits(X x) { return bits(x) & like(bits(x), x.is_double() ? INT64_MIN : int64_t{INT32_MIN}); }
X flip_sign(X x, X sign) { return from_bits(bits(x) ^ sign); }

X reciprocal(X x) {
  X r = 1.0 / x;
  Context::current().out.reciprocals.insert(r.v.node);
  return r;
}

X scaled(X x, X n) { return {Context::current().b.scale(x.v, n.v)}; }

X power_of_two(X n, DType t) {
  bool d = t == DType::Float64;
  n = convert(n, bits_type(t));
  return from_bits(shl(n + like(n, d ? 1023 : 127), d ? 52 : 23));
}

X polynomial(X x, std::span<const double> c) {
  // A long one is a longer chain than a CPU looks ahead: even and odd powers are computed side by side.
  constexpr size_t kLong = 8;
  if (!Context::current().has.gpu && c.size() >= kLong) {
    std::vector<double> parts[2];
    for (size_t i = 0; i < c.size(); ++i) parts[i % 2].push_back(c[i]);
    X square = x * x;
    return polynomial(square, parts[0]) + x * polynomial(square, parts[1]);
  }
  X r = like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) r = r * x + c[i];
  return r;
}

X polynomial(X x, std::span<const double> float_c, std::span<const double> double_c, double factor, double step) {
  std::span<const double> c = x.is_double() ? double_c : float_c;
  std::vector<double> scaled(c.begin(), c.end());
  for (double& each : scaled) each *= factor, factor *= step;
  return polynomial(x, scaled);
}
X is_nan(X x) { return x != x; }
X infinity(X x) { return like(x, std::numeric_limits<double>::infinity()); }
X nan(X x) { return like(x, std::numeric_limits<double>::quiet_NaN()); }

// Knuth's and Dekker's error-free transformations.
Pair two_sum(X a, X b) {
  Exactly exactly;
  X s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

Pair two_product(X a, X b) {
  Exactly exactly;
  auto halves = [](X x) {
    X high = from_bits(bits(x) & constant(static_cast<int64_t>(~uint64_t{0x7ffffff}), DType::Int64));
    return Pair{high, x - high};
  };
  X p = a * b;
  Pair x = halves(a), y = halves(b);
  return {p, ((x.high * y.high - p) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

}  // namespace brasa::compiler::math
