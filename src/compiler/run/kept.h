#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
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
/// library was given cannot be changed: of a buffer that moved, the kept work reads or writes a copy from then on. A first part of it may be
/// given to the device before the run is due (RunAhead).
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
  /// Whether the run before left lasting inputs of the same contents: then it pays to keep what is made of them. This one leaves others.
  bool met(const PreparedValues::Contents& contents, PreparedValues::Contents after);
  /// What the kept work reads beside its operands; work that read something else is given up.
  void read(std::shared_ptr<const PreparedValues::Made> prepared);

  /// Whether there is work to run; else `record` makes it.
  bool recorded() const { return !work_.empty(); }
  /// The device failed to keep it, and is not asked again.
  bool refused() const { return refused_; }
  void refuse() { refused_ = true; }
  /// `walk` gives all launches of a run to a stream of the device, with memory for values in between.
  void record(size_t arena_bytes, const std::function<void(runtime::Stream)>& walk);
  std::byte* arena() const { return arena_; }
  /// In a record's walk: what comes now is not part of what may run ahead.
  void end_first_part();

  /// A first part that is given to the device: it counts as long as nothing else ran in its memory, and the work is the same. What its inputs
  /// are decides all of its slots.
  struct Begun {
    const KeptRun* run;
    uint64_t record, runs;
  };
  /// Gives it, if it can be, for a run that is given first what the walk before was.
  std::optional<Begun> begin(std::span<const runtime::Slot> given);

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
  /// What is left to do of it.
  void run(const std::optional<Begun>& begun);

 private:
  struct Kept {
    size_t part;
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
  PreparedValues::Contents contents_;
  std::vector<std::unique_ptr<runtime::KeptWork>> work_;  // its parts
  uint64_t records_ = 0;                                  // how often there was new work
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
  /// One without symbols that was found before; else null.
  std::shared_ptr<KeptRun> known(runtime::Stream stream);
  /// Null where a run is not kept.
  std::shared_ptr<KeptRun> find(runtime::Device& device, runtime::KeepsWork& keeper, runtime::Stream stream,
                                std::span<const int64_t> symbols);

 private:
  static constexpr size_t kMost = 8;
  std::mutex mutex_;
  std::list<std::shared_ptr<KeptRun>> runs_;  // used last first
};

}  // namespace brasa::compiler
