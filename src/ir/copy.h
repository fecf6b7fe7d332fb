#pragma once

#include <functional>
#include <memory>

#include "ir/graph.h"

// Copying what a graph has into another one.
namespace brasa::ir {

Args mapped(const Args& args, const ValueMap& map);
/// The inputs of `from` become inputs of `to`.
void copy_inputs(Graph& to, const Graph& from, ValueMap& map);
/// The node with its operands mapped; `map` then leads from its results to the copy's.
Node* copy_node(Graph& to, const Node& n, ValueMap& map);
/// A copy of what `v` is made of, down to what `map` has. brasa::InternalError at an input that it has not.
Value copy_value(Graph& to, Value v, ValueMap& map);
/// The nodes that the outputs of `from` reach, inputs left out.
void copy_live_nodes(Graph& to, const Graph& from, ValueMap& map);
/// A copy without dead nodes.
std::unique_ptr<Graph> copy(const Graph& graph);
/// The arguments, or a copy of the graph, in which f of each size expression stands in its place.
Args with_sizes(Args args, const std::function<Expr(Expr)>& f);
/// `map` then leads to the copy's values.
std::unique_ptr<Graph> with_sizes(const Graph& graph, const std::function<Expr(Expr)>& f, ValueMap& map);
std::unique_ptr<Graph> with_sizes(const Graph& graph, const std::function<Expr(Expr)>& f);
/// Calls f with every size expression of a node: its types' and its arguments'.
void each_size(const Node& n, const std::function<void(Expr)>& f);

}  // namespace brasa::ir
