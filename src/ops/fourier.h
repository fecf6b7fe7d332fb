#pragma once

#include "ops/algebra.h"

// Fourier transforms: the primitive, and the families made of it.
namespace brasa::ops {

class Table;

void add_fft(Table& t);
void add_stft(Table& t);

/// A complex value as its parts.
struct Parts {
  Value re, im;
};

/// PyTorch's numbers for how a transform of n elements is scaled.
enum FftNorm : int64_t { kNormNone = 0, kNormByRoot = 1, kNormBySize = 2 };

/// Over each of `dims`, of floating or complex x.
Value fft_c2c(Value x, const std::vector<int64_t>& dims, int64_t norm, bool forward);
/// Of real x; only the first size/2 + 1 frequencies of the last of `dims` if onesided.
Value fft_r2c(Value x, const std::vector<int64_t>& dims, int64_t norm, bool onesided);
/// From the first n/2 + 1 frequencies along the last of `dims` to n reals there.
Value fft_c2r(Value x, const std::vector<int64_t>& dims, int64_t norm, Expr n);

namespace prim {

/// Σ_j (x + iy)[j] exp(∓2πi jk/n) along `dim` as {real, imaginary}, minus if forward; not normalised.
std::array<Value, 2> fft(Value x, Value y, int64_t dim, bool forward);
/// The n real numbers whose transform begins with the n/2 + 1 complex x + iy along `dim`; times n, and by a scale of rank 0, if there is
/// one.
Value fft_real(Value x, Value y, int64_t dim, Expr n, Value scale = {});

}  // namespace prim
}  // namespace brasa::ops
