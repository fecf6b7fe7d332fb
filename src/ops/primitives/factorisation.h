#pragma once

#include "ops/complex.h"
#include "ops/linear_algebra.h"
#include "ops/primitives/dense.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "ops/shapes.h"
#include "ops/table.h"
#include "support/error.h"

// What the factorisations share: types of batches of matrices, and evaluation one matrix after the other.
namespace brasa::ops::factorisation {

using dense::Matrix;
using Cotangents = std::span<const Value>;

inline const Type& operand(const Args& args, size_t i = 0) { return ir::type_of(args[i].get<Value>()); }

inline const Type& matrices(const char* op, const Args& args) {
  const Type& t = operand(args);
  BRASA_CHECK(t.rank() >= 2, op, ": The input tensor must have at least 2 dimensions, got ", t);
  DType part = real_part_of(t.dtype);
  BRASA_CHECK(part == DType::Float32 || part == DType::Float64, op,
              ": expected float32, float64, complex64 or complex128, got ", t);
  return t;
}
inline const Type& squares(const char* op, const Args& args) {
  const Type& t = matrices(op, args);
  BRASA_CHECK(may_equal(t.shape[t.rank() - 2], t.shape.back()), op, ": A must be batches of square matrices, got ", t);
  return t;
}
inline Expr rows(const Type& t) { return t.shape[t.rank() - 2]; }
inline Expr columns(const Type& t) { return t.shape.back(); }
inline Expr least(const Type& t) { return ir::min(rows(t), columns(t)); }
// The batch of t with these dimensions behind it.
inline Type with(const Type& t, std::initializer_list<Expr> last, std::optional<DType> dtype = {}) {
  Shape s(t.shape.begin(), t.shape.end() - 2);
  s.insert(s.end(), last);
  return {dtype.value_or(t.dtype), s, false};
}

// Of eigenvalues and singular values of real matrices and Hermitian ones.
inline DType part(const Type& t) { return real_part_of(t.dtype); }

/// The gradient by A = L Lᴴ, of the cotangent of L.
Value cholesky_gradient(Value l, Value ct);

// Evaluation.

using Complex = std::complex<double>;

template <class T>
T element(const Array& a, int64_t i) {
  if constexpr (std::is_same_v<T, Complex>) return get_complex(a, i);
  return get(a, i);
}
// f(0.0), or f(Complex()) for complex elements.
template <class F>
void by_kind(const Array& a, F f) {
  is_complex(a.dtype) ? f(Complex()) : f(double());
}

// The matrices of an array, and results written back one by one.
struct Batches {
  const Array& from;
  int64_t rows, cols, count;
  explicit Batches(const Array& a) : from(a), rows(a.shape[a.shape.size() - 2]), cols(a.shape.back()), count(1) {
    for (size_t d = 0; d + 2 < a.shape.size(); ++d) count *= a.shape[d];
  }
  template <class T>
  Matrix<T> at(int64_t b) const {
    Matrix<T> m(rows, cols);
    for (int64_t i = 0; i < rows * cols; ++i) m.a[i] = element<T>(from, b * rows * cols + i);
    return m;
  }
};
template <class T>
void put(Array& out, int64_t batch, const std::vector<T>& v) {
  auto n = static_cast<int64_t>(v.size());
  for (int64_t i = 0; i < n; ++i)
    if constexpr (std::is_same_v<T, Complex>)
      set_complex(out, batch * n + i, v[i]);
    else
      set(out, batch * n + i, v[i]);
}
inline void put_ints(Array& out, int64_t batch, const std::vector<int64_t>& v) {
  auto n = static_cast<int64_t>(v.size());
  for (int64_t i = 0; i < n; ++i) set_int(out, batch * n + i, v[i]);
}
inline std::vector<Array> result_arrays(const Node& n) {
  std::vector<Array> out;
  for (size_t i = 0; i < n.types.size(); ++i) out.push_back(result_array(n, i));
  return out;
}
// f(matrix, its number, results) for every matrix of the first operand.
template <class F>
Eval each_matrix(F f) {
  return [f](const Node& n, std::span<const Array* const> in) {
    std::vector<Array> out = result_arrays(n);
    Batches all(*in[0]);
    by_kind(*in[0], [&](auto kind) {
      for (int64_t b = 0; b < all.count; ++b) f(n, all.at<decltype(kind)>(b), b, out);
    });
    return out;
  };
}

inline Value plus(Value a, Value b) { return !a ? b : !b ? a : a + b; }

void add_triangular(Table& t);
void add_lu(Table& t);
void add_indefinite(Table& t);
void add_orthogonal(Table& t);
void add_spectral(Table& t);
void add_whole_factors(Table& t);

}  // namespace brasa::ops::factorisation
