#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <brasa/autograd.h>

#include "capture/backend.h"
#include "capture/trace.h"
#include "capture/workspace.h"
#include "support/mutex.h"
#include "support/pool_allocator.h"
#include "transforms/partition.h"

// AOT autograd of a recorded segment whose results want gradients. While recording, each operator got an autograd node. When
// the segment ends, the joint graph is derived from the segment's graph, node by node, along the edges that the nodes have: that they
// are followed makes detach() and no_grad inside of the function right, and the derivative stops where the segment began. A
// minimum cut gives a forward and a backward graph, and one SegmentNode takes the place of all the nodes, so that only what the
// cut says is kept.
namespace brasa::capture {

/// A node that was made while recording.
struct RecordedNode {
  std::weak_ptr<autograd::Node> node;
  uint32_t event = 0;              // the call that it belongs to
  SmallVector<Number, 2> results;  // what comes from it; empty for a view's, which only moves gradients
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
  /// The nodes below the roots, by position among the recorded ones; their edges lead to a node or to a leaf.
  struct Target {
    int32_t node = -1, leaf = -1;
    uint32_t result = 0;  // of the node
    bool flows() const { return node >= 0 || leaf >= 0; }
  };
  struct Step {
    uint32_t node;
    PooledVector<Target> targets;
  };
  std::vector<Step> steps;
  /// Nodes of views below the roots that somebody outside still holds. They stay, and so they know only what reaches them from outside.
  struct View {
    uint32_t node;
    std::shared_ptr<autograd::Node> held;
  };
  std::vector<View> views;
  /// The roots, the views and all edges by position: equal for equal flows.
  std::vector<int32_t> key;
};

/// Absent if nothing outside needs gradients, or if the nodes have to stay: a hook, a custom function or a finished backward
/// pass is among them. `own` are tensors whose references are the recording's; nodes older than `first_sequence` are
/// outside of it.
std::optional<GradientFlow> gradient_flow(std::span<const RecordedNode> recorded, std::span<const Tensor* const> own,
                                          uint64_t first_sequence);

class Derivation;

/// A segment and its derivative for one flow; right where the conditions hold.
struct JointSegment {
  std::vector<int32_t> key;
  program::Conditions conditions;
  std::shared_ptr<Derivation> derivation;  // null where there is none: the nodes run
  std::vector<Number> roots;               // what the nodes gave whose cotangents come in, by slot
  Trace trace;                             // the segment's events, for derivatives of the derivative
  /// Whether a gradient flows to an operand, and the leaf to which it leaves the segment from there, or the slot of the root that it goes
  /// to (-1: neither): as a gradient of the value `at`, which the operand is a view of, or itself. On its way the first held view: the
  /// operand is a view of the value `view_at`, or itself. The value that the operator's node gave which it comes from: `made`, which is not
  /// `at` where the memory was written without gradients since.
  struct Source {
    bool flows = false;
    int32_t leaf = -1, root = -1, view = -1;
    Number at = kNoNumber, view_at = kNoNumber, made = kNoNumber;
  };
  /// By input of the segment: whether derivatives of the derivative read it.
  std::vector<bool> replayed;
  /// By slot: whether another root's gradient flows through it. By held view: whether an operator's does.
  std::vector<bool> inside, views;
  /// By slot, by slot: whether an operator whose operands backward reads lies below both, so that a backward pass from one leaves nothing for
  /// one from the other.
  std::vector<std::vector<bool>> spends;
  /// By leaf, by slot: whether a gradient flows from there.
  std::vector<std::vector<bool>> reached;
  /// By event that has a node below the roots, by operand.
  std::unordered_map<uint32_t, std::vector<Source>> sources;
};
std::shared_ptr<const JointSegment> derive(const Trace& trace, const Binding& binding,
                                           std::span<const RecordedNode> recorded, const GradientFlow& flow);

/// Its halves: one runs with the call and delivers these values; the other one, for each set of cotangents that comes back, when it does.
class Halves : public program::Attachment {
 public:
  Halves(std::shared_ptr<const JointSegment> joint, const std::vector<Delivery>& deliveries, const Backend& backend,
         const CompileOptions& options, ir::Facts& facts, runtime::Device& device);

  std::shared_ptr<const JointSegment> joint;
  program::Variant forward;
  std::vector<transforms::Saved> saved;
  std::vector<ir::Type> intermediates;  // results of `forward` behind the deliveries
  std::vector<bool> written;            // by input: the forward run changes its memory

  /// Gives gradients from cotangents of some slots.
  struct Backward {
    std::vector<bool> given;         // by slot
    program::Conditions conditions;  // of the segment's symbols
    program::Variant variant;
    std::vector<size_t> saved, inputs, slots;  // its operands, by position, in this order
    std::vector<ir::Expr> sizes;               // behind them: see transforms::BackwardGraph
    std::vector<bool> gives;                   // by leaf: one of its results
  };
  /// Null beyond the recompile limit. Threads may ask side by side.
  const Backward* backward(const std::vector<bool>& given, const Binding& binding) const;

 private:
  program::Variant ready(std::unique_ptr<ir::Graph> graph, ir::Facts& facts) const;
  void decompose(const std::vector<ir::Value>& values, ir::Facts& facts) const;
  std::unique_ptr<Backward> make_backward(const std::vector<bool>& given, const Binding& binding) const;

  Backend backend_;
  CompileOptions options_;
  runtime::Device& device_;
  // The joint graph in primitives, as far as it was needed, what became of its values, and those that are saved.
  mutable ir::Graph primitives_{ir::Level::Primitives};
  mutable ir::ValueMap map_;
  std::vector<ir::Value> values_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Backward>> backwards_;
};

/// What a run of the forward half leaves for the other one.
struct SavedRun {
  std::vector<Tensor> inputs;  // of the segment, the random key among them
  std::vector<Tensor> saved;   // in the order of Halves::saved
  Binding binding;
};

/// Memory for what the forward half leaves for backward, and operands for what it has to compute for that. `fresh` is the memory of the
/// deliveries that are written into no input.
void keep_for_backward(const Halves& halves, const std::vector<Delivery>& deliveries, std::span<const Fresh> fresh,
                       runtime::Device& device, SavedRun& run, std::vector<compiler::Operand>& outputs);

/// Stands for the whole segment: takes a cotangent for each slot, gives a gradient for each leaf.
std::shared_ptr<autograd::Node> make_segment_node(std::shared_ptr<const Halves> halves, const SavedRun& run,
                                                  const GradientFlow& flow);

/// The same for a run without halves: operators run again for the derivative. `run` keeps what they read as it was before the run.
std::shared_ptr<autograd::Node> make_replaying_node(std::shared_ptr<const JointSegment> joint, runtime::Device& device,
                                                    const SavedRun& run, const GradientFlow& flow);

/// A node of that name whose backward is this error.
std::shared_ptr<autograd::Node> make_failing_node(std::string error);

/// In its place after a run that failed: backward through it is an error.
std::shared_ptr<autograd::Node> make_failed_node(const GradientFlow& flow);

/// Lets the roots hand on what they receive to `segment`. Frees what they and the nodes behind them kept.
void redirect(const GradientFlow& flow, const std::shared_ptr<autograd::Node>& segment);

}  // namespace brasa::capture
