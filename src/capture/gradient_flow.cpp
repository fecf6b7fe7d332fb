#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "capture/joint.h"
#include "tensor/autograd/meta.h"
#include "tensor/views.h"

namespace brasa::capture {
namespace {

using autograd::Edge;
using autograd::Node;
using autograd::NodeAccess;

constexpr int32_t kNoEdge = -1, kFirstLeaf = -2;

// Which of the recorded nodes are held from outside: by trial deletion, as garbage collectors of cycles do. References that
// recorded nodes and what they keep have of one another are counted; who has more than those is held.
class Holders {
 public:
  Holders(const std::vector<std::shared_ptr<Node>>& nodes, std::span<const Tensor* const> own) : nodes_(nodes) {
    uint64_t last = 0;
    for (const auto& n : nodes) {
      if (!n) continue;
      first_ = std::min(first_, n->sequence_nr());
      last = std::max(last, n->sequence_nr());
    }
    positions_.assign(last - first_ + 1, -1);
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i]) positions_[nodes[i]->sequence_nr() - first_] = static_cast<int32_t>(i);
    references_.assign(nodes.size(), 1);
    for (const auto& n : nodes) {
      if (!n) continue;
      count_node(*n);
      if (const Node* inner = NodeAccess::inner(*n)) count_edges(*inner);
    }
    for (const Tensor* t : own) count_tensor(*t);
    for (auto& [impl, state] : tensors_)
      if (impl->autograd)
        if (int32_t i = index(impl->autograd->grad_fn.get()); i >= 0) ++references_[i];
  }

  // `moves`: keeps nothing but its edges, and stays as it is.
  std::vector<bool> held(const std::vector<bool>& moves) {
    std::vector<bool> out(nodes_.size());
    std::vector<int32_t> open_nodes;
    std::vector<TensorImpl*> open_tensors;
    auto hold_node = [&](const Node* n) {
      int32_t i = index(n);
      if (i < 0 || out[i]) return;
      out[i] = true;
      open_nodes.push_back(i);
    };
    auto hold_tensor = [&](const Tensor& t) {
      auto it = tensors_.find(impl_of(t));
      if (it == tensors_.end() || it->second.held) return;
      it->second.held = true;
      open_tensors.push_back(it->first);
    };
    for (auto& [impl, state] : tensors_)
      if (impl->references.load() > state.references) {
        state.held = true;
        open_tensors.push_back(impl);
      }
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i] && nodes_[i].use_count() > references_[i]) hold_node(nodes_[i].get());
    while (!open_nodes.empty() || !open_tensors.empty()) {
      if (!open_tensors.empty()) {
        TensorImpl* t = open_tensors.back();
        open_tensors.pop_back();
        if (t->autograd) hold_node(t->autograd->grad_fn.get());
        if (t->view) hold_tensor(t->view->base);
        continue;
      }
      int32_t n = open_nodes.back();
      open_nodes.pop_back();
      if (moves[n])
        for (const Edge& e : nodes_[n]->next_edges()) hold_node(e.function.get());
    }
    return out;
  }

  // -1: not a recorded one
  int32_t index(const Node* n) const {
    if (!n || n->sequence_nr() - first_ >= positions_.size()) return -1;
    int32_t i = positions_[n->sequence_nr() - first_];
    return i >= 0 && nodes_[i].get() == n ? i : -1;
  }

 private:
  struct State {
    uint32_t references = 0;
    bool held = false;
  };
  void count_edges(const Node& n) {
    for (const Edge& e : n.next_edges())
      if (int32_t i = index(e.function.get()); i >= 0) ++references_[i];
  }
  void count_node(const Node& n) {
    count_edges(n);
    NodeAccess::for_each_saved(n, [&](const Tensor& t) { count_tensor(t); });
  }
  void count_tensor(const Tensor& t) {
    if (!t.defined()) return;
    auto [it, fresh] = tensors_.try_emplace(impl_of(t));
    ++it->second.references;
    if (fresh && impl_of(t)->view) count_tensor(impl_of(t)->view->base);
  }

  const std::vector<std::shared_ptr<Node>>& nodes_;
  // Of one thread, whose nodes have numbers that follow each other.
  std::vector<int32_t> positions_;
  uint64_t first_ = std::numeric_limits<uint64_t>::max();
  std::vector<long> references_;
  PooledMap<TensorImpl*, State> tensors_;
};

