#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "runtime/device.h"

namespace brasa::runtime::cpu {

/// A compiled CPU kernel. `slots` holds the addresses of its buffers, then numbers, then the values of the graph's size symbols in
/// the order of their ids; [begin, end) is the part of the flattened parallel ranges to do; `scratch` is 64-byte aligned memory of
/// the calling thread.
using KernelFunction = void (*)(const Slot* slots, int64_t begin, int64_t end, void* scratch);

/// Executable memory that holds one kernel image; unmapped when the last owner goes.
class Code final : public Module {
 public:
  ~Code() override;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  Function kernel(std::string_view name) const override;
  KernelFunction function(size_t index) const;
  /// The kernel of that name; brasa::Error if the image has none.
  KernelFunction function(std::string_view name) const;
  size_t size() const { return entries_.size(); }

 private:
  friend std::shared_ptr<const Code> load(const KernelImage& image);
  Code() = default;
  std::vector<KernelEntry> entries_;
  const uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
  void* chunk_ = nullptr;
};

/// Copies the code to executable memory (never writable and executable at the same address). brasa::Error if it was
/// compiled for instructions that this CPU has not got.
std::shared_ptr<const Code> load(const KernelImage& image);

}  // namespace brasa::runtime::cpu
