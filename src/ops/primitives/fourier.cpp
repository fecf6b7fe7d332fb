#include "ops/fourier.h"

#include <cmath>
#include <complex>

#include "ops/builder.h"
#include "ops/decompose.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "ops/sample.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

std::vector<Value> transformed(Value re, Value im, int64_t dim, bool forward) {
  auto [a, b] = prim::fft(re, im, dim, forward);
  return {a, b};
}

std::vector<Array> evaluated(const Node& n, std::span<const Array* const> in) {
  constexpr double kTau = 6.283185307179586476925;
  std::vector<Array> out = {result_array(n, 0), result_array(n, 1)};
  const std::vector<int64_t>& shape = out[0].shape;
  auto dim = static_cast<size_t>(n.arg<Expr>(2).constant());
  double sign = n.arg<bool>(3) ? -1 : 1;
  int64_t length = shape[dim], step = row_major(shape)[dim];
  for (int64_t i = 0; i < out[0].numel(); ++i) {
    int64_t k = i / step % length, first = i - k * step;
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < length; ++j) {
      double angle = sign * kTau * static_cast<double>(j * k % length) / static_cast<double>(length);
      sum += std::complex(get(*in[0], first + j * step), get(*in[1], first + j * step)) * std::polar(1.0, angle);
    }
    set(out[0], i, sum.real());
    set(out[1], i, sum.imag());
  }
  return out;
}

// The frequencies that are not given are conjugates of those that are: each counts twice, but for the first and, of an even n,
// the last. Then the real part of the transform is the result.
Value from_half(Value x, Value y, int64_t dim, Expr n, Value scale) {
  Value k = prim::iota(shape_of(x), dim, DType::Int64);
  Value once = logical_or(eq(k, 0), eq(k * 2, size_tensor(n, shape_of(k))));
  Value weight = where(once, constant_like(x, 1), constant_like(x, 2));
  auto all = [&](Value part) { return pad_dim(part * weight, dim, 0, n - size_of(part, dim)); };
  Value re = prim::fft(all(x), all(y), dim, false)[0];
  return scale ? re * scale : re;
}

}  // namespace

void add_fourier_primitives(Table& t) {
  t.prim("fft(Tensor x, Tensor y, int dim, bool forward) -> (Tensor real, Tensor imag)")
      .kind(Kind::Whole)
      .doc(
          "Σ_j (x + iy)[j] exp(∓2πi jk/n) along a dimension, minus if forward; not normalised. Complex numbers are pairs of reals.")
      .type([](const Args& args) {
        const Type& x = ir::type_of(args[0].get<Value>());
        BRASA_CHECK(x.dtype == DType::Float32 || x.dtype == DType::Float64, "Unsupported dtype ", x,
                    "; transforms take float32 and float64 and their complex numbers");
        return std::vector<Type>{{x.dtype, x.shape, false}, {x.dtype, x.shape, false}};
      })
      .eval(evaluated)
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
        auto whole = [&](size_t i) { return with_mapped(in[i], mapped[i], count); };
        return transformed(whole(0), whole(1), n.arg<Expr>(2).constant() + 1, n.arg<bool>(3));
      })
      .jvp([](const Node& n, std::span<const Value> tangents) {
        Value x = n.arg<Value>(0);
        return transformed(or_zeros(tangents[0], x), or_zeros(tangents[1], x), n.arg<Expr>(2).constant(),
                           n.arg<bool>(3));
      })
      // The transform is symmetric, so its conjugate transpose is the other direction.
      .vjp([](const Node& n, std::span<const Value> cts, const std::vector<bool>&) {
        Value x = n.arg<Value>(0);
        return transformed(or_zeros(cts[0], x), or_zeros(cts[1], x), n.arg<Expr>(2).constant(), !n.arg<bool>(3));
      });
  t.prim("fft_real(Tensor x, Tensor y, int dim, SymInt n, Tensor? scale) -> Tensor")
      .kind(Kind::Whole)
      .doc(
          "The n real numbers along a dimension whose transform begins with the n/2 + 1 complex x + iy; times n, and times a scale of rank 0.")
      .type([](const Args& args) {
        const Type& x = ir::type_of(args[0].get<Value>());
        Shape shape = x.shape;
        shape[static_cast<size_t>(args[2].get<Expr>().constant())] = args[3].get<Expr>();
        return std::vector<Type>{{x.dtype, shape, false}};
      })
      .composed(from_half)
      .samples({{floats(2, 3), floats(2, 3), 1, 5, ir::None{}}, {floats(3, 2), floats(3, 2), 0, 4, floats()}});
}

namespace prim {

std::array<Value, 2> fft(Value x, Value y, int64_t dim, bool forward) {
  std::vector<Value> r = call_all("prim::fft", {x, y, dim, forward});
  return {r[0], r[1]};
}

Value fft_real(Value x, Value y, int64_t dim, Expr n, Value scale) {
  return taken_or_composed("prim::fft_real", {x, y, dim, n, scale ? Arg(scale) : Arg()})[0];
}

}  // namespace prim
}  // namespace brasa::ops
