#pragma once

#include <cstddef>
#include <cstdint>

#include <brasa/export.h>

namespace brasa {

/// What this process has compiled since it began.
struct Stats {
  int64_t compilations = 0;  ///< graphs that were made ready to run: eager operators, their backward, captured segments
  int64_t kernels_generated = 0;  ///< kernels for which the code generator ran
  int64_t kernels_optimized =
      0;  ///< those that began with baseline code and were compiled once more, counted twice above
  int64_t kernels_from_disk = 0;  ///< kernels whose code the disk cache had
  int64_t kernels_from_pack = 0;  ///< kernels that ship with the library
  int64_t variants = 0;  ///< compiled forms of eager operators, their backward and captured segments that are kept now
  int64_t evicted = 0;   ///< those that went: used least recently, or their function is gone
};
BRASA_API Stats stats();
/// Waits until no kernel is being optimized beside the calls, so that what runs next is not replaced soon: for measurements.
BRASA_API void wait_for_optimized_kernels();
/// The most compiled forms that are kept; at least 16. The default is 8192.
BRASA_API void set_variant_limit(size_t variants);

}  // namespace brasa
