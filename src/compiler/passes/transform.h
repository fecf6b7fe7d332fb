#pragma once

#include <functional>
#include <optional>

#include "compiler/passes/passes.h"
#include "ops/algebra.h"

// What passes that change single nodes share.
namespace brasa::compiler {

/// The values that take the place of a node's results, made with the current ops::Builder from `args`, which are of the new
/// graph; none: the node is copied.
using Change = std::function<std::vector<ir::Value>(const ir::Node* n, ir::Args& args, Primitives& out)>;

/// Copies the graph with changes to nodes of the kinds that `wanted` names (empty: to any), and leaves it alone where there is none of
/// them. What is known of sizes is put in, and what that leaves without elements is computed by no loop.
void transform(Primitives& p, ir::Facts& facts, const std::function<bool(const ir::Node*)>& wanted,
               const Change& change);

/// The value, which goes to memory.
ir::Value in_memory(ir::Value v, Primitives& out);
/// A value made anew in memory, contiguous.
ir::Value copied(ir::Value v, Primitives& out);

/// A view again, of another operand.
ir::Value again(const ir::Node* view, ir::Value operand);
/// What views alone make it of.
ir::Value below_views(ir::Value v);
/// A value that is made by views alone of what was widened from this dtype, before that; absent where it is not.
ir::Value before_widening(ir::Value v, DType narrow);

/// The number that all its elements are; absent where it is no literal that views repeat.
std::optional<double> number_of(ir::Value v);
/// That is 0 or -0.
inline bool is_zero(ir::Value v) { return number_of(v) == 0.0; }

/// Whether it has one value for all elements along these dimensions; the first of those.
bool is_constant_along(ir::Value v, const std::vector<int64_t>& dims);
ir::Value first_along(ir::Value v, const std::vector<int64_t>& dims, const ir::Shape& kept);

/// Its first elements along every dimension; and with so many zeros behind them.
ir::Value first_of(ir::Value x, const ir::Shape& size);
ir::Value zeros_behind(ir::Value x, const std::vector<ir::Expr>& counts);

ir::Shape pick(const ir::Shape& shape, const std::vector<int64_t>& dims);
/// Dims of size 0: no elements.
bool is_empty(const ir::Shape& shape);
/// A reduction, or what it is of nothing, or of dimensions of one element each.
ir::Value reduced(ir::Value x, const std::vector<int64_t>& dims, const std::string& combiner);
/// What does not change a result of the combiner.
ir::Value identity(const std::string& combiner, DType t);

}  // namespace brasa::compiler
