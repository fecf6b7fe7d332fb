#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "compiler/libraries/ranks.h"
#include "compiler/libraries/scratch.h"

// The order of elements. Those become *items*: numbers with an element's key above its place. No two items are equal, so that any order
// of them is stable, and a choice is the same as the one from all that are sorted.
namespace brasa::compiler {

/// An unsigned number whose order is that of the elements; NaN is the greatest, the zeros are equal.
template <class T>
uint64_t ordinal(T v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(v) ^ (std::is_signed_v<T> ? uint64_t{1} << 63 : 0);
  } else {
    using Float = std::conditional_t<std::is_same_v<T, double>, double, float>;
    using Bits = std::conditional_t<std::is_same_v<T, double>, uint64_t, uint32_t>;
    constexpr Bits kSign = Bits{1} << (std::numeric_limits<Bits>::digits - 1);
    auto x = static_cast<Float>(v);
    auto bits = std::bit_cast<Bits>(x + 0);
    bits = bits & kSign ? ~bits : bits | kSign;
    return x == x ? bits : std::numeric_limits<Bits>::max();
  }
}

/// Keys of elements, and their range.
struct Keys {
  Scratch<uint64_t> all;
  uint64_t least = 0, greatest = 0;

  explicit Keys(size_t count = 0) : all(count) {}
  /// `key(i)` is that of element i.
  template <class F>
  void fill(F key) {
    least = std::numeric_limits<uint64_t>::max();
    greatest = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      uint64_t k = all[i] = key(i);
      least = std::min(least, k);
      greatest = std::max(greatest, k);
    }
  }
};

__extension__ using WideItem = unsigned __int128;
template <class Item>
inline constexpr int kPlaceBits = sizeof(Item) * 4;

// Of few items comparisons take less time than counting bytes.
inline constexpr size_t kCountFrom = 96;

template <class Item>
class ItemOrder {
 public:
  /// The places of `count` elements from the `first` of the order on.
  void arrange(const Keys& keys, size_t first, size_t count, int64_t* places) {
    size_t all = keys.all.size(), end = first + count;
    if (count == 0) return;
    if (end <= all / 4)
      take_least(keys.all, keys.least, end);
    else if (all > kFew && count < all / 4)
      take_near(keys, first, end);
    else
      take_all(keys.all, keys.least);
    if (items_.size() > end || first > 0) {
      narrow_down(first, end);
      auto at = [&](size_t i) { return items_.begin() + static_cast<int64_t>(i); };
      std::nth_element(items_.begin(), at(first), items_.end());
      if (count > 1 && end < items_.size()) std::nth_element(at(first), at(end), items_.end());
      items_.resize(end);
      items_.erase(items_.begin(), at(first));
    }
    sort(count == all);
    for (size_t i = 0; i < count; ++i) places[i] = static_cast<int64_t>(place(items_[i]));
  }

 private:
  static constexpr int kDigit = 11;
  static constexpr size_t kFew = 512;
  static constexpr Item kPlaces = (Item{1} << kPlaceBits<Item>)-1;
  static uint64_t place(Item i) { return static_cast<uint64_t>(i & kPlaces); }
  static uint64_t key(Item i) { return static_cast<uint64_t>(i >> kPlaceBits<Item>); }
  static Item item(uint64_t key, size_t place) { return Item{key} << kPlaceBits<Item> | place; }

  void take_all(const Scratch<uint64_t>& keys, uint64_t least) {
    items_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) items_[i] = item(keys[i] - least, i);
  }

  // The `count` least items, and some others: what is greater than as many of those seen is left out.
  void take_least(const Scratch<uint64_t>& keys, uint64_t least, size_t count) {
    size_t room = 2 * count + 64;
    items_.clear();
    std::optional<uint64_t> bound;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (bound && keys[i] >= *bound) continue;
      items_.push_back(item(keys[i] - least, i));
      if (items_.size() < room) continue;
      auto last = items_.begin() + static_cast<int64_t>(count) - 1;
      std::nth_element(items_.begin(), last, items_.end());
      bound = key(*last) + least;
      items_.resize(count);
    }
  }

  // Elements between the digits at the two ends of [first, end) of the order; `below` are how many have lower ones.
  struct Middle {
    size_t lowest = 0, highest = 0, below = 0, count = 0;
  };
  Middle middle(size_t first, size_t end) const {
    Middle m;
    while (m.below + counts_[m.lowest] <= first) m.below += counts_[m.lowest++];
    m.highest = m.lowest;
    m.count = counts_[m.lowest];
    while (m.below + m.count < end) m.count += counts_[++m.highest];
    return m;
  }
  static int shift_of(uint64_t range) { return std::max(static_cast<int>(std::bit_width(range)) - kDigit, 0); }

  // Most of the elements that are not at [first, end) of the order do not become items; counts the two from the first of the others on.
  void take_near(const Keys& keys, size_t& first, size_t& end) {
    int shift = shift_of(keys.greatest - keys.least);
    counts_.assign(size_t{1} << kDigit, 0);
    for (uint64_t k : keys.all) ++counts_[(k - keys.least) >> shift];
    Middle m = middle(first, end);
    items_.resize(m.count + 1);
    size_t taken = 0;
    for (size_t i = 0; i < keys.all.size(); ++i) {
      uint64_t k = keys.all[i] - keys.least;
      items_[taken] = item(k, i);
      taken += (k >> shift) - m.lowest <= m.highest - m.lowest;
    }
    items_.pop_back();
    first -= m.below;
    end -= m.below;
  }

  // The same, of items.
  void narrow_down(size_t& first, size_t& end) {
    while (items_.size() > kFew && end - first < items_.size() / 4) {
      auto [low, high] = std::minmax_element(items_.begin(), items_.end());
      uint64_t from = key(*low);
      int shift = shift_of(key(*high) - from);
      auto digit = [&](Item i) { return (key(i) - from) >> shift; };
      counts_.assign(size_t{1} << kDigit, 0);
      for (Item i : items_) ++counts_[digit(i)];
      Middle m = middle(first, end);
      if (m.count > items_.size() / 2) return;
      std::erase_if(items_, [&](Item i) { return digit(i) < m.lowest || digit(i) > m.highest; });
      first -= m.below;
      end -= m.below;
    }
  }

  // By one byte after the other, the last one first; bytes that all items share are left out, and those of places that ascend already.
  void sort(bool ascending) {
    if (items_.size() < kCountFrom) return std::sort(items_.begin(), items_.end());
    Item differ = 0;
    for (Item i : items_) differ |= i ^ items_[0];
    others_.resize(items_.size());
    constexpr int kBits = 2 * kPlaceBits<Item>;
    for (int shift = ascending ? kPlaceBits<Item> : 0; shift < kBits && differ >> shift != 0; shift += 8) {
      auto byte = [&](Item i) { return static_cast<size_t>(i >> shift & 255); };
      if (byte(differ) == 0) continue;
      size_t next[257] = {};
      for (Item i : items_) ++next[byte(i) + 1];
      for (int b = 0; b < 256; ++b) next[b + 1] += next[b];
      for (Item i : items_) others_[next[byte(i)]++] = i;
      items_.swap(others_);
    }
  }

  Scratch<Item> items_, others_;
  std::vector<uint32_t> counts_;
};

