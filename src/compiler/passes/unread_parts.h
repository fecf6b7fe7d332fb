#pragma once

#include "compiler/compile.h"
#include "compiler/passes/ranges.h"
#include "ir/facts.h"
#include "ir/graph.h"

// What the pass `unread_parts` knows, for graphs that are cut in two before it sees them.
namespace brasa::compiler {

/// By input of a graph of primitives: the part of it that results are made of, where that is at most about half; absent: all of it. Nothing else of it
/// reaches a result but by a product with zero. With strict numbers there are no parts.
std::vector<std::optional<Part>> parts_read(const ir::Graph& graph, const ir::Facts& facts, Numbers numbers);
/// The part, as values of the current ops::Builder: of a tensor, and with zeros around it as a tensor of this shape.
Value part_of(Value whole, const Part& part);
Value zeros_around(Value part_alone, const Part& part, const Shape& whole);

}  // namespace brasa::compiler
