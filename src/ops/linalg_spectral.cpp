#include <cmath>

#include "ops/complex.h"
#include "ops/linear_algebra.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// What follows from eigenvalues and singular values, and functions of matrices.
namespace brasa::ops {

Value singular_values(Value a) { return prim::svd(a, false)[1]; }
bool is_empty(Value a) {
  for (Expr e : shape_of(a))
    if (same_size(e, Expr(0))) return true;
  return false;
}

namespace {

std::array<Value, 2> eigh(Value a, const std::string& which) {
  bool upper = which == "U" || which == "u";
  BRASA_CHECK(upper || which == "L" || which == "l", "Expected UPLO argument to be 'L' or 'U', but got ", which);
  return prim::eigh(upper ? mh(a) : a);
}

std::array<Value, 2> eig(Value a) {
  // LAPACK ends the process where it meets a NaN.
  Value finite = call("aten::isfinite", {a});
  check_values(finite, "linalg.eig: input tensor should not contain infs or NaNs.");
  auto [re, im, vre, vim] = prim::eig(where(finite, a, zeros_like(a)));
  return {complex(re, im), complex(vre, vim)};
}

// Which routine of CUDA's computes makes no difference here.
void check_driver(const std::optional<std::string>& driver) {
  BRASA_CHECK(!driver || *driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda",
              "torch.linalg.svd: expected driver to be one of gesvd, gesvdj or gesvda, got '", *driver, "'");
}

std::array<Value, 3> svd(Value a, bool full, bool vectors) {
  std::array<Value, 3> r = prim::svd(a, full);
  if (!vectors) r[0] = r[2] = no_result(dtype_of(a));
  return r;
}

double epsilon(DType t) { return t == DType::Float64 ? 0x1p-52 : 0x1p-23; }

// max(atol, rtol * the greatest singular value), as a column of one element a matrix. rtol is by default eps * max(m, n), or 0 if
// there is an atol that is not 0.
Value cutoff(Value a, Value s, Value atol, Value rtol) {
  Value most = amax(s, {rank_of(s) - 1}, true);
  auto column = [&](Value v) {
    BRASA_CHECK(!is_complex(dtype_of(v)), "expected a tolerance of real numbers, got ", type_of(v));
    v = convert(v, dtype_of(s));
    return rank_of(v) == 0 ? v : unsqueeze(v, rank_of(v));
  };
  Value fallback = epsilon(dtype_of(s)) * size_tensor(ir::max(rows_of(a), columns_of(a)), {}, dtype_of(s));
  Value relative = rtol ? column(rtol) : fallback;
  if (!atol) return relative * most;
  Value absolute = column(atol);
  if (!rtol) relative = where(gt(absolute, 0), zeros_like(absolute), broadcast_to(relative, shape_of(absolute)));
  return maximum(absolute, relative * most);
}
Value tensor_of(const std::optional<Number>& v) { return v ? scalar(*v, DType::Float64) : Value{}; }

Value pinv(Value a, Value atol, Value rtol, bool hermitian) {
  DType part = real_part_of(dtype_of(a));
  BRASA_CHECK(part == DType::Float32 || part == DType::Float64,
              "linalg.pinv: expected float32, float64, complex64 or complex128, got ", type_of(a));
  if (is_empty(a)) return mh(a);
  auto inverted = [](Value s, Value size, Value tolerance) {
    Value kept = gt(size, tolerance);
    return where(kept, 1 / where(kept, s, constant_like(s, 1)), zeros_like(s));
  };
  if (hermitian) {
    auto [w, v] = prim::eigh(a);
    Value d = inverted(w, abs(w), cutoff(a, abs(w), atol, rtol));
    return mm(column_scaled(v, d), mh(v));
  }
  auto [u, s, vh] = prim::svd(a, false);
  Value d = inverted(s, s, cutoff(a, s, atol, rtol));
  return mm(column_scaled(mh(vh), d), mh(u));
}

// Golub & Pereyra 1973: of a matrix of constant rank.
std::vector<Value> pinv_derivative(const Saved& s) {
  Value a = s.in(0), p = s.out(), g = mh(s.ct()), pt = mh(p);
  if (!is_less(columns_of(a), rows_of(a))) {
    Value k = mm(g, p), kp = mm(k, pt);
    return {kp - mh(mm(p, k)) - mm(mm(a, p), kp) + mm(mm(pt, p), g - mm(k, a))};
  }
  Value k = mm(p, g), pk = mm(pt, k);
  return {mm(mm(g - mm(a, k), p), pt) + pk - mh(mm(k, p)) - mm(mm(pk, p), a)};
}

Value rank(Value a, Value atol, Value rtol, bool hermitian) {
  Value s = hermitian ? abs(prim::eigh(a)[0]) : singular_values(a);
  int64_t last = rank_of(s) - 1;
  if (is_empty(a)) return sum(convert(s, DType::Int64), {last});
  return sum(convert(gt(s, cutoff(a, s, atol, rtol)), DType::Int64), {last});
}

// ---- functions of matrices

// Σ Aᵏ / k! up to k = 18: 1 / 19! is nothing beside 1 in double precision for norms up to 1, nor 3¹⁹ / 19! in single up to 3. In blocks
// of six terms, each a factor A⁶ from the next, that is seven products (Paterson & Stockmeyer 1973).
Value taylor_exp(Value a) {
  constexpr int kTerms = 18, kBlock = 6;
  std::vector<double> factors = {1};
  for (int k = 1; k <= kTerms; ++k) factors.push_back(factors.back() / k);
  std::vector<Value> powers = {broadcast_to(identity_like(a), shape_of(a)), a};
  while (powers.size() <= kBlock) powers.push_back(mm(powers.back(), a));
  Value e = powers[kBlock] * factors[kTerms];
  for (int first = kTerms - kBlock; first >= 0; first -= kBlock) {
    if (first < kTerms - kBlock) e = mm(e, powers[kBlock]);
    for (int k = 0; k < kBlock; ++k) e = e + powers[k] * factors[first + k];
  }
  return e;
}

// exp(A) = exp(A / 2^k)^(2^k) by Taylor's series, with k from each matrix's norm (Higham, Functions of Matrices, 10.3).
Value matrix_exp(Value x) {
  BRASA_CHECK(rank_of(x) >= 2 && same_size(rows_of(x), columns_of(x)),
              "linalg.matrix_exp: A must be batches of square matrices, got ", type_of(x));
  if (is_empty(x)) return x;
  DType type = dtype_of(x);
  Value a = to_opmath(x);
  constexpr int kSquarings = 12;
  double most = real_part_of(dtype_of(a)) == DType::Float64 ? 1 : 3;
  Value size = reduce(sum(magnitude(a), {rank_of(a) - 1}, true), {rank_of(a) - 2}, true, "max"), halved = a,
        squarings = zeros_like(size);
  for (int k = 0; k < kSquarings; ++k) {
    Value more = gt(size, most);
    Value factor = where(more, constant_like(size, 0.5), constant_like(size, 1));
    halved = halved * convert(factor, dtype_of(a));
    size = size * factor;
    squarings = squarings + convert(more, dtype_of(size));
  }
  Value e = taylor_exp(halved);
  for (int k = 0; k < kSquarings; ++k) {
    Value go = broadcast_to(gt(squarings, k), shape_of(e));
    e = where(go, mm(e, e), e);
  }
  return convert(e, type);
}

// The adjoint derivative at A, of g: the upper right block of exp([[Aᴴ, g], [0, Aᴴ]]) (Mathias 1996, theorem 2.1).
Value matrix_exp_backward(Value x, Value g) {
  BRASA_CHECK(rank_of(x) >= 2 && same_size(rows_of(x), columns_of(x)),
              "matrix_exp_backward: expected batches of square matrices, got ", type_of(x));
  check_same_shape("matrix_exp_backward", g, x);
  int64_t rows = rank_of(x) - 2, columns = rows + 1;
  Value a = mh(x), upper = prim::concat({a, g}, columns), lower = prim::concat({zeros_like(a), a}, columns);
  return column_block(row_block(matrix_exp(prim::concat({upper, lower}, rows)), Expr(0), rows_of(x)), columns_of(x),
                      columns_of(x));
}

Value sqrth(Value a) {
  auto [w, v] = prim::eigh(a);
  return mm(column_scaled(v, sqrt(w)), mh(v));
}

// S X + X S = dS in the basis of eigenvectors; Hermitian, as is what it is the derivative by.
std::vector<Value> sqrth_derivative(const Saved& s) {
  auto [w, v] = prim::eigh(s.out());
  Value gap = unsqueeze(w, rank_of(w) - 1) + unsqueeze(w, rank_of(w));
  return {symmetrised(mm(mm(v, mm(mm(mh(v), s.ct()), v) / convert(gap, dtype_of(v))), mh(v)))};
}

std::array<Value, 2> polar(Value a) {
  BRASA_CHECK(rank_of(a) < 2 || !is_less(size_of(a, rank_of(a) - 2), size_of(a, rank_of(a) - 1)),
              "linalg.polar: input must have at least as many rows as columns, got ", type_of(a));
  auto [u, s, vh] = prim::svd(a, false);
  return {mm(u, vh), mm(column_scaled(mh(vh), s), vh)};
}

// {solution, residuals, rank, singular values}
std::array<Value, 4> lstsq(Value a, Value b, std::optional<double> rcond, std::optional<std::string> driver) {
  std::string how = driver.value_or("gelsy");
  BRASA_CHECK(how == "gels" || how == "gelsy" || how == "gelsd" || how == "gelss",
              "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got ", how);
  BRASA_CHECK(rank_of(a) >= 2 && rank_of(b) >= 1, "torch.linalg.lstsq: input must have at least 2 dimensions, got ",
              type_of(a));
  bool vector = rank_of(b) == rank_of(a) - 1;
  Value right = vector ? unsqueeze(b, rank_of(b)) : b;
  BRASA_CHECK(same_size(rows_of(a), rows_of(right)),
              "torch.linalg.lstsq: input.size(-2) should match other.size(-2), got ", type_of(a), " and ", type_of(b));
  Arg rtol = rcond ? Arg(*rcond) : Arg();
  Value x = mm(call("aten::linalg_pinv.atol_rtol_float", {a, Arg(), rtol}), right),
        none = no_result(real_part_of(dtype_of(a)));
  Value residuals = none;
  if (how != "gelsy" && is_less(columns_of(a), rows_of(a))) {
    Value off = mm(a, x) - right;
    residuals = sum(real(off * conj(off)), {rank_of(off) - 2});
  }
  bool values = how == "gelsd" || how == "gelss";
  return {vector ? squeeze(x, rank_of(x) - 1) : x, residuals,
          how == "gels" ? no_result(DType::Int64) : rank(a, {}, tensor_of(rcond), false),
          values ? singular_values(a) : none};
}

}  // namespace

void add_linalg_spectral(Table& t) {
  const std::vector<Sample> matrices = {{floats(3, 2)}, {floats(2, 2, 3)}};
  TensorSample one = floats(2, 1, 1).in(0.5, 2), none = floats(0, 0);
  t.op("aten::_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)")
      .doc("Eigenvalues, ascending, and eigenvectors as columns, of a Hermitian matrix of which one triangle is read.")
      .composed([](Value a, std::string which, bool vectors) {
        std::array<Value, 2> r = eigh(a, which);
        if (!vectors) r[1] = no_result(dtype_of(a));
        return r;
      })
      .samples({{one}, {one, "U", false}, {none}});
  t.op("aten::linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)")
      .doc("Eigenvalues, ascending, and eigenvectors as columns, of a Hermitian matrix of which one triangle is read.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, std::string which) { return eigh(a, which); })
      .samples({{one}, {one, "U"}});
  t.op("aten::linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor")
      .doc("Eigenvalues, ascending, of a Hermitian matrix of which one triangle is read.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, std::string which) { return eigh(a, which)[0]; })
      .samples({{one}, {one, "U"}, {none}});
  t.op("aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)")
      .doc("Complex eigenvalues, and eigenvectors of norm 1 as columns.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(eig)
      .samples({{floats(1, 1)}});
  t.op("aten::linalg_eigvals(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("Complex eigenvalues.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a) { return eig(a)[0]; })
      .samples({{floats(1, 1)}});
  t.alias("aten::_linalg_eigvals", "aten::linalg_eigvals");

  t.op("aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
      .doc("A = U diag(S) Vᴴ, S descending.")
      .composed([](Value a, bool full, bool vectors, std::optional<std::string> driver) {
        check_driver(driver);
        return svd(a, full, vectors);
      })
      .samples({{floats(3, 2)}, {floats(2, 2, 3), false, false}});
  t.op("aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)")
      .doc("A = U diag(S) Vᴴ, S descending; U and V are square with full_matrices.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, bool full, std::optional<std::string> driver) {
        check_driver(driver);
        return svd(a, full, true);
      })
      .samples({{floats(3, 2), false}, {floats(2, 2, 2)}});
  t.op("aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor")
      .doc("Singular values, descending.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, std::optional<std::string> driver) {
        check_driver(driver);
        return singular_values(a);
      })
      .samples(matrices);
  t.op("aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)")
      .doc("As linalg_svd, with V in place of Vᴴ; zeros for the vectors without compute_uv.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, bool some, bool vectors) {
        std::array<Value, 3> r = svd(a, !some || !vectors, true);
        r[2] = mh(r[2]);
        if (!vectors) r[0] = zeros_like(r[0]), r[2] = zeros_like(r[2]);
        return r;
      })
      .samples({{floats(3, 2)}, {floats(2, 2, 3), true, false}});

  t.op("aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor")
      .out(Out::Cast)
      .doc("The pseudo-inverse: singular values up to max(atol, rtol * the greatest) count as 0.")
      .composed([](Value a, Value atol, Value rtol, bool hermitian) { return pinv(a, atol, rtol, hermitian); })
      .vjp(own_derivative(pinv_derivative))
      .samples(matrices);
  t.op("aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor")
      .out(Out::Cast)
      .doc("The pseudo-inverse: singular values up to max(atol, rtol * the greatest) count as 0.")
      .composed([](Value a, std::optional<Number> atol, std::optional<Number> rtol, bool hermitian) {
        return pinv(a, tensor_of(atol), tensor_of(rtol), hermitian);
      })
      .vjp(own_derivative(pinv_derivative))
      .samples(matrices);
  t.op("aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor")
      .doc("The pseudo-inverse: singular values up to rcond * the greatest count as 0.")
      .composed([](Value a, Number rcond, bool hermitian) { return pinv(a, {}, tensor_of(rcond), hermitian); })
      .vjp(own_derivative(pinv_derivative))
      .samples({{floats(3, 2), 1e-6}});
  t.op("aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor")
      .out(Out::Cast)
      .doc("The pseudo-inverse: singular values up to rcond * the greatest count as 0.")
      .composed([](Value a, Value rcond, bool hermitian) { return pinv(a, {}, rcond, hermitian); })
      .vjp(own_derivative(pinv_derivative))
      .samples({{floats(3, 2), floats().in(1e-7, 1e-6)}});
  t.op("aten::pinverse(Tensor self, float rcond=1e-15) -> Tensor")
      .doc("As linalg_pinv.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, Number rcond) { return pinv(a, {}, tensor_of(rcond), false); })
      .vjp(own_derivative(pinv_derivative))
      .samples(matrices);

  t.op("aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor")
      .out(Out::Cast)
      .doc("The number of singular values beyond max(atol, rtol * the greatest).")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(rank)
      .no_gradient()
      .samples(matrices);
  t.op("aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor")
      .out(Out::Cast)
      .doc("The number of singular values beyond max(atol, rtol * the greatest).")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, std::optional<Number> atol, std::optional<Number> rtol, bool hermitian) {
        return rank(a, tensor_of(atol), tensor_of(rtol), hermitian);
      })
      .no_gradient()
      .samples(matrices);
  t.op("aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor")
      .doc("The number of singular values beyond tol.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, Number tol, bool hermitian) { return rank(a, tensor_of(tol), tensor_of(0), hermitian); })
      .no_gradient()
      .samples({{floats(3, 2), 0.1}});
  t.op("aten::linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor")
      .doc("The number of singular values beyond tol.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a, Value tol, bool hermitian) { return rank(a, tol, tensor_of(0), hermitian); })
      .no_gradient()
      .samples({{floats(3, 2), floats().in(0.1, 0.2)}});

  t.op("aten::linalg_matrix_exp(Tensor self) -> Tensor")
      .doc("Σ Aᵏ / k!.")
      .composed(matrix_exp)
      .samples({{floats(2, 2)}, {floats(0, 0)}});
  t.alias("aten::matrix_exp", "aten::linalg_matrix_exp");
  t.op("aten::matrix_exp_backward(Tensor self, Tensor grad) -> Tensor")
      .doc("The derivative of matrix_exp.")
      .composed(matrix_exp_backward)
      .samples({{floats(2, 2), floats(2, 2)}, {floats(3, 0, 0), floats(3, 0, 0)}});
  t.op("aten::linalg_matrix_sqrth(Tensor self) -> Tensor")
      .doc("The Hermitian square root of a Hermitian matrix without negative eigenvalues.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed(sqrth)
      .vjp(own_derivative(sqrth_derivative))
      .samples({{one}});
  t.op("aten::linalg_polar(Tensor A) -> (Tensor U, Tensor H)")
      .doc("A = U H with orthonormal columns of U and Hermitian H without negative eigenvalues.")
      .composed(polar)
      .samples({{floats(3, 2)}});
  t.op("aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)")
      .doc(
          "The shortest X with the least |A X - B|; the squares of that unless the driver is gelsy, which it is where none "
          "is given; A's rank; and for the drivers gelsd and gelss its singular values.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(lstsq)
      .samples({{floats(4, 2), floats(4, 3)},
                {floats(4, 2), floats(4, 3), ir::Arg(), "gels"},
                {floats(2, 3), floats(2, 1), ir::Arg(), "gelsd"}});
}

}  // namespace brasa::ops
