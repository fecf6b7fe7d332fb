#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/record.h"

// Custom differentiable functions.
namespace brasa::autograd {

struct AutogradContext::Internals {
  variable_list to_save, dirty, non_differentiable;
  std::vector<Saved> saved;
  bool materialize = true, released = false, has_saved = false;
  std::weak_ptr<Node> node;
  std::vector<bool> needs;
  std::string name;
};

AutogradContext::AutogradContext() : internals_(std::make_unique<Internals>()) {}
AutogradContext::~AutogradContext() = default;

void AutogradContext::save_for_backward(variable_list to_save) {
  internals_->to_save = std::move(to_save);
  internals_->has_saved = true;
}
variable_list AutogradContext::get_saved_variables() const {
  BRASA_CHECK(!internals_->released, second_time(internals_->name));
  if (internals_->saved.empty()) return internals_->to_save;
  variable_list out;
  std::shared_ptr<Node> node = internals_->node.lock();
  for (const Saved& s : internals_->saved) out.push_back(s.unpack(node, internals_->name));
  return out;
}
void AutogradContext::mark_dirty(const variable_list& inputs) { internals_->dirty = inputs; }
void AutogradContext::mark_non_differentiable(const variable_list& outputs) {
  internals_->non_differentiable = outputs;
}
void AutogradContext::set_materialize_grads(bool value) { internals_->materialize = value; }
bool AutogradContext::needs_input_grad(size_t i) const { return i < internals_->needs.size() && internals_->needs[i]; }

namespace detail {
namespace {

bool contains(const variable_list& list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& x) { return x.is_same(t); });
}

class CustomNode final : public Node {
 public:
  explicit CustomNode(Custom& custom) : name_(custom.name), backward_(custom.backward), is_tensor_(custom.is_tensor) {}
  std::string name() const override { return name_; }
  AutogradContext context;

 protected:
  variable_list apply(variable_list&& gradients) override {
    AutogradContext::Internals& in = context.internals();
    if (in.materialize)
      for (size_t i = 0; i < gradients.size(); ++i) {
        const ResultMeta& meta = internals_->results[i];
        if (!gradients[i].defined() && meta.defined) gradients[i] = zeros(meta.sizes, meta.dtype, *meta.device);
      }
    variable_list all = backward_(&context, std::move(gradients)), out;
    while (all.size() > is_tensor_.size() && !all.back().defined()) all.pop_back();
    BRASA_CHECK(all.size() == is_tensor_.size(), "function ", name_,
                " returned an incorrect number of gradients (expected ", is_tensor_.size(), ", got ", all.size(), ")");
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_tensor_[i])
        out.push_back(std::move(all[i]));
      else
        BRASA_CHECK(!all[i].defined(), "function ", name_, " returned a gradient different than undefined at position ",
                    i + 1, ", but the corresponding forward input was not a Tensor");
    }
    return out;
  }
  void release_variables() override {
    AutogradContext::Internals& in = context.internals();
    in.released = in.has_saved;
    in.saved.clear();
    in.to_save.clear();
  }

 private:
  std::string name_;
  variable_list (*backward_)(AutogradContext*, variable_list);
  std::vector<bool> is_tensor_;
};

}  // namespace

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 ? text : name;
  std::free(text);
  return out;
}

variable_list apply_custom(Custom custom) {
  custom.name = "torch::autograd::CppNode<" + custom.name + ">";
  auto node = make_node<CustomNode>(custom);
  AutogradContext::Internals& in = node->context.internals();
  in.name = custom.name;
  in.node = node;
  bool record = false;
  std::vector<Edge> edges;
  for (const Tensor& t : custom.inputs) {
    bool needs = GradMode::is_enabled() && t.defined() && t.requires_grad();
    in.needs.push_back(needs);
    edges.push_back(needs ? gradient_edge(t) : Edge{});
    record = record || needs;
  }
  variable_list outputs;
  {
    NoGradGuard guard;
    outputs = custom.forward(&node->context);
  }
  for (const Tensor& t : in.dirty) impl_of(t)->storage->bump_version();
  if (!record) return outputs;
  NodeAccess::edges(*node) = std::move(edges);

  std::vector<size_t> written;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& out = outputs[i];
    bool follows = out.defined() && !contains(in.non_differentiable, out) && differentiable(out.scalar_type());
    node->internals().results.emplace_back(out);
    if (!follows) continue;
    if (contains(in.dirty, out)) {
      written.push_back(i);
      continue;
    }
    // An input that is passed through is a tensor of its own.
    if (contains(custom.inputs, out)) out = shallow_copy(out);
    set_history(out, node, static_cast<uint32_t>(i));
  }
  for (size_t i : written) {
    size_t edge = 0;
    while (!custom.inputs[edge].is_same(outputs[i])) ++edge;
    BRASA_CHECK(!(outputs[i].requires_grad() && outputs[i].is_leaf()),
                "a leaf Variable that requires grad is being used in an in-place operation.");
    rebase(outputs[i], {node}, edge);
    if (outputs[i].grad_fn() == node) set_history(outputs[i], node, static_cast<uint32_t>(i));
  }
  for (const Tensor& t : in.to_save)
    in.saved.emplace_back(t, contains(outputs, t) && t.defined() && t.grad_fn() == node);
  in.to_save.clear();
  in.dirty.clear();
  in.non_differentiable.clear();
  return outputs;
}

}  // namespace detail
}  // namespace brasa::autograd
