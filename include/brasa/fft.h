#pragma once

#include <brasa/ops_generated.h>

// Fourier transforms by LibTorch's names: `fft::rfft(x)` is `fft_rfft(x)`. `norm` is "backward" (the default: the inverse divides by
// n), "forward" or "ortho".
namespace brasa::fft {

using Norm = std::optional<std::string_view>;

// Along one dimension, of n points: the signal is cut or filled with zeros.
inline Tensor fft(const Tensor& self, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = {}) {
  return fft_fft(self, n, dim, norm);
}
inline Tensor ifft(const Tensor& self, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = {}) {
  return fft_ifft(self, n, dim, norm);
}
inline Tensor rfft(const Tensor& self, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = {}) {
  return fft_rfft(self, n, dim, norm);
}
inline Tensor irfft(const Tensor& self, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = {}) {
  return fft_irfft(self, n, dim, norm);
}
inline Tensor hfft(const Tensor& self, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = {}) {
  return fft_hfft(self, n, dim, norm);
}
inline Tensor ihfft(const Tensor& self, std::optional<int64_t> n = {}, int64_t dim = -1, Norm norm = {}) {
  return fft_ihfft(self, n, dim, norm);
}

// Along two dimensions.
inline Tensor fft2(const Tensor& self, OptionalIntArrayRef s = {}, IntArrayRef dim = {-2, -1}, Norm norm = {}) {
  return fft_fft2(self, s, dim, norm);
}
inline Tensor ifft2(const Tensor& self, OptionalIntArrayRef s = {}, IntArrayRef dim = {-2, -1}, Norm norm = {}) {
  return fft_ifft2(self, s, dim, norm);
}
inline Tensor rfft2(const Tensor& self, OptionalIntArrayRef s = {}, IntArrayRef dim = {-2, -1}, Norm norm = {}) {
  return fft_rfft2(self, s, dim, norm);
}
inline Tensor irfft2(const Tensor& self, OptionalIntArrayRef s = {}, IntArrayRef dim = {-2, -1}, Norm norm = {}) {
  return fft_irfft2(self, s, dim, norm);
}
inline Tensor hfft2(const Tensor& self, OptionalIntArrayRef s = {}, IntArrayRef dim = {-2, -1}, Norm norm = {}) {
  return fft_hfft2(self, s, dim, norm);
}
inline Tensor ihfft2(const Tensor& self, OptionalIntArrayRef s = {}, IntArrayRef dim = {-2, -1}, Norm norm = {}) {
  return fft_ihfft2(self, s, dim, norm);
}

// Along several dimensions, by default all, or as many of the last as s has.
inline Tensor fftn(const Tensor& self, OptionalIntArrayRef s = {}, OptionalIntArrayRef dim = {}, Norm norm = {}) {
  return fft_fftn(self, s, dim, norm);
}
inline Tensor ifftn(const Tensor& self, OptionalIntArrayRef s = {}, OptionalIntArrayRef dim = {}, Norm norm = {}) {
  return fft_ifftn(self, s, dim, norm);
}
inline Tensor rfftn(const Tensor& self, OptionalIntArrayRef s = {}, OptionalIntArrayRef dim = {}, Norm norm = {}) {
  return fft_rfftn(self, s, dim, norm);
}
inline Tensor irfftn(const Tensor& self, OptionalIntArrayRef s = {}, OptionalIntArrayRef dim = {}, Norm norm = {}) {
  return fft_irfftn(self, s, dim, norm);
}
inline Tensor hfftn(const Tensor& self, OptionalIntArrayRef s = {}, OptionalIntArrayRef dim = {}, Norm norm = {}) {
  return fft_hfftn(self, s, dim, norm);
}
inline Tensor ihfftn(const Tensor& self, OptionalIntArrayRef s = {}, OptionalIntArrayRef dim = {}, Norm norm = {}) {
  return fft_ihfftn(self, s, dim, norm);
}

/// The frequencies of fft's n results, for samples d apart.
inline Tensor fftfreq(int64_t n, double d, const TensorOptions& options = {}) { return fft_fftfreq(n, d, options); }
inline Tensor fftfreq(int64_t n, const TensorOptions& options = {}) { return fft_fftfreq(n, 1.0, options); }
inline Tensor rfftfreq(int64_t n, double d, const TensorOptions& options = {}) { return fft_rfftfreq(n, d, options); }
inline Tensor rfftfreq(int64_t n, const TensorOptions& options = {}) { return fft_rfftfreq(n, 1.0, options); }
/// Rolled so that frequency 0 is in the middle, and back.
inline Tensor fftshift(const Tensor& x, OptionalIntArrayRef dim = {}) { return fft_fftshift(x, dim); }
inline Tensor ifftshift(const Tensor& x, OptionalIntArrayRef dim = {}) { return fft_ifftshift(x, dim); }

}  // namespace brasa::fft
