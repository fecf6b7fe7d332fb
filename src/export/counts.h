#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <brasa/tensor.h>

#include "ir/expr.h"
#include "tensor/recorder.h"

namespace brasa::capture {
class Names;
class Session;
}  // namespace brasa::capture

namespace brasa::exporting {

/// An integer of what a function computes, which it reads for a size or a place while it is recorded.
struct Count {
  std::string reader;  // says in a message whose it is
  Tensor from;         // a recorded tensor without dimensions, int64
  Tensor stand_in;     // an input of the recording that has this size: what the integer is in it
  bool by_host;        // the function has the number itself
};

/// Which integers a recording takes for those that its function reads. What it concludes of them holds for integers that answer its questions the
/// same way, so several kinds are recorded.
enum class CountKind : uint8_t { Some, None, One, All };

/// The integers that one recording after the other has met.
class Counts {
 public:
  /// `kinds`: by count; the last one is that of all others.
  explicit Counts(std::vector<CountKind> kinds);

  /// The function is about to be called once more. Integers differ from call to call, as far as their ranges allow, unless `again`.
  void begin_call(bool again);
  /// Whether the call has to be made again, with other integers: those that were taken are not as the function requires. brasa::Error where it
  /// asks for what no integers are.
  bool retry(const capture::Names& names, const capture::Session& session);
  /// The same after an error: the first calls take integers that are greater than they can be, which the function may notice, and integers whose
  /// bounds only the function knows are chosen too great.
  bool retry_with_less();
  /// The elements of a tensor that `session` records. `by_host`: the function may do with them what it likes, so they lie in their ranges.
  std::vector<Recorder::Integer> read(capture::Session& session, const Tensor& t, const std::string& reader,
                                      bool by_host = false);
  /// Of this call.
  const std::vector<Count>& all() const { return all_; }
  /// How many calls show what follows from them.
  size_t calls_wanted() const;
  /// Whether the function has one of them itself.
  bool by_host() const;
  /// Whether a count was another integer in an earlier call.
  bool varied(size_t count) const;

 private:
  struct Bounds {
    int64_t least, greatest;
  };
  int64_t example(size_t count, Bounds bounds, bool by_host) const;
  int64_t unlike_earlier(size_t count, int64_t least, int64_t choices, int64_t first) const;
  Recorder::Integer read_one(capture::Session& session, const Tensor& from, const std::string& reader, bool by_host);

  std::vector<CountKind> kinds_;
  std::vector<Count> all_;
  std::vector<uint32_t> names_;      // in this call
  std::vector<ir::Expr> sizes_;      // what these stand for
  std::map<size_t, int64_t> taken_;  // what the function requires in this call
  int call_ = -1;
  std::vector<std::vector<int64_t>> earlier_;  // by call
  bool beyond_ = true;
  int64_t few_ = 2, choices_;  // beginning with how many integers are chosen, and of how many
};

}  // namespace brasa::exporting