// Leaves take their gradients, and call their hooks, in the order of the segment's edges: that in which they are complete where the
// nodes run one by one, the latest first.
void sort_leaves(GradientFlow& flow) {
  using Completed = std::pair<int64_t, int64_t>;  // by an edge of a node; both descend in time
  std::vector<Completed> completed(flow.leaves.size(), {std::numeric_limits<int64_t>::max(), 0});
  for (const GradientFlow::Step& s : flow.steps)
    for (size_t i = 0; i < s.targets.size(); ++i)
      if (int32_t leaf = s.targets[i].leaf; leaf >= 0)
        completed[leaf] = std::min(completed[leaf], Completed{s.node, -static_cast<int64_t>(i)});
  std::vector<int32_t> order(flow.leaves.size()), place(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return completed[a] > completed[b]; });
  std::vector<Edge> leaves;
  for (int32_t leaf : order) {
    place[leaf] = static_cast<int32_t>(leaves.size());
    leaves.push_back(std::move(flow.leaves[leaf]));
  }
  flow.leaves = std::move(leaves);
  for (GradientFlow::Step& s : flow.steps)
    for (GradientFlow::Target& t : s.targets)
      if (t.leaf >= 0) t.leaf = place[t.leaf];
}

bool has_hooks(const Node& n) { return n.internals().has_hooks(); }

}  // namespace

std::optional<GradientFlow> gradient_flow(std::span<const RecordedNode> recorded, std::span<const Tensor* const> own,
                                          uint64_t first_sequence) {
  std::vector<std::shared_ptr<Node>> nodes;
  std::vector<bool> moves;
  bool any = false;
  for (const RecordedNode& r : recorded) {
    nodes.push_back(r.node.lock());
    moves.push_back(r.results.empty());
    if (!nodes.back()) continue;
    if (nodes.back()->internals().released) return std::nullopt;
    any = true;
  }
  if (!any) return std::nullopt;
  Holders holders(nodes, own);
  std::vector<bool> held = holders.held(moves), seen(nodes.size());
  GradientFlow flow;
  std::vector<int32_t> open;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!held[i] || moves[i]) continue;
    // They see derivatives of derivatives, too, which do not come through here.
    if (has_hooks(*nodes[i])) return std::nullopt;
    for (uint32_t r = 0; r < recorded[i].results.size(); ++r)
      if (recorded[i].results[r] != kNoNumber) flow.slots.push_back({flow.roots.size(), r, recorded[i].results[r]});
    flow.roots.push_back(nodes[i]);
    flow.key.push_back(static_cast<int32_t>(i));
    seen[i] = true;
    open.push_back(static_cast<int32_t>(i));
  }
  if (flow.roots.empty()) return std::nullopt;
  std::map<std::pair<Node*, uint32_t>, int32_t> leaves;
  while (!open.empty()) {
    auto i = static_cast<size_t>(open.back());
    open.pop_back();
    flow.key.push_back(kNoEdge);
    flow.key.push_back(static_cast<int32_t>(i));
    GradientFlow::Step& step = flow.steps.emplace_back(GradientFlow::Step{static_cast<uint32_t>(i), {}});
    for (const Edge& e : nodes[i]->next_edges()) {
      GradientFlow::Target& target = step.targets.emplace_back();
      if (!e.is_valid()) {
        flow.key.push_back(kNoEdge);
        continue;
      }
      if (int32_t to = holders.index(e.function.get()); to >= 0) {
        flow.key.push_back(to);
        target.node = to;
        target.result = e.input_nr;
        // It would see only what comes from outside.
        if (has_hooks(*nodes[to])) return std::nullopt;
        if (!seen[to]) open.push_back(to);
        seen[to] = true;
        continue;
      }
      // A node of the recording that is not known here (a custom function's) may lead back into it.
      if (!e.function->next_edges().empty() && e.function->sequence_nr() >= first_sequence) return std::nullopt;
      auto [it, fresh] =
          leaves.try_emplace({e.function.get(), e.input_nr}, kFirstLeaf - static_cast<int32_t>(leaves.size()));
      if (fresh) flow.leaves.push_back(e);
      flow.key.push_back(it->second);
      target.leaf = kFirstLeaf - it->second;
    }
  }
  sort_leaves(flow);
  flow.key.push_back(kNoEdge);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!held[i] || !moves[i] || !seen[i]) continue;
    flow.views.push_back({static_cast<uint32_t>(i), nodes[i]});
    flow.key.push_back(static_cast<int32_t>(i));
  }
  return flow;
}

void redirect(const GradientFlow& flow, const std::shared_ptr<Node>& segment) {
  for (size_t i = 0; i < flow.roots.size(); ++i) {
    Node& root = *flow.roots[i];
    root.internals().forwards = true;
    NodeAccess::release(root);
    std::vector<Edge>& edges = NodeAccess::edges(root);
    edges.assign(root.internals().results.size(), Edge{});
    for (size_t s = 0; s < flow.slots.size(); ++s)
      if (flow.slots[s].root == i) edges[flow.slots[s].result] = {segment, static_cast<uint32_t>(s)};
  }
}

}  // namespace brasa::capture
