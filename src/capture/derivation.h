#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/joint.h"
#include "support/mutex.h"

namespace brasa::capture {

/// Derives a segment, for one flow of gradients, as parts of one graph of operators without outputs: the derivative of each node that
/// gradients flow through is a row derived from the row of its event, with that event's arguments. The graph grows by what is asked for.
/// Whoever works with it locks `mutex`.
class Derivation {
 public:
  /// `trace` stays where it is.
  Derivation(const Trace& trace, std::span<const RecordedNode> recorded, const GradientFlow& flow);

  /// Gradients by leaf (absent: none flows) from cotangents of the slots that `given` marks. What they assume of the sizes goes to `facts`.
  std::vector<ir::Value> pull(const std::vector<bool>& given, ir::Facts& facts);
  /// Once: what the joint that it belongs to says of the flow.
  void describe(JointSegment& joint, const ir::Facts& facts);

  /// Inputs: the segment's, its arguments, then a cotangent for each slot.
  ir::Graph& graph() { return *body_.graph; }
  ir::Value value(Number n) const { return body_.values.at(n); }
  /// Before the cotangents.
  size_t inputs() const { return inputs_; }

  Mutex mutex;

 private:
  using Target = GradientFlow::Target;
  using Results = SmallVector<Number, 2>;
  static constexpr auto kNone = static_cast<size_t>(-1);
  // A node that gradients flow through.
  struct Step {
    uint32_t node = 0, event = 0;
    PooledVector<Target> targets;
    Results results;                  // empty: of a view
    const ops::Row* moves = nullptr;  // a view's
    bool stays = false;               // a view's whose elements lie as those of what it is of
    size_t self = kNone;              // of a write into a view: the target of what the view is of
  };
  // A cotangent and the number that it is one of.
  struct Cotangent {
    ir::Value value;
    Number number;
  };

  const Step& step_of(int32_t node) const { return steps_[place_.at(static_cast<size_t>(node))]; }
  struct CallAlone {
    std::unique_ptr<ir::Graph> graph;
    ir::Args args;
    std::unordered_map<uint32_t, ir::Value> operands;  // by number
  };
  CallAlone alone(const Event& e) const;
  std::vector<bool> find_reached(JointSegment& joint, size_t slot, const ir::Facts& facts);
  std::vector<bool> flows_of(const Step& s, uint32_t result, const ir::Facts& facts);
  bool share(const std::vector<bool>& a, const std::vector<bool>& b, const ir::Facts& facts);
  bool keeps(const Step& s, const ir::Facts& facts);
  bool reads_operands(const Step& s, const ir::Facts& facts) const;
  std::vector<JointSegment::Source> sources_of(const Step& s);
  void set_end(JointSegment::Source& source, const Target& to) const;
  void add_put_sources(const Step& s);
  const Event* view_event(const Step& s, Number number) const;
  std::vector<ir::Value> pull(const Event& e, const std::vector<bool>& needs, const std::vector<ir::Value>& cts);
  Cotangent pull_operand(const Event& e, size_t operand, const Cotangent& ct);
  Cotangent pull_to(Cotangent ct, Number number);
  bool is_one_read(Number a, Number b) const;
  void send(const Target& to, const Cotangent& ct);
  std::vector<Cotangent> arrived(uint32_t node, uint32_t result);
  ir::Value arrived_in(const Step& s, uint32_t result);
  void view(const Step& s);
  std::vector<ir::Value> results_of(const Step& s, const Event& e);
  void call(const Step& s);
  void send_operands(const Step& s, const Event& e, const std::vector<ir::Value>& cts, size_t self, Number base);
  Number made_by(uint32_t node, uint32_t result, Number now) const;
  void write(const Step& s);

  const Trace& trace_;
  Trace::Body body_;
  size_t inputs_;
  std::vector<Step> steps_;    // later nodes first: edges lead to earlier ones
  std::vector<size_t> place_;  // of a node among the steps
  struct Slot {
    uint32_t node, result;
    Number number;
    ir::Value cotangent;
  };
  std::vector<Slot> slots_;
  size_t leaves_;
  std::vector<const Event*> event_of_;                     // by number
  std::map<std::pair<uint32_t, uint32_t>, size_t> roots_;  // by node and result: the slot
  std::unordered_map<uint32_t, int32_t> views_;            // by node
  // Of the pull that is under way.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Cotangent>> arrived_;
  std::vector<ir::Value> gradients_;
  // For the description.
  std::unordered_map<uint32_t, std::vector<JointSegment::Source>> sources_;
  std::vector<bool> passed_;                  // by held view: an operand's gradient goes through it
  std::unordered_map<uint32_t, bool> keeps_;  // by node
  std::unordered_map<uint32_t, std::vector<std::vector<bool>>> flows_;  // by node; by result and target
};

}  // namespace brasa::capture
