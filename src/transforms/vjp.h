#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::transforms {

/// Appends to the current Builder's graph the cotangents of `inputs` for cotangents `cts` of `outputs`; absent Values mean
/// zero, in both directions. The graph may hold primitives and composed rows that bring their own derivative; composed
/// rows without one must have been expanded (see `joint`). Integer values carry no gradient.
std::vector<ir::Value> pullback(const std::vector<ir::Value>& outputs, const std::vector<ir::Value>& cts,
                                const std::vector<ir::Value>& inputs);

/// The joint graph of AOT autograd: computes the outputs of `graph` and, in the same graph, cotangents of its inputs.
/// Inputs: those of `graph`, then one cotangent for each output that `has_cotangent` marks.
/// Outputs: those of `graph` (checks at their place), then one for each input that `needs` marks and that the outputs depend
/// on; `gradient_of[i]` is the position of input i's cotangent among all outputs, or -1.
/// New facts about sizes go to `facts`.
struct JointGraph {
  std::unique_ptr<ir::Graph> graph;  // primitives, and what detaches
  std::vector<int> gradient_of;
  std::vector<bool> published;  // by result: an operator of PyTorch's with a derivative of its own gives it
};
JointGraph joint(const ir::Graph& graph, ir::Facts& facts, const std::vector<bool>& needs,
                 const std::vector<bool>& has_cotangent);

/// The value, reshaped where its shape is spelled differently: sizes of different operands are different symbols, also where they are
/// equal, and reshaping makes that a fact.
ir::Value of_shape(ir::Value v, const ir::Shape& shape);

/// Rows that are differentiated as they stand: primitives, and compositions with a derivative of their own.
bool has_own_derivative(const ops::Row& row);
/// Of an operator of PyTorch's that has a derivative of its own; those of parts that operators are composed of are nobody's business.
bool has_published_derivative(ir::Value v);
/// Whether it is a sum, product or quotient of elements, which PyTorch's nodes do not keep.
bool is_plain_arithmetic(ir::Value result);

/// By input: whether a gradient flows to it from those of the first outputs that `given` marks, though it be one of zeros, as that of
/// floor. There is none where the others alone depend on the input; of a derivative's inputs, where these outputs do not.
std::vector<bool> flows(const ir::Graph& primitives, const std::vector<bool>& given, bool of_derivative);

/// Appends to the current Builder's graph the derivative of `graph` at `inputs`: the cotangents of the inputs that `needs` marks, absent
/// where none flows, for one cotangent for each output that `given` marks. An output that the caller has in `results` (empty: none) is
/// not computed again. Checks of the graph are left out: they held when it ran.
std::vector<ir::Value> flowing(const ir::Graph& graph, const std::vector<bool>& needs, std::vector<bool> given,
                               std::span<const ir::Value> inputs, std::span<const ir::Value> cts,
                               const std::vector<ir::Value>& results, bool of_derivative);
/// The same with zeros where none flows.
std::vector<ir::Value> derivative(const ir::Graph& graph, const std::vector<bool>& needs, std::vector<bool> given,
                                  std::span<const ir::Value> inputs, std::span<const ir::Value> cts,
                                  const std::vector<ir::Value>& results = {});

}  // namespace brasa::transforms
