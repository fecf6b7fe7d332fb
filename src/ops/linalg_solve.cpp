#include "ops/complex.h"
#include "ops/linear_algebra.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Linear systems, inverses, determinants.
namespace brasa::ops {
namespace {

void check_no_failure(Value info, const std::string& message) { check_values(eq(info, 0), message); }

// x with A x = b, or Aᵀ x = b (not conjugated), or the same from the right, for A = P L U.
Value lu_solve(Value lu, Value pivots, Value b, bool left, bool transposed) {
  if (!left) return mt(lu_solve(lu, pivots, mt(b), true, !transposed));
  BRASA_CHECK(rank_of(lu) >= 2, "lu_solve: expected a matrix of factors, got ", type_of(lu));
  check_shape("lu_solve", "pivots", pivots, Shape(shape_of(lu).begin(), shape_of(lu).end() - 1));
  Value p = prim::lu_permutation(pivots, rows_of(lu));
  if (transposed) {
    Value x = solve_triangle(lu, b, {.upper = true, .transposed = true});
    return unpermuted_rows(solve_triangle(lu, x, {.transposed = true, .unit = true}), p);
  }
  return solve_triangle(lu, solve_triangle(lu, permuted_rows(b, p), {.unit = true}), {.upper = true});
}

void check_square(const char* op, Value a) {
  BRASA_CHECK(rank_of(a) >= 2, op, ": The input tensor A must have at least 2 dimensions, got ", type_of(a));
  BRASA_CHECK(same_size(rows_of(a), columns_of(a)), op, ": A must be batches of square matrices, but they are ",
              rows_of(a), " by ", columns_of(a), " matrices");
}

// A vector for each matrix, as numpy's solve had it.
bool is_vector(Value a, Value b) {
  if (rank_of(b) == 1) return true;
  if (rank_of(b) != rank_of(a) - 1) return false;
  for (int64_t d = 0; d < rank_of(b); ++d)
    if (!same_size(size_of(a, d), size_of(b, d))) return false;
  return true;
}

// The right sides as columns.
Value right_sides(const char* op, Value a, Value b, bool left) {
  check_square(op, a);
  bool vector = is_vector(a, b);
  BRASA_CHECK(left || !vector, op, ": Vector broadcasting of the left hand side is not supported for left=False, got ",
              type_of(b));
  Value right = vector ? unsqueeze(b, rank_of(b)) : b;
  BRASA_CHECK(rank_of(right) >= 2 && dtype_of(a) == dtype_of(b) &&
                  same_size(left ? rows_of(right) : columns_of(right), rows_of(a)),
              op, ": Incompatible shapes or dtypes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
              type_of(a), " and ", type_of(b), ")");
  return right;
}
void check_regular(const char* op, Value info) {
  check_no_failure(info, str(op, ": The solver failed because the input matrix is singular."));
}

// {result, LU, pivots, info}
std::array<Value, 4> solve_with_factors(const char* op, Value a, Value b, bool left, bool check) {
  Value right = right_sides(op, a, b, left);
  auto [lu, pivots, info] = prim::lu(a);
  if (check) check_regular(op, info);
  Value x = lu_solve(lu, pivots, right, left, false);
  return {is_vector(a, b) ? squeeze(x, rank_of(x) - 1) : x, lu, pivots, info};
}

// x with A x = b, or Aᵀ x = b, by the factors of Aᵀ, which no memory is turned for.
Value solve_by_transpose(Value a, Value b, bool left, bool transposed, const char* singular = nullptr) {
  if (!left) return mt(solve_by_transpose(a, mt(b), true, !transposed, singular));
  auto [lu, pivots, info] = prim::lu_of_transpose(a);
  if (singular) check_regular(singular, info);
  Value p = prim::lu_permutation(pivots, rows_of(lu));
  if (transposed) {
    Value x = solve_triangle(lu, permuted_rows(b, p), {.upper = true, .transposed = true, .unit = true});
    return solve_triangle(lu, x, {.transposed = true});
  }
  return unpermuted_rows(solve_triangle(lu, solve_triangle(lu, b, {}), {.upper = true, .unit = true}), p);
}
Value solve(Value a, Value b, bool left) {
  constexpr const char* op = "linalg.solve";
  Value right = right_sides(op, a, b, left), x = solve_by_transpose(a, right, left, false, op);
  return is_vector(a, b) ? squeeze(x, rank_of(x) - 1) : x;
}

// B's cotangent is the solution of the adjoint system, which `adjoint` gives, and A's its product with X.
template <class Adjoint>
std::vector<Value> solve_pulled(const Saved& s, const Adjoint& adjoint) {
  if (!s.ct()) return {};
  Value a = s.in(0);
  bool left = s.arg<bool>(2), vector = is_vector(a, s.in(1));
  auto matrix = [&](Value v) { return vector ? unsqueeze(v, rank_of(v)) : v; };
  Value g = conj(adjoint(a, conj(matrix(s.ct())), left)), x = mh(matrix(s.out()));
  return {left ? -mm(g, x) : -mm(x, g), vector ? squeeze(g, rank_of(g) - 1) : g};
}
std::vector<Value> solve_derivative(const Saved& s) {
  return solve_pulled(s, [](Value a, Value b, bool left) { return solve_by_transpose(a, b, left, true); });
}
// By the factors that are a result, whose own derivative PyTorch does not have.
std::vector<Value> solve_with_factors_derivative(const Saved& s) {
  return solve_pulled(s, [](Value a, Value b, bool left) {
    auto [lu, pivots, info] = prim::lu(a);
    return lu_solve(lu, pivots, b, left, true);
  });
}

// By the factors of a. The exchanges come last, as columns: systems of an identity are a third of the work.
Value inverse_by(Value lu, Value pivots) {
  Value x = solve_triangle(lu, solve_triangle(lu, identity_like(lu), {.unit = true}), {.upper = true});
  return mt(unpermuted_rows(mt(x), prim::lu_permutation(pivots, rows_of(lu))));
}

std::array<Value, 2> inverse(Value a, bool check) {
  check_square("linalg.inv", a);
  auto [lu, pivots, info] = prim::lu(a);
  if (check)
    check_no_failure(info, "linalg.inv: The inversion could not be completed because the input matrix is singular.");
  return {inverse_by(lu, pivots), info};
}

// From A⁻¹ alone, where the factors' own derivative would solve for both of them.
std::vector<Value> inverse_derivative(const Saved& s) {
  if (!s.ct()) return {};
  Value adjoint = mh(s.out());
  return {-mm(mm(adjoint, s.ct()), adjoint)};
}

// -1 for an odd number of exchanges.
Value parity(Value pivots, DType dtype) {
  int64_t last = rank_of(pivots) - 1;
  Value here = prim::iota(shape_of(pivots), last, DType::Int64) + 1;
  return convert(reduce(where(eq(convert(pivots, DType::Int64), here), scalar(1, real_part_of(dtype)),
                              scalar(-1, real_part_of(dtype))),
                        {last}, false, "mul"),
                 dtype);
}

Value product(Value d) { return reduce(d, {rank_of(d) - 1}, false, "mul"); }

// {LU, pivots} that det and slogdet give, as in PyTorch: of Aᵀ, or of A if it is complex.
std::array<Value, 2> factors(Value a) {
  if (is_complex(dtype_of(a))) {
    auto [lu, pivots, info] = prim::lu(a);
    return {lu, pivots};
  }
  auto [turned, pivots, info] = prim::lu_of_transpose(a);
  return {mt(turned), pivots};
}
// A⁻ᴴ from these.
Value adjoint_inverse(Value lu, Value pivots) {
  Value inverse = inverse_by(lu, pivots);
  return is_complex(dtype_of(lu)) ? mh(inverse) : inverse;
}
Value over_matrices(Value x) { return unsqueeze(unsqueeze(x, rank_of(x)), rank_of(x) + 1); }

// {determinant, LU, pivots}
std::array<Value, 3> det(Value a) {
  check_square("linalg.det", a);
  auto [lu, pivots] = factors(a);
  return {product(diagonal_of(lu)) * parity(pivots, dtype_of(a)), lu, pivots};
}

// The matrix of cofactors, d det / d A = conj(det A) A⁻ᴴ, which singular matrices have too. Cofactors are polynomials, so that a pivot of 0
// may be any number that is small enough; determinant and inverse are made of the same factors, whose small pivots cancel.
std::vector<Value> det_derivative(const Saved& s) {
  auto [d, lu, pivots] = det(s.in(0));
  DType t = dtype_of(lu);
  double small = real_part_of(t) == DType::Float64 ? 0x1p-500 : 0x1p-60;
  Value diagonal = diagonal_of(lu), none = eq(diagonal, 0);
  Value added = where(none, constant_like(diagonal, small), zeros_like(diagonal));
  Value regular = lu + diagonal_matrix(added);
  Value scale = s.ct() * conj(product(diagonal + added) * parity(pivots, t));
  return {over_matrices(scale) * adjoint_inverse(regular, pivots)};
}

// {sign, logarithm, LU, pivots}
std::array<Value, 4> slogdet(Value a) {
  check_square("linalg.slogdet", a);
  auto [lu, pivots] = factors(a);
  Value d = diagonal_of(lu);
  Value sign =
      product(is_complex(dtype_of(d)) ? call("aten::sgn", {d}) : prim::unary("sign", d)) * parity(pivots, dtype_of(a));
  return {sign, sum(log(magnitude(d)), {rank_of(d) - 1}), lu, pivots};
}

// d log det A = tr(A⁻¹ dA), of which the sign turns by the imaginary part.
std::vector<Value> slogdet_derivative(const Saved& s) {
  Value a = s.in(0), g = s.ct(1) ? s.ct(1) : zeros_like(s.out(1));
  auto [sign, size, lu, pivots] = slogdet(a);
  if (is_complex(dtype_of(a))) g = complex(g, s.ct(0) ? -imag(conj(s.ct(0)) * sign) : zeros_like(g));
  return {over_matrices(g) * adjoint_inverse(lu, pivots)};
}

Value logdet(Value a) {
  std::vector<Value> r = call_all("aten::linalg_slogdet", {a});
  if (is_complex(dtype_of(a))) return log(r[0]) + convert(r[1], dtype_of(a));
  return where(eq(r[0], -1), constant_like(r[1], std::numeric_limits<double>::quiet_NaN()), r[1]);
}

Value solve_triangular(Value a, Value b, bool upper, bool left, bool unit) {
  check_square("linalg.solve_triangular", a);
  BRASA_CHECK(rank_of(b) >= 2 && same_size(left ? rows_of(b) : columns_of(b), rows_of(a)),
              "linalg.solve_triangular: Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B",
              ", got ", type_of(a), " and ", type_of(b));
  Triangle how{.upper = upper, .unit = unit};
  return left ? solve_triangle(a, b, how) : solve_triangle_right(a, b, how);
}

std::array<Value, 3> ldl_factor(const char* op, Value a, bool hermitian, bool check) {
  check_square(op, a);
  auto [ld, pivots, info] = prim::ldl(a, hermitian);
  if (check)
    check_no_failure(info, str(op, ": The diagonal has a block that is zero, and ldl_solve would divide by it."));
  return {tril(ld), pivots, info};
}
Value ldl_solve(Value ld, Value pivots, Value b, bool hermitian) {
  constexpr const char* op = "linalg.ldl_solve";
  check_square(op, ld);
  BRASA_CHECK(rank_of(pivots) == rank_of(ld) - 1 && dtype_of(pivots) == DType::Int32 && rank_of(b) >= 2 &&
                  dtype_of(b) == dtype_of(ld) && same_size(rows_of(b), rows_of(ld)),
              op, ": Incompatible shapes or dtypes of LD, pivots and B, got ", type_of(ld), ", ", type_of(pivots),
              " and ", type_of(b));
  auto batch_of = [](Value v, int64_t last) { return Shape(shape_of(v).begin(), shape_of(v).end() - last); };
  Shape batch = broadcast_shapes(batch_of(ld, 2), batch_of(b, 2));
  auto repeated = [&](Value v, std::initializer_list<Expr> last) {
    Shape s = batch;
    s.insert(s.end(), last);
    return broadcast_to(v, s);
  };
  Expr n = rows_of(ld);
  return prim::ldl_solve(repeated(ld, {n, n}), repeated(pivots, {n}), repeated(b, {n, columns_of(b)}), hermitian);
}

Expr product_of(const Shape& s, size_t from, size_t to) {
  Expr p(1);
  for (size_t i = from; i < to; ++i) p = p * s[i];
  return p;
}

Value tensorinv(Value x, int64_t ind) {
  BRASA_CHECK(ind > 0, "Expected a strictly positive integer for 'ind', got ", ind);
  Shape s = shape_of(x);
  auto k = std::min<size_t>(ind, s.size());
  Expr front = product_of(s, 0, k), back = product_of(s, k, s.size());
  BRASA_CHECK(same_size(front, back),
              "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
              "prod(self.shape[:ind]), but got ",
              back, " != ", front);
  Shape out(s.begin() + static_cast<int64_t>(k), s.end());
  out.insert(out.end(), s.begin(), s.begin() + static_cast<int64_t>(k));
  return prim::reshape(inverse(prim::reshape(x, {front, back}), true)[0], out);
}

Value tensorsolve(Value a, Value b, std::optional<Dims> dims) {
  if (dims) {
    Dims from = wrap_dims(*dims, rank_of(a));
    a = move_dims(a, from, counted(rank_of(a) - static_cast<int64_t>(from.size()), static_cast<int64_t>(from.size())));
  }
  Shape s = shape_of(a);
  auto k = static_cast<size_t>(rank_of(b));
  BRASA_CHECK(k <= s.size(), "linalg.tensorsolve: self must have at least as many dimensions as other, got ",
              type_of(a), " and ", type_of(b));
  Shape out(s.begin() + static_cast<int64_t>(k), s.end());
  Expr rows = product_of(shape_of(b), 0, k), cols = product_of(s, k, s.size());
  BRASA_CHECK(same_size(rows, cols),
              "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
              "prod(self.shape[:other.ndim]), but got ",
              cols, " != ", rows);
  Value x = call("aten::linalg_solve", {prim::reshape(a, {rows, cols}), prim::reshape(b, {rows}), true});
  return prim::reshape(x, out);
}

// Squares and products by the binary digits of n, from the highest down. A graph knows how many digits there are.
Value power(Value a, Expr n) {
  check_square("linalg.matrix_power", a);
  if (same_size(n, 0)) return broadcast_to(identity_like(a), shape_of(a));
  bool inverted = is_less(n, 0);
  if (inverted) a = inverse(a, true)[0];
  // The least integer has no -n, but half of it does.
  Expr low = ir::mod(n, 2), half = inverted ? -ir::floordiv(n + 1, 2) : ir::floordiv(n, 2);
  std::vector<Expr> digits;
  for (Expr rest = half; is_less(0, rest); rest = ir::floordiv(rest, 2)) {
    digits.push_back(low);
    low = ir::mod(rest, 2);
  }
  Value out = a;
  for (size_t i = digits.size(); i-- > 0;) {
    out = mm(out, out);
    if (digits[i].is(0)) continue;
    Value more = mm(out, a);
    out = digits[i].is(1) ? more : where(eq(size_tensor(digits[i], {}), 1), more, out);
  }
  return out;
}

}  // namespace

void add_linalg_solve(Table& t) {
  // Samples of three rows and columns are nearly singular: their numbers are spread evenly.
  const std::vector<Sample> squares = {{floats(2, 2)}, {floats(3, 2, 2)}, {floats(0, 0)}, {floats(1, 1)}};
  const std::vector<Sample> systems = {{floats(2, 2), floats(2, 3)},
                                       {floats(3, 2, 2), floats(2, 1)},
                                       {floats(2, 2), floats(2)},
                                       {floats(2, 2), floats(3, 2), false}};
  t.op("aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)")
      .doc("A⁻¹; info is the index of the first pivot that is zero, or 0.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(inverse)
      .vjp(own_derivative(inverse_derivative))
      .samples(squares);
  t.op("aten::linalg_inv(Tensor A) -> Tensor")
      .doc("A⁻¹.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value a) { return inverse(a, true)[0]; })
      .vjp(own_derivative(inverse_derivative))
      .samples(squares);
  t.alias("aten::inverse", "aten::linalg_inv");
  t.op("aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)")
      .doc("As linalg_solve, with the factors of A.")
      .composed([](Value a, Value b, bool left, bool check) {
        auto [x, lu, pivots, info] = solve_with_factors("linalg.solve", a, b, left, check);
        return std::array{x, call("aten::detach", {lu}), pivots, info};
      })
      .vjp(own_derivative(solve_with_factors_derivative))
      .samples(systems);
  t.op("aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)")
      .doc("As linalg_solve; info is the index of the first pivot that is zero, or 0.")
      .composed([](Value a, Value b, bool left, bool check) {
        std::array<Value, 4> r = solve_with_factors("linalg.solve_ex", a, b, left, check);
        return std::array{r[0], r[3]};
      })
      .vjp(own_derivative(solve_with_factors_derivative))
      .samples(systems);
  t.op("aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
      .doc("X with A X = B, or X A = B without left; B may be one vector for each matrix.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(solve)
      .vjp(own_derivative(solve_derivative))
      .samples(systems);
  t.op("aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor")
      .doc("As linalg_solve, for the factors of A (with adjoint: of Aᴴ).")
      .composed([](Value lu, Value pivots, Value b, bool left, bool adjoint) {
        return lu_solve(adjoint ? conj(lu) : lu, pivots, b, left, adjoint);
      })
      .samples({{floats(3, 3), tensor(DType::Int32, {3}).in(3, 4), floats(3, 2)},
                {floats(3, 3), tensor(DType::Int32, {3}).in(3, 4), floats(2, 3), false, true}});
  t.op("aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor")
      .doc("A⁻¹ self, for the factors of A.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value b, Value lu, Value pivots) { return lu_solve(lu, pivots, b, true, false); })
      .samples({{floats(3, 2), floats(3, 3), tensor(DType::Int32, {3}).in(3, 4)}});
  t.op("aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor")
      .doc("X with T X = B, or X T = B without left, where T is a triangle of self.")
      .composed(solve_triangular)
      .samples(
          {{floats(3, 3).in(1, 2), floats(3, 2), true}, {floats(3, 3).in(1, 2), floats(2, 4, 3), false, false, true}});
  t.op("aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)")
      .doc("T⁻¹ self or T⁻ᵀ self, where T is a triangle of A; and A.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value b, Value a, bool upper, bool transposed, bool unit) {
        Value x = solve_triangle(a, b, {upper, transposed, unit});
        Shape s(shape_of(x).begin(), shape_of(x).end() - 1);
        s.push_back(rows_of(a));
        return std::array{x, broadcast_to(a, s)};
      })
      .samples({{floats(3, 2), floats(3, 3).in(1, 2)}, {floats(2, 3, 2), floats(3, 3).in(1, 2), false, true, true}});

  t.op("aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)")
      .doc(
          "A = L D Lᵀ of a symmetric matrix, or L D Lᴴ of a Hermitian one, of which the lower triangle is read (Bunch & Kaufman 1977); L below the diagonal of LD, D's "
          "blocks of one or two rows on it. info is the index of the first block that is zero, or 0.")
      .composed(
          [](Value a, bool hermitian, bool check) { return ldl_factor("linalg.ldl_factor_ex", a, hermitian, check); })
      .no_gradient()
      .samples(squares);
  t.op("aten::linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)")
      .doc("As linalg_ldl_factor_ex; a block that is zero is an error.")
      .composed([](Value a, bool hermitian) {
        auto [ld, pivots, info] = ldl_factor("linalg.ldl_factor", a, hermitian, true);
        return std::array{ld, pivots};
      })
      .no_gradient()
      .samples(squares);
  t.op("aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor")
      .doc("X with A X = B, for the factors of A.")
      .composed(ldl_solve)
      .no_gradient()
      .samples({{floats(2, 2).in(1, 2), tensor(DType::Int32, {2}).in(2, 3), floats(2, 3)},
                {floats(2, 2).in(1, 2), tensor(DType::Int32, {2}).in(-2, -1), floats(3, 2, 1)}});

  t.op("aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)")
      .doc("The determinant, and the factors of Aᵀ, or of A if it is complex.")
      .composed([](Value a) {
        std::array<Value, 3> r = det(a);
        Value d = call("aten::linalg_det", {a});  // whose derivative singular matrices have
        return std::array{d, call("aten::detach", {r[1]}), r[2]};
      })
      .samples(squares);
  t.op("aten::linalg_det(Tensor A) -> Tensor")
      .doc("The determinant.")
      .composed([](Value a) { return det(a)[0]; })
      .vjp(own_derivative(det_derivative))
      .samples({{floats(3, 3)}, {floats(2, 2, 2)}, {floats(1, 1)}});
  t.alias("aten::det", "aten::linalg_det");
  t.op("aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)")
      .doc("The determinant's sign and logarithm, and the factors of Aᵀ, or of A if it is complex.")
      .composed([](Value a) {
        std::array<Value, 4> r = slogdet(a);
        std::vector<Value> own = call_all("aten::linalg_slogdet", {a});  // which has a derivative of its own
        return std::array{own[0], own[1], call("aten::detach", {r[2]}), r[3]};
      })
      .samples(squares);
  t.op("aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)")
      .doc("The sign of the determinant and the logarithm of its absolute value.")
      .composed([](Value a) {
        std::array<Value, 4> r = slogdet(a);
        return std::array{r[0], r[1]};
      })
      .vjp(own_derivative(slogdet_derivative))
      .samples(squares);
  t.alias("aten::slogdet", "aten::linalg_slogdet");
  t.op("aten::logdet(Tensor self) -> Tensor")
      .doc("The logarithm of the determinant; NaN where it is a negative real number.")
      .composed(logdet)
      .samples({{floats(1, 1).in(1, 2)}, {floats(0, 0)}});
  t.op("aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor")
      .out(Out::Cast)
      .doc("The inverse of self as a matrix from its last dimensions to its first `ind` ones.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(tensorinv)
      .samples({{floats(2, 1, 2), 1}, {floats(1, 2, 2), 2}});
  t.op("aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor")
      .out(Out::Cast)
      .doc("x with tensordot(self, x, x.ndim) = other; dims go to the end of self's first.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(tensorsolve)
      .samples({{floats(2, 1, 2), floats(2)}});
  t.op("aten::linalg_matrix_power(Tensor self, int n) -> Tensor")
      .doc("Aⁿ; of A⁻¹ for negative n.")
      .composed(power)
      .special("n", {-1, 0, 1, 2, 3, 4, 8, 16})
      .samples({{floats(2, 2), 5}, {floats(2, 2, 2), -2}, {floats(2, 2), 0}});
  t.alias("aten::matrix_power", "aten::linalg_matrix_power");
}

}  // namespace brasa::ops
