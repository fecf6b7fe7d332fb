#pragma once

#include "runtime/cuda/ready_kernels.h"

// Sorting of a tensor's lines by kernels of our own. An element becomes a key: an unsigned number whose order is that of the elements, NaN the
// greatest and both zeros equal, complemented where they descend. Keys with places are never equal, so that each order of them is stable.
namespace brasa::runtime::cuda {

/// What stands at [first, first + count) of the order of each line of a contiguous tensor [outer, length, inner] along `length`:
/// the elements, and as int64 their places.
struct Sort {
  DType dtype;
  bool descending;
  int64_t outer, length, inner, first, count;
  const void* x;
  void *values, *places;
};

bool takes_sort(DType dtype);
void run_sort(const Sort& sort, Device& device, Stream stream);

/// How a line is sorted: by one block in shared memory, several short lines or a part of the order of a longer one; or by one digit of 8
/// bits after the other, the last first, each in three launches: how often each digit is in each block's part, where each of these begins, and
/// moving.
enum class SortStep : uint8_t { Lines, Select, Count, Begin, Move };

/// What a kernel is made for.
struct SortKind {
  SortStep step;
  DType dtype;
  bool descending = false;
  bool many = false;   // Lines: of more than kFewItems elements. Select: from a `first` other than 0 on
  bool given = false;  // Select, Count and Move: reads the tensor, not keys
  bool last = false;   // Select and Move: writes the result
  auto operator<=>(const SortKind&) const = default;
};
WrittenKernel sort_kernel(const SortKind& kind);

/// Bits of a key that differ.
int key_bits(DType dtype);

constexpr int kFewItems = 1024, kManyItems = 4096;  // of a block's lines, each of which has a power of 2
constexpr int kMostSelected = 2048;
constexpr int kSortTile = 4096;  // what a block moves at a time
constexpr int kDigits = 256;

/// The parameters that all of these kernels have.
enum SortParameter : int {
  kX,
  kValues,
  kPlaces,
  kLines,
  kAcross,  // neighbouring lines in memory, before `span` is gone on
  kLength,
  kSpan,        // bytes of x
  kStep,        // bytes of x from element to element of a line
  kResultSpan,  // elements
  kResultStep,
  kFirst,
  kCount,
  kPower,  // Lines and Select: the logarithm of a line's items
  kTable,  // how often each digit is in each block's part: [lines, kDigits, blocks]
  kTotals,
  kKeysFrom,
  kPlacesFrom,
  kKeysTo,
  kPlacesTo,
  kBlocks,  // of a line
  kPart,    // elements of a block
  kShift,   // of the digit
  kSortParameters
};

}  // namespace brasa::runtime::cuda
