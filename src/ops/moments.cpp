#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using Dims = std::optional<std::vector<int64_t>>;

// max(0, n - correction) as a rank-0 value.
Value freedom(Value x, const std::vector<int64_t>& dims, const std::optional<Number>& correction) {
  Value n = count(x, dims, dtype_of(real(x)));
  Value free = n - correction.value_or(Number(1));
  return maximum(free, zeros_like(free));
}

Value variance(const char* op, Value v, const Dims& dim, const std::optional<Number>& correction, bool keep) {
  BRASA_CHECK(is_floating(dtype_of(v)) || is_complex(dtype_of(v)), op, ": expected a floating or complex tensor, got ",
              type_of(v));
  Value x = to_opmath(v);
  std::vector<int64_t> dims = reduced_dims(dim, rank_of(x));
  Value centred = x - mean(x, dims, true);
  Value squares = real(centred) * real(centred);
  if (is_complex(dtype_of(v))) squares = squares + imag(centred) * imag(centred);
  return convert(sum(squares, dims, keep) / freedom(x, dims, correction), dtype_of(real(v)));
}

// d var = 2 (x - mean) / (n - correction).
Value variance_pullback(const Saved& s, Value ct) {
  Value x = s.in(0);
  std::vector<int64_t> dims = reduced_dims(s.arg<Dims>(1), rank_of(x));
  Value each = keep_dims(ct, shape_of(x), dims) * (2 / freedom(x, dims, s.arg<std::optional<Number>>(2)));
  return each * (x - mean(x, dims, true));
}

std::vector<Value> variance_derivative(const Saved& s) { return {variance_pullback(s, s.ct())}; }
std::vector<Value> deviation_derivative(const Saved& s) {
  Value y = s.out();
  return {variance_pullback(s, where(eq(y, 0), zeros_like(y), s.ct() / (2 * y)))};
}
std::vector<Value> deviation_pushforward(const Node& n, std::span<const Value> tangents) {
  const Saved s{n.args, {const_cast<Node&>(n).out()}, {}};
  Value y = s.out(), t = tangents[0];
  if (!t) return {{}};
  Value partials = variance_pullback(s, where(eq(y, 0), zeros_like(y), 1 / (2 * y)));
  if (is_complex(dtype_of(t))) partials = conj(partials);
  return {convert(sum(real(partials * t), reduced_dims(s.arg<Dims>(1), rank_of(t)), s.arg<bool>(3)), dtype_of(y))};
}

Arg as_arg(const Dims& dims) { return dims ? int_arg(*dims) : Arg(); }

template <bool root>
Value moment(Value x, const Dims& dim, Arg correction, bool keep) {
  return call(root ? "aten::std.correction" : "aten::var.correction", {x, as_arg(dim), std::move(correction), keep});
}

template <bool root>
std::array<Value, 2> moments(Value x, const Dims& dim, Arg correction, bool keep) {
  Value m = convert(mean(to_opmath(x), reduced_dims(dim, rank_of(x)), keep), dtype_of(x));
  return {moment<root>(x, dim, std::move(correction), keep), m};
}

Arg correction_of(bool unbiased) { return Arg(unbiased ? 1 : 0); }

template <bool root>
void add_overloads(Table& t, const char* name, const char* what) {
  t.op(str("aten::", name, "(Tensor self, bool unbiased=True) -> Tensor"))
      .doc(str(what, " of all elements."))
      .packed({{floats(8, 8)}})
      .composed([](Value x, bool unbiased) { return moment<root>(x, std::nullopt, correction_of(unbiased), false); })
      .samples({{floats(3, 5)}, {floats(4), false}});
  t.op(str("aten::", name, ".dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor"))
      .out(Out::Cast)
      .doc(str(what, " along dim."))
      .composed([](Value x, Dims dim, bool unbiased, bool keep) {
        return moment<root>(x, dim, correction_of(unbiased), keep);
      })
      .samples({{floats(3, 5), list({1})}, {floats(3, 5), list({0}), false, true}});
  t.op(str("aten::", name, "_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)"))
      .doc(str(what, " and mean of all elements."))
      .composed([](Value x, bool unbiased) { return moments<root>(x, std::nullopt, correction_of(unbiased), false); })
      .samples({{floats(3, 5)}});
  t.op(str("aten::", name,
           "_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)"))
      .doc(str(what, " and mean along dim."))
      .composed([](Value x, Dims dim, bool unbiased, bool keep) {
        return moments<root>(x, dim, correction_of(unbiased), keep);
      })
      .samples({{floats(3, 5), list({1})}});
  t
      .op(str(
          "aten::", name,
          "_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)"))
      .doc(str(what, " (divided by n - correction, 1 if not given) and mean along dim."))
      .composed(
          [](Value x, Dims dim, Number correction, bool keep) { return moments<root>(x, dim, correction.arg(), keep); })
      .samples({{floats(3, 5), list({1}), 0}, {floats(3, 5), ir::Arg(), ir::Arg(), true}});
}

}  // namespace

void add_moments(Table& t) {
  t.op("aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .out(Out::Cast)
      .doc("Σ|x - mean|² / max(0, n - correction) along dim; the correction is 1 if not given.")
      .composed([](Value x, Dims dim, std::optional<Number> correction, bool keep) {
        return variance("var", x, dim, correction, keep);
      })
      .vjp(own_derivative(variance_derivative))
      .samples({{floats(3, 5), list({1})}, {floats(2, 3, 4), list({0, 2}), 0, true}, {floats(4), ir::Arg(), 2}});
  t.op("aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor")
      .out(Out::Cast)
      .doc("sqrt of var; its derivative at 0 is 0.")
      .composed([](Value x, Dims dim, std::optional<Number> correction, bool keep) {
        return convert(sqrt(variance("std", to_opmath(x), dim, correction, keep)), dtype_of(real(x)));
      })
      .vjp(own_derivative(deviation_derivative))
      .jvp(deviation_pushforward)
      .samples({{floats(3, 5), list({1})}, {floats(2, 3, 4), list({0, 2}), 0, true}});
  add_overloads<false>(t, "var", "Variance");
  add_overloads<true>(t, "std", "Standard deviation");
}

}  // namespace brasa::ops
