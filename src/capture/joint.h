#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <brasa/autograd.h>

#include "capture/backend.h"
#include "capture/trace.h"
#include "transforms/partition.h"

// AOT autograd of a recorded segment whose results want gradients. While recording, each operator got an autograd node that
// keeps its operands. When the segment ends, the backward pass through those nodes is recorded too, once; forward and
// backward are cut into two graphs by a minimum cut, and one SegmentNode takes the place of all the nodes, so that only what the cut says
// is kept. That the nodes are followed, and not the graph, makes detach() and no_grad inside of the function right.
namespace brasa::capture {

/// A node that was made while recording.
struct RecordedNode {
  std::weak_ptr<autograd::Node> node;
  uint32_t event = 0;           // the call that it belongs to
  std::vector<Number> results;  // what comes from it; empty for a view's, which only moves gradients
};

/// The autograd graph of a segment, as seen from outside.
struct GradientFlow {
  /// Recorded nodes that somebody outside the recording still holds.
  std::vector<std::shared_ptr<autograd::Node>> roots;
  /// Their results that take cotangents.
  struct Slot {
    size_t root;
    uint32_t result;
    Number number;
  };
  std::vector<Slot> slots;
  /// Where the segment's own gradients go.
  std::vector<autograd::Edge> leaves;
  /// The roots and all edges by position: equal for equal flows.
  std::vector<int32_t> key;
  /// For each event that has a node below the roots: the operands that gradients flow to.
  std::vector<std::pair<uint32_t, std::vector<bool>>> needs;
};

/// Absent if nothing outside needs gradients, or if the nodes have to stay: a hook, a custom function or a finished backward
/// pass is among them. `own` are tensors whose references are the recording's; nodes older than `first_sequence` are
/// outside of it.
std::optional<GradientFlow> gradient_flow(std::span<const RecordedNode> recorded, std::span<const Tensor* const> own,
                                          uint64_t first_sequence);

/// Forward and backward events of a segment for one flow.
struct Joint {
  std::vector<int32_t> key;
  /// For all sizes, as far as its events' facts hold; otherwise for `sizes[0]`.
  bool symbolic = false;
  /// What the trace's symbols were when it was recorded, and when recording it again gave the same.
  std::vector<std::vector<int64_t>> sizes;
  Trace trace;                    // the segment's events, an input for each cotangent, the backward events
  size_t inputs = 0, events = 0;  // of the segment alone
  std::vector<Number> roots;      // the values whose cotangents come in
  std::vector<Number> gradients;  // for each leaf; kNoNumber: none flows
  std::unordered_map<uint32_t, std::vector<bool>> needs;  // as in GradientFlow
};

/// Its two halves, compiled for runs that deliver the same values.
struct Halves {
  std::shared_ptr<const Joint> joint;
  std::shared_ptr<compiler::Executable> forward, backward;
  std::vector<transforms::Saved> saved;
  std::vector<ir::Expr> sizes;          // see transforms::Partition
  std::vector<ir::Type> intermediates;  // results of `forward` behind the deliveries
  std::vector<bool> written;            // by input: the forward run changes its memory
  runtime::Device* device = nullptr;
};
std::shared_ptr<const Halves> compile_halves(std::shared_ptr<const Joint> joint,
                                             const std::vector<Delivery>& deliveries, const Backend& backend,
                                             const CompileOptions& options, ir::Facts& facts, const Placement& place);

/// What a run of the forward half leaves for the other one.
struct SavedRun {
  std::vector<Tensor> inputs;  // of the segment, the random key among them
  std::vector<Tensor> saved;   // in the order of Halves::saved
  Binding binding;
};

/// Stands for the whole segment: takes a cotangent for each slot, gives a gradient for each leaf.
std::shared_ptr<autograd::Node> make_segment_node(std::shared_ptr<const Halves> halves, const SavedRun& run,
                                                  const GradientFlow& flow);

/// Lets the roots hand on what they receive to `segment`. Frees what they and the nodes behind them kept.
void redirect(const GradientFlow& flow, const std::shared_ptr<autograd::Node>& segment);

}  // namespace brasa::capture
