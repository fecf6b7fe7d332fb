#include "tensor/autograd/record.h"

#include <algorithm>

#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/view_nodes.h"
#include "tensor/execute.h"
#include "tensor/gradient_views.h"
#include "tensor/recorder.h"
#include "tensor/views.h"

namespace brasa::autograd {

bool differentiable(DType t) { return is_floating(t) || is_complex(t); }
bool takes_part(const Tensor& t) { return differentiable(t.scalar_type()) && t.requires_grad(); }
std::vector<bool> given_of(const variable_list& grads, size_t n) {
  std::vector<bool> given(n);
  for (size_t i = 0; i < std::min(n, grads.size()); ++i) given[i] = grads[i].defined();
  return given;
}

namespace {

using eager::InputTensor;

bool wants_gradient(const InputTensor& in) { return in.tensor && takes_part(*in.tensor); }

bool is_one_of(const Tensor& t, std::span<const InputTensor> inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const InputTensor& in) { return in.tensor && t.defined() && t.is_same(*in.tensor); });
}

// Backward of a computation: again a computation, run on what was saved and the gradients.
class ComputationNode final : public Node, public Pooled {
 public:
  ComputationNode(const eager::Computation& computation, std::string name, std::vector<bool> needs,
                  std::vector<Edge> edges, std::span<const InputTensor> inputs, const std::vector<bool>& reads)
      : computation_(computation), name_(std::move(name)), needs_(std::move(needs)) {
    next_edges_ = std::move(edges);
    for (const InputTensor& in : inputs) inputs_.emplace_back(in, reads[inputs_.size()]);
  }

  std::string name() const override { return name_; }
  // Its next result; `read`: whether backward wants the values.
  void save_result(const Tensor& t, bool read) {
    results_.push_back(t.defined() ? Saved(InputTensor::of(t), read, true) : Saved());
  }
  std::weak_ptr<Node> self;

 protected:
  variable_list apply(variable_list&& grads) override {
    std::lock_guard lock(internals_->mutex);
    BRASA_CHECK(!internals_->released, second_time(name_));
    variable_list out(needs_.size());
    std::vector<bool> given = given_of(grads, results_.size());
    if (std::find(given.begin(), given.end(), true) == given.end()) return out;
    const eager::Backward& backward = computation_.backward(needs_, given);

    std::shared_ptr<Node> me = self.lock(), root = internals_->stands_for.lock();
    std::vector<InputTensor> operands;
    std::vector<Tensor> holders(inputs_.size() + results_.size());
    for (const Saved& s : inputs_) operands.push_back(s.input(me, name_, holders[operands.size()]));
    // A root has the results that others see: no traces.
    for (const Saved& s : results_) {
      size_t result = operands.size() - inputs_.size();
      bool seen = root && result < root->internals().results.size();
      operands.push_back(s.input(seen ? root : me, name_, holders[operands.size()]));
    }
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i]) operands.push_back(InputTensor::of(grads[i]));

    eager::Results results;
    bool plain = !GradMode::is_enabled() && !Recorder::current();
    if (!plain || !eager::view_gradients(backward, operands, results))
      eager::execute(backward, operands, nullptr, results);
    // The derivative's own derivative takes its results in the operands' sizes, as the computation states them; an operand that is a
    // result has a history already.
    auto fit = [&](bool operands_too) {
      for (size_t i = 0, k = 0; i < needs_.size(); ++i) {
        if (!needs_[i]) continue;
        Tensor& g = results[k++];
        if (g.defined() && (operands_too || !is_one_of(g, operands))) g = sum_to_size(g, inputs_[i].sizes());
      }
    };
    fit(false);
    if (GradMode::is_enabled() && computation_.gradients_together()) lead_on(operands, holders);
    attach(backward, name_, operands, results);
    fit(true);
    for (size_t i = 0, k = 0; i < needs_.size(); ++i)
      if (needs_[i]) out[i] = std::move(results[k++]);
    return out;
  }
  void release_variables() override {
    std::lock_guard lock(internals_->mutex);
    // A node that reads no values can run again.
    for (std::vector<Saved>* list : {&inputs_, &results_})
      for (Saved& s : *list) {
        internals_->released = internals_->released || s.keeps();
        s.reset();
      }
  }

 private:
  // Of operands that the derivative does not read, what they came from, too.
  void lead_on(std::vector<InputTensor>& operands, std::vector<Tensor>& holders) const {
    for (size_t i = 0; i < needs_.size(); ++i) {
      if (!needs_[i] || operands[i].tensor) continue;
      holders[i] = stand_in(inputs_[i].dtype(), inputs_[i].sizes(), runtime::host());
      set_history(holders[i], next_edges_[i].function, next_edges_[i].input_nr);
      operands[i].tensor = &holders[i];
    }
  }

  const eager::Computation& computation_;
  std::string name_;
  std::vector<bool> needs_;
  std::vector<Saved> inputs_, results_;
};

