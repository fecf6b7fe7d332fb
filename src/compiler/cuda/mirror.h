#pragma once

#include <cstddef>
#include <vector>

#include "compiler/run/executable.h"
#include "runtime/cuda/device.h"

namespace brasa::compiler {

/// Copies in a GPU's memory of the host's memory that the operands of a run lie in. Operands that overlap (views of one tensor)
/// overlap in the copy as well.
class Mirror {
 public:
  explicit Mirror(runtime::cuda::Device& device) : device_(device) {}
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  /// `written`: the run changes it. `fresh`: its contents before the run do not matter.
  void add(const Operand& operand, bool written, bool fresh);
  /// After all `add`: takes memory, and copies what the run may read.
  void upload();
  /// Where the n-th operand starts in the copy; null if it has no elements.
  void* on_device(size_t n) const;
  /// What was written.
  void download();

  struct Region {
    const char *begin, *end;  // the host's memory
    bool written, read;
    char* device = nullptr;  // of `begin`
  };
  /// After `upload`.
  const std::vector<Region>& regions() const { return regions_; }
  /// The region of the n-th operand; null if it has no elements.
  const Region* region_of(size_t n) const;

 private:
  runtime::cuda::Device& device_;
  std::vector<const char*> data_;  // by operand; null without elements
  std::vector<Region> regions_;
};

}  // namespace brasa::compiler
