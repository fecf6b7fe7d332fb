#pragma once

#include <cstdint>

namespace brasa::fakes {

/// What the fake driver makes of a matrix: elements of two bytes, rows one `step` of bytes behind the other; a copy has `box` columns and rows.
struct MatrixMap {
  static constexpr uint64_t kMark = 0x50414d5f41534152;
  uint64_t mark, address, columns, rows, step;
  uint32_t box[2];
};
static_assert(sizeof(MatrixMap) <= 128);

}  // namespace brasa::fakes