std::vector<Edge> edges_of(std::span<const InputTensor> inputs, const std::vector<bool>& needs) {
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) edges.push_back(needs[i] ? gradient_edge(*inputs[i].tensor) : Edge{});
  return edges;
}

// Which inputs require a gradient; false if none does, or if all are inference tensors, which alone are not recorded.
bool needed(std::span<const InputTensor> inputs, std::vector<bool>& needs) {
  bool any = false, normal = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool wants = wants_gradient(inputs[i]);
    if (wants && !any) needs.assign(inputs.size(), false);
    if (wants) needs[i] = true;
    any = any || wants;
    normal = normal || (inputs[i].tensor && !impl_of(*inputs[i].tensor)->inference);
  }
  return any && normal;
}

// Which operands and results the backward computation reads.
std::vector<bool> backward_reads(const eager::Computation& computation, const std::vector<bool>& needs,
                                 const std::vector<bool>& given, std::span<const InputTensor> inputs,
                                 const std::vector<Tensor>& results) {
  std::vector<InputTensor> operands(inputs.begin(), inputs.end());
  for (const Tensor& t : results) operands.push_back(t.defined() ? InputTensor::of(t) : InputTensor{});
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i]) operands.push_back(InputTensor::of(results[i]));
  return eager::reads_of(computation.backward(needs, given), operands);
}

}  // namespace

const eager::Computation& form_of(const eager::RowComputation& row, std::span<const InputTensor> inputs) {
  bool gradients = GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), wants_gradient);
  return gradients ? row.with_gradients(inputs) : row;
}

void attach(const eager::Computation& computation, const std::string& name, std::span<const InputTensor> inputs,
            eager::Results& results) {
  if (!GradMode::is_enabled()) return;
  std::vector<bool> needs;
  if (!needed(inputs, needs)) return;
  std::vector<Tensor> outputs;
  std::vector<bool> given;
  bool any = false;
  for (size_t i = 0; i < results.size(); ++i) {
    // A result that is an input keeps that one's history.
    given.push_back(results[i].defined() && !is_one_of(results[i], inputs) && differentiable(results[i].scalar_type()));
    outputs.push_back(results[i]);
    any = any || given.back();
  }
  if (!any) return;
  std::vector<bool> reads = backward_reads(computation, needs, given, inputs, outputs);
  auto node = make_node<ComputationNode>(computation, name, needs, edges_of(inputs, needs), inputs, reads);
  node->self = node;
  for (size_t i = 0; i < outputs.size(); ++i) {
    node->internals().results.emplace_back(outputs[i]);
    if (given[i]) set_history(outputs[i], node, static_cast<uint32_t>(i));
  }
  for (size_t i = 0; i < outputs.size(); ++i) node->save_result(outputs[i], reads[inputs.size() + i]);
}

void attach_view(const Tensor& view, const Tensor& from, const std::vector<const eager::ViewLink*>& links) {
  if (!std::all_of(links.begin(), links.end(), [](const auto* l) { return differentiable(l->plan->dtype); })) return;
  Edge edge = gradient_edge(from);
  for (const eager::ViewLink* link : links) {
    auto node = make_node<ViewNode>(*link->row, eager::op(*link->row).backward_name(), link->plan);
    NodeAccess::edges(*node).push_back(std::move(edge));
    if (link == links.back()) {
      node->internals().results.emplace_back(view);
      set_history(view, node, 0);
    }
    if (Recorder* recorder = Recorder::current()) recorder->made(node, 0, {});
    edge = {std::move(node), 0};
  }
}

void attach_views(const eager::Results& views, const Tensor& from, const ops::Row& row,
                  const std::shared_ptr<const eager::ArgStore>& args,
                  const std::vector<std::shared_ptr<const eager::ViewPlan>>& plans) {
  if (!differentiable(plans[0]->dtype)) return;
  auto node = make_node<ViewsNode>(row, eager::op(row).backward_name(), from, args, plans);
  NodeAccess::edges(*node).push_back(gradient_edge(from));
  for (size_t i = 0; i < views.size(); ++i) {
    node->internals().results.emplace_back(views[i]);
    set_history(views[i], node, static_cast<uint32_t>(i));
  }
}

void attach_memory_view(const Tensor& view, const Tensor& self) {
  if (!differentiable(view.scalar_type())) return;
  set_history(view, make_node<MemoryView>(*impl_of(view), *impl_of(self)), self);
}

void check_creation(CreationMeta creation, const char* modified) {
  auto made_in = [&](const char* mode, const char* block) {
    fail(str("A view was created in ", mode, " and ", modified, " with grad mode enabled. Move both into the ", block,
             " block, or both out of it."));
  };
  switch (creation) {
    case CreationMeta::DEFAULT: return;
    case CreationMeta::MULTI_OUTPUT_NODE:
      fail(str(
          "A view that is one of several outputs of an operator (such as split, chunk or unbind) ", modified,
          " with grad mode enabled. Such views are not tracked; replace the inplace operation by an out-of-place one."));
    case CreationMeta::NO_GRAD_MODE: made_in("no_grad mode", "no_grad"); break;
    case CreationMeta::INFERENCE_MODE: made_in("inference mode", "inference_mode"); break;
    case CreationMeta::IN_CUSTOM_FUNCTION:
      fail(str("A view was created inside a custom Function and ", modified,
               ". Its backward would be overwritten; return a clone from the Function."));
  }
}

