#include "compiler/run/block.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace brasa::compiler {

// Each in the first place that is free as it is taken.
size_t Block::take(int64_t bytes) {
  auto it = std::find_if(free_.begin(), free_.end(), [&](const auto& f) { return f.second - f.first >= bytes; });
  auto [begin, end] = *it;
  free_.erase(it);
  if (end - begin > bytes) free_[begin + bytes] = end;
  size_ = std::max(size_, begin + bytes);
  ranges_.push_back({bytes, begin, clock_++});
  return ranges_.size() - 1;
}

void Block::give_back(size_t range) {
  Range& r = ranges_[range];
  r.end = clock_++;
  auto it = free_.emplace(r.offset, r.offset + r.bytes).first;
  if (auto after = std::next(it); after != free_.end() && it->second == after->first) {
    it->second = after->second;
    free_.erase(after);
  }
  if (it == free_.begin()) return;
  if (auto before = std::prev(it); before->second == r.offset) {
    before->second = it->second;
    free_.erase(it);
  }
}

// The largest first, and of these the one that is needed longest: what is small or short finds room between them. Each goes into the narrowest
// gap between those that are needed at the same time.
void Block::place() {
  // Looking for gaps takes time that grows with the square, and what is left of small blocks is little.
  constexpr size_t kMost = 4096;
  constexpr int64_t kLeast = 1 << 20;
  if (ranges_.size() > kMost || size_ < kLeast) return;
  auto weight = [&](size_t k) {
    const Range& r = ranges_[k];
    return std::make_pair(r.bytes, std::min(r.end, clock_) - r.begin);
  };
  auto at_once = [](const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; };
  std::vector<size_t> order(ranges_.size()), placed;  // the latter by offset
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weight(a) > weight(b); });
  std::vector<int64_t> offsets(ranges_.size());
  int64_t size = 0;
  for (size_t k : order) {
    int64_t end = 0, best = -1, narrowest = std::numeric_limits<int64_t>::max();
    for (size_t other : placed) {
      if (!at_once(ranges_[k], ranges_[other])) continue;
      int64_t gap = offsets[other] - end;
      if (gap >= ranges_[k].bytes && gap < narrowest) {
        narrowest = gap;
        best = end;
      }
      end = std::max(end, offsets[other] + ranges_[other].bytes);
    }
    offsets[k] = best < 0 ? end : best;
    size = std::max(size, offsets[k] + ranges_[k].bytes);
    auto after =
        std::upper_bound(placed.begin(), placed.end(), k, [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
    placed.insert(after, k);
  }
  if (size >= size_) return;
  size_ = size;
  for (size_t k = 0; k < offsets.size(); ++k) ranges_[k].offset = offsets[k];
}

}  // namespace brasa::compiler
