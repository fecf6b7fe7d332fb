#include <algorithm>

#include "ops/decompose.h"
#include "ops/primitives/factorisation.h"
#include "ops/primitives/families.h"

namespace brasa::ops {

void add_factorisation_primitives(Table& t) {
  factorisation::add_triangular(t);
  factorisation::add_lu(t);
  factorisation::add_indefinite(t);
  factorisation::add_orthogonal(t);
  factorisation::add_spectral(t);
  factorisation::add_whole_factors(t);
}

namespace prim {
namespace {

Value square(const char* op, Value a) {
  BRASA_CHECK(rank_of(a) < 2 || same_size(rows_of(a), columns_of(a)), op,
              ": A must be batches of square matrices, got ", type_of(a));
  return a;
}

template <size_t N>
std::array<Value, N> several(const char* name, Args args) {
  std::vector<Value> r = call_all(name, std::move(args));
  std::array<Value, N> out;
  std::copy(r.begin(), r.end(), out.begin());
  return out;
}

}  // namespace

std::array<Value, 2> cholesky(Value a) { return several<2>("prim::cholesky", {square("linalg.cholesky", a)}); }
std::array<Value, 2> upper_cholesky(Value a) {
  std::vector<Value> r = taken_or_composed("prim::upper_cholesky", {square("linalg.cholesky", a)});
  return {r[0], r[1]};
}
std::array<Value, 3> lu(Value a) { return several<3>("prim::lu", {a}); }
std::array<Value, 3> ldl(Value a, bool hermitian) {
  return several<3>("prim::ldl", {square("linalg.ldl_factor", a), hermitian});
}
Value ldl_solve(Value ld, Value pivots, Value b, bool hermitian) {
  return call("prim::ldl_solve", {ld, pivots, b, hermitian});
}
Value lu_permutation(Value pivots, Expr rows) { return call("prim::lu_permutation", {pivots, rows}); }
Value triangular_solve(Value a, Value b, Triangle how) {
  return call("prim::triangular_solve", {a, b, how.upper, how.transposed, how.unit});
}
std::array<Value, 2> qr(Value a, bool complete) { return several<2>("prim::qr", {a, complete}); }
std::array<Value, 2> geqrf(Value a) { return several<2>("prim::geqrf", {a}); }
std::array<Value, 2> eigh(Value a) { return several<2>("prim::eigh", {square("linalg.eigh", a), true}); }
std::array<Value, 3> svd(Value a, bool full) { return several<3>("prim::svd", {a, full, true}); }
std::array<Value, 4> eig(Value a) { return several<4>("prim::eig", {square("linalg.eig", a), true}); }

}  // namespace prim
}  // namespace brasa::ops
