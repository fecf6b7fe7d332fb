#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace brasa::runtime::emu {

/// The device's memory, mapped twice: where the program believes it to be every access faults; kernels and copies reach it elsewhere.
class Memory {
 public:
  explicit Memory(size_t bytes);
  size_t size() const { return size_; }
  /// Null where there is no room.
  void* take(size_t bytes);
  void give_back(void* p, size_t bytes);
  size_t used();
  /// Where work reaches what the program knows as `p`; null stays null. brasa::InternalError for memory of somebody else.
  void* reach(const void* p) const;

 private:
  char *outside_ = nullptr, *inside_ = nullptr;
  size_t size_;
  int file_ = -1;
  std::mutex mutex_;
  std::map<size_t, size_t> taken_;  // offset -> end
};

}  // namespace brasa::runtime::emu
