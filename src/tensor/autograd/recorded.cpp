#include <algorithm>
#include <array>
#include <optional>

#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/record.h"
#include "tensor/autograd/saved.h"
#include "tensor/execute.h"
#include "tensor/parse.h"
#include "tensor/recorder.h"
#include "tensor/views.h"
#include "transforms/derived.h"

// The autograd graph of calls that a recorder kept.
namespace brasa::autograd {
namespace {

// Backward of a row by its derived row, for calls that a recorder kept: the arguments are snapshots.
class RowNode final : public Node, public Pooled {
 public:
  RowNode(eager::Operator& op, std::shared_ptr<eager::ArgStore> args, std::vector<bool> needs)
      : op_(op), args_(std::move(args)), needs_(std::move(needs)) {
    snapshots_.reserve(args_->tensors().size());
    for (const Tensor& t : args_->tensors()) {
      const Storage* storage = impl_of(t)->storage.get();
      snapshots_.push_back({storage, storage->version()});
    }
  }
  std::string name() const override { return op_.backward_name(); }
  std::weak_ptr<Node> self;
  std::optional<DType> computed;  // of a write: what the row gave, which became the target's dtype

  // brasa::Error if the derivative reads operands that were made in inference mode, as eager has it.
  template <class Metas>
  void check_kept(eager::CallArgs given, const Metas& of_results) const {
    bool any = false;
    eager::each_tensor(given, [&](const Tensor& t) { any = any || impl_of(t)->inference; });
    if (!any) return;
    std::vector<bool> inference;
    eager::each_tensor(given, [&](const Tensor& t) { inference.push_back(impl_of(t)->inference); });
    std::vector<const Tensor*> operands;  // in the order of those given
    eager::each_tensor(args_->args(), [&](const Tensor& t) { operands.push_back(&t); });
    Optionals results = stand_ins(of_results), cts = stand_ins(of_results);
    each_read(results, cts, [&](const Tensor* t) {
      auto k = std::find(operands.begin(), operands.end(), t) - operands.begin();
      if (static_cast<size_t>(k) < operands.size()) check_saved(inference[k]);
    });
  }

  void keep_results(const std::function<Tensor(uint32_t)>& result) {
    if (internals_->released) return;
    std::vector<bool> reads = reads_results();
    results_.resize(reads.size());
    for (uint32_t r = 0; r < reads.size(); ++r)
      if (Tensor t = reads[r] ? result(r) : Tensor(); t.defined()) results_[r] = {t, impl_of(t)->storage->version()};
  }

 protected:
  variable_list apply(variable_list&& grads) override {
    std::lock_guard lock(internals_->mutex);
    BRASA_CHECK(!internals_->released || !reads_values(), second_time(name()));
    variable_list out(needs_.size());
    std::vector<bool> given = given_of(grads, internals_->results.size());
    if (std::find(given.begin(), given.end(), true) == given.end()) return out;
    const std::vector<bool> needs = flowing(given);
    if (std::find(needs.begin(), needs.end(), true) == needs.end()) return out;
    Optionals cts(given.size());
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i]) cts[i] = grads[i].to(computed.value_or(grads[i].scalar_type()));
    // Where the derivative is to have one itself, what it reads leads on: operands to what they came from, results to this node.
    std::optional<eager::ArgStore> own;
    if (GradMode::is_enabled()) without_history(own.emplace(args_->args()));
    eager::ArgStore& operands = own ? *own : *args_;
    Optionals results_of_call(given.size());
    find_results(results_of_call);
    eager::Literals defaults;
    std::vector<CallArg> args = derivative_args(operands, results_of_call, cts, defaults);
    eager::Operator& backward = op_.backward(needs, given);
    check_unwritten(backward, args, operands.tensors());
    if (own) add_history(backward, args, operands, results_of_call);
    std::vector<Tensor> results = eager::call_list(backward, args);
    for (size_t i = 0, k = 0; i < needs.size(); ++i)
      if (needs[i]) out[i] = std::move(results[k++]);
    return out;
  }
  void release_variables() override {
    std::lock_guard lock(internals_->mutex);
    if (std::exchange(internals_->released, true)) return;
    if (internals_->forwards) return args_.reset();
    results_.clear();
    // Shapes alone: a node that reads no values can run again.
    snapshots_.clear();
    for (Tensor& t : args_->tensors())
      if (t.defined()) t = without_values(ResultMeta(t), impl_of(t)->weak);
  }
  void for_each_saved(const std::function<void(const Tensor&)>& f) const override {
    if (!args_) return;
    eager::each_tensor(args_->args(), f);
  }

 private:
  using Optionals = std::vector<std::optional<Tensor>>;
  struct Result {
    Tensor value;
    uint32_t version = 0;
  };

