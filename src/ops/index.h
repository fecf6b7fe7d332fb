#pragma once

#include <vector>

#include "ops/table.h"

// Symbolic indices of elements.
namespace brasa::ops {

using Index = std::vector<Expr>;

Expr linearise(const Index& index, const Shape& shape);
Index delinearise(Expr linear, const Shape& shape);
/// The index in a tensor of shape `from` of the element that is at `index` in shape `to`, both row-major over the same elements.
Index reshaped(const Index& index, const Shape& to, const Shape& from);

}  // namespace brasa::ops
