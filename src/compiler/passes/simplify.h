#pragma once

#include <memory>
#include <span>

#include "compiler/passes/passes.h"
#include "ir/rewrite.h"

namespace brasa::compiler {

/// The algebra on primitives, row by row. Every rule holds to the bit, for NaN, infinities and -0 too.
std::span<const ir::Rule> simplifications();

/// The same graph by those rules, to a fixed point.
std::unique_ptr<ir::Graph> simplify(const ir::Graph& graph);

/// By rules for a GPU, when nothing reads parts of what was written any more: what is written into part of a tensor is chosen among that
/// and what was there, element by element of the whole.
void choose_written_parts(Primitives& p, const PassContext& context);

}  // namespace brasa::compiler