  // Those of forward, then the results and the cotangents. `defaults` holds what the caller left out.
  std::vector<CallArg> derivative_args(const eager::ArgStore& operands, const Optionals& results, const Optionals& cts,
                                       eager::Literals& defaults) const {
    std::vector<CallArg> args = operands.args().vec();
    defaults.fill_up(args, op_.row(), op_.row().schema.params.size());
    args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(results)));
    args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(cts)));
    return args;
  }

  static Tensor without_values(const ResultMeta& like, bool weak = false) {
    Tensor t = stand_in(like.dtype, like.sizes, *like.device);
    impl_of(t)->weak = weak;
    return t;
  }

  // Of the operands that need gradients those to which one flows.
  std::vector<bool> flowing(const std::vector<bool>& given) const {
    if (!transforms::may_not_flow(op_.row(), given.size())) return needs_;
    // From all results of a call that is no derivative a gradient flows to every operand, though it be one of zeros.
    bool all = std::find(given.begin(), given.end(), false) == given.end();
    if (all && !transforms::is_backward(op_.row())) return needs_;
    std::vector<CallArg> args = args_->args().vec();
    eager::Parsed p;
    const eager::RowComputation& computation = computation_of(op_, args, p);
    std::vector<bool> needs(p.inputs.size()), flows = needs_;
    size_t operand = 0, input = 0;
    eager::each_tensor(args, [&](const Tensor& t) {
      while (p.inputs[input].tensor != &t) ++input;
      needs[input] = needs_[operand++];
    });
    std::vector<eager::InputTensor> operands(p.inputs.begin(), p.inputs.end());
    Optionals results = stand_ins();
    for (const auto& t : results) operands.push_back(t ? eager::InputTensor::of(*t) : eager::InputTensor{});
    for (size_t r = 0; r < given.size(); ++r)
      if (given[r]) operands.push_back(eager::InputTensor::of(*results[r]));
    std::vector<bool> gives = eager::gives_of(computation.backward(needs, given), operands);
    size_t next = 0;
    for (size_t k = 0; k < flows.size(); ++k)
      if (flows[k]) flows[k] = gives.at(next++);
    return flows;
  }

  // What stands for results, or cotangents: shapes alone.
  Optionals stand_ins() const { return stand_ins(internals_->results); }
  template <class Metas>
  Optionals stand_ins(const Metas& of_results) const {
    Optionals out;
    for (ResultMeta meta : of_results) {
      if (computed) meta.dtype = *computed;
      bool flows = meta.defined && differentiable(meta.dtype);
      out.push_back(flows ? std::optional(without_values(meta)) : std::nullopt);
    }
    return out;
  }

  // Calls f for each tensor that the derivative is computed from, where there are these results.
  template <class F>
  void each_read(const Optionals& results, const Optionals& cts, F f) const {
    std::vector<bool> given;
    for (const auto& ct : cts) given.push_back(ct.has_value());
    eager::Literals defaults;
    std::vector<CallArg> args = derivative_args(*args_, results, cts, defaults);
    eager::Parsed p;
    const eager::RowComputation& computation = computation_of(op_.backward(needs_, given), args, p);
    std::vector<bool> reads = eager::reads_of(computation, p.inputs);
    for (size_t i = 0; i < reads.size(); ++i)
      if (reads[i] && p.inputs[i].tensor) f(p.inputs[i].tensor);
  }
  static bool holds(const Optionals& list, const Tensor* t) {
    return std::any_of(list.begin(), list.end(), [&](const auto& item) { return item && &*item == t; });
  }

  // Whether the derivative is computed from operands' values, too.
  bool reads_values() const {
    Optionals cts = stand_ins(), none(cts.size());
    bool any = false;
    each_read(none, cts, [&](const Tensor* t) { any = any || !holds(cts, t); });
    return any;
  }

  std::vector<bool> reads_results() const {
    Optionals cts = stand_ins(), results = stand_ins();
    std::vector<bool> out(results.size());
    each_read(results, cts, [&](const Tensor* t) {
      for (size_t r = 0; r < out.size(); ++r) out[r] = out[r] || (results[r] && &*results[r] == t);
    });
    return out;
  }

  // A snapshot shares memory that its own recording did not write; what came later may have.
  void check_unwritten(eager::Operator& backward, eager::CallArgs args, const std::vector<Tensor>& tensors) const {
    std::vector<bool> written;
    for (size_t k = 0; k < snapshots_.size(); ++k) {
      const Storage* now = impl_of(args_->tensors()[k])->storage.get();
      written.push_back(now == snapshots_[k].storage && now->version() != snapshots_[k].version);
    }
    if (std::none_of(written.begin(), written.end(), [](bool b) { return b; })) return;
    eager::Parsed p;
    const eager::RowComputation& computation = computation_of(backward, args, p);
    std::vector<bool> reads = eager::reads_of(computation, p.inputs);
    for (size_t k = 0; k < written.size(); ++k)
      for (size_t i = 0; i < p.inputs.size(); ++i)
        BRASA_CHECK(!written[k] || p.inputs[i].tensor != &tensors[k] || !reads[i],
                    modified(tensors[k], name(), impl_of(tensors[k])->storage->version(), snapshots_[k].version));
  }

  // Those that the recording knows, or that were kept when it ended: derivatives of the derivative flow through them, where hooks see them.
  void find_results(Optionals& results) const {
    Recorder* recorder = GradMode::is_enabled() ? Recorder::current() : nullptr;
    for (uint32_t r = 0; r < results.size(); ++r) {
      Tensor t = recorder ? recorder->result_of(*this, r) : Tensor();
      if (!t.defined() && r < results_.size()) t = kept(results_[r]);
      if (t.defined()) results[r] = std::move(t);
    }
  }

  Tensor kept(const Result& result) const {
    if (!result.value.defined()) return {};
    uint32_t now = impl_of(result.value)->storage->version();
    BRASA_CHECK(now == result.version, modified(result.value, name(), now, result.version));
    return shallow_copy(result.value);
  }

  static void without_history(eager::ArgStore& operands) {
    Recorder* recorder = Recorder::current();
    for (Tensor& t : operands.tensors()) {
      t = recorder ? recorder->snapshot(t) : shallow_copy(t);
      if (impl_of(t)->view) impl_of(t)->view->differentiable = false;  // nor by its base
    }
  }

  // Operands of an optional sort have theirs.
  void add_history(eager::Operator& backward, eager::CallArgs args, eager::ArgStore& operands,
                   Optionals& results) const {
    eager::Parsed p;
    const eager::RowComputation& computation = computation_of(backward, args, p);
    std::vector<bool> reads = eager::reads_of(computation, p.inputs);
    auto read = [&](const Tensor& t) {
      for (size_t i = 0; i < reads.size(); ++i)
        if (reads[i] && p.inputs[i].tensor == &t) return true;
      return false;
    };
    size_t operand = 0;
    const Tensor *next = operands.tensors().data(), *end = next + operands.tensors().size();
    eager::each_tensor(operands.args(), [&](const Tensor& t) {
      size_t i = operand++;
      if (next == end || &t != next) return;
      if (needs_[i] && (op_.row().gradients_together || read(t)))
        set_history(t, next_edges_[i].function, next_edges_[i].input_nr);
      ++next;
    });
    std::shared_ptr<Node> me = internals_->stands_for.lock();
    if (!me) me = self.lock();
    for (uint32_t r = 0; r < results.size(); ++r) {
      if (!results[r]) continue;
      // With sizes that are known it could be read after all, in place of what the operands give, and nothing would flow to it.
      if (!read(*results[r]))
        results[r].reset();
      else if (me && differentiable(results[r]->scalar_type()))
        set_history(*results[r], me, r);
    }
  }

  eager::Operator& op_;
  std::shared_ptr<eager::ArgStore> args_;
  std::vector<bool> needs_;
  struct Snapshot {
    const Storage* storage;
    uint32_t version;
  };
  PooledVector<Snapshot> snapshots_;  // of the tensors in args_
  std::vector<Result> results_;       // those that were kept
};

