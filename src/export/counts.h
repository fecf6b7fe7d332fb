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
};

/// Which integers a recording takes for those that its function reads. What it concludes of them holds for integers that answer its questions the
/// same way, so several kinds are recorded.
enum class CountKind : uint8_t { Some, None, One, All };

/// The integers that one recording after the other has met.
class Counts {
 public:
  /// `kinds`: by count; the last one is that of all others.
  explicit Counts(std::vector<CountKind> kinds) : kinds_(std::move(kinds)) {}

  /// The function is about to be called once more. Integers differ from call to call, as far as their ranges allow, unless `again`.
  void begin_call(bool again);
  /// Whether the call has to be made again, with other integers: those that were taken are not as the function requires. brasa::Error where it
  /// asks for what no integers are.
  bool retry(const capture::Names& names, const capture::Session& session);
  /// The same after an error: the first calls take integers that are greater than they can be, which the function may notice.
  bool retry_within_bounds();
  /// The elements of a tensor that `session` records.
  std::vector<Recorder::Integer> read(capture::Session& session, const Tensor& t, const std::string& reader);
  /// Of this call.
  const std::vector<Count>& all() const { return all_; }

 private:
  struct Bounds {
    int64_t least, greatest;
  };
  int64_t example(size_t count, Bounds bounds) const;
  Recorder::Integer read_one(capture::Session& session, const Tensor& from, const std::string& reader);

  std::vector<CountKind> kinds_;
  std::vector<Count> all_;
  std::vector<uint32_t> names_;      // in this call
  std::vector<ir::Expr> sizes_;      // what these stand for
  std::map<size_t, int64_t> taken_;  // what the function requires in this call
  int call_ = -1;
  bool beyond_ = true;
};

}  // namespace brasa::exporting
