#pragma once

#include <string>
#include <vector>

#include "compiler/kernels/kernels.h"
#include "runtime/image.h"

namespace brasa::compiler {

/// A kernel of the pack that ships with the library (BRASA_PACK, or brasa/pack.bin or pack.bin beside it), by its key, loaded on the
/// device; without a function where there is none.
LoadedKernel find_in_pack(const std::string& key, runtime::Device& device);

struct PackFacts {
  std::string path;
  size_t kernels = 0;
  std::string why_not;  // it is not used; else empty
};
PackFacts facts_of_pack();

/// From now on the images of compiled kernels are kept for write_pack, and neither pack nor disk cache answer.
void record_pack();
bool recording_pack();
void add_to_pack(const runtime::KernelImage& image);
/// brasa::Error if the file cannot be written.
void write_pack(const std::string& path);
/// One pack of several that this version wrote; brasa::Error if one is no such file.
void join_packs(const std::vector<std::string>& parts, const std::string& path);

}  // namespace brasa::compiler
