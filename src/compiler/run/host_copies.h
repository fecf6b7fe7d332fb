#pragma once

#include <cstddef>
#include <vector>

#include "compiler/run/executable.h"
#include "runtime/device.h"

namespace brasa::compiler {

/// Copies in the host's memory of the device's memory that operands of a run lie in, for what only the host can run. Operands that
/// overlap (views of one tensor) overlap in the copy as well.
class HostCopies {
 public:
  explicit HostCopies(runtime::Device& device);
  /// `written`: the run changes it.
  void add(const Operand& operand, bool written);
  /// After all `add`: copies everything here, and waits.
  void fetch();
  /// Where the n-th operand starts in the copy.
  void* data(size_t n) const;
  /// What was written goes back.
  void store();

 private:
  struct Region {
    const char *begin, *end;  // the device's memory
    bool written;
    std::vector<char> host = {};
  };
  runtime::Device& device_;
  runtime::Stream stream_;
  std::vector<const char*> data_;  // by operand; null without elements
  std::vector<Region> regions_;
};

}  // namespace brasa::compiler
