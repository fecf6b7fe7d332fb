#pragma once

#include <optional>

#include "compiler/schedules/schedule.h"

namespace brasa::compiler {

/// The dimensions of a group's domain as axes, outer first: neighbours through which every access steps evenly are one. All are
/// parallel as yet.
struct MergedAxes {
  std::vector<Axis> axes;
  int strided = 0;  // places along the last axis that are not neighbours
  /// The axis along which some of them are.
  std::optional<size_t> neighbours;
};
MergedAxes merged_axes(const Group& group);
/// The dimensions that a scatter's indices leave free, all parallel, but the last one a vector in such pieces.
std::vector<Axis> free_axes(const Group& scatter, int64_t piece);

}  // namespace brasa::compiler
