#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "runtime/allocator.h"

namespace brasa::runtime {

/// What devices have in common whose work runs behind the host: memory by an Allocator, and checks that are looked at when the host
/// waits.
class QueuedDevice : public Device, protected MemorySource {
 public:
  void* allocate(size_t bytes, Stream stream) override { return allocator_.allocate(bytes, stream); }
  void deallocate(void* p, size_t, Stream) override { allocator_.deallocate(p); }
  void record_stream(void* p, Stream stream) override { allocator_.record_stream(p, stream); }
  DeviceStats statistics() const override { return allocator_.statistics(); }
  void reset_peaks() override { allocator_.reset_peaks(); }
  void empty_cache() override { allocator_.empty_cache(); }
  std::pair<size_t, size_t> memory() const override { return const_cast<QueuedDevice*>(this)->room(); }

  void synchronize(Stream stream) final;
  void synchronize() final;
  void download(void* to, const void* from, size_t bytes, Stream stream, bool pinned) final;
  void* error_word() final;
  Slot expect(Stream stream, std::function<std::string()> message) final;

 protected:
  QueuedDevice(brasa::Device id, Properties properties) : Device(id, std::move(properties)), allocator_(id, *this) {}
  /// Waits, and nothing else.
  virtual void finish_stream(Stream stream) = 0;
  virtual void start_download(void* to, const void* from, size_t bytes, Stream stream) = 0;
  Event mark(Stream stream) override { return record(stream); }
  bool reached(Event event) override { return done(event); }

 private:
  void raise_failed_check(std::optional<Stream> stream);

  Allocator allocator_;
  std::mutex checks_mutex_;
  void* word_ = nullptr;
  Slot next_check_ = 1;
  struct Check {
    Stream stream;
    std::function<std::string()> message;
  };
  std::map<Slot, Check> checks_;  // of work that nobody has waited for
};

}  // namespace brasa::runtime