void check_in_place(const Tensor& self, eager::CallArgs args) {
  const TensorImpl* impl = impl_of(self);
  BRASA_CHECK(
      !impl->inference || InferenceMode::is_enabled(),
      "Inplace update to inference tensor outside InferenceMode is not allowed. Make a clone to get a normal tensor.");
  if (!GradMode::is_enabled()) return;
  // Written to outside of the mode that it was made in, such a view would lack the history of its base.
  if (impl->view && impl->view->differentiable && impl->view->creation != CreationMeta::MULTI_OUTPUT_NODE &&
      differentiable(impl->dtype) && takes_part(impl->view->base))
    check_creation(impl->view->creation, "is being modified inplace");
  if (self.requires_grad()) {
    BRASA_CHECK(!self.is_leaf(), "a leaf Variable that requires grad is being used in an in-place operation.");
    BRASA_CHECK(
        !impl->view || !impl->view->differentiable || !(impl->view->base.requires_grad() && impl->view->base.is_leaf()),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  if (!differentiable(impl->dtype)) return;
  bool any = false;
  eager::each_tensor(args, [&](const Tensor& t) { any = any || takes_part(t); });
  if (any && impl->view && impl->view->differentiable)
    check_creation(impl->view->creation, "is being modified inplace");
}

void check_out(const eager::Operator& op, eager::CallArgs args, ArrayRef<Tensor*> outs) {
  if (!GradMode::is_enabled()) return;
  auto check = [&](const Tensor& t) {
    BRASA_CHECK(
        !t.defined() || !takes_part(t), op.row().schema.base,
        "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.");
  };
  if (!op.row().no_gradient) eager::each_tensor(args, check);
  for (const Tensor* out : outs) check(*out);
}

void rebase(const Tensor& self, Pending pending, size_t self_edge) {
  if (!pending.node) return;
  TensorImpl* impl = impl_of(self);
  if (pending.node->internals().results.empty()) pending.node->internals().results.emplace_back(self);
  Recorder* recorder = Recorder::current();
  if (!impl->view || !impl->view->differentiable) {
    if (recorder) recorder->made(pending.node, pending.call, {&self, 1});
    set_history(self, std::move(pending.node), 0);
    return;
  }
  Tensor base = impl->view->base;
  auto node = make_node<CopySlices>(base, impl->view->last, pending.node, self_edge);
  auto& edges = NodeAccess::edges(*node);
  edges = pending.node->next_edges();
  edges[self_edge] = gradient_edge(base);
  node->internals().results.emplace_back(base);
  if (recorder) recorder->made(node, pending.call, {&base, 1});
  set_history(base, std::move(node), 0);
  impl->view->version = impl->storage->version() - 1;  // its own history is made anew from the base's
}

namespace {

// At the same elements of the same memory.
bool look_alike(const TensorImpl& a, const TensorImpl& b) {
  return a.storage->root() == b.storage->root() && a.offset == b.offset && a.dtype == b.dtype && a.sizes == b.sizes &&
         a.strides == b.strides;
}

}  // namespace

void InPlace::before(const eager::Computation& computation, std::span<const InputTensor> inputs) {
  computation_ = nullptr;
  if (!GradMode::is_enabled() || op_.row().no_gradient || !needed(inputs, needs_)) return;
  computation_ = &computation;
  reads_ = backward_reads(computation, needs_, {true}, inputs, {self_});
  edges_ = edges_of(inputs, needs_);
  // An operand that is written, or looks at what is, as a detached one does.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* t = reads_[i] ? inputs[i].tensor : nullptr;
    if (!t || !look_alike(*impl_of(*t), *impl_of(self_))) continue;
    NoGradGuard guard;
    originals_.resize(inputs.size());
    originals_[i] = t->clone();
    // Derivatives of the derivative go on from the value that was.
    if (Edge from = gradient_edge(*t); from.is_valid()) set_history(originals_[i], from.function, from.input_nr);
  }
}

void InPlace::after(std::span<const InputTensor> inputs) {
  if (!computation_) return;
  std::vector<InputTensor> before(inputs.begin(), inputs.end());
  for (size_t i = 0; i < originals_.size(); ++i)
    if (originals_[i].defined()) before[i] = InputTensor::of(originals_[i]);
  auto node = make_node<ComputationNode>(*computation_, op_.backward_name(), needs_, std::move(edges_), before, reads_);
  node->self = node;
  node->internals().results.emplace_back(self_);
  node->save_result(self_, reads_[inputs.size()]);
  rebase(self_, {std::move(node)});
}

}  // namespace brasa::autograd
