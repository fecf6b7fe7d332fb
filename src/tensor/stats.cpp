#include <brasa/stats.h>

#include "compiler/kernels/kernels.h"
#include "compiler/kernels/optimizer.h"
#include "compiler/pipeline.h"
#include "program/variants.h"

namespace brasa {

Stats stats() {
  compiler::KernelCounts kernels = compiler::kernel_counts();
  return {.compilations = compiler::compilations(),
          .kernels_generated = kernels.compiled,
          .kernels_optimized = kernels.optimized,
          .kernels_from_disk = kernels.disk,
          .kernels_from_pack = kernels.pack,
          .variants = static_cast<int64_t>(program::VariantCache::get().size()),
          .evicted = static_cast<int64_t>(program::VariantCache::get().evicted())};
}

void wait_for_optimized_kernels() { compiler::wait_for_optimizer(); }
void set_variant_limit(size_t variants) { program::VariantCache::get().set_limit(variants); }

}  // namespace brasa
