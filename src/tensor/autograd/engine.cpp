#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/spans.h"
#include "support/error.h"
#include "support/fresh_stack.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/meter.h"
#include "tensor/dispatch.h"
#include "tensor/execute.h"
#include "tensor/recorder.h"
#include "tensor/sparse/sparse.h"

namespace brasa::autograd {

Tensor zeros(std::span<const int64_t> sizes, DType dtype, runtime::Device& device) {
  Tensor t = make_tensor(sizes, dtype, device);
  device.fill(impl_of(t)->storage->data(), 0, t.nbytes(), impl_of(t)->storage->stream());
  return t;
}

Tensor sum_to_size(const Tensor& t, std::span<const int64_t> sizes) {
  IntArrayRef from = t.sizes();
  if (std::equal(from.begin(), from.end(), sizes.begin(), sizes.end())) return t;
  std::vector<int64_t> dims;
  size_t lead = from.size() - sizes.size();
  for (size_t d = 0; d < from.size(); ++d)
    if (d < lead || (sizes[d - lead] == 1 && from[d] != 1)) dims.push_back(static_cast<int64_t>(d));
  return summed(t, dims, sizes);
}

Tensor summed(const Tensor& t, const std::vector<int64_t>& dims, std::span<const int64_t> sizes) {
  Tensor out = dims.empty() ? t : eager::call_one("aten::sum.dim_IntList", {t, IntArrayRef(dims), false});
  IntArrayRef wanted(sizes.data(), sizes.size());
  return out.sizes() == wanted ? out : eager::call_one("aten::reshape", {out, wanted});
}

namespace {

bool broadcasts_to(std::span<const int64_t> small, std::span<const int64_t> big) {
  if (small.size() > big.size()) return false;
  size_t lead = big.size() - small.size();
  for (size_t d = 0; d < small.size(); ++d)
    if (small[d] != 1 && small[d] != big[lead + d]) return false;
  return true;
}

// A gradient in the shape and dtype, and on the device, of the value that it belongs to.
Tensor fitted(Tensor g, const ResultMeta& meta, const Node& node, size_t i) {
  if (!g.defined() || !meta.defined) return g;
  if (!std::equal(g.sizes().begin(), g.sizes().end(), meta.sizes.begin(), meta.sizes.end())) {
    BRASA_CHECK(broadcasts_to(meta.sizes, g.sizes()), "Function ", node.name(),
                " returned an invalid gradient at index ", i, " - got ", impl_of(g)->sizes,
                " but expected shape compatible with ", meta.sizes);
    g = sum_to_size(g, meta.sizes);
  }
  if (g.scalar_type() != meta.dtype) g = g.to(meta.dtype);
  // Of a number that went along with tensors of another device.
  if (&impl_of(g)->device() != meta.device) [[unlikely]] {
    BRASA_CHECK(g.dim() == 0, "Function ", node.name(), " returned an invalid gradient at index ", i,
                " - expected device ", meta.device->str(), " but got ", impl_of(g)->device().str());
    g = g.to(meta.device->id());
  }
  return g;
}

struct Capture {
  size_t output_nr, result;
};

thread_local int passes = 0;

// One backward pass.
class Pass {
 public:
  Pass(bool keep_graph, bool create_graph) : keep_graph_(keep_graph), create_graph_(create_graph) {}

  void add_root(const Edge& edge, Tensor gradient) {
    roots_.push_back(edge.function);
    receive(edge, std::move(gradient));
  }
  void capture(const Edge& edge, size_t result) { captures_[edge.function.get()].push_back({edge.input_nr, result}); }

  /// `accumulate`: leaves take their gradients, too.
  variable_list run(size_t captured, bool accumulate) {
    Scoped depth(passes, passes + 1);
    // A backward that runs backward, which may run backward, …: the stack bounds none of it.
    constexpr int kPassesPerStack = 60;
    if (passes % kPassesPerStack != 0) return run_here(captured, accumulate);
    variable_list out;
    on_fresh_stack([&] { out = run_here(captured, accumulate); });
    return out;
  }

