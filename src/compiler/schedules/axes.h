#pragma once

#include <optional>
#include <unordered_set>

#include "compiler/schedules/schedule.h"

namespace brasa::compiler {

/// The dimensions of a group's domain as axes, outer first: neighbours through which every access steps evenly are one. All are
/// parallel as yet.
struct MergedAxes {
  std::vector<Axis> axes;
  size_t vector =
      0;  // the axis for vectors: the last one, or the last that is kept where the last one is shorter than a vector
  int strided = 0;   // places along it that are not neighbours
  int reversed = 0;  // neighbours from the last one back
  int gathered = 0;  // of these, so far apart that elements are fetched one by one
  /// The axis along which some of them are.
  std::optional<size_t> neighbours;
  /// The axis along which the places right behind those of the vector axis are read.
  std::optional<size_t> continued;
  /// The innermost axis but for the vector axis, where sums of its neighbours read some elements again: weights, and what lies in several
  /// windows of `taps` elements, each `step` of them behind the one before (1, 0: in no window).
  struct Again {
    size_t axis;
    int64_t taps = 1, step = 0;
    bool repeats = false;  // windows, of whose elements none lies where a result does: it may be computed again
  };
  std::optional<Again> again;
  /// The innermost axis but for the vector axis, where the latter is summed and its neighbours read some vectors again and others for themselves: a
  /// matrix' rows times a vector.
  std::optional<size_t> rows;
  /// An axis of few elements along which nothing that is read moves but what is small: a vector of results for each of them takes the same
  /// vectors of operands.
  std::optional<size_t> shared;
  /// The one axis along which no place is picked, where much of what is read stays: those places, and weights that belong to them.
  std::optional<size_t> picked_once;
  /// The last axis, where its few elements lie side by side in a result, and the vector axis takes from each such piece to the next.
  std::optional<size_t> interleaved;
  /// If not 0: the last axis is two, the inner one a row of so few elements that a vector would be mostly empty. What is read comes again
  /// in the same order after each row, a constant step further on.
  int64_t row = 0;
  /// Inputs of the group of which all that is read is the same along it.
  std::unordered_set<size_t> repeated;
};
/// `lanes` of a vector; of 0, vectors run along the last axis. Where `order` matters, reduced dimensions stay axes of their own.
MergedAxes merged_axes(const Group& group, int lanes = 0, bool order = false);
/// Whether it comes once for all that a sum adds up, as a norm's root. Windows may give as many sums as there are elements: then nothing does.
bool once_a_sum(const Group& group, const ir::Node* n);
/// The dimensions that a scatter's indices leave free, all parallel, but the last one a vector in such pieces.
std::vector<Axis> free_axes(const Group& scatter, int64_t piece);

}  // namespace brasa::compiler
