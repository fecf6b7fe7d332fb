#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace brasa::compiler {

/// Ranges of bytes of one block, which share memory where they are not needed at once.
class Block {
 public:
  /// The number of a range that is needed from now on.
  size_t take(int64_t bytes);
  /// It is not needed any more.
  void give_back(size_t range);
  /// Finds their places, when all have been taken and given back.
  void place();
  int64_t offset(size_t range) const { return ranges_[range].offset; }
  int64_t size() const { return size_; }

 private:
  void reuse_recent();

  // `begin` and `end` count what was taken and given back before.
  struct Range {
    int64_t bytes, offset, begin;
    int64_t end = std::numeric_limits<int64_t>::max();
    bool lives_beside(const Range& other) const { return begin < other.end && other.begin < end; }
  };

  std::vector<Range> ranges_;
  int64_t clock_ = 0, size_ = 0;
  std::map<int64_t, int64_t> free_{{0, std::numeric_limits<int64_t>::max()}};  // begin -> end
};

}  // namespace brasa::compiler
