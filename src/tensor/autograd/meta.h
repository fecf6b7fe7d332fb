#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <brasa/autograd.h>

#include "support/mutex.h"
#include "support/pool_allocator.h"
#include "tensor/tensor_impl.h"

namespace brasa::autograd {

/// Hooks of a tensor, shared with the node that sees the tensor's gradient first.
struct HookList {
  unsigned next = 0;
  std::vector<std::pair<unsigned, std::function<Tensor(const Tensor&)>>> hooks;
};

/// Where a node finds the tensor that wants to keep its gradient, while that lives.
struct RetainSlot {
  TensorImpl* impl = nullptr;
};

/// What a tensor that takes part in autograd has besides its memory.
struct AutogradMeta : Pooled {
  Tensor grad;
  std::shared_ptr<Node> grad_fn;
  uint32_t output_nr = 0;
  bool requires_grad = false;  // of a leaf
  std::weak_ptr<Node> accumulator;
  std::shared_ptr<HookList> hooks;
  std::vector<std::function<void(const Tensor&)>> post_hooks;
  std::shared_ptr<RetainSlot> retain;
  ~AutogradMeta() {
    if (retain) retain->impl = nullptr;
  }
};

AutogradMeta& meta_of(const Tensor& t);  // made if missing
/// The dtypes that gradients have.
bool differentiable(DType t);
/// brasa::Error if a view that came to be so may not be written to with gradients, or what it shares memory with; `modified` says which.
void check_creation(CreationMeta creation, const char* modified);
/// Where this tensor's gradient goes: its node, or its accumulator; invalid if it needs none.
Edge gradient_edge(const Tensor& t);
void set_history(const Tensor& t, std::shared_ptr<Node> node, uint32_t output_nr);
/// Makes `t` the only result of `node`, and `source` its only operand.
void set_history(const Tensor& t, std::shared_ptr<Node> node, const Tensor& source);
/// The node that `t` comes from, made anew for a view whose base was written to.
const std::shared_ptr<Node>& grad_fn_of(const Tensor& t);

/// What the engine knows of a node beyond its edges.
struct ResultMeta {
  ResultMeta() = default;
  explicit ResultMeta(const Tensor& t);

  Sizes sizes;
  DType dtype = DType::Float32;
  bool defined = false;
  runtime::Device* device = &runtime::host();
  runtime::Stream stream = runtime::kDefaultStream;  // of the forward pass
};

/// Where a node was made, and in which node's backward, if in one.
struct Anomaly {
  std::string trace;
  std::string name;
  std::shared_ptr<Anomaly> parent;
};

/// Of the node of a compiled graph: nodes that tensors outside still come from, and that the graph's own results lead through. What is to
/// see their gradients (a hook, a capture) would see only what comes from outside; `expand` puts the operators' nodes in place of the graph's.
struct Inside {
  std::vector<std::weak_ptr<Node>> nodes;
  /// Where there are several, the nodes of its results, later ones behind: eager hooks on leaves may run between theirs.
  std::vector<std::weak_ptr<Node>> roots;
  std::function<void()> expand;
};

struct Node::Internals : Pooled {
  std::vector<ResultMeta> results;  // of the forward operator: what gradients must look like
  std::vector<std::pair<uint32_t, std::shared_ptr<HookList>>> tensor_hooks;
  std::vector<std::pair<uint32_t, std::shared_ptr<RetainSlot>>> retains;
  std::vector<std::function<variable_list(variable_list)>> pre_hooks;
  std::vector<std::function<variable_list(const variable_list&, const variable_list&)>> post_hooks;
  Mutex mutex;
  std::shared_ptr<Anomaly> anomaly;  // in anomaly mode
  bool released = false;
  /// Its work was taken over by the node of a compiled graph, and it only hands on what it receives (see capture/joint.h).
  bool forwards = false;
  /// By edge, by result: whether a gradient flows. Of a node that stands for operators that may have nothing to do with each other:
  /// where it gives no gradient, nothing goes on. Null: from all to all.
  const std::vector<std::vector<bool>>* flows = nullptr;
  /// Of a node that was made again: that whose results, as others see them, its own are.
  std::weak_ptr<Node> stands_for;
  std::unique_ptr<Inside> inside;
  std::vector<std::weak_ptr<Node>> graphs;  // whose Inside names this node

  bool has_hooks() const {
    return !tensor_hooks.empty() || !retains.empty() || !pre_hooks.empty() || !post_hooks.empty();
  }
};

/// The engine's and the recording's way into a node.
struct NodeAccess {
  static std::vector<Edge>& edges(Node& n) { return n.next_edges_; }
  static variable_list apply(Node& n, variable_list&& g) { return n.apply(std::move(g)); }
  static void release(Node& n) { n.release_variables(); }
  static const Node* inner(const Node& n) { return n.inner(); }
  static void for_each_saved(const Node& n, const std::function<void(const Tensor&)>& f) { n.for_each_saved(f); }
};

void delete_node(Node* node);
/// Makes a node whose chain of owners is taken apart without recursion.
template <class T, class... A>
std::shared_ptr<T> make_node(A&&... args) {
  return std::shared_ptr<T>(new T(std::forward<A>(args)...), [](T* n) { delete_node(n); }, PoolAllocator<T>());
}

/// That of the next node made on this thread.
uint64_t next_sequence_nr();
/// Nodes made on this thread get numbers of earlier ones, in whose place they run.
class EarlierNumbers {
 public:
  EarlierNumbers();
  ~EarlierNumbers();
  EarlierNumbers(const EarlierNumbers&) = delete;
  EarlierNumbers& operator=(const EarlierNumbers&) = delete;
  void next(uint64_t number);

 private:
  uint64_t now_;
};
/// Whether somebody is to be told when this node, a leaf's, has its gradient.
bool is_watched_leaf(const Node& n);
/// Whether this thread is in a backward pass.
bool in_backward();
/// Gradients at `inputs` from those at `outputs`, of which absent ones are zero. Keeps the graph.
variable_list gradients(const std::vector<Edge>& outputs, const variable_list& given, const std::vector<Edge>& inputs,
                        bool create_graph);

/// What a new node remembers in anomaly mode; null outside.
std::shared_ptr<Anomaly> new_anomaly();
/// node.apply, watched in anomaly mode.
variable_list apply_watched(Node& node, variable_list&& gradients);

/// Sums over the dimensions that broadcasting added or stretched. Differentiable.
Tensor sum_to_size(const Tensor& t, std::span<const int64_t> sizes);
/// The sum over these dimensions, which go away, in a shape of as many elements. Differentiable.
Tensor summed(const Tensor& t, const std::vector<int64_t>& dims, std::span<const int64_t> sizes);
/// a + b, of which either may be sparse, or undefined for 0.
Tensor sum_of(const Tensor& a, const Tensor& b);
Tensor zeros(std::span<const int64_t> sizes, DType dtype, runtime::Device& device);

/// The error of a node whose saved values are gone.
std::string second_time(const std::string& name);

}  // namespace brasa::autograd