 private:
  variable_list run_here(size_t captured, bool accumulate) {
    results_.resize(captured);
    Metering metering(passes == 1);
    find_dependencies();
    if (!accumulate) find_needed();
    metering.prepared();
    AutoGradMode mode(create_graph_);
    eager::NoAutocast off;  // the dtypes are those of forward
    std::priority_queue<Ready> queue;
    auto push = [&](const std::shared_ptr<Node>& n) { queue.push({n, order(*n), queued_++}); };
    std::pmr::unordered_set<Node*> queued(&memory_);
    for (auto& n : roots_)
      if (dependencies_[n.get()] == 0 && queued.insert(n.get()).second) push(n);
    while (!queue.empty()) {
      std::shared_ptr<Node> node = queue.top().node;
      queue.pop();
      metering.next(node->sequence_nr());
      auto buffer = buffers_.extract(node.get());
      bool reached = !buffer.empty();
      std::optional<runtime::StreamScope> stream;
      if (!node->internals().results.empty()) enter(stream, node->internals().results[0]);
      variable_list out = reached ? evaluate(*node, std::move(buffer.mapped()), accumulate) : variable_list();
      const std::vector<Edge>& edges = node->next_edges();
      for (size_t i = 0; i < edges.size(); ++i) {
        if (!edges[i].is_valid()) continue;
        Tensor g = i < out.size() ? std::move(out[i]) : Tensor();
        Node* next = edges[i].function.get();
        const auto& metas = next->internals().results;
        if (edges[i].input_nr < metas.size()) g = fitted(std::move(g), metas[edges[i].input_nr], *node, i);
        // Only leaves take sparse gradients.
        if (g.defined() && impl_of(g)->sparse && !next->next_edges().empty()) g = g.to_dense();
        if (g.defined() || (reached && !node->internals().flows)) receive(edges[i], std::move(g));
        if (--dependencies_[next] == 0) push(edges[i].function);
      }
    }
    for (auto [device, stream] : streams_) runtime::chain(*device, stream, runtime::current_stream(*device));
    return std::move(results_);
  }

  // The backward pass of a call runs on the stream that its forward pass ran on, after what made the gradient, and the caller's stream
  // after all. A recording has one stream.
  static bool elsewhere(const ResultMeta& meta) {
    return !meta.device->on_host() && meta.stream != runtime::current_stream(*meta.device) && !Recorder::current();
  }
  void enter(std::optional<runtime::StreamScope>& scope, const ResultMeta& meta) {
    if (!elsewhere(meta)) [[likely]]
      return;
    scope.emplace(*meta.device, meta.stream);
    streams_.emplace(meta.device, meta.stream);
  }

  // The latest node first; leaves before all, in the order in which they become ready.
  struct Ready {
    std::shared_ptr<Node> node;
    uint64_t order;
    size_t turn;
    bool operator<(const Ready& o) const { return order != o.order ? order < o.order : turn > o.turn; }
  };
  static uint64_t order(const Node& n) { return n.next_edges().empty() ? UINT64_MAX : n.sequence_nr(); }

  void receive(const Edge& edge, Tensor g) {
    variable_list& buffer = buffers_[edge.function.get()];
    size_t size = std::max<size_t>(edge.function->internals().results.size(), edge.input_nr + 1);
    if (buffer.size() < size) buffer.resize(size);
    std::optional<runtime::StreamScope> stream;
    if (const auto& metas = edge.function->internals().results; edge.input_nr < metas.size() && g.defined())
      if (const ResultMeta& meta = metas[edge.input_nr]; elsewhere(meta)) [[unlikely]] {
        runtime::chain(*meta.device, runtime::current_stream(*meta.device), meta.stream);
        if (impl_of(g)->storage) meta.device->record_stream(impl_of(g)->storage->data(), meta.stream);
        enter(stream, meta);
      }
    buffer[edge.input_nr] = sum_of(buffer[edge.input_nr], g);
  }

  // Whether something is to see the gradient of a node inside of a compiled graph. Then the graph gives way to its operators' nodes.
  bool expands(Node& n) {
    std::unique_ptr<Inside>& inside = n.internals().inside;
    if (!inside) return false;
    bool watched = std::any_of(inside->nodes.begin(), inside->nodes.end(), [&](const std::weak_ptr<Node>& weak) {
      auto node = weak.lock();
      return node && (node->internals().has_hooks() || captures_.count(node.get()));
    });
    if (!watched && !runs_hooks_between(n)) return false;
    std::exchange(inside, nullptr)->expand();
    return true;
  }

  // Whether hooks on results but the latest are to run behind those on leaves that are complete before.
  static bool runs_hooks_between(const Node& n) {
    const auto& roots = n.internals().inside->roots;
    bool hooked = !roots.empty() && std::any_of(roots.begin(), roots.end() - 1, [](const std::weak_ptr<Node>& weak) {
      auto root = weak.lock();
      return root && root->internals().has_hooks();
    });
    return hooked && std::any_of(n.next_edges().begin(), n.next_edges().end(),
                                 [](const Edge& e) { return e.is_valid() && is_watched_leaf(*e.function); });
  }

