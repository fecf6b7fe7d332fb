#include "runtime/cpu/code.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>

#include "runtime/cpu/features.h"
#include "support/error.h"
#include "support/fork.h"
#include "support/lazy.h"
#include "support/mutex.h"

namespace brasa::runtime::cpu {
namespace {

constexpr size_t kAlignment = 64, kChunk = size_t{4} << 20;

// The same memory is mapped twice, once writable and once executable, so that loading a kernel is a copy without a
// system call. A process that forks shares it with its child, and neither writes there again.
struct Chunk {
  uint8_t* write = nullptr;
  uint8_t* execute = nullptr;
  size_t size = 0, used = 0;
  int live = 0;
  bool twice = true;
  uint64_t made_after = forks();
  bool is_shared() const { return twice && made_after != forks(); }
};

// It lives for ever. A forked process makes one of its own: what it has of the one before is shared with its parent.
class Arena {
 public:
  static Arena& get() { return *current(); }
  static void in_child() { current() = new Arena(current()); }

  const uint8_t* add(const std::vector<uint8_t>& code, Chunk*& owner) {
    std::lock_guard lock(mutex_);
    size_t need = (code.size() + kAlignment - 1) & ~(kAlignment - 1);
    Chunk* chunk = nullptr;
    for (Chunk& c : chunks_)
      if (c.twice && !c.is_shared() && c.size - c.used >= need) chunk = &c;
    if (!chunk) {
      chunks_.push_back(map(need));
      chunk = &chunks_.back();
    }
    uint8_t* at = chunk->write + chunk->used;
    if (!code.empty()) std::memcpy(at, code.data(), code.size());
    if (!chunk->twice)
      BRASA_CHECK(mprotect(chunk->write, chunk->size, PROT_READ | PROT_EXEC) == 0,
                  "the system refuses executable memory: ", std::strerror(errno));
    const uint8_t* base = chunk->execute + chunk->used;
    chunk->used += need;
    ++chunk->live;
    owner = chunk;
    __builtin___clear_cache(reinterpret_cast<char*>(const_cast<uint8_t*>(base)),
                            reinterpret_cast<char*>(const_cast<uint8_t*>(base)) + code.size());
    return base;
  }

  void remove(Chunk* chunk, const uint8_t* base, size_t size) {
    std::lock_guard lock(mutex_);
    size_t need = (size + kAlignment - 1) & ~(kAlignment - 1);
    // The last one in gives its room back at once, all of it comes back with the last owner.
    if (base + need == chunk->execute + chunk->used) chunk->used -= need;
    if (--chunk->live > 0) return;
    chunk->used = 0;
    if (chunk->twice && !chunk->is_shared() && chunk->size == kChunk) return;
    munmap(chunk->execute, chunk->size);
    if (chunk->twice) munmap(chunk->write, chunk->size);
    chunks_.remove_if([&](const Chunk& c) { return &c == chunk; });
  }

 private:
  explicit Arena(const Arena* before) : before_(before) {}
  static Arena*& current() {
    static constinit Lazy<Arena*> arena([] { return new Arena(nullptr); });
    return *arena;
  }

  static Chunk map(size_t need) {
    Chunk c;
    c.size = std::max(kChunk, (need + 4095) & ~size_t{4095});
    int fd = memfd_create("brasa-kernels", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, static_cast<off_t>(c.size)) == 0) {
      void* write = mmap(nullptr, c.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      void* execute = mmap(nullptr, c.size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
      close(fd);
      if (write != MAP_FAILED && execute != MAP_FAILED) {
        c.write = static_cast<uint8_t*>(write);
        c.execute = static_cast<uint8_t*>(execute);
        return c;
      }
      if (write != MAP_FAILED) munmap(write, c.size);
      if (execute != MAP_FAILED) munmap(execute, c.size);
    } else if (fd >= 0) {
      close(fd);
    }
    // Hardened systems may refuse the double mapping: one private mapping an image, turned from writable to executable.
    c.twice = false;
    c.size = (need + 4095) & ~size_t{4095};
    void* p = mmap(nullptr, c.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BRASA_CHECK(p != MAP_FAILED, "no memory for compiled kernels: ", std::strerror(errno));
    c.write = c.execute = static_cast<uint8_t*>(p);
    return c;
  }

  Mutex mutex_;
  std::list<Chunk> chunks_;
  [[maybe_unused]] const Arena* before_;  // of the parent process, whose kernels run on
};

const OnFork kOnFork(nullptr, nullptr, Arena::in_child);

}  // namespace

Code::~Code() {
  if (chunk_) Arena::get().remove(static_cast<Chunk*>(chunk_), base_, bytes_);
}

KernelFunction Code::function(size_t index) const {
  BRASA_ASSERT(index < entries_.size());
  // Code is data to the loader; only here does it become a function.
  return reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(base_ + entries_[index].offset));
}

Function Code::kernel(std::string_view name) const { return reinterpret_cast<Function>(function(name)); }

KernelFunction Code::function(std::string_view name) const {
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].name == name) return function(i);
  fail(str("kernel image: it has no kernel '", name, "'"));
}

std::shared_ptr<const Code> load(const KernelImage& image) {
  BRASA_CHECK(supports(image.target), "kernel image: it is compiled for ", image.target, ", this processor is ",
              host_target());
  for (const KernelEntry& e : image.entries)
    BRASA_CHECK(e.offset < image.code.size(), "kernel image: kernel '", e.name, "' lies outside its code");
  auto code = std::shared_ptr<Code>(new Code);
  code->entries_ = image.entries;
  code->bytes_ = image.code.size();
  Chunk* chunk = nullptr;
  code->base_ = Arena::get().add(image.code, chunk);
  code->chunk_ = chunk;
  return code;
}

}  // namespace brasa::runtime::cpu
