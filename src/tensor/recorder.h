#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/scoped.h"
#include "support/small_vector.h"
#include "support/thread_word.h"

namespace brasa {

class Generator;
class Tensor;
struct CallArg;
namespace eager {
class Results;
}
namespace ops {
struct Row;
}
namespace autograd {
struct Node;
}

/// While a Recorder is installed on a thread, dispatch gives it the calls instead of running them (see src/capture).
///
/// What dispatch still does itself, the same in both modes: sizes, strides and sharing of views (a view of a recorded tensor
/// shares its Storage; the result remembers {base tensor, view row, arguments, result number} so that the recorder can
/// replay the chain), version counters, and the autograd graph. In-place and out= calls become `call` of the functional row
/// followed by `write`. An autograd node made while recording keeps `snapshot`s of the row's tensor arguments, and when it
/// runs while a Recorder is installed it calls dispatch with transforms::vjp_row(row, needs, given), and for derivatives of the
/// derivative with the row's results, too.
///
/// A random row gets its key (int64 [seed, offset]) as a tensor in the place of its generator, which has moved on when the
/// call is recorded, as it has after a call that ran. A vjp row gets its forward row's key.
///
/// A recorded tensor's Storage has no memory yet (data() is null and `Storage::recorder` is set). Everything that needs the
/// memory (data_ptr, item, printing, copies to the host, operators outside the recording) first calls `materialise`.
class Recorder {
 public:
  static Recorder* current() { return current_; }
  virtual ~Recorder();

  /// Records a call that agrees with what the recorder expects next; false, with nothing done, where it must look closer: by `call`.
  virtual bool follow(const ops::Row&, std::span<const CallArg>, eager::Results&) { return false; }
  /// Records a functional call; results are new contiguous tensors on storages of their own, without memory.
  virtual void call(const ops::Row& row, std::span<const CallArg> args, eager::Results& results) = 0;
  /// How a result of the last `call` lies in memory: dense, in this order of its dimensions instead of row-major.
  virtual void lay_out(const Tensor& result, const Sizes& strides) = 0;
  /// A tensor that may have been recorded is about to look at other memory, or at its own in another way.
  virtual void moves(const Tensor& t) = 0;
  /// `t` was detached from a tensor, whose memory it looks at.
  virtual void detached(const Tensor& /*t*/) {}
  /// From here on `target`'s part of its storage holds `value` (same sizes and dtype).
  virtual void write(const Tensor& target, const Tensor& value) = 0;
  /// The tensor's present value as a tensor of its own, which later writes do not reach. Costs nothing.
  virtual Tensor snapshot(const Tensor& t) = 0;
  /// The number of the last `call`.
  virtual uint32_t last_call() const = 0;
  /// `node` is the autograd node of that call, and where `results` come from; none for one that keeps no values (a view's).
  virtual void made(const std::shared_ptr<autograd::Node>& node, uint32_t call, std::span<const Tensor> results) = 0;
  /// What the call that `node`, or the node of a write around it, was made for gave; undefined where that is not being recorded.
  virtual Tensor result_of(const autograd::Node& node, uint32_t result);
  /// The last `call` took so many numbers from a stream by `key`.
  virtual void drew(const Tensor& /*key*/, const Generator& /*stream*/, uint64_t /*count*/) {}
  /// The host reads the value of a tensor that is not recorded; `what` names the call.
  virtual void host_reads(const Tensor& /*t*/, const char* /*what*/) {}
  /// The gradient of a leaf is looked at, set or added to.
  virtual void meets_gradient(const Tensor& /*leaf*/) {}
  /// Ends the segment: runs what was recorded, so that every recorded tensor that is still referenced has memory.
  /// `reason` names the operator or call that needs a value.
  virtual void materialise(const char* reason) = 0;
  /// Whether `materialise` can do that anywhere.
  virtual bool may_end() const { return false; }

  /// An integer that calls take: what it is in this recording, and by its name (see KnownSizes) what it is in others.
  struct Integer {
    int64_t example;
    uint32_t name;
  };
  /// The elements of a recorded tensor of integers, where the recording stands for whatever they are; nothing where they have to be known.
  /// `reader` says, at the beginning of a message, whose they are.
  virtual std::optional<std::vector<Integer>> integers(const Tensor& t, const std::string& reader);

  /// What the host reads of a tensor's only element, where the recording stands for whatever it is; nothing where it is read as usual.
  virtual std::optional<int64_t> item(const Tensor& t);

  /// The value of a recorded tensor, where it is the same for all that the recording stands for and need not end it; else undefined.
  virtual Tensor known(const Tensor& t);

  /// Holds tensors of recordings that ended with an error and could not be run: asking for their values throws.
  static Recorder* lost();

  /// Installs a recorder on this thread; null suspends recording.
  class Scope : Scoped<Recorder*> {
   public:
    explicit Scope(Recorder* recorder) : Scoped(current_, recorder) {}
  };

 private:
  BRASA_THREAD_WORD static inline Recorder* current_ = nullptr;
};

}  // namespace brasa
