#include <vector>

#include "support/error.h"
#include "tensor/autograd/meta.h"

namespace brasa::autograd {

namespace {
// Later calls have greater numbers, so that backward runs them first.
thread_local uint64_t sequence = 0;
}  // namespace

ResultMeta::ResultMeta(const Tensor& t) {
  if (!t.defined()) return;
  sizes = impl_of(t)->sizes;
  dtype = t.scalar_type();
  defined = true;
  device = &impl_of(t)->device();
  stream = runtime::current_stream(*device);
}

uint64_t next_sequence_nr() { return sequence; }
EarlierNumbers::EarlierNumbers() : now_(sequence) {}
EarlierNumbers::~EarlierNumbers() { sequence = now_; }
void EarlierNumbers::next(uint64_t number) { sequence = number; }

Node::Node() : sequence_nr_(sequence++), internals_(std::make_unique<Internals>()) {
  if (AnomalyMode::is_enabled()) internals_->anomaly = new_anomaly();
}
Node::~Node() = default;

uint32_t Node::num_inputs() const { return static_cast<uint32_t>(internals_->results.size()); }
variable_list Node::operator()(variable_list&& gradients) { return apply(std::move(gradients)); }
void Node::add_pre_hook(std::function<variable_list(variable_list)> hook) {
  internals_->pre_hooks.push_back(std::move(hook));
}
void Node::add_post_hook(std::function<variable_list(const variable_list&, const variable_list&)> hook) {
  internals_->post_hooks.push_back(std::move(hook));
}

void delete_node(Node* node) {
  // A chain of a million nodes would overflow the stack if each destructor called the next.
  thread_local std::vector<Node*>* pending = nullptr;
  if (pending) {
    pending->push_back(node);
    return;
  }
  std::vector<Node*> queue = {node};
  pending = &queue;
  while (!queue.empty()) {
    Node* n = queue.back();
    queue.pop_back();
    delete n;
  }
  pending = nullptr;
}

std::string second_time(const std::string& name) {
  return str(
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed): ",
      name, ". Specify retain_graph=true if you need to backward through the graph a second time.");
}

}  // namespace brasa::autograd
