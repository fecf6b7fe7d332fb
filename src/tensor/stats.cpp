#include <brasa/stats.h>

#include "compiler/kernels/kernels.h"
#include "compiler/pipeline.h"
#include "program/variants.h"

namespace brasa {

Stats stats() {
  compiler::KernelCounts kernels = compiler::kernel_counts();
  Stats out;
  out.compilations = compiler::compilations();
  out.kernels_generated = kernels.compiled;
  out.kernels_from_disk = kernels.disk;
  out.kernels_from_pack = kernels.pack;
  out.variants = static_cast<int64_t>(program::VariantCache::get().size());
  out.evicted = static_cast<int64_t>(program::VariantCache::get().evicted());
  return out;
}

void set_variant_limit(size_t variants) { program::VariantCache::get().set_limit(variants); }

}  // namespace brasa
