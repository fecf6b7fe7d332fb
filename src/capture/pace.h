#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <brasa/compile.h>

#include "support/mutex.h"
#include "tensor/autograd/meter.h"

namespace brasa::capture {

/// What two calls have in common.
enum class Alike : uint8_t { Whole, Begin };

/// What a compiled call did, for comparing it with others.
struct Work {
  static constexpr uint64_t kBeyondLimit = 2, kBegun = 3;
  uint64_t graphs = 1;                                         // equal where the same graphs ran with the same sizes
  uint64_t first = 0;                                          // the same of the first graph; 0: none ran
  bool comparable = true;                                      // all of it ran on the host
  bool beyond_limit = false;                                   // a part ran uncompiled
  bool backward = false;                                       // gradients may be asked for later
  bool weigh = false;                                          // the following are wanted
  bool settled = true;                                         // no code is about to be replaced
  std::set<std::tuple<const void*, DType, size_t>> operators;  // different ones: row, dtype, rank
  int64_t bytes = 0;                                           // of all values

  void ran(const void* graph, std::span<const int64_t> sizes);
  /// What the call did, to be compared; 0: nothing that can be. Calls beyond the limit of recompiles count as the same.
  uint64_t done(Alike alike) const;
};

/// Keeps a compiled function from being slower than the plain one. When calls have done the same for a while, some run as they are, in turn
/// with compiled ones, and both are timed, with the first backward pass through what they made. Where the plain calls are faster again and
/// again, all are plain, until the compiled one that is made now and then, and after one that took far longer, does something else. Calls that
/// only begin alike, and go ways of their own behind a break, are compared by what many take. No call runs twice. The thread that calls first
/// measures; calls of another one end that.
class Pace {
 public:
  explicit Pace(const CompileOptions& options);
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  /// One call of the function.
  class Call {
   public:
    explicit Call(Pace& pace);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    bool compiled() const { return compiled_; }
    Work& work() { return work_; }
    /// The call ended without an error.
    void end();

   private:
    Pace& pace_;
    bool compiled_ = true, watched_ = false, ended_ = false;
    Work work_;
    bool timed_ = false;
    uint64_t first_node_ = 0;
    std::chrono::steady_clock::time_point begin_;
  };

  /// Whether this call is plain, and nothing of it is to be known.
  bool passes();
  /// Why calls are plain now; empty: they are not.
  std::string reason() const;

 private:
  enum class Phase : uint8_t { Off, Watching, Measuring, Plain };
  struct Verdict {
    uint64_t graphs;
    bool slower;
    double compiled, plain;  // seconds
    double call;             // that a plain one may take, without its backward pass
  };
  // A measured call whose backward pass may come.
  struct Trial {
    bool compiled;
    double seconds;
    std::shared_ptr<autograd::Meter> meter;
  };
  // Calls in a row that did the same.
  struct Streak {
    uint64_t done = 0;
    int calls = 0;
  };
  const Verdict* verdict() const;
  bool is_watched();
  bool choose(Work& work);
  void watch(const Work& work);
  void judge(const Work& work);
  double cost(bool compiled) const;
  void forget_times();
  void try_call(bool compiled, double seconds, uint64_t first_node);
  void end_trials();
  void measured(bool compiled, double seconds);
  void decide(bool slower);
  void move_to(Phase phase);
  void start_over();

  std::atomic<Phase> phase_;
  std::atomic<std::thread::id> owner_{};
  // The owner's.
  bool busy_ = false;  // in a call
  Streak streaks_[2];  // by what is alike
  Alike alike_ = Alike::Whole;
  uint64_t graphs_ = 0;             // what calls do that are measured or plain
  int calls_ = 0;                   // since the phase began
  int look_again_ = 0;              // one of so many calls is compiled while the others are plain
  bool backward_ = false;           // gradients of these graphs may be asked for later
  size_t passes_ = 0, missed_ = 0;  // and were, of so many that are measured; and not, of so many
  double call_ = 0;                 // seconds of a plain call by itself
  std::vector<double> seconds_[2];  // of measured calls, plain and compiled ones
  std::deque<Trial> trials_;
  std::vector<Verdict> known_;
  mutable Mutex mutex_;  // of what follows
  std::string reason_;
};

}  // namespace brasa::capture
