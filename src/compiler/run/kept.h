#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "compiler/run/memory.h"
#include "compiler/run/prepared.h"
#include "runtime/kept_work.h"

namespace brasa::compiler {

/// The launches of a compiled graph as its device keeps them (runtime/kept_work.h), for one stream and one binding of the symbols. A run
/// walks the graph's steps as ever and gives their launches here: those whose slots differ from the last run's are changed. What a
/// library was given cannot be changed: of a buffer that moved, the kept work reads or writes a copy from then on.
class KeptRun {
 public:
  /// A buffer that has a copy for the kept work.
  struct Copy {
    int buffer;
    Memory memory;
    bool before, after;  // the kept work reads it, writes it
  };

  KeptRun(runtime::Device& device, runtime::KeepsWork& keeper, runtime::Stream stream, std::span<const int64_t> symbols)
      : device_(device), keeper_(keeper), stream_(stream), symbols_(symbols.begin(), symbols.end()) {}

  bool is_for(runtime::Stream stream, std::span<const int64_t> symbols) const;
  std::mutex& mutex() { return mutex_; }
  std::vector<Copy>& copies() { return copies_; }
  /// Whether the run before was given lasting inputs of the same contents: then it pays to keep what is made of them.
  bool met(const std::optional<std::vector<uint64_t>>& contents);
  /// What the kept work reads beside its operands; work that read something else is given up.
  void read(std::shared_ptr<const PreparedValues::Made> prepared);

  /// Whether there is work to run; else `record` makes it.
  bool recorded() const { return work_ != nullptr; }
  /// The device failed to keep it, and is not asked again.
  bool refused() const { return refused_; }
  void refuse() { refused_ = true; }
  /// `walk` gives all launches of a run to a stream of the device, with memory for values in between.
  template <class Walk>
  void record(size_t arena_bytes, const Walk& walk);
  std::byte* arena() const { return arena_; }

  /// The first number of its checks, whose messages are made once.
  template <class Make>
  runtime::Slot expect(const Make& messages) {
    if (!messages_) messages_ = messages();
    return first_check_ = device_.expect(stream_, messages_, first_check_);
  }
  /// Where the walk before was given all this, too, another would change nothing: this does what is left of it, and is true.
  bool walked_with(std::span<const runtime::Slot> given);

  /// Of a walk.
  void launch(const runtime::Launch& launch, runtime::Stream stream);
  void call(std::span<const int> buffers, std::span<void* const> operands);
  void skip_launch() { ++next_; }
  void skip_call() { ++next_call_; }
  bool recording() const { return recording_; }

  void begin_walk();
  /// With all that varies. Buffers that libraries were given elsewhere; where there are some, the work is given up.
  std::vector<int> end_walk(std::span<const runtime::Slot> given);
  void run() { work_->run(stream_); }

 private:
  struct Kept {
    std::optional<size_t> number;  // among the device's launches; nothing where it was empty
    std::vector<runtime::Slot> slots;
  };

  runtime::Device& device_;
  runtime::KeepsWork& keeper_;
  const runtime::Stream stream_;
  const std::vector<int64_t> symbols_;
  std::mutex mutex_;
  bool recording_ = false, refused_ = false;
  std::byte* arena_ = nullptr;
  std::vector<Copy> copies_;
  std::shared_ptr<const PreparedValues::Made> prepared_;
  std::optional<std::vector<uint64_t>> contents_;
  std::unique_ptr<runtime::KeptWork> work_;
  std::vector<Kept> launches_;
  std::vector<std::vector<void*>> calls_;
  size_t next_ = 0, next_call_ = 0;
  std::vector<int> moved_;
  std::optional<std::vector<runtime::Slot>> given_;  // of the last walk
  runtime::Device::Messages messages_;
  runtime::Slot first_check_ = 0;
};

/// Those of one graph. The first run of a kind is not kept: libraries look for their ways in it, and it may be the only one.
class KeptRuns {
 public:
  /// Null where a run is not kept.
  std::shared_ptr<KeptRun> find(runtime::Device& device, runtime::KeepsWork& keeper, runtime::Stream stream,
                                std::span<const int64_t> symbols);

 private:
  static constexpr size_t kMost = 8;
  std::mutex mutex_;
  std::list<std::shared_ptr<KeptRun>> runs_;  // used last first
};

template <class Walk>
void KeptRun::record(size_t arena_bytes, const Walk& walk) {
  launches_.clear();
  calls_.clear();
  runtime::Stream keeping = keeper_.begin_keeping(stream_);
  recording_ = true;
  try {
    Memory arena(device_, arena_bytes, keeping);
    arena_ = arena.data;
    walk(keeping);
  } catch (...) {
    recording_ = false;
    try {
      keeper_.end_keeping();
    } catch (const Error&) {
      // The first error is the reason.
    }
    throw;
  }
  recording_ = false;
  work_ = keeper_.end_keeping();
}

}  // namespace brasa::compiler
