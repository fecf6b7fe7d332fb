#include "ops/complex.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Covariances of variables (rows) over observations (columns).
namespace brasa::ops {
namespace {

void check_weights(const char* what, Value w, Expr n, bool floating) {
  BRASA_CHECK(rank_of(w) <= 1, "cov(): expected ", what, " to have one or fewer dimensions, got ", type_of(w));
  BRASA_CHECK(floating ? is_floating(dtype_of(w)) : is_integral(dtype_of(w), false), "cov(): expected ", what,
              floating ? " to have floating point dtype, got " : " to have integral dtype, got ", type_of(w));
  BRASA_CHECK(same_size(type_of(w).numel(), n), "cov(): expected ", what, " to have the same numel as there are ",
              "observations in the input, got ", type_of(w), " for ", n);
  Value ok = ge(w, 0);
  check_values(ok, str("cov(): ", what, " cannot be negative"));
}

Value squeezed(Value x) {
  for (int64_t d = rank_of(x); d-- > 0;)
    if (is_one(size_of(x, d))) x = squeeze(x, d);
  return x;
}

Value cov(Value self, Number correction, Value fweights, Value aweights) {
  BRASA_CHECK(rank_of(self) <= 2, "cov(): expected input to have two or fewer dimensions, got ", type_of(self));
  BRASA_CHECK(dtype_of(self) != DType::Bool, "cov(): bool dtype is not supported for input");
  Value x = rank_of(self) < 2 ? prim::reshape(self, {Expr(1), type_of(self).numel()}) : self;
  Expr n = size_of(x, 1);
  if (fweights) check_weights("fweights", fweights, n, false);
  if (aweights) check_weights("aweights", aweights, n, true);
  Value w = !fweights ? aweights : !aweights ? fweights : fweights * aweights;
  if (w) w = flattened(w);
  x = to_float(x);
  Value weighted = w ? x * w : x;
  DType t = dtype_of(weighted);
  Value total = w ? sum(w, {0}) : size_tensor(n, {}, DType::Int64);
  if (w) check_values(ne(total, 0), "cov(): weights sum to zero, can't be normalized");
  Value average = sum(weighted, {1}) / total;
  // A single weight is its own average, exactly.
  auto average_weight = [&] { return is_one(n) && !fweights ? total : sum(w * flattened(aweights), {0}) / total; };
  Value norm = aweights && !correction.is(0) ? total - 1.0 * correction * average_weight() : total - correction;
  norm = where(le(norm, 0), zeros_like(norm), norm);
  Value centred = x - unsqueeze(average, 1);
  Value products = matmul2(convert(centred, t), transpose(conj(convert(w ? centred * w : centred, t)), 0, 1));
  return squeezed(products / norm);
}

Value corrcoef(Value self) {
  BRASA_CHECK(rank_of(self) <= 2, "corrcoef(): expected input to have two or fewer dimensions, got ", type_of(self));
  Value c = call("aten::cov", {self});
  if (rank_of(c) == 0) return c / c;
  Value deviation = sqrt(real(diagonal(c, 0, 0, 1)));
  c = c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0);
  auto limited = [](Value v) {
    return where(gt(v, 1), constant_like(v, 1), where(lt(v, -1), constant_like(v, -1), v));
  };
  return is_complex(dtype_of(c)) ? complex(limited(real(c)), limited(imag(c))) : limited(c);
}

}  // namespace

void add_statistics(Table& t) {
  t.op("aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
      .doc(
          "The covariance matrix of the rows: (x - mean) w (x - mean)ᵀ / (Σw - correction), the correction weighted if aweights are "
          "given; fweights count repeated observations.")
      .composed_in_opmath(cov)
      .samples({{floats(3, 5)},
                {floats(5), 0},
                {floats(3, 4), 1, ints(4).in(1, 4)},
                {floats(2, 4), 1, ir::Arg(), floats(4).in(0.5, 2)}});
  t.op("aten::corrcoef(Tensor self) -> Tensor")
      .doc("The matrix of correlation coefficients of the rows, within [-1, 1].")
      .composed_in_opmath(corrcoef)
      .samples({{floats(3, 5)}, {floats(5)}});
}

}  // namespace brasa::ops
