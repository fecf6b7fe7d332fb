#include "runtime/emu/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"

namespace brasa::runtime::emu {

namespace {
constexpr size_t kPage = 4096;
size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
}  // namespace

Memory::Memory(size_t bytes) : size_(pages(bytes)) {
  file_ = memfd_create("brasa-emu", MFD_CLOEXEC);
  BRASA_CHECK(file_ >= 0 && ftruncate(file_, static_cast<off_t>(size_)) == 0,
              "device 'emu': no memory for it: ", std::strerror(errno));
  void* outside = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* inside = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  BRASA_CHECK(outside != MAP_FAILED && inside != MAP_FAILED, "device 'emu': no memory for it: ", std::strerror(errno));
  outside_ = static_cast<char*>(outside);
  inside_ = static_cast<char*>(inside);
}

void* Memory::take(size_t bytes) {
  bytes = pages(bytes);
  std::lock_guard lock(mutex_);
  size_t at = 0;
  for (auto [begin, end] : taken_) {
    if (begin - at >= bytes) break;
    at = end;
  }
  if (at + bytes > size_) return nullptr;
  taken_[at] = at + bytes;
  return outside_ + at;
}

void Memory::give_back(void* p, size_t bytes) {
  std::lock_guard lock(mutex_);
  auto at = static_cast<size_t>(static_cast<char*>(p) - outside_);
  BRASA_ASSERT(taken_.count(at) && taken_[at] == at + pages(bytes), "emu: memory goes back that was not taken so");
  taken_.erase(at);
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
            static_cast<off_t>(pages(bytes)));
}

size_t Memory::used() {
  std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (auto [begin, end] : taken_) sum += end - begin;
  return sum;
}

void* Memory::reach(const void* p) const {
  if (!p) return nullptr;
  auto* q = static_cast<const char*>(p);
  BRASA_ASSERT(q >= outside_ && q < outside_ + size_,
               "a kernel or copy of an emulated GPU was given memory of somebody else");
  return inside_ + (q - outside_);
}

}  // namespace brasa::runtime::emu
