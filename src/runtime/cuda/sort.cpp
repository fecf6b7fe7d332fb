#include "runtime/cuda/sort.h"

#include <algorithm>
#include <array>
#include <bit>

#include "runtime/cuda/sort_kernels.h"
#include "support/error.h"

namespace brasa::runtime::cuda {
namespace {

constexpr int64_t kMostLength = int64_t{1} << 31;  // numbers of 32 bits are places
// Of a launch, and of what it keeps in memory besides.
constexpr int64_t kMostLines = int64_t{1} << 28, kMostElements = int64_t{1} << 27;
constexpr int64_t kBlocksOfProcessor = 4;
constexpr int64_t kCounter = 4;  // bytes of one, and of a place

using Slots = std::array<Slot, kSortParameters>;

// Some neighbouring lines of a tensor: one launch's.
struct Lines {
  int64_t outer, across;
  Slots slots;
  int64_t count() const { return outer * across; }
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Sorter {
 public:
  Sorter(const Sort& sort, Device& device, Stream stream) : s_(sort), device_(device), stream_(stream) {}

  void run() const {
    if (s_.length <= kManyItems) return over_lines(kMostLines, [&](Lines l) { sort_lines(l); });
    // A block reads a line more often than all of them do for its digits, which pays where there are blocks enough. Of the first ones, parts of
    // a line keep theirs, of which a block selects.
    constexpr int64_t kFewOfABlock = int64_t{1} << 15;
    bool blocks = s_.length <= kFewOfABlock || s_.outer * s_.inner >= device_.properties().processors;
    if (s_.count <= kMostSelected && (blocks || s_.first == 0))
      return over_lines(kMostLines, [&](Lines l) { select(l); });
    over_lines(std::max<int64_t>(kMostElements / s_.length, 1), [&](Lines l) { sort_by_digits(l); });
  }

 private:
  template <class F>
  void over_lines(int64_t most, const F& run) const {
    int64_t across = std::min(s_.inner, most), outer = std::max<int64_t>(most / s_.inner, 1);
    for (int64_t o = 0; o < s_.outer; o += outer)
      for (int64_t i = 0; i < s_.inner; i += across)
        run(lines(o, i, std::min(outer, s_.outer - o), std::min(across, s_.inner - i)));
  }
  Lines lines(int64_t first, int64_t beside, int64_t outer, int64_t across) const {
    int64_t element = size_of(s_.dtype), span = s_.length * s_.inner, result_span = s_.count * s_.inner;
    int64_t from = first * span + beside, to = first * result_span + beside;
    auto address = [](const void* p, int64_t bytes) { return reinterpret_cast<Slot>(p) + static_cast<Slot>(bytes); };
    Lines l{outer, across, {}};
    l.slots[kX] = address(s_.x, from * element);
    l.slots[kValues] = address(s_.values, to * element);
    l.slots[kPlaces] = address(s_.places, to * size_of(DType::Int64));
    auto set = [&](SortParameter p, int64_t v) { l.slots[p] = static_cast<Slot>(v); };
    set(kLines, l.count());
    set(kAcross, across);
    set(kLength, s_.length);
    set(kSpan, span * element);
    set(kStep, s_.inner * element);
    set(kResultSpan, result_span);
    set(kResultStep, s_.inner);
    set(kFirst, s_.first);
    set(kCount, s_.count);
    return l;
  }
  void launch(const SortKind& kind, int64_t blocks, const Slots& slots) const {
    ready_kernel(sort_kernel, kind, device_).launch(blocks, slots, device_, stream_);
  }
  static Slot power_of(int64_t items) { return std::bit_width(std::bit_ceil(static_cast<uint64_t>(items))) - 1; }

  void sort_lines(Lines& l) const {
    l.slots[kPower] = power_of(s_.length);
    bool many = s_.length > kFewItems;
    int64_t of_block = (many ? kManyItems : kFewItems) >> l.slots[kPower];
    launch({SortStep::Lines, s_.dtype, s_.descending, many}, ceil_div(l.count(), of_block), l.slots);
  }

  void select(Lines& l) const {
    l.slots[kPower] = power_of(s_.count);
    bool many = s_.first > 0;
    int64_t blocks = many ? 1 : parts_of(l);
    if (blocks == 1) return launch({SortStep::Select, s_.dtype, s_.descending, many, true, true}, l.count(), l.slots);
    int64_t kept = l.count() * blocks * s_.count;
    Scratch keys(static_cast<size_t>(kept * key_bytes()), device_, stream_);
    Scratch places(static_cast<size_t>(kept * kCounter), device_, stream_);
    l.slots[kBlocks] = static_cast<Slot>(blocks);
    l.slots[kPart] = static_cast<Slot>(ceil_div(s_.length, blocks));
    l.slots[kKeysTo] = l.slots[kKeysFrom] = keys.address();
    l.slots[kPlacesTo] = l.slots[kPlacesFrom] = places.address();
    launch({SortStep::Select, s_.dtype, s_.descending, false, true, false}, l.count() * blocks, l.slots);
    launch({SortStep::Select, s_.dtype, false, false, false, true}, l.count(), l.slots);
  }
  // Those that keep few of what they have, as many as there are processors for; the last one has enough, too.
  int64_t parts_of(const Lines& l) const {
    constexpr int64_t kFewest = 4096, kShare = 8, kOfProcessor = 2;
    int64_t most = std::min(kOfProcessor * device_.properties().processors / l.count(),
                            s_.length / std::max(kFewest, kShare * s_.count));
    if (most <= 1) return 1;
    int64_t part = ceil_div(s_.length, most), blocks = ceil_div(s_.length, part);
    return s_.length - (blocks - 1) * part < s_.count ? 1 : blocks;
  }
  int64_t key_bytes() const { return key_bits(s_.dtype) > 32 ? 8 : 4; }

  void sort_by_digits(Lines& l) const {
    int64_t tiles = ceil_div(s_.length, kSortTile);
    int64_t most = std::max<int64_t>(kBlocksOfProcessor * device_.properties().processors / l.count(), 1);
    int64_t part = ceil_div(tiles, std::min(tiles, most)) * kSortTile, blocks = ceil_div(s_.length, part);
    l.slots[kBlocks] = static_cast<Slot>(blocks);
    l.slots[kPart] = static_cast<Slot>(part);
    auto bytes = [](int64_t n, int64_t each) { return static_cast<size_t>(n * each); };
    Scratch table(bytes(l.count() * kDigits * blocks, kCounter), device_, stream_);
    Scratch totals(bytes(l.count() * kDigits, kCounter), device_, stream_);
    l.slots[kTable] = table.address();
    l.slots[kTotals] = totals.address();

    int digits = key_bits(s_.dtype) / 8;
    int64_t elements = l.count() * s_.length, key = key_bytes();
    Scratch keys(digits > 1 ? bytes(elements, 2 * key) : 0, device_, stream_);
    Scratch places(digits > 1 ? bytes(elements, 2 * kCounter) : 0, device_, stream_);
    for (int d = 0; d < digits; ++d) {
      bool given = d == 0, last = d == digits - 1;
      Slot half = d % 2;
      l.slots[kShift] = static_cast<Slot>(8 * d);
      l.slots[kKeysTo] = keys.address() + half * bytes(elements, key);
      l.slots[kPlacesTo] = places.address() + half * bytes(elements, kCounter);
      l.slots[kKeysFrom] = keys.address() + (1 - half) * bytes(elements, key);
      l.slots[kPlacesFrom] = places.address() + (1 - half) * bytes(elements, kCounter);
      // What reads or writes no elements is the same for all dtypes with such keys.
      DType of_keys = key > kCounter ? DType::Int64 : DType::Int32;
      SortKind count{SortStep::Count, given ? s_.dtype : of_keys, given && s_.descending, false, given};
      SortKind move{SortStep::Move, given || last ? s_.dtype : of_keys, given && s_.descending, false, given, last};
      launch(count, l.count() * blocks, l.slots);
      launch({SortStep::Begin, DType::Int32}, l.count() * (kDigits / 8), l.slots);
      launch(move, l.count() * blocks, l.slots);
    }
  }

  const Sort& s_;
  Device& device_;
  Stream stream_;
};

}  // namespace

int key_bits(DType dtype) { return static_cast<int>(8 * size_of(dtype)); }

WrittenKernel sort_kernel(const SortKind& kind) {
  switch (kind.step) {
    case SortStep::Lines: return sort_lines(kind);
    case SortStep::Select: return sort_select(kind);
    case SortStep::Count: return sort_count(kind);
    case SortStep::Begin: return sort_begin(kind);
    case SortStep::Move: break;
  }
  return sort_move(kind);
}

bool takes_sort(DType dtype) { return computes(dtype) && !is_complex(dtype); }

void run_sort(const Sort& sort, Device& device, Stream stream) {
  if (sort.outer * sort.inner * sort.count == 0) return;
  BRASA_CHECK(sort.length <= kMostLength, "sort: a line of ", sort.length,
              " elements is too long for a GPU, whose limit is ", kMostLength);
  Sorter(sort, device, stream).run();
}

}  // namespace brasa::runtime::cuda
