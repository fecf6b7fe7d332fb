#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace brasa::ir {

/// What every graph of its level must be like, whatever pass made it: brasa::InternalError with the graph's text where it is not.
///
/// | | operators | primitives | loops |
/// | --- | --- | --- | --- |
/// | nodes | Op::legal_at | Op::legal_at | Op::legal_at |
/// | a node's types | what Op::infer gives, up to sizes that a fact makes equal | the same | scalars, or what Op::infer gives |
/// | order | operands before their users, inputs at their positions | the same | the same |
/// | outputs | of this graph, or into an input of equal dtype; a check is one bool | the same | no checks |
/// | symbols | of sizes: those that the inputs' sizes and strides show | the same | ranges and values have a node that makes them |
///
/// Symbols from number `first_defined` on are defined beside the graph; no input shows them.
void check_legal(const Graph& graph, uint32_t first_defined = UINT32_MAX);

}  // namespace brasa::ir