  void find_dependencies() {
    dependencies_.clear();
    std::pmr::vector<Node*> stack(&memory_);
    auto reach = [&](Node* n) -> int& {
      auto [at, added] = dependencies_.try_emplace(n, 0);
      if (added) stack.push_back(n);
      return at->second;
    };
    for (auto& n : roots_) reach(n.get());
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      if (expands(*n)) return find_dependencies();
      for (const Edge& e : n->next_edges())
        if (Node* next = e.function.get()) ++reach(next);
    }
  }

  // Nodes below which there is a captured one. A compiled graph stands for many: what arrives at one of its results may flow to some
  // of its edges alone.
  void find_needed() {
    struct Way {
      Node* from;
      size_t edge;
      uint32_t result;  // of the node that it leads to
    };
    std::unordered_map<Node*, std::vector<Way>> above;
    for (auto& [n, count] : dependencies_)
      for (size_t i = 0; i < n->next_edges().size(); ++i)
        if (const Edge& e = n->next_edge(i); e.is_valid()) above[e.function.get()].push_back({n, i, e.input_nr});
    // Steps of the search: a node's edge leads to a captured node, or (kNone) a node is captured itself.
    constexpr auto kNone = static_cast<size_t>(-1);
    std::vector<std::pair<Node*, size_t>> stack;
    for (auto& [n, captures] : captures_) stack.emplace_back(n, kNone);
    std::unordered_map<Node*, std::vector<bool>> seen;  // by edge, of nodes whose edges differ
    while (!stack.empty()) {
      auto [below, edge] = stack.back();
      stack.pop_back();
      for (const Way& w : above[below]) {
        if (edge != kNone && !flows(*below, w.result, edge)) continue;
        bool fresh = needed_.insert(w.from).second;
        if (w.from->internals().forwards || w.from->internals().flows) {
          std::vector<bool>& edges = seen[w.from];
          edges.resize(w.from->next_edges().size());
          fresh = !edges[w.edge];
          edges[w.edge] = true;
        }
        if (fresh) stack.emplace_back(w.from, w.edge);
      }
    }
  }

  static bool flows(const Node& n, uint32_t result, size_t edge) {
    const Node::Internals& in = n.internals();
    return in.forwards ? result == edge : !in.flows || (*in.flows)[edge][result];
  }

  variable_list evaluate(Node& node, variable_list gradients, bool accumulate) {
    // Only what leads to a wanted gradient runs; hooks do so there, and on what the pass goes from, if that is one tensor.
    bool start = roots_.size() == 1 && roots_[0].get() == &node;
    if (!accumulate && !start && !needed_.count(&node) && !captures_.count(&node)) return {};
    Node::Internals& in = node.internals();
    gradients.resize(std::max(gradients.size(), in.results.size()));
    for (auto& [nr, list] : in.tensor_hooks) {
      auto hooks = list->hooks;  // a hook may remove itself
      for (auto& [id, hook] : hooks) {
        if (!gradients[nr].defined()) continue;
        Tensor changed = hook(gradients[nr]);
        if (changed.defined()) gradients[nr] = std::move(changed);
      }
    }
    for (auto& [nr, slot] : in.retains)
      if (slot->impl && gradients[nr].defined()) {
        Tensor& grad = slot->impl->autograd->grad;
        grad = grad.defined() ? sum_of(grad, gradients[nr]) : gradients[nr].clone();
      }
    auto captured = captures_.find(&node);
    if (captured != captures_.end())
      for (const Capture& c : captured->second) results_[c.result] = gradients[c.output_nr];
    if (!accumulate && (!needed_.count(&node) || node.next_edges().empty())) return {};
    for (auto& hook : in.pre_hooks) gradients = hook(std::move(gradients));
    auto first = std::find_if(gradients.begin(), gradients.end(), [](const Tensor& t) { return t.defined(); });
    if (first == gradients.end() && node.next_edges().empty()) return {};
    variable_list received = in.post_hooks.empty() ? variable_list() : gradients;
    if (in.forwards) return gradients;
    // What a node makes without operands lives where its gradients do.
    eager::DeviceScope place(first == gradients.end() ? nullptr : &impl_of(*first)->device());
    std::optional<runtime::HostSpan> span;
    if (runtime::recording_spans() && !Recorder::current()) [[unlikely]] {
      span.emplace(runtime::SpanKind::Operator, node.name());
      if (runtime::recording_shapes()) {
        std::string shapes;
        for (const Tensor& t : gradients) eager::append_shape(shapes, t);
        span->set_shapes(std::move(shapes));
      }
    }
    variable_list out =
        in.anomaly ? apply_watched(node, std::move(gradients)) : NodeAccess::apply(node, std::move(gradients));
    span.reset();
    for (auto& hook : in.post_hooks) out = hook(out, received);
    if (!keep_graph_) NodeAccess::release(node);
    return out;
  }

