#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <optional>
#include <vector>

#include "compiler/libraries/lines.h"
#include "compiler/libraries/rows.h"
#include "runtime/thread_pool.h"

namespace brasa::compiler {
namespace {

using Complex = std::complex<double>;
constexpr double kPi = 3.141592653589793238463;

size_t largest_prime_factor(size_t n) {
  size_t largest = 1;
  for (size_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return n > 1 ? n : largest;
}

// One size and direction. Always in double precision: kissfft's float twiddles lose two digits.
class Plan {
 public:
  Plan(size_t n, bool forward) : n_(n), chirped_(largest_prime_factor(n) > kLargestRadix) {
    size_t m = n;
    if (chirped_)
      for (m = 1; m < 2 * n - 1;) m *= 2;
    there_.emplace(m, chirped_ ? false : !forward);
    if (!chirped_) return;
    back_.emplace(m, true);
    // L. Bluestein (1970): jk = (j² + k² - (k - j)²) / 2 makes the transform a convolution with w^(j²/2).
    chirp_.resize(n);
    for (size_t j = 0; j < n; ++j)
      chirp_[j] =
          std::polar(1.0, (forward ? -kPi : kPi) * static_cast<double>(j * j % (2 * n)) / static_cast<double>(n));
    line_.resize(m);
    kernel_.resize(m);
    spectrum_.resize(m);
    for (size_t j = 0; j < n; ++j) line_[j] = line_[(m - j) % m] = std::conj(chirp_[j]);
    there_->transform(line_.data(), kernel_.data());
  }

  // Memory of its own: on one thread at a time.
  void run(const Complex* in, Complex* out) {
    if (!chirped_) return there_->transform(in, out);
    size_t m = line_.size();
    for (size_t j = 0; j < m; ++j) line_[j] = j < n_ ? in[j] * chirp_[j] : 0;
    there_->transform(line_.data(), spectrum_.data());
    for (size_t j = 0; j < m; ++j) spectrum_[j] *= kernel_[j] / static_cast<double>(m);
    back_->transform(spectrum_.data(), line_.data());
    for (size_t j = 0; j < n_; ++j) out[j] = line_[j] * chirp_[j];
  }

 private:
  static constexpr size_t kLargestRadix = 50;  // kissfft takes p² steps for a factor p

  size_t n_;
  bool chirped_;
  std::optional<kissfft<double>> there_, back_;
  std::vector<Complex> chirp_, line_, kernel_, spectrum_;
};

template <class T>
void transform_lines(const LibraryCall& call, const Lines& lines) {
  int64_t length = lines.length, inner = lines.inner;
  const auto *x = static_cast<const T*>(call.inputs[0].data), *y = static_cast<const T*>(call.inputs[1].data);
  auto *re = static_cast<T*>(call.outputs[0].data), *im = static_cast<T*>(call.outputs[1].data);
  bool forward = call.args[3].get<bool>();
  int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(length, 1));
  runtime::parallel_for(lines.count(), grain, [&](int64_t begin, int64_t end) {
    Plan plan(static_cast<size_t>(length), forward);
    std::vector<Complex> in(length), out(length);
    for (int64_t line = begin; line < end; ++line) {
      int64_t start = lines.start(line);
      for (int64_t k = 0; k < length; ++k) in[k] = Complex(x[start + k * inner], y[start + k * inner]);
      plan.run(in.data(), out.data());
      for (int64_t k = 0; k < length; ++k) {
        re[start + k * inner] = static_cast<T>(out[k].real());
        im[start + k * inner] = static_cast<T>(out[k].imag());
      }
    }
  });
}

void run(const LibraryCall& call) {
  const LibraryTensor& x = call.inputs[0];
  Lines lines(x.sizes, call.integer(2));
  if (lines.length == 0) return;
  x.dtype == DType::Float32 ? transform_lines<float>(call, lines) : transform_lines<double>(call, lines);
}

}  // namespace

const Implementation kFft = {.library = "kissfft", .name = "kissfft", .primitive = "prim::fft", .run = run};

}  // namespace brasa::compiler
