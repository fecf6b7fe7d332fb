#include "ops/complex.h"
#include "ops/linear_algebra.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Factorisations and what multiplies by their parts: Cholesky, LU, QR.
namespace brasa::ops {
namespace {

void check_no_failure(Value info, const char* message) { check_values(eq(info, 0), message); }

std::array<Value, 2> cholesky(Value x, bool upper, bool check) {
  auto [factor, info] = upper ? prim::upper_cholesky(x) : prim::cholesky(x);
  if (check)
    check_no_failure(
        info, "linalg.cholesky: The factorization could not be completed because the input is not positive-definite");
  return {factor, info};
}

Value cholesky_solve(Value b, Value l, bool upper) {
  check_rank("cholesky_solve", "b", b, std::max<int64_t>(2, rank_of(b)));
  check_rank("cholesky_solve", "u", l, std::max<int64_t>(2, rank_of(l)));
  return solve_definite(l, b, upper);
}

// Of A = L Lᴴ, as PyTorch has it: as if the whole of L were read, for x = A⁻¹ b with the cotangent g of b.
Value factor_cotangent(Value l, Value g, Value x, bool upper) {
  Value s = mm(g, mh(x));
  s = s + mh(s);
  return upper ? -mm(l, s) : -mm(s, l);
}
std::vector<Value> cholesky_solve_derivative(const Saved& s) {
  bool upper = s.arg<bool>(2);
  Value g = cholesky_solve(s.ct(), s.in(1), upper);
  return {g, factor_cotangent(s.in(1), g, s.out(), upper)};
}
std::vector<Value> cholesky_inverse_derivative(const Saved& s) {
  return {factor_cotangent(s.in(0), mm(s.out(), s.ct()), s.out(), s.arg<bool>(1))};
}

void check_pivot(bool pivot) {
  BRASA_CHECK(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
}
std::array<Value, 3> lu_factor(Value x, bool pivot, bool check) {
  check_pivot(pivot);
  std::array<Value, 3> r = prim::lu(x);
  if (check)
    check_no_failure(
        r[2],
        "torch.linalg.lu_factor: a diagonal element of U is zero, and using it on lu_solve would result in a "
        "division by zero. If you still want to perform the factorization, consider calling "
        "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
  return r;
}

// {P, L, U}
std::array<Value, 3> unpacked(Value lu, Value pivots, bool data, bool with_pivots) {
  Expr m = rows_of(lu), n = columns_of(lu);
  Value none = no_result(dtype_of(lu)), p = none, l = none, u = none;
  if (with_pivots) p = permutation_matrix(prim::lu_permutation(pivots, m), dtype_of(lu));
  if (data) {
    Expr k = ir::min(m, n);
    Value left = column_block(lu, Expr(0), k);
    l = tril(left, -1) + identity_like(left);
    u = triu(row_block(lu, Expr(0), k));
  }
  return {p, l, u};
}

std::array<Value, 2> qr(Value x, const std::string& mode) {
  BRASA_CHECK(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'");
  std::array<Value, 2> r = prim::qr(x, mode == "complete");
  if (mode == "r") r[0] = no_result(dtype_of(x));
  return r;
}

void check_reflectors(const char* op, Value a, Value tau) {
  BRASA_CHECK(rank_of(a) >= 2 && rank_of(tau) == rank_of(a) - 1, op,
              ": expected matrices and one vector for each, got ", type_of(a), " and ", type_of(tau));
  BRASA_CHECK(dtype_of(a) == dtype_of(tau), op, ": tau dtype ", name(dtype_of(tau)), " does not match input dtype ",
              name(dtype_of(a)));
  BRASA_CHECK(!is_less(columns_of(a), size_of(tau, rank_of(tau) - 1)), op,
              ": input.shape[-1] must be greater than or equal to tau.shape[-1], got ", type_of(a), " and ",
              type_of(tau));
}

Value householder_product(Value a, Value tau) {
  BRASA_CHECK(
      rank_of(a) >= 2 && !is_less(rows_of(a), columns_of(a)),
      "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1], got ",
      type_of(a));
  Shape batch(shape_of(a).begin(), shape_of(a).end() - 2);
  BRASA_CHECK(rank_of(tau) == rank_of(a) - 1, "torch.linalg.householder_product: expected tau of the batch ", batch,
              ", got ", type_of(tau));
  for (size_t d = 0; d < batch.size(); ++d)
    BRASA_CHECK(same_size(batch[d], size_of(tau, static_cast<int64_t>(d))),
                "torch.linalg.householder_product: expected tau of the batch ", batch, ", got ", type_of(tau));
  check_reflectors("torch.linalg.householder_product", a, tau);
  return prim::householder_product(a, tau);
}

Value ormqr(Value a, Value tau, Value x, bool left, bool transposed) {
  check_reflectors("ormqr", a, tau);
  if (left) return reflected(a, tau, x, transposed);
  return mh(reflected(a, tau, mh(x), !transposed));
}

const std::vector<Sample> kMatrices = {
    {floats(2, 2)}, {floats(2, 4, 3)}, {floats(2, 3)}, {floats(0, 3)}, {floats(1, 1)}};

}  // namespace

void add_linalg(Table& t) {
  TensorSample positive = floats(2, 1, 1).in(0.5, 2), none = floats(0, 0);
  t.op("aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)")
      .doc("A = L Lᴴ, or Uᴴ U with upper; info is the order of the first minor that is not positive, or 0.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(cholesky)
      .samples({{positive}, {none}, {positive, true}});
  t.op("aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor")
      .doc("A = L Lᴴ of a positive definite matrix, or Uᴴ U with upper.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, bool upper) { return cholesky(x, upper, true)[0]; })
      .samples({{positive}, {none}, {positive, true}});
  t.op("aten::cholesky(Tensor self, bool upper=False) -> Tensor")
      .doc("As linalg_cholesky.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, bool upper) { return cholesky(x, upper, true)[0]; })
      .samples({{positive}});
  t.op("aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor")
      .out(Out::Cast)
      .doc("A⁻¹ self, where input2 is the Cholesky factor of A.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(cholesky_solve)
      .vjp(own_derivative(cholesky_solve_derivative))
      .samples({{floats(1, 2), floats(1, 1).in(1, 2)}, {floats(2, 1, 2), floats(1, 1).in(1, 2), true}});
  t.op("aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor")
      .out(Out::Cast)
      .doc("A⁻¹, where self is the Cholesky factor of A.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(prim::cholesky_inverse)
      .vjp(own_derivative(cholesky_inverse_derivative))
      .samples({{floats(1, 1).in(1, 2)}, {floats(2, 1, 1).in(1, 2), true}});

  t.op("aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)")
      .doc("Partial pivoting; info is the index of the first pivot that is zero, or 0.")
      .composed(lu_factor)
      .samples(kMatrices);
  t.op("aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)")
      .doc("As linalg_lu_factor_ex; a pivot that is zero is an error.")
      .composed([](Value x, bool pivot) {
        auto [lu, pivots, info] = lu_factor(x, pivot, true);
        return std::array{lu, pivots};
      })
      .samples(kMatrices);
  t.op("aten::_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)")
      .doc("As linalg_lu_factor_ex; check_errors has no effect.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, bool pivot, bool) { return lu_factor(x, pivot, false); })
      .samples(kMatrices);
  t.op("aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)")
      .doc("The matrices with A = P L U.")
      .composed(unpacked)
      .samples({{floats(3, 3), tensor(DType::Int32, {3}).in(3, 4)},
                {floats(2, 4, 3), tensor(DType::Int32, {2, 3}).in(3, 4)}});
  t.op("aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)")
      .doc("A = P L U.")
      .composed([](Value x, bool pivot) {
        check_pivot(pivot);
        auto [lu, pivots, info] = prim::lu(x);
        return unpacked(lu, pivots, true, true);
      })
      .samples(kMatrices);

  t.op("aten::linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)")
      .doc("A = Q R with orthonormal columns of Q; mode 'complete' makes Q square, 'r' leaves it out.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(qr)
      .samples({{floats(2, 2)}, {floats(2, 4, 3)}, {floats(2, 3)}, {floats(0, 3)}, {floats(2, 3), "complete"}});
  t.op("aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)")
      .doc("As linalg_qr.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, bool some) { return qr(x, some ? "reduced" : "complete"); })
      .samples({{floats(4, 3)}});
  t.op("aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)")
      .doc("R in and above the diagonal, below it v of the reflectors I - tau v vᴴ, whose leading 1 is not stored.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x) { return prim::geqrf(x); })
      .no_gradient()
      .samples(kMatrices);
  t.op("aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor")
      .out(Out::Cast)
      .doc("The first columns of the product of geqrf's reflectors.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(householder_product)
      .samples({{floats(4, 3), floats(3)}, {floats(2, 4, 3), floats(2, 2)}});
  t.alias("aten::orgqr", "aten::linalg_householder_product");
  t.op("aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor")
      .doc("Q input3, or input3 Q without left, or with Qᴴ, for the Q of geqrf's results.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(ormqr)
      .samples({{floats(4, 3), floats(3), floats(4, 2)}, {floats(4, 3), floats(3), floats(2, 4), false, true}});
}

}  // namespace brasa::ops
