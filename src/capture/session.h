#pragma once

#include <unordered_map>
#include <vector>

#include "capture/functional.h"
#include "capture/joint.h"
#include "capture/names.h"
#include "capture/pace.h"
#include "capture/path.h"
#include "capture/state.h"
#include "capture/watch.h"
#include "compiler/run/ahead.h"

namespace brasa::capture {

/// One call of a compiled function: what its tensors are among the values of the path that it takes. Runs the segment's graph
/// at a break and at the end.
class Session : public Functional {
 public:
  /// `watch`: of a pure function. `work`: what it does goes there.
  explicit Session(detail::CompiledState& state, Watch* watch = nullptr, Work* work = nullptr);
  ~Session() override;

  bool follow(const ops::Row& row, std::span<const CallArg> args, eager::Results& results) override;
  uint32_t last_call() const override { return static_cast<uint32_t>(path_.position() - 1); }
  void made(const std::shared_ptr<autograd::Node>& node, uint32_t call, std::span<const Tensor> results) override;
  Tensor result_of(const autograd::Node& node, uint32_t result) override;
  void drew(const Tensor& key, const Generator& stream, uint64_t count) override;
  void host_reads(const Tensor& t, const char* what) override;
  void meets_gradient(const Tensor& leaf) override;
  void materialise(const char* reason) override;
  bool may_end() const override { return !state_.options.fullgraph; }
  /// Before a call that is in the graph as it is: a segment ends there, and the next one begins behind it.
  void before_opaque_call();

  /// From here on it takes named integers as what they were made of. The recording has to be one segment.
  Names& know_sizes();
  /// What is recorded since the last break as a graph that gives these tensors, and what its symbols are in this call.
  std::unique_ptr<ir::Graph> graph_of(std::span<const Tensor> tensors);
  const Binding& binding() const { return path_.binding(); }
  /// Runs what was recorded since the last break.
  void finish();
  /// Instead: nothing of what was recorded happens.
  void abandon();
  /// The tensors from outside that it has read, by input of the segment.
  const BoundInputs& inputs() const { return inputs_; }

 private:
  Number record(const ops::Row& row, std::span<const CallArg> args, const Operands& operands, bool view,
                uint32_t& count) override;
  Number record_put(const ops::Row& view, int result, std::span<const CallArg> args, const Operands& operands,
                    Number value) override;
  Number outside(const Tensor& t) override;
  bool may_hold(const Tensor& target, Number& value) override;
  Held& hold_outside(const Tensor& t) override;
  void moves(const Tensor& t) override;
  void changes(const Held& held) override;
  void place(std::span<const CallArg> args) override;
  runtime::Device& device() const { return device_ ? *device_ : runtime::host(); }
  Tensor make_recorded(Number n) final;
  // The same without a call, for `follow`.
  [[gnu::always_inline]] inline Tensor make(Number n);
  Tensor make_sized(Number n);

  void note_break(const char* reason);
  void next_segment();
  void run_segment();
  void begin(ResumePoint& point);
  const program::Variant* variant_for(const std::vector<Delivery>& deliveries,
                                      const std::shared_ptr<const JointSegment>& joint,
                                      std::span<const compiler::Operand> inputs, program::SymbolValues& symbols);
  Lasting lasting_inputs(const ir::Graph& graph) const;
  std::shared_ptr<compiler::Executable> executable(const Trace& trace, const std::vector<Delivery>& deliveries,
                                                   const ir::Graph& graph, ir::Facts& facts);
  program::Variant compiled(const std::vector<Delivery>& deliveries, const std::shared_ptr<const JointSegment>& joint);
  bool run_compiled(const std::vector<Delivery>& deliveries, const std::vector<Held*>& fresh,
                    const std::shared_ptr<const JointSegment>& joint, const std::optional<GradientFlow>& flow);
  void run_uncompiled(const std::vector<Delivery>& deliveries, const std::shared_ptr<const JointSegment>& joint,
                      const std::optional<GradientFlow>& flow);
  SavedRun kept_for_replay(const JointSegment& joint, const std::vector<Delivery>& deliveries,
                           const std::vector<Tensor>& inputs) const;
  void deliver(bool compile);
  bool keep_results();
  void deliver_until_error();
  void store(Held& h, const Tensor& value);
  void count_work(const program::Variant& variant, const program::SymbolValues& symbols);
  std::optional<GradientFlow> find_gradient_flow();
  std::shared_ptr<const JointSegment> joint_for(const GradientFlow& flow);
  void begin_ahead();
  void run_ahead(const Tensor& input);
  void give_up_ahead();
  void run(const program::Variant& variant, const program::SymbolValues& symbols,
           std::span<const compiler::Operand> inputs, std::span<const compiler::Operand> outputs);

  detail::CompiledState& state_;
  Watch* watch_;
  Work* work_;
  Path path_;
  bool finished_ = false;
  int breaks_ = 0;
  runtime::Device* device_ = nullptr;  // of the segment; null before the first call that says it

  BoundInputs inputs_;
  // The run of what this trace ran the last time, as far as the inputs allow.
  std::unique_ptr<compiler::RunAhead> ahead_;
  Trace* ahead_of_ = nullptr;
  std::vector<RecordedNode> nodes_;
  // Of the nodes up to now, and of those that they write by, the position among them; made when one is asked for.
  std::unordered_map<const autograd::Node*, uint32_t> position_of_;
  size_t known_nodes_ = 0;
  bool differentiated_ = false;  // the segment that runs: autograd has noted some of it
  // What writes replaced, and the number of events before each.
  struct Write {
    size_t position;
    uint32_t held;
    Number before;
  };
  std::vector<Write> writes_;
  uint64_t first_sequence_ = 0;   // of autograd nodes made in this segment
  std::unique_ptr<Names> names_;  // absent: nobody asked for names
};

}  // namespace brasa::capture
