#pragma once

#include <complex>

#include "ops/table.h"

// What primitives' evaluations are written with: slow, obvious element access.
namespace brasa::ops {

Array make_array(DType dtype, std::vector<int64_t> shape);
/// Element i (row-major) as a double; integers beyond 2^53 lose bits, so integer code uses `get_int`, where a uint64 wraps.
double get(const Array& a, int64_t i);
int64_t get_int(const Array& a, int64_t i);
/// Of real elements too.
std::complex<double> get_complex(const Array& a, int64_t i);
/// To a real dtype: its real part; to bool: is not 0.
void set_complex(Array& a, int64_t i, std::complex<double> v);
/// Rounds to the array's dtype; to bool: is not 0.
void set(Array& a, int64_t i, double v);
void set_int(Array& a, int64_t i, int64_t v);
inline bool by_int(DType t) { return is_integral(t, true); }
/// Element j of b as one of a's dtype.
void convert_element(Array& a, int64_t i, const Array& b, int64_t j);
/// Copies element j of b to element i of a (equal dtypes).
void copy_element(Array& a, int64_t i, const Array& b, int64_t j);

std::vector<int64_t> constants(const std::vector<Expr>& exprs);
std::vector<int64_t> int_args(const Node& n, size_t arg);
std::vector<int64_t> row_major(const std::vector<int64_t>& shape);
/// Steps `index` to the next element of `shape` in row-major order; false after the last.
bool next_index(std::vector<int64_t>& index, const std::vector<int64_t>& shape);
/// Result type number i's concrete shape.
std::vector<int64_t> result_shape(const Node& n, size_t i = 0);
Array result_array(const Node& n, size_t i = 0);

/// out[i] = in[source(i)] for every index of the result; negative source: keep `fill`.
template <class F>
Array rearranged(const Node& n, const Array& in, F source) {
  Array out = result_array(n);
  std::vector<int64_t> index(out.shape.size());
  int64_t i = 0;
  if (out.numel() == 0) return out;
  do {
    int64_t s = source(index);
    if (s >= 0) copy_element(out, i, in, s);
    ++i;
  } while (next_index(index, out.shape));
  return out;
}

/// A literal written to element i.
void set_literal(Array& a, int64_t i, const Arg& literal);

}  // namespace brasa::ops
