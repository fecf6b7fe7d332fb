#include "runtime/queued_device.h"

#include <algorithm>

#include "support/failed_check.h"

namespace brasa::runtime {

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

Slot QueuedDevice::expect(Stream stream, std::function<std::string()> message) {
  // A program that never waits must not fill the host's memory with messages.
  constexpr size_t kMost = 1 << 16;
  std::lock_guard lock(checks_mutex_);
  if (checks_.size() == kMost) checks_.erase(checks_.begin());
  checks_.emplace(next_check_, Check{stream, std::move(message)});
  return next_check_++;
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
    auto it = checks_.find(failed);
    message = it == checks_.end() ? std::string("a check failed") : it->second.message();
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
