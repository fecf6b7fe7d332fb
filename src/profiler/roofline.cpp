#include <brasa/brasa.h>
#include <brasa/profiler.h>

#include <algorithm>

namespace brasa::profiler {
namespace {

// The least of five runs, in seconds.
template <class F>
double least_time(Device device, const F& work) {
  double best = 0;
  for (int i = 0; i < 6; ++i) {
    brasa::Event start(device);
    work();
    double t = 1e-3 * start.elapsed_time(brasa::Event(device));
    if (i == 1 || (i > 1 && t < best)) best = t;  // the first may compile
  }
  return best;
}

}  // namespace

Roofline measure_roofline(Device device) {
  NoGradGuard no_grad;
  TensorOptions options = TensorOptions().device(device);
  Roofline out;
  {
    // More than caches hold: 128 MiB read, and as many written.
    Tensor from = ones({1 << 25}, options), to = empty_like(from);
    double t = least_time(device, [&] { to.copy_(from); });
    out.bytes_per_second = 2.0 * static_cast<double>(from.nbytes()) / t;
  }
  // Larger products until one takes long enough for a clock.
  double t = 0;
  for (int64_t n = 512; t < 5e-3 && n <= 16384; n *= 2) {
    Tensor a = ones({n, n}, options), result;
    t = least_time(device, [&] { result = a.matmul(a); });
    auto size = static_cast<double>(n);
    out.flops_per_second = std::max(out.flops_per_second, 2 * size * size * size / t);
  }
  return out;
}

}  // namespace brasa::profiler