// So few least elements are kept in order while others come.
inline constexpr size_t kMostKept = 16;

/// The places of the `count` least of so many elements, at most kMostKept; `key(i)` is that of element i.
template <class F>
void find_least(size_t elements, size_t count, F key, int64_t* places) {
  uint64_t kept[kMostKept];
  size_t found = 0;
  for (size_t i = 0; i < elements; ++i) {
    uint64_t next = key(i);
    if (found == count && next >= kept[count - 1]) continue;
    size_t at = found < count ? found++ : count - 1;
    for (; at > 0 && kept[at - 1] > next; --at) {
      kept[at] = kept[at - 1];
      places[at] = places[at - 1];
    }
    kept[at] = next;
    places[at] = static_cast<int64_t>(i);
  }
}

// The order of at most kMostRanked elements.
template <class Key>
class RankOrder {
 public:
  void arrange(const Keys& keys, size_t first, size_t count, int64_t* places) {
    using Bits = std::make_unsigned_t<Key>;
    size_t n = keys.all.size();
    for (size_t i = 0; i < n; ++i)
      keys_[i] = static_cast<Key>(static_cast<Bits>(keys.all[i] - keys.least) ^ static_cast<Bits>(kLowest));
    find_ranks(keys_, n, ranks_);
    for (size_t i = 0; i < n; ++i)
      if (size_t at = static_cast<size_t>(ranks_[i]) - first; at < count) places[at] = static_cast<int64_t>(i);
  }

 private:
  static constexpr Key kLowest = std::numeric_limits<Key>::min();
  Key keys_[kMostRanked] = {}, ranks_[kMostRanked];
};

// The order of elements that have few different keys, as bytes: each key's elements are counted.
class CountedOrder {
 public:
  // A few of the least are found sooner.
  static bool fits(const Keys& keys, size_t end) {
    constexpr uint64_t kMostKeys = 4096;
    size_t all = keys.all.size();
    return end > all / 4 && keys.greatest - keys.least < std::min<uint64_t>(all / 2, kMostKeys);
  }
  void arrange(const Keys& keys, size_t first, size_t count, int64_t* places) {
    next_.assign(keys.greatest - keys.least + 2, 0);
    for (uint64_t k : keys.all) ++next_[k - keys.least + 1];
    for (size_t k = 1; k < next_.size(); ++k) next_[k] += next_[k - 1];
    for (size_t i = 0; i < keys.all.size(); ++i)
      if (size_t at = next_[keys.all[i] - keys.least]++ - first; at < count) places[at] = static_cast<int64_t>(i);
  }

 private:
  std::vector<size_t> next_;
};

class KeyOrder {
 public:
  /// The places of the elements at [first, first + count) of the keys' order.
  void arrange(const Keys& keys, size_t first, size_t count, int64_t* places) {
    if (CountedOrder::fits(keys, first + count)) return counted_.arrange(keys, first, count, places);
    if (keys.all.size() <= kMostRanked) {
      if (std::bit_width(keys.greatest - keys.least) <= 32) return few_narrow_.arrange(keys, first, count, places);
      return few_wide_.arrange(keys, first, count, places);
    }
    bool fits = std::max<uint64_t>(keys.greatest - keys.least, keys.all.size()) >> kPlaceBits<uint64_t> == 0;
    if (fits)
      narrow_.arrange(keys, first, count, places);
    else
      wide_.arrange(keys, first, count, places);
  }

 private:
  CountedOrder counted_;
  RankOrder<int32_t> few_narrow_;
  RankOrder<int64_t> few_wide_;
  ItemOrder<uint64_t> narrow_;
  ItemOrder<WideItem> wide_;
};

}  // namespace brasa::compiler
