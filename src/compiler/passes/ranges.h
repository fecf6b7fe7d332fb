#pragma once

#include <optional>
#include <vector>

#include "compiler/names.h"

// Parts of tensors: every so many elements along each dimension.
namespace brasa::compiler {

/// Elements start + i * step, i < size, along a dimension.
struct Range {
  Expr start = 0, size = 1, step = 1;
  bool is_whole(Expr extent) const { return start.is(0) && step.is(1) && size == extent; }
  friend bool operator==(const Range&, const Range&) = default;
};
using Part = std::vector<Range>;

bool is_whole(const Part& part, const Shape& shape);
Part whole_of(const Shape& shape);
Shape sizes_of(const Part& part);
std::vector<Expr> starts_of(const Part& part);
std::vector<Expr> steps_of(const Part& part);
/// The part of a tensor of the shape `to` that has the same elements, in the same order, after a reshape; absent where no part has.
std::optional<Part> reshaped(const Part& part, const Shape& from, const Shape& to);

}  // namespace brasa::compiler
