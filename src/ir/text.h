#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::ir {

/// The graph as text, the same for equal graphs built in the same order; `parse` reads it back. It is what tests,
/// `explain()`, the cache and the minifier use.
///
///     graph operators "gelu" {
///       symbols s0>=2, s1>=0/8
///       where [s0 != s1]            if facts are given
///       %0 = input: f32[s0, 64] "x" strides=[s1, 1]
///       %1 = aten::gelu(%0, approximate="tanh"): f32[s0, 64]
///       return %1, %2.1 -> 0
///     }
///
/// A graph among the arguments stands there as its own text. Operands come as %id or %id.result; other arguments carry their parameter's name and are left out at their default.
/// Long expressions have names, in a line `let [e0 = …, e1 = …]`. A size symbol states its least value and its divisor. Ranges declare themselves where they are first used: r3<64>.
/// `facts`: what the symbols must fulfil for the graph to be right.
std::string print(const Graph& graph, std::span<const Fact> facts = {});
/// One node's line without the line break.
std::string print(const Node& node);

using OpFinder = std::function<const Op*(std::string_view name)>;
/// brasa::Error with line and reason on text that `print` would not write. `find` gives null for an unknown op. Text with facts is read
/// where somebody asks for them.
std::unique_ptr<Graph> parse(std::string_view text, const OpFinder& find, std::vector<Fact>* facts = nullptr);

}  // namespace brasa::ir
