#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/allocator.h"
#include "runtime/kept_work.h"

namespace brasa::runtime {

/// What devices have in common whose work runs behind the host: memory by an Allocator, checks that are looked at when the host
/// waits, and the streams and the memory of kept work.
class QueuedDevice : public Device, public KeepsWork, protected MemorySource {
 public:
  void* allocate(size_t bytes, Stream stream) override;
  void deallocate(void* p, size_t bytes, Stream stream) override;
  void record_stream(void* p, Stream stream) override { allocator_.record_stream(p, stream); }
  DeviceStats statistics() const override { return allocator_.statistics(); }
  void reset_peaks() override { allocator_.reset_peaks(); }
  void empty_cache() override { allocator_.empty_cache(); }
  std::pair<size_t, size_t> memory() const override { return const_cast<QueuedDevice*>(this)->room(); }

  void synchronize(Stream stream) final;
  void synchronize() final;
  void download(void* to, const void* from, size_t bytes, Stream stream, bool pinned) final;
  void* error_word() final;
  Slot expect(Stream stream, Messages messages, Slot first = 0) final;

  Stream begin_keeping(Stream stream) final;
  std::unique_ptr<KeptWork> end_keeping() final;

 protected:
  /// Of a stream that keeps work: what it freed. Goes back with the last that is kept.
  class KeptMemory;
  class Kept : public KeptWork {
   public:
    explicit Kept(std::shared_ptr<KeptMemory> memory) : memory_(std::move(memory)) {}
    void run(Stream stream) final;
    std::mutex& mutex() const final;
    uint64_t runs() const final;

   protected:
    virtual void start(Stream stream) = 0;

   private:
    std::shared_ptr<KeptMemory> memory_;
  };
  QueuedDevice(brasa::Device id, Properties properties) : Device(id, std::move(properties)), allocator_(id, *this) {}
  /// Waits, and nothing else.
  virtual void finish_stream(Stream stream) = 0;
  virtual void start_download(void* to, const void* from, size_t bytes, Stream stream) = 0;
  Event mark(Stream stream) override { return record(stream); }
  bool reached(Event event) override { return done(event); }
  bool keeps(Stream stream) const { return stream == keeping_.load(std::memory_order_relaxed); }
  virtual void start_keeping(Stream stream) = 0;
  virtual std::unique_ptr<KeptWork> stop_keeping(Stream stream, std::shared_ptr<KeptMemory> memory) = 0;

 private:
  static constexpr Stream kNone = ~Stream{0};
  void raise_failed_check(std::optional<Stream> stream);

  Allocator allocator_;
  std::mutex checks_mutex_;
  void* word_ = nullptr;
  Slot next_check_ = 1;
  struct Check {
    Stream stream;
    Messages messages;
  };
  std::map<Slot, Check> checks_;  // of work that nobody has waited for, by their first numbers

  struct Keeper {
    Stream stream;
    std::weak_ptr<KeptMemory> memory;
  };
  std::mutex keeping_mutex_;          // held from begin_keeping to end_keeping
  std::map<Stream, Keeper> keepers_;  // by the stream that work is kept for
  std::atomic<Stream> keeping_{kNone};
  std::shared_ptr<KeptMemory> kept_memory_;  // of that one
};

}  // namespace brasa::runtime
