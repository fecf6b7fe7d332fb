#pragma once

#include <memory>
#include <span>

#include "ir/rewrite.h"

namespace brasa::compiler {

/// The algebra on primitives, row by row. Every rule holds to the bit, for NaN, infinities and -0 too.
std::span<const ir::Rule> simplifications();

/// The same graph by those rules, to a fixed point.
std::unique_ptr<ir::Graph> simplify(const ir::Graph& graph);

}  // namespace brasa::compiler
