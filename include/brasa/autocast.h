#pragma once

#include <brasa/options.h>

/// Mixed precision: while autocast is on, operators that gain by it (matrix products, convolutions, attention) convert their
/// floating operands of 32 bits or fewer to a smaller dtype, those that lose by it (losses, exponentials, sums …) to float32, and
/// some with several operands to the widest among theirs. The lists are PyTorch's: that for the CPU, and that for CUDA on GPUs, where
/// `binary_cross_entropy` is an error. Each kind of devices has a switch and a dtype of its own (bfloat16; float16 on CUDA); tensors are
/// cast by their device's. In-place and out= forms are left alone, and so are float64 operands. Weights stay as they are: a leaf that requires grad is converted once within the outermost
/// guard, and its gradient arrives in its own dtype. Backward runs in the dtypes of forward. One state a thread.
///
///     { AutocastMode guard(kBFloat16); loss = criterion(model->forward(x), y); }
///     loss.backward();
namespace brasa {

class Tensor;

/// LibTorch's functions of the state; AutocastMode does all of it.
namespace autocast {

BRASA_API bool is_autocast_enabled(DeviceType device);
BRASA_API void set_autocast_enabled(DeviceType device, bool enabled);
BRASA_API DType get_autocast_dtype(DeviceType device);
BRASA_API void set_autocast_dtype(DeviceType device, DType dtype);
BRASA_API bool is_autocast_cache_enabled();
BRASA_API void set_autocast_cache_enabled(bool enabled);
/// Guards nest; the outermost one's end should clear the cache.
BRASA_API int increment_nesting();
BRASA_API int decrement_nesting();
/// Forgets the converted weights.
BRASA_API void clear_cache();
/// The tensor as an operator would get it that runs in `to`: for operators of the user's own.
BRASA_API Tensor cached_cast(DType to, const Tensor& t, DeviceType device = kCPU);

inline bool is_cpu_enabled() { return is_autocast_enabled(kCPU); }
inline void set_cpu_enabled(bool enabled) { set_autocast_enabled(kCPU, enabled); }
inline DType get_autocast_cpu_dtype() { return get_autocast_dtype(kCPU); }
inline void set_autocast_cpu_dtype(DType dtype) { set_autocast_dtype(kCPU, dtype); }

}  // namespace autocast

/// Autocast while it lives; `enabled` false turns it off inside a guard. For other dtypes than bfloat16 and float16 it warns and
/// stays off.
class BRASA_API AutocastMode {
 public:
  explicit AutocastMode(DType dtype = DType::BFloat16, bool enabled = true, bool cache_enabled = true)
      : AutocastMode(kCPU, dtype, enabled, cache_enabled) {}
  explicit AutocastMode(DeviceType device, DType dtype = DType::BFloat16, bool enabled = true,
                        bool cache_enabled = true);
  ~AutocastMode();
  AutocastMode(const AutocastMode&) = delete;
  AutocastMode& operator=(const AutocastMode&) = delete;

 private:
  DeviceType device_;
  bool previous_enabled_, previous_cache_;
  DType previous_dtype_;
};

}  // namespace brasa
