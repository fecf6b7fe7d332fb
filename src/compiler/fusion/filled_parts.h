#pragma once

#include <optional>

#include "compiler/fusion/fuse.h"

namespace brasa::compiler {

/// Sums over parts of equal length, one behind the other in dimension `dim` - 1 of the group's domain, where what changes no sum fills up the
/// last part: of how many elements the parts are made. Nothing where some member of the group is no such sum.
std::optional<ir::Expr> filled_parts(const Group& group, size_t dim);

}  // namespace brasa::compiler