std::shared_ptr<RowNode> recorded_node(eager::Operator& op, eager::CallArgs args, Recorder& recorder) {
  if (!GradMode::is_enabled() || op.row().no_gradient) return nullptr;
  std::vector<bool> needs;
  std::vector<Edge> edges;
  edges.reserve(args.size());
  bool any = false, normal = false;
  eager::each_tensor(args, [&](const Tensor& t) {
    needs.push_back(takes_part(t));
    edges.push_back(needs.back() ? gradient_edge(t) : Edge{});
    any = any || needs.back();
    normal = normal || !impl_of(t)->inference;
  });
  if (!any || !normal) return nullptr;
  auto store = std::allocate_shared<eager::ArgStore>(PoolAllocator<eager::ArgStore>(), args);
  for (Tensor& t : store->tensors()) t = recorder.snapshot(t);
  auto node = make_node<RowNode>(op, std::move(store), std::move(needs));
  node->self = node;
  NodeAccess::edges(*node) = std::move(edges);
  return node;
}

}  // namespace

void keep_results(Node& node, const std::function<Tensor(uint32_t)>& result) {
  if (auto* row = dynamic_cast<RowNode*>(&node)) row->keep_results(result);
}

void attach_recorded(eager::Operator& op, eager::CallArgs args, Recorder& recorder, eager::Results& results) {
  if (!GradMode::is_enabled()) return;
  bool any = false;
  for (size_t i = 0; i < results.size(); ++i)
    any = any || (results[i].defined() && differentiable(results[i].scalar_type()));
  if (!any) return;  // what it reads may be a view that has no history any more
  std::shared_ptr<RowNode> node = recorded_node(op, args, recorder);
  if (!node) return;
  for (size_t i = 0; i < results.size(); ++i) node->internals().results.emplace_back(results[i]);
  node->check_kept(args, node->internals().results);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].defined() && differentiable(results[i].scalar_type()))
      set_history(results[i], node, static_cast<uint32_t>(i));
  }
  recorder.made(node, recorder.last_call(), {&results[0], results.size()});
}

Pending prepare_recorded(eager::Operator& op, eager::CallArgs args, const Tensor& value, Recorder& recorder) {
  std::shared_ptr<RowNode> node = recorded_node(op, args, recorder);
  if (node) {
    node->computed = value.scalar_type();
    node->check_kept(args, std::array{ResultMeta(value)});
  }
  return {std::move(node), recorder.last_call()};
}

}  // namespace brasa::autograd
