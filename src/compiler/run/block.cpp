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
  std::vector<size_t> order(ranges_.size()), placed;  // the latter by offset
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weight(a) > weight(b); });
  std::vector<int64_t> offsets(ranges_.size());
  int64_t size = 0;
  for (size_t k : order) {
    int64_t end = 0, best = -1, narrowest = std::numeric_limits<int64_t>::max();
    for (size_t other : placed) {
      if (!ranges_[k].lives_beside(ranges_[other])) continue;
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
  if (size < size_) {
    size_ = size;
    for (size_t k = 0; k < offsets.size(); ++k) ranges_[k].offset = offsets[k];
  }
  reuse_recent();
}

// What a cache still holds need not be fetched before it is written again: in the order of time each range moves to the gap, and the place in it,
// of which most has been used by those that ended last.
void Block::reuse_recent() {
  constexpr int64_t kCache = 8 << 20, kLeast = 256 << 10;
  std::vector<size_t> ended(ranges_.size());
  std::iota(ended.begin(), ended.end(), size_t{0});
  std::erase_if(ended, [&](size_t k) { return ranges_[k].bytes < kLeast; });
  std::stable_sort(ended.begin(), ended.end(), [&](size_t a, size_t b) { return ranges_[a].end < ranges_[b].end; });
  using Piece = std::pair<int64_t, int64_t>;  // begin, end
  for (Range& r : ranges_) {
    if (r.bytes < kLeast || r.bytes > kCache) continue;
    std::vector<Piece> recent, taken;
    auto last = std::partition_point(ended.begin(), ended.end(), [&](size_t k) { return ranges_[k].end < r.begin; });
    for (int64_t bytes = 0; last != ended.begin() && bytes < kCache; bytes += ranges_[*last].bytes) {
      --last;
      recent.emplace_back(ranges_[*last].offset, ranges_[*last].offset + ranges_[*last].bytes);
    }
    for (const Range& other : ranges_)
      if (&other != &r && other.lives_beside(r)) taken.emplace_back(other.offset, other.offset + other.bytes);
    taken.emplace_back(size_, size_);
    std::sort(taken.begin(), taken.end());
    auto used = [&](int64_t at) {
      int64_t out = 0;
      for (const Piece& p : recent)
        out += std::max<int64_t>(0, std::min(at + r.bytes, p.second) - std::max(at, p.first));
      return out;
    };
    int64_t most = used(r.offset), begin = 0;
    for (const Piece& t : taken) {
      for (const Piece& p : recent) {
        if (t.first - begin < r.bytes) break;
        int64_t at = std::clamp(p.first, begin, t.first - r.bytes), there = used(at);
        if (there <= most) continue;
        most = there;
        r.offset = at;
      }
      begin = std::max(begin, t.second);
    }
  }
}

}  // namespace brasa::compiler
