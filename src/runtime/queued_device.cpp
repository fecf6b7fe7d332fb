#include "runtime/queued_device.h"

#include <algorithm>
#include <utility>

#include "support/failed_check.h"

namespace brasa::runtime {

KeptWork::~KeptWork() = default;
KeepsWork::~KeepsWork() = default;

// Work of one stream runs in order, kept or not: a block may serve several kept works, but nobody else as long as they may run again.
class QueuedDevice::KeptMemory {
 public:
  explicit KeptMemory(Allocator& allocator) : allocator_(allocator) {}
  ~KeptMemory() {
    for (auto [bytes, p] : free_) allocator_.deallocate(p);
  }
  KeptMemory(const KeptMemory&) = delete;

  void* take(size_t bytes, Stream stream) {
    auto it = free_.lower_bound(bytes);
    if (it == free_.end()) {
      void* p = allocator_.allocate(bytes, stream);
      if (p) sizes_[p] = bytes;
      return p;
    }
    void* p = it->second;
    free_.erase(it);
    return p;
  }
  void give_back(void* p) {
    if (p) free_.emplace(sizes_.at(p), p);
  }
  std::mutex mutex;
  uint64_t runs = 0;

 private:
  Allocator& allocator_;
  std::multimap<size_t, void*> free_;  // by size
  std::map<void*, size_t> sizes_;
};

void QueuedDevice::Kept::run(Stream stream) {
  start(stream);
  ++memory_->runs;
}
std::mutex& QueuedDevice::Kept::mutex() const { return memory_->mutex; }
uint64_t QueuedDevice::Kept::runs() const { return memory_->runs; }

void* QueuedDevice::allocate(size_t bytes, Stream stream) {
  return keeps(stream) ? kept_memory_->take(bytes, stream) : allocator_.allocate(bytes, stream);
}
void QueuedDevice::deallocate(void* p, size_t, Stream stream) {
  keeps(stream) ? kept_memory_->give_back(p) : allocator_.deallocate(p);
}

// Another thread's work for `stream` must not be kept with it: a stream of its own keeps.
Stream QueuedDevice::begin_keeping(Stream stream) {
  std::unique_lock lock(keeping_mutex_);
  auto it = keepers_.find(stream);
  if (it == keepers_.end()) it = keepers_.emplace(stream, Keeper{make_stream(), {}}).first;
  kept_memory_ = it->second.memory.lock();
  if (!kept_memory_) it->second.memory = kept_memory_ = std::make_shared<KeptMemory>(allocator_);
  start_keeping(it->second.stream);
  keeping_ = it->second.stream;
  lock.release();
  return keeping_;
}

std::unique_ptr<KeptWork> QueuedDevice::end_keeping() {
  std::lock_guard lock(keeping_mutex_, std::adopt_lock);
  return stop_keeping(keeping_.exchange(kNone), std::move(kept_memory_));
}

void* QueuedDevice::error_word() {
  std::lock_guard lock(checks_mutex_);
  if (!word_) {
    void* p = allocator_.allocate(sizeof(Slot), kDefaultStream);
    fill(p, 0, sizeof(Slot), kDefaultStream);
    finish_stream(kDefaultStream);  // other streams write it too
    word_ = p;
  }
  return word_;
}

Slot QueuedDevice::expect(Stream stream, Messages messages, Slot first) {
  // A program that never waits must not fill the host's memory with messages.
  constexpr size_t kMost = 1 << 16;
  std::lock_guard lock(checks_mutex_);
  if (checks_.size() == kMost) checks_.erase(checks_.begin());
  if (first == 0) {
    first = next_check_;
    next_check_ += messages->size();
  }
  checks_.try_emplace(first, Check{stream, std::move(messages)});
  return first;
}

// After waiting for a stream, or for all of them (no `stream`).
void QueuedDevice::raise_failed_check(std::optional<Stream> stream) {
  std::string message;
  {
    std::lock_guard lock(checks_mutex_);
    auto waited = [&](const auto& c) { return !stream || c.second.stream == *stream; };
    if (std::none_of(checks_.begin(), checks_.end(), waited)) return;
    Stream through = stream.value_or(kDefaultStream);
    Slot failed = 0;
    start_download(&failed, word_, sizeof failed, through);
    finish_stream(through);
    if (failed == 0) {
      std::erase_if(checks_, waited);
      return;
    }
    fill(word_, 0, sizeof failed, through);
    auto next = checks_.upper_bound(failed);
    message = "a check failed";
    if (next != checks_.begin())
      if (const auto& [first, check] = *std::prev(next); failed - first < check.messages->size())
        message = (*check.messages)[failed - first];
    std::erase_if(checks_, waited);
  }
  fail_checked(message);
}

void QueuedDevice::synchronize(Stream stream) {
  finish_stream(stream);
  raise_failed_check(stream);
}

void QueuedDevice::synchronize() {
  finish();
  raise_failed_check(std::nullopt);
}

void QueuedDevice::download(void* to, const void* from, size_t bytes, Stream stream, bool pinned) {
  if (bytes) start_download(to, from, bytes, stream);
  if (!pinned) synchronize(stream);
}

}  // namespace brasa::runtime
