#pragma once

#include <memory>

#include "ir/graph.h"

// Copying what a graph has into another one.
namespace brasa::ir {

Args mapped(const Args& args, const ValueMap& map);
/// The inputs of `from` become inputs of `to`.
void copy_inputs(Graph& to, const Graph& from, ValueMap& map);
/// The node with its operands mapped; `map` then leads from its results to the copy's.
Node* copy_node(Graph& to, const Node& n, ValueMap& map);
/// The nodes that the outputs of `from` reach, inputs left out.
void copy_live_nodes(Graph& to, const Graph& from, ValueMap& map);
/// A copy without dead nodes.
std::unique_ptr<Graph> copy(const Graph& graph);

}  // namespace brasa::ir
