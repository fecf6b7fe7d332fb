#pragma once

#include <compare>
#include <memory>
#include <unordered_set>

#include "ir/graph.h"
#include "ops/scalar_op.h"

namespace brasa::compiler {

struct ExpandedMath {
  std::unique_ptr<ir::Graph> graph;
  /// Nodes whose results must not be contracted into an FMA.
  std::unordered_set<const ir::Node*> exact;
  /// Quotients 1 / x that a GPU's instruction may give, at most 1 ulp off; x is no denormal number.
  std::unordered_set<const ir::Node*> reciprocals;
};

/// Whether float32 and narrower floats take double elements on the way.
bool computes_in_double(ops::ScalarOp op);

/// A function that no processor has an instruction for (exp, sin, …), of elements of one dtype.
struct MathFunction {
  ops::ScalarOp op;
  DType dtype;
  auto operator<=>(const MathFunction&) const = default;
};
bool is_function(MathFunction f);

/// What of functions a target has instructions for.
struct MathInstructions {
  bool gpu = false;     // powers of 2 and 1 / sqrt(x) in float32
  bool scales = false;  // x · 2^n
};

/// A copy of a loop graph in which every such function is spelled out in arithmetic, at most 4 ulp off in float32 and float64; on a GPU, where
/// only reduced floats are made of it, a tenth of theirs. Shared by all targets. On a CPU one that would be spelled out very often stays a node, for a call of its `function_body`. Unless
/// numbers are strict, 1 + erf x is a function of its own.
ExpandedMath expand_math(const ir::Graph& graph, MathInstructions has, bool strict);
/// A kernel that stores the function of its numbers.
ExpandedMath function_body(MathFunction f, MathInstructions has);

}  // namespace brasa::compiler
