#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "ops/algebra.h"

// Graphs as arguments of control flow: what a step of a loop or a branch does.
namespace brasa::ops {

/// From values of the body's own graph to its results.
using BodyFunction = std::function<std::vector<Value>(std::span<const Value> inputs)>;
/// The graph of what `f` makes of inputs of these types, in the sizes of the current Builder's graph. The checks that `f` makes follow the results.
std::unique_ptr<ir::Graph> body_of(const std::vector<Type>& inputs, const BodyFunction& f);

/// The bodies of one node, whose symbols are their own: symbol k stands for sizes[k] outside. Behind a body's operands come inputs that nobody
/// reads, so that each of the symbols is a size of an input.
struct Closed {
  std::vector<ir::Body> bodies;
  std::vector<Expr> sizes;
};
Closed closed(std::vector<std::unique_ptr<ir::Graph>> bodies);

/// A size in a body, and the whole body, with what its symbols stand for outside.
Expr outside(Expr size, const std::vector<Expr>& sizes);
Type outside(const Type& t, const std::vector<Expr>& sizes);
std::unique_ptr<ir::Graph> outside(const ir::Graph& body, const std::vector<Expr>& sizes);

/// Text may hold any arguments: brasa::Error where a body takes fewer inputs than operands, writes inputs, has symbols that nothing stands
/// for, or computes with complex numbers.
void check_body(std::string_view op, const ir::Graph& body, size_t operands, const std::vector<Expr>& sizes);
/// The same, and where the operands are not what the body takes.
void check_body(std::string_view op, const ir::Graph& body, std::span<const Value> operands,
                const std::vector<Expr>& sizes);
/// The types of a body's results, without its checks.
std::vector<Type> result_types(const ir::Graph& body);
/// The results of a body with constant sizes, in the interpreter.
std::vector<Array> evaluate_body(const ir::Graph& body, std::vector<Array> operands);

/// Adds a node of another graph: a primitive as it stands, another row as the current Builder has it.
void add_again(Node& n, ir::ValueMap& map);
/// Adds what the graph does to the current Builder's, its checks too. Inputs behind the given ones only show sizes.
std::vector<Value> inlined(const ir::Graph& graph, std::span<const Value> inputs);

}  // namespace brasa::ops
