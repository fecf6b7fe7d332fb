#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>

namespace brasa::compiler {

/// Ranges of bytes of one block, each the first one that is free.
class Block {
 public:
  int64_t take(int64_t size) {
    auto it = std::find_if(free_.begin(), free_.end(), [&](const auto& f) { return f.second - f.first >= size; });
    auto [begin, end] = *it;
    free_.erase(it);
    if (end - begin > size) free_[begin + size] = end;
    size_ = std::max(size_, begin + size);
    return begin;
  }
  void give_back(int64_t begin, int64_t size) {
    auto it = free_.emplace(begin, begin + size).first;
    if (auto after = std::next(it); after != free_.end() && it->second == after->first) {
      it->second = after->second;
      free_.erase(after);
    }
    if (it == free_.begin()) return;
    if (auto before = std::prev(it); before->second == begin) {
      before->second = it->second;
      free_.erase(it);
    }
  }
  int64_t size() const { return size_; }

 private:
  std::map<int64_t, int64_t> free_{{0, std::numeric_limits<int64_t>::max()}};  // begin -> end
  int64_t size_ = 0;
};

}  // namespace brasa::compiler
