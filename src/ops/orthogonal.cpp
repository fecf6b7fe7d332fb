#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/promotion.h"
#include "ops/rows.h"
#include "ops/series.h"
#include "support/error.h"

// The classical orthogonal polynomials that only a recurrence with degree-dependent coefficients gives.
namespace brasa::ops {
namespace {

// A tensor of degrees takes the recurrence to this one; a degree that is a number takes as many steps as it needs.
constexpr int kLargest = 64, kLargestNumber = 1024;

enum Family { kHermite, kHermiteE, kLaguerre, kLegendre };
constexpr const char* kNames[] = {"hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
                                  "legendre_polynomial_p"};

Value first_degree(Family f, Value x) {
  switch (f) {
    case kHermite: return x + x;
    case kLaguerre: return 1.0 - x;
    default: return x;
  }
}

// Degree k + 1 from q of degree k and p of k - 1: DLMF table 18.9.1.
Value next_degree(Family f, Value x, double k, Value q, Value p) {
  switch (f) {
    case kHermite: return (x + x) * q - 2 * k * p;
    case kHermiteE: return x * q - k * p;
    case kLaguerre: return ((2 * k + (1.0 - x)) * q - k * p) / (k + 1);
    case kLegendre: return ((2 * k + 1) * x * q - k * p) / (k + 1);
  }
  BRASA_ASSERT(false, "an unknown family");
}

// Above it PyTorch gives NaN.
double hermite_limit(Value x) { return dtype_of(x) == DType::Float64 ? 512 : 128; }
bool is_hermite(Family f) { return f == kHermite || f == kHermiteE; }
Value nan_like(Value x) { return constant_like(x, std::numeric_limits<double>::quiet_NaN()); }

// Exact where the recurrence would not end.
Value at_edges(Family f, Value x, Value n, Value y) {
  Value one = constant_like(x, 1.0);
  if (f == kLaguerre) return where(eq(x, 0), one, y);
  if (f == kLegendre) {
    Value half = n * 0.5, odd = ne(prim::unary("floor", half), half);
    return where(eq(abs(x), 1), where(logical_and(lt(x, 0), odd), -one, one), y);
  }
  return where(gt(n, hermite_limit(x)), nan_like(x), y);
}

// Of degrees n > k, from q of degree k and p of k - 1. Each few degrees are behind a choice, so that nobody computes them where all are lower.
Value beyond(Family f, Value x, Value n, int k, Value q, Value p) {
  constexpr int kFew = 7;
  Value y = q;
  int end = std::min(k + kFew, kLargest);
  for (; k < end; ++k) {
    Value r = next_degree(f, x, k, q, p);
    p = q;
    q = r;
    y = where(eq(n, k + 1), q, y);
  }
  return end == kLargest ? y : where(gt(n, end), beyond(f, x, n, end, q, p), y);
}

// Of operands of one dtype and shape.
Value of_tensor(Family f, Value x, Value degree) {
  Value n = prim::unary("trunc", degree);
  Value p = constant_like(x, 1.0), q = first_degree(f, x), y = where(gt(n, 1), beyond(f, x, n, 1, q, p), q);
  y = where(eq(n, 0), p, y);
  Value fits = logical_not(gt(n, kLargest));
  if (is_hermite(f)) fits = logical_or(fits, gt(n, hermite_limit(x)));
  check_values(fits, str("special_", kNames[f], ": a tensor of degrees may hold them up to ", kLargest));
  return where(ge(n, 0), at_edges(f, x, n, y), zeros_like(x));
}

Value of_number(Family f, Value a, const Number& number) {
  BRASA_CHECK(number.is_known(), "special_", kNames[f], ": the degree is only known when the graph runs");
  Value x = to_float(a);
  double n = std::trunc(number.as_double());
  if (!(n >= 0)) return zeros_like(x);
  if (is_hermite(f) && n > hermite_limit(x)) return nan_like(x);
  BRASA_CHECK(n <= kLargestNumber, "special_", kNames[f], ": expected a degree of at most ", kLargestNumber, ", got ",
              n);
  Value p = constant_like(x, 1.0), q = first_degree(f, x);
  if (n == 0) return p;
  for (int k = 1; k < static_cast<int>(n); ++k) {
    Value r = next_degree(f, x, k, q, p);
    p = q;
    q = r;
  }
  return at_edges(f, x, constant_like(x, n), q);
}

template <Family f>
void add(Table& t, const char* what) {
  std::string name = str("aten::special_", kNames[f]);
  std::string doc =
      str(what,
          " of degree n, by its recurrence; n loses its fraction, and negative degrees give 0. A tensor of "
          "degrees may hold them up to 64, a number up to 1024. Without a derivative, as in PyTorch.");
  t.op(str(name, "(Tensor x, Tensor n) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Value a, Value b) {
        auto [x, n] = promoted_to_float(a, b);
        return of_tensor(f, x, n);
      })
      .no_gradient()
      .samples({{floats(3, 5), floats(5).in(-2, 9)}, {floats(4).strided(2), ints(4).in(0, 5)}, {floats(0), floats(0)}});
  t.op(str(name, ".n_scalar(Tensor x, Scalar n) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Value x, Number n) { return of_number(f, x, n); })
      .known({"n"})
      .no_gradient()
      .samples({{floats(3, 5), 3}, {floats(4), 11}, {ints(4), 2.5}, {floats(4), -1}});
  t.op(str(name, ".x_scalar(Scalar x, Tensor n) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Number a, Value b) {
        auto [n, x] = promoted_to_float(b, a);
        return of_tensor(f, x, n);
      })
      .no_gradient()
      .samples({{0.5, floats(3, 5).in(-2, 9)}, {2, ints(4).in(0, 5)}});
}

}  // namespace

void add_orthogonal(Table& t) {
  add<kHermite>(t, "Hermite's polynomial Hₙ(x) (physicists')");
  add<kHermiteE>(t, "Hermite's polynomial Heₙ(x) (probabilists')");
  add<kLaguerre>(t, "Laguerre's polynomial Lₙ(x)");
  add<kLegendre>(t, "Legendre's polynomial Pₙ(x)");
}

}  // namespace brasa::ops
