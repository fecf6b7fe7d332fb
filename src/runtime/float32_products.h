#pragma once

#include <atomic>

namespace brasa::runtime {

/// Whether a device may round the operands of float32 products to TF32's 10 bits (set_float32_matmul_precision).
inline std::atomic<bool>& float32_products_in_tf32() {
  static std::atomic<bool> allowed = false;
  return allowed;
}

}  // namespace brasa::runtime
