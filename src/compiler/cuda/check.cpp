#include "compiler/cuda/check.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include <brasa/elements.h>

#include "runtime/cpu/launch.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

// Sums in another order and fused multiplications; relative to the largest element of a tensor.
constexpr double kTolerance = 1e-4;

template <class T>
T read(const void* p, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(p) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

double number(DType t, const void* p, int64_t i) {
  return visit_dtype(t, [&](auto type) -> double {
    using T = typename decltype(type)::type;
    if constexpr (std::is_same_v<T, bool>)
      return read<uint8_t>(p, i);
    else if constexpr (std::is_convertible_v<T, double>)
      return static_cast<double>(read<T>(p, i));
    else
      fail_internal(str("no kernel computes with ", name(t)));
  });
}

}  // namespace

CudaCheck::Run::Run(const std::vector<Kernel>& kernels, runtime::cuda::Device& device, const Mirror& mirror,
                    const char* arena, size_t arena_bytes, const std::vector<void*>& buffers)
    : kernels_(kernels), device_(device), device_buffers_(buffers) {
  auto add = [&](const char* p, size_t bytes) {
    if (!bytes) return;
    blocks_.push_back({p, std::vector<char>(bytes)});
    device_.copy_to_host(blocks_.back().host.data(), p, bytes);
  };
  for (const Mirror::Region& r : mirror.regions()) add(r.device, static_cast<size_t>(r.end - r.begin));
  add(arena, arena_bytes);
  for (void* p : buffers) host_buffers_.push_back(on_host(p));
}

CudaCheck::Run::~Run() {
  std::fprintf(stderr, "cuda check: %d kernels agree with the CPU, %d differ; largest relative difference %.2e\n",
               agreed_, differed_, worst_);
}

void* CudaCheck::Run::on_host(const void* device) const {
  auto* p = static_cast<const char*>(device);
  for (const Block& b : blocks_)
    if (p >= b.device && p < b.device + b.host.size()) return const_cast<char*>(b.host.data()) + (p - b.device);
  return nullptr;
}

bool CudaCheck::Run::differs(DType dtype, const void* got, const void* want, int64_t elements,
                             const std::string& where) {
  double largest = 0, worst = 0;
  int64_t wrong = 0, first = -1, at = 0;
  for (int64_t i = 0; i < elements; ++i)
    if (double w = std::fabs(number(dtype, want, i)); std::isfinite(w)) largest = std::max(largest, w);
  for (int64_t i = 0; i < elements; ++i) {
    double g = number(dtype, got, i), w = number(dtype, want, i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    double d = std::fabs(g - w) / (largest > 0 ? largest : 1);
    if (!is_floating(dtype) || !(d <= kTolerance)) {
      if (wrong++ == 0) first = i;
    }
    if (!(d <= worst)) {
      worst = d;
      at = i;
    }
  }
  if (std::isfinite(worst)) worst_ = std::max(worst_, worst);
  if (!wrong) return false;
  std::string text = str(where, ", ", name(dtype), ": ", wrong, " of ", elements, " elements differ, first at ", first,
                         " (GPU ", number(dtype, got, first), ", CPU ", number(dtype, want, first), "), most at ", at,
                         " (GPU ", number(dtype, got, at), ", CPU ", number(dtype, want, at), ")\n");
  std::fputs(text.c_str(), stderr);
  return true;
}

void CudaCheck::Run::step(size_t s, const Step& step, const int64_t* symbols, const std::string& what) {
  try {
    device_.synchronize();
  } catch (const Error& e) {
    fail(str("kernel ", s, ", ", what, ": ", e.what()));
  }
  const Kernel& k = kernels_[s];
  if (k.kernel) {
    std::vector<void*> pointers;
    for (int b : step.buffers) pointers.push_back(host_buffers_[b]);
    std::vector<int64_t> sizes;
    for (uint32_t id : step.sizes) sizes.push_back(symbols[id]);
    runtime::cpu::launch(k.kernel.function, pointers.data(), sizes.data(), step.count(symbols), 64,
                         static_cast<size_t>(k.scratch(symbols)));
  }
  bool bad = false;
  for (size_t i = step.first_written; i < step.buffers.size(); ++i) {
    size_t w = i - step.first_written;
    int64_t elements = k.elements[w](symbols);
    auto bytes = static_cast<size_t>(elements * size_of(k.dtypes[w]));
    void *on_device = device_buffers_[step.buffers[i]], *want = host_buffers_[step.buffers[i]];
    if (!bytes || !want) continue;
    std::vector<char> got(bytes);
    device_.copy_to_host(got.data(), on_device, bytes);
    if (!k.kernel) {  // the host computed it
      std::memcpy(want, got.data(), bytes);
      continue;
    }
    if (differs(k.dtypes[w], got.data(), want, elements, str("cuda check: kernel ", s, ", output ", w))) bad = true;
    device_.copy_to_device(on_device, want, bytes);
  }
  ++(bad ? differed_ : agreed_);
  if (bad) std::fprintf(stderr, "  of %s\n", what.c_str());
}

}  // namespace brasa::compiler