  bool keep_graph_, create_graph_;
  std::vector<std::shared_ptr<Node>> roots_;
  // What the pass writes down about nodes goes with it.
  std::array<std::byte, 4096> room_;
  std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size()};
  std::pmr::unordered_map<Node*, variable_list> buffers_{&memory_};
  std::pmr::unordered_map<Node*, int> dependencies_{&memory_};  // of those that it reaches
  std::unordered_map<Node*, std::vector<Capture>> captures_;
  std::unordered_set<Node*> needed_;
  size_t queued_ = 0;
  variable_list results_;
  std::set<std::pair<runtime::Device*, runtime::Stream>> streams_;  // that were not the caller's
};

variable_list run_backward(const variable_list& outputs, const variable_list& grad_outputs, bool keep_graph,
                           bool create_graph, const variable_list& inputs, bool allow_unused, bool accumulate) {
  BRASA_CHECK(grad_outputs.empty() || grad_outputs.size() == outputs.size(), "got ", outputs.size(), " tensors and ",
              grad_outputs.size(), " gradients");
  Pass pass(keep_graph, create_graph);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    Edge edge = out.defined() ? gradient_edge(out) : Edge();
    BRASA_CHECK(edge.is_valid(), "element ", i, " of tensors does not require grad and does not have a grad_fn");
    Tensor g = i < grad_outputs.size() ? grad_outputs[i] : Tensor();
    if (!g.defined()) {
      BRASA_CHECK(out.numel() == 1, "grad can be implicitly created only for scalar outputs");
      NoGradGuard guard;
      g = impl_of(out)->sparse ? zeros(out.sizes(), out.scalar_type(), impl_of(out)->device()) : out;
      // A value of its own, which a recording keeps no memory for.
      g = eager::call_one("aten::fill.Scalar", {g, Scalar(1)});
    } else {
      BRASA_CHECK(g.sizes() == out.sizes(), "Mismatch in shape: grad_output[", i, "] is ", g, " and output[", i,
                  "] is ", out, ".");
    }
    if (impl_of(out)->sparse && !out.is_leaf()) g = eager::sparse::values_at(g, out);
    pass.add_root(edge, std::move(g));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    Edge edge = inputs[i].defined() ? gradient_edge(inputs[i]) : Edge();
    BRASA_CHECK(edge.is_valid(), "One of the differentiated Tensors does not require grad");
    pass.capture(edge, i);
  }
  variable_list results = pass.run(inputs.size(), accumulate);
  for (size_t i = 0; i < results.size(); ++i)
    if (impl_of(inputs[i])->sparse && !inputs[i].is_leaf() && results[i].defined())
      results[i] = eager::sparse::with_values(inputs[i], results[i]);
  if (!accumulate && !allow_unused)
    for (size_t i = 0; i < results.size(); ++i)
      BRASA_CHECK(results[i].defined(),
                  "One of the differentiated Tensors appears to not have been used in the graph. Set "
                  "allow_unused=True if this is the desired behavior.");
  return results;
}

}  // namespace

bool in_backward() { return passes > 0; }

variable_list gradients(const std::vector<Edge>& outputs, const variable_list& given, const std::vector<Edge>& inputs,
                        bool create_graph) {
  Pass pass(true, create_graph);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (given[i].defined()) pass.add_root(outputs[i], given[i]);
  for (size_t i = 0; i < inputs.size(); ++i) pass.capture(inputs[i], i);
  return pass.run(inputs.size(), false);
}

void backward(const variable_list& tensors, const variable_list& grad_tensors, std::optional<bool> retain_graph,
              bool create_graph, const variable_list& inputs) {
  bool keep = retain_graph.value_or(create_graph);
  if (inputs.empty()) {
    run_backward(tensors, grad_tensors, keep, create_graph, {}, true, true);
    return;
  }
  variable_list grads = run_backward(tensors, grad_tensors, keep, create_graph, inputs, true, false);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (grads[i].defined()) {
      Edge edge = gradient_edge(inputs[i]);
      if (inputs[i].is_leaf())
        NodeAccess::apply(*edge.function, {grads[i]});
      else
        inputs[i].mutable_grad() = sum_of(inputs[i].grad(), grads[i]);
    }
}

variable_list grad(const variable_list& outputs, const variable_list& inputs, const variable_list& grad_outputs,
                   std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  return run_backward(outputs, grad_outputs, retain_graph.value_or(create_graph), create_graph, inputs, allow_unused,
                      false);
}

}  // namespace brasa::autograd
