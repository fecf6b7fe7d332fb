#include "ops/promotion.h"
#include "ops/rows.h"
#include "ops/series.h"

// Chebyshev's polynomials of the four kinds, T, U, V and W, on [-1, 1] and shifted to [0, 1].
namespace brasa::ops {
namespace {

// The recurrence gives these degrees; above, closed forms do (DLMF 18.5.1–4 and their hyperbolic continuation).
constexpr int kRecurrence = 8;

struct Kind {
  char kind;
  bool shifted;
};

// sign^n
Value alternating(Value n, Value negative) {
  Value half = n * 0.5, odd = ne(prim::unary("floor", half), half);
  return where(logical_and(negative, odd), constant_like(n, -1.0), constant_like(n, 1.0));
}

Value at_one(char kind, Value n, Value positive) {
  Value one = constant_like(n, 1.0), sign = alternating(n, logical_not(positive));
  switch (kind) {
    case 'T': return sign;
    case 'U': return sign * (n + 1.0);
    case 'V': return where(positive, one, sign * (2.0 * n + 1.0));
    default: return where(positive, 2.0 * n + 1.0, sign);
  }
}

Value inside(char kind, Value y, Value n) {
  Value angle = prim::unary("acos", y), half = angle * 0.5;
  switch (kind) {
    case 'T': return cos(n * angle);
    case 'U': return sin((n + 1.0) * angle) / sin(angle);
    case 'V': return cos((n + 0.5) * angle) / cos(half);
    default: return sin((n + 0.5) * angle) / sin(half);
  }
}

Value outside(char kind, Value y, Value n) {
  auto cosh = [](Value v) { return prim::unary("cosh", v); };
  auto sinh = [](Value v) { return prim::unary("sinh", v); };
  Value angle = prim::unary("acosh", abs(y)), half = angle * 0.5, negative = lt(y, 0);
  Value sign = alternating(n, negative);
  if (kind == 'T') return sign * cosh(n * angle);
  if (kind == 'U') return sign * sinh((n + 1.0) * angle) / sinh(angle);
  // V(-y) = (-1)ⁿ W(y).
  Value v = cosh((n + 0.5) * angle) / cosh(half), w = sinh((n + 0.5) * angle) / sinh(half);
  return sign * (kind == 'V' ? where(negative, w, v) : where(negative, v, w));
}

Value chebyshev(Kind k, Value x, Value degree) {
  Value y = k.shifted ? x + x - 1.0 : x, n = prim::unary("trunc", degree);
  Value one = constant_like(y, 1.0), two = y + y;
  Value p = one, q = k.kind == 'T' ? y : k.kind == 'U' ? two : k.kind == 'V' ? two - 1.0 : two + 1.0;
  Value out = where(eq(n, 0), p, q);
  for (int i = 2; i <= kRecurrence; ++i) {
    Value r = two * q - p;
    p = q;
    q = r;
    out = where(eq(n, i), q, out);
  }
  // From these degrees on PyTorch too uses the closed form.
  double closed = k.shifted ? (k.kind == 'W' ? 4 : 6) : k.kind == 'T' ? 6 : 8;
  Value size = abs(y), in = logical_and(lt(size, 1), gt(n, closed)),
        beyond = logical_and(gt(size, 1), gt(n, kRecurrence));
  out = where(in, inside(k.kind, where(in, y, zeros_like(y)), n), out);
  out = where(beyond, outside(k.kind, where(beyond, y, constant_like(y, 2.0)), n), out);
  out = where(eq(size, 1), at_one(k.kind, n, gt(y, 0)), out);
  return where(ge(n, 0), out, zeros_like(out));
}

template <char kind, bool shifted>
void add(Table& t) {
  static constexpr Kind k{kind, shifted};
  std::string name = str("aten::special_", shifted ? "shifted_" : "", "chebyshev_polynomial_",
                         std::string(1, static_cast<char>(kind - 'A' + 'a')));
  std::string doc =
      str("Chebyshev's polynomial ", std::string(1, kind), "ₙ", shifted ? "(2x - 1)" : "(x)",
          "; n loses its fraction, and negative degrees give 0. Degrees to 8 by the recurrence, larger ones by "
          "trigonometric and hyperbolic forms. Without a derivative, as in PyTorch.");
  t.op(str(name, "(Tensor x, Tensor n) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Value a, Value b) {
        auto [x, n] = promoted_to_float(a, b);
        return chebyshev(k, x, n);
      })
      .no_gradient()
      .samples(
          {{floats(3, 5), floats(5).in(-2, 12)}, {floats(4).strided(2), ints(4).in(0, 9)}, {floats(0), floats(0)}});
  t.op(str(name, ".n_scalar(Tensor x, Scalar n) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Value a, Number b) {
        auto [x, n] = promoted_to_float(a, b);
        return chebyshev(k, x, n);
      })
      .no_gradient()
      .samples({{floats(3, 5), 3}, {floats(4), 11}, {ints(4), 2.5}});
  t.op(str(name, ".x_scalar(Scalar x, Tensor n) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Number a, Value b) {
        auto [n, x] = promoted_to_float(b, a);
        return chebyshev(k, x, n);
      })
      .no_gradient()
      .samples({{0.5, floats(3, 5).in(-2, 12)}, {2, ints(4).in(0, 9)}});
}

template <bool shifted>
void add_kinds(Table& t) {
  add<'T', shifted>(t);
  add<'U', shifted>(t);
  add<'V', shifted>(t);
  add<'W', shifted>(t);
}

}  // namespace

void add_chebyshev(Table& t) {
  add_kinds<false>(t);
  add_kinds<true>(t);
}

}  // namespace brasa::ops
