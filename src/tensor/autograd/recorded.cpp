#include <algorithm>
#include <optional>

#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/record.h"
#include "tensor/execute.h"
#include "tensor/parse.h"
#include "tensor/recorder.h"

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

 protected:
  variable_list apply(variable_list&& grads) override {
    std::lock_guard lock(internals_->mutex);
    BRASA_CHECK(!internals_->released || !reads_values(), second_time(name()));
    variable_list out(needs_.size());
    std::vector<bool> given = given_of(grads, internals_->results.size());
    if (std::find(given.begin(), given.end(), true) == given.end()) return out;
    Optionals cts(given.size());
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i]) cts[i] = grads[i].to(computed.value_or(grads[i].scalar_type()));
    // Where the derivative is to have one itself, the operands lead on to what they came from, and the results to this node.
    std::optional<eager::ArgStore> with_history;
    Optionals results_of_call(given.size());
    if (GradMode::is_enabled()) {
      add_history(with_history.emplace(args_->args()));
      find_results(results_of_call);
    }
    eager::Literals defaults;
    std::vector<CallArg> args = derivative_args(with_history ? *with_history : *args_, results_of_call, cts, defaults);
    eager::Operator& backward = op_.backward(needs_, given);
    check_unwritten(backward, args, (with_history ? *with_history : *args_).tensors());
    std::vector<Tensor> results = eager::call_list(backward, args);
    for (size_t i = 0, k = 0; i < needs_.size(); ++i)
      if (needs_[i]) out[i] = std::move(results[k++]);
    return out;
  }
  void release_variables() override {
    std::lock_guard lock(internals_->mutex);
    if (std::exchange(internals_->released, true)) return;
    if (internals_->forwards) return args_.reset();
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
    Tensor t = make_tensor(StorageRef(Storage::make(static_cast<size_t>(size_of(like.dtype)), *like.device)),
                           like.dtype, like.sizes, Sizes(like.sizes.size(), 0), 0);
    impl_of(t)->weak = weak;
    return t;
  }

  // Whether the derivative is computed from operands' values, too.
  bool reads_values() const {
    Optionals none(internals_->results.size()), cts(none.size());
    std::vector<bool> given(cts.size());
    for (size_t i = 0; i < cts.size(); ++i) {
      ResultMeta meta = internals_->results[i];
      if (computed) meta.dtype = *computed;
      given[i] = meta.defined && differentiable(meta.dtype);
      if (given[i]) cts[i] = without_values(meta);
    }
    eager::Literals defaults;
    std::vector<CallArg> args = derivative_args(*args_, none, cts, defaults);
    eager::Parsed p;
    const eager::RowComputation& computation = computation_of(op_.backward(needs_, given), args, p);
    std::vector<bool> reads = eager::reads_of(computation, p.inputs);
    for (size_t i = 0; i < reads.size(); ++i) {
      const Tensor* t = p.inputs[i].tensor;
      bool is_ct = std::any_of(cts.begin(), cts.end(), [&](const auto& ct) { return ct && &*ct == t; });
      if (reads[i] && t && !is_ct) return true;
    }
    return false;
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

  // Those that the recording knows: with the eager call, derivatives of the derivative flow through the results, where hooks see them.
  void find_results(Optionals& results) const {
    Recorder* recorder = Recorder::current();
    std::shared_ptr<Node> me = self.lock();
    for (uint32_t r = 0; recorder && me && r < results.size(); ++r) {
      Tensor t = recorder->result_of(*this, r);
      if (!t.defined()) continue;
      if (differentiable(t.scalar_type())) set_history(t, me, r);
      results[r] = std::move(t);
    }
  }

  void add_history(eager::ArgStore& operands) const {
    Recorder* recorder = Recorder::current();
    size_t operand = 0;
    Tensor* next = operands.tensors().data();
    eager::each_tensor(operands.args(), [&](const Tensor& t) {
      size_t i = operand++;
      if (&t != next) return;  // an optional one
      Tensor copy = recorder ? recorder->snapshot(t) : shallow_copy(t);
      if (needs_[i]) set_history(copy, next_edges_[i].function, next_edges_[i].input_nr);
      *next++ = std::move(copy);
    });
  }

  eager::Operator& op_;
  std::shared_ptr<eager::ArgStore> args_;
  std::vector<bool> needs_;
  struct Snapshot {
    const Storage* storage;
    uint32_t version;
  };
  PooledVector<Snapshot> snapshots_;  // of the tensors in args_
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

void attach_recorded(eager::Operator& op, eager::CallArgs args, Recorder& recorder, eager::Results& results) {
  if (!GradMode::is_enabled()) return;
  bool any = false;
  for (size_t i = 0; i < results.size(); ++i)
    any = any || (results[i].defined() && differentiable(results[i].scalar_type()));
  if (!any) return;  // what it reads may be a view that has no history any more
  std::shared_ptr<Node> node = recorded_node(op, args, recorder);
  if (!node) return;
  for (size_t i = 0; i < results.size(); ++i) {
    node->internals().results.emplace_back(results[i]);
    if (results[i].defined() && differentiable(results[i].scalar_type()))
      set_history(results[i], node, static_cast<uint32_t>(i));
  }
  recorder.made(node, recorder.last_call(), {&results[0], results.size()});
}

Pending prepare_recorded(eager::Operator& op, eager::CallArgs args, const Tensor& value, Recorder& recorder) {
  std::shared_ptr<RowNode> node = recorded_node(op, args, recorder);
  if (node) node->computed = value.scalar_type();
  return {std::move(node), recorder.last_call()};
}

}  // namespace brasa::autograd
