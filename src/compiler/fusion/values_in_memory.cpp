#include "compiler/fusion/values_in_memory.h"

#include <algorithm>
#include <functional>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/repeats.h"
#include "compiler/libraries/library.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/words.h"

namespace brasa::compiler {

int work_of(const Node* n) { return ops::row_of(*n).work; }

namespace {

// Recomputing a value of at most this cost is cheaper than a trip through memory.
constexpr int kCheap = 4;
// Of this many tensors a machine's own limit holds.
constexpr size_t kFewTensors = 3;
// What a broadcast repeats may cost this much; on a GPU, where each thread computes it again, this much, if all of that takes longer
// than so many simple instructions, which a kernel's start does.
constexpr int kCheapRepeated = 12, kCheapForEachThread = 3;
constexpr int64_t kStart = 25'000'000;
// And this much there, if it is made of places alone: of neighbours' places, which loops spell out, little is left to compute.
constexpr int kCheapOfPlaces = 256;
// And of this much, where a contraction and others would each do it again.
constexpr int kCheapShared = 2;
// Beyond this, what is computed again and again costs as much as anything.
constexpr int kMostCost = 1 << 24;
// Users of a value that come together further away than this are users of different kernels.
constexpr int kFarthestMeeting = 256;
// An expression of more values than this is not looked through for what a later kernel reads of it.
constexpr size_t kMostLookedThrough = 64;

class Chooser {
 public:
  Chooser(const ir::Graph& graph, const std::unordered_set<Value>& forced, std::vector<const Implementation*>& library,
          const LibraryGroups& groups, const Machine& machine)
      : graph_(graph),
        live_(live_nodes(graph)),
        library_(library),
        alone_(library),
        groups_(groups),
        recompute_(machine.recompute),
        gpu_(machine.gpu),
        below_padding_(gpu_ && !PassRunner::switched_off("below_padding")),
        narrow_results_(gpu_ && !PassRunner::switched_off("narrow_results")) {
    memory_.assign(graph.nodes().size(), false);
    inside_ = memory_;
    for (Value v : forced) memory_[v.node->id] = true;
    for (const auto& [n, group] : groups) {
      library_[n->id] = group.by;
      for (const Node* i : group.covered.inside) {
        library_[i->id] = nullptr;
        inside_[i->id] = true;
      }
      for (const Node* r : group.covered.results) {
        inside_[r->id] = false;
        memory_[r->id] = true;
      }
    }
  }

  std::vector<bool> run() {
    users_.assign(graph_.nodes().size(), 0);
    for (const Node* n : live_) {
      std::unordered_set<Node*> operands;
      each_read(n, [&](Value v) { operands.insert(v.node); });
      if (picks_few(n)) operands.erase(n->arg<Value>(0).node);
      for (Node* o : operands) ++users_[o->id];
    }
    for (const ir::Output& o : graph_.outputs())
      if (!ir::is_input(o.value)) memory_[o.value.node->id] = true;
    find_meetings();
    for (const Node* n : live_) {
      if ((is_heavy(prim_of(n)) || library_[n->id]) && !inside_[n->id]) memory_[n->id] = true;
      if (library_[n->id] && !library_[n->id]->reads) n->for_each_input([&](Value v) { materialise(v); });
    }
    cost_.assign(graph_.nodes().size(), 0);
    leaves_.assign(graph_.nodes().size(), 0);
    nodes_.assign(graph_.nodes().size(), 0);
    tensors_.assign(graph_.nodes().size(), {});
    find_levels();
    for (const Node* n : live_) {
      if (prim_of(n) == Prim::Pointwise) n->for_each_input([&](Value v) { compute_early(v.node, n); });
      int cost = 0, leaves = 0, nodes = 1;
      each_read(n, [&](Value v) {
        nodes = std::min(kMostNodes + 1, nodes + (memory_[v.node->id] ? 0 : nodes_[v.node->id]));
        cost = std::min(kMostCost, cost + (is_near_all(v, n) ? 0 : seen_cost(v.node)));
        leaves += memory_[v.node->id] || prim_of(v) == Prim::Input ? 1 : leaves_[v.node->id];
      });
      Prim p = prim_of(n);
      if (p == Prim::Pointwise) cost += work_of(n);
      if (p == Prim::Pad || p == Prim::Concat || p == Prim::Gather) cost += 2;
      if (p == Prim::Concat && !gpu_ && has_one_source(n)) cost = 1 + seen_cost(n->arg<std::vector<Value>>(0)[0].node);
      if (is_leaf(p)) cost = 0;
      // Products read words as they lie.
      if (p == Prim::Pointwise && of_words(const_cast<Node*>(n)->out())) cost = 1;
      cost_[n->id] = cost;
      leaves_[n->id] = leaves;
      nodes_[n->id] = nodes;
      note_tensors(n);
      if (p == Prim::Input || is_leaf(p)) continue;
      // Of few tensors more is computed again than of many, which would all be read again.
      bool again = users_[n->id] > 1 && meeting_[n->id] == kNowhere, few = tensors_[n->id].size() <= kFewTensors;
      int limit = few ? recompute_ : std::min(recompute_, kCheap);
      if (again && (ends_product(n) || (cost > limit && !is_made_of_inputs(n, limit)))) materialise_source(n);
      if (is_large(n)) count_parts(n);
      if (is_large(n) || narrows_result(n)) memory_[n->id] = true;
      repeated_operands(n);
    }
    for (const Node* n : live_)
      if (inside_[n->id]) memory_[n->id] = false;
    for (const Node* n : live_)
      if (library_[n->id] && library_[n->id]->reads) settle(n);
    return std::move(memory_);
  }

 private:
  // Where a value on the way to one of a library's operands went to memory, and the library cannot read all of them from there, the
  // operands themselves do; a call of several nodes becomes calls of one each.
  void settle(const Node* n) {
    auto group = groups_.find(n);
    bool several = group != groups_.end() && library_[n->id] == group->second.by;
    std::vector<const Node*> nodes{n};
    if (several) nodes.insert(nodes.end(), group->second.covered.inside.begin(), group->second.covered.inside.end());
    std::vector<Value> operands;
    for (const Node* m : nodes)
      m->for_each_input([&](Value v) {
        if (!inside_[v.node->id]) operands.push_back(v);
      });
    std::unordered_map<const Node*, std::vector<ir::Expr>> stored;
    for (Value v : operands) {
      while (!memory_[v.node->id] && !ir::is_input(v) && is_view_or_conversion(v.node)) v = v.node->arg<Value>(0);
      if (memory_[v.node->id] || ir::is_input(v)) stored[v.node] = ir::strides_of(graph_, v);
    }
    if (library_[n->id]->reads(*n, stored)) return;
    if (!several)
      for (Value v : operands) materialise(v);
    else
      for (const Node* m : nodes) {
        inside_[m->id] = false;
        library_[m->id] = alone_[m->id];
        if (alone_[m->id] || is_heavy(prim_of(m))) memory_[m->id] = true;
        if (alone_[m->id] && alone_[m->id]->reads) settle(m);
      }
  }
  static bool widens_places(const Node* n) {
    return converts(n) && n->types[0].dtype == DType::Int64 && type_of(n->arg<Value>(0)).dtype == DType::Int32;
  }
  static bool is_view_or_conversion(const Node* n) {
    return is_view(prim_of(n)) || (prim_of(n) == Prim::Pointwise && n->args.size() <= 2);
  }
  static bool is_heavy(Prim p) {
    return p == Prim::Reduce || p == Prim::ArgReduce || p == Prim::Dot || p == Prim::Scan || p == Prim::Scatter ||
           p == Prim::Convolution;
  }
  // A value whose users all serve one node, each element the one at its place, is computed once in that node's kernel.
  void find_meetings() {
    constexpr int kUnused = -2;
    meeting_.assign(graph_.nodes().size(), kUnused);
    std::vector<int> depth(graph_.nodes().size(), 0);
    auto common = [&](int a, int b) {
      if (a == kUnused) return b;
      for (int steps = 0; a != b; ++steps) {
        if (a == kNowhere || b == kNowhere || steps == kFarthestMeeting) return kNowhere;
        int& farther = depth[a] >= depth[b] ? a : b;
        farther = meeting_[farther];
      }
      return a;
    };
    for (const ir::Output& o : graph_.outputs()) meeting_[o.value.node->id] = kNowhere;
    for (size_t i = live_.size(); i-- > 0;) {
      const Node* user = live_[i];
      int next = meeting_[user->id];
      if (next == kUnused) next = meeting_[user->id] = kNowhere;
      depth[user->id] = next == kNowhere ? 0 : depth[next] + 1;
      each_read(user, [&](Value v) {
        bool at_its_place = prim_of(user) == Prim::Pointwise && type_of(v).shape == user->types[0].shape;
        meeting_[v.node->id] = common(meeting_[v.node->id], at_its_place ? user->id : kNowhere);
      });
    }
  }

  // How many nodes that end a kernel lie on the way to each.
  void find_levels() {
    level_.assign(graph_.nodes().size(), 0);
    readers_.assign(graph_.nodes().size(), {});
    for (const Node* n : live_) {
      n->for_each_input([&](Value v) { level_[n->id] = std::max(level_[n->id], level_[v.node->id]); });
      each_read(n, [&](Value v) { readers_[v.node->id].push_back(n); });
      level_[n->id] += is_heavy(prim_of(n)) || library_[n->id];
    }
  }

  // A later kernel reads, of an expression over several tensors that are read for nothing else there, its value: the tensors' own kernel
  // computes it, and less lies in memory until then. So a GELU keeps its derivative for the backward pass, in place of its operand and
  // of the error function.
  void compute_early(const Node* v, const Node* later) {
    if (memory_[v->id] || prim_of(v) != Prim::Pointwise || level_[v->id] == level_[later->id]) return;
    Expr bytes = bytes_of(v), kept = 0;
    std::vector<const Node*> stack{v};
    std::unordered_set<const Node*> seen;
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      bool good = seen.size() <= kMostLookedThrough;
      each_read(n, [&](Value in) {
        const Node* t = in.node;
        if (prim_of(t) == Prim::Input || !seen.insert(t).second) return;
        if (!memory_[t->id]) return stack.push_back(t);
        good = good && level_[t->id] == level_[v->id] && is_read_later_by(t, v);
        kept = kept + bytes_of(t);
      });
      if (!good) return;
    }
    if (bytes.is_constant() && kept.is_constant() && bytes.constant() < kept.constant()) memory_[v->id] = true;
  }
  static Expr bytes_of(const Node* n) { return n->types[0].numel() * Expr(size_of(n->types[0].dtype)); }
  // Whether kernels behind a tensor's own read it, if at all, for this value alone.
  bool is_read_later_by(const Node* tensor, const Node* value) const {
    std::vector<const Node*> stack{tensor};
    std::unordered_set<const Node*> seen;
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      for (const Node* r : readers_[n->id]) {
        if (r == value || !seen.insert(r).second) continue;
        if (level_[r->id] != level_[tensor->id] || seen.size() > kMostLookedThrough) return false;
        if (!memory_[r->id]) stack.push_back(r);
      }
    }
    return true;
  }

  bool is_large(const Node* n) const {
    return leaves_[n->id] > static_cast<int>(kMaxBuffers) / 2 || nodes_[n->id] > kMostNodes;
  }
  // Until then, what is used twice counts twice.
  void count_parts(const Node* n) {
    std::vector<const Node*> rest{n};
    std::unordered_set<const Node*> seen;
    int leaves = 0, nodes = 0;
    while (!rest.empty() && nodes <= kMostNodes) {
      const Node* part = rest.back();
      rest.pop_back();
      ++nodes;
      each_read(part, [&](Value v) {
        if (!seen.insert(v.node).second) return;
        if (memory_[v.node->id] || prim_of(v) == Prim::Input)
          ++leaves;
        else
          rest.push_back(v.node);
      });
    }
    leaves_[n->id] = leaves;
    nodes_[n->id] = nodes;
  }

  // Whether all parts of a concatenation look at one value, as borders do that mirror or repeat what they lie around: its elements are chosen
  // by their places there.
  static bool has_one_source(const Node* concat) {
    const auto& parts = concat->arg<std::vector<Value>>(0);
    auto source = [](Value v) {
      while (is_view(prim_of(v))) v = v.node->arg<Value>(0);
      return v;
    };
    return std::all_of(parts.begin(), parts.end(), [&](Value v) { return source(v) == source(parts[0]); });
  }

  int seen_cost(const Node* n) const { return memory_[n->id] || prim_of(n) == Prim::Input ? 1 : cost_[n->id]; }

  void materialise(Value v) {
    while (prim_of(v) == Prim::Later) v = v.node->arg<Value>(0);
    if (!ir::is_input(v)) memory_[v.node->id] = true;
  }

  // Of a view, what it looks at: that serves other views, too. Places that are short numbers are so in memory, and on a GPU, where memory bounds
  // most kernels, floats that were widened as they were before.
  void materialise_source(const Node* n) {
    Value v = const_cast<Node*>(n)->out();
    while (!memory_[v.node->id] && (is_view(prim_of(v)) || (gpu_ ? widens(v.node) : widens_places(v.node))))
      v = v.node->arg<Value>(0);
    materialise(v);
    if (v.node == n) return;
    cost_[n->id] = leaves_[n->id] = 1;
    tensors_[n->id] = {v.node};
  }

  // Whether a product's kernel makes all of it with values for each channel, as a bias: it lies in memory in the product's place then, and its
  // readers need not make it again. A factor alone takes them less time than what follows a tile.
  bool ends_product(const Node* n) const {
    if (gpu_) return false;
    while (is_view(prim_of(n)) && !memory_[n->id]) n = n->arg<Value>(0).node;
    const int64_t bytes = size_of(n->types[0].dtype);
    bool added = false;
    while (prim_of(n) == Prim::Pointwise && !memory_[n->id]) {
      std::vector<const Node*> whole;
      each_read(n, [&](Value v) {
        bool repeated = prim_of(v) == Prim::Broadcast && is_near_all(v.node->arg<Value>(0), v.node);
        added |= repeated;
        if (!repeated && !is_leaf(prim_of(v))) whole.push_back(v.node);
      });
      if (whole.size() != 1 || users_[whole[0]->id] > 1) return false;
      n = whole[0];
    }
    return added && prim_of(n) == Prim::Dot && !library_[n->id] && bytes <= size_of(n->types[0].dtype);
  }

  // Whether a value takes little to make again from inputs, which are in memory anyway, once what it repeats along whole dimensions, as a mean,
  // lies there, too: far fewer elements. That goes to memory then.
  bool is_made_of_inputs(const Node* n, int limit) {
    if (gpu_) return false;
    std::vector<const Node*> repeated;
    size_t seen = 0;
    std::function<int(const Node*)> cost = [&](const Node* v) {
      if (prim_of(v) == Prim::Input) return 1;
      if (prim_of(v) == Prim::Broadcast && repeats_often(v)) {
        const Node* source = v->arg<Value>(0).node;
        if (prim_of(source) != Prim::Input && !is_leaf(prim_of(source))) repeated.push_back(source);
        return 0;
      }
      bool again = prim_of(v) == Prim::Pointwise || is_view(prim_of(v)) || is_leaf(prim_of(v));
      if (memory_[v->id] || !again || ++seen > kMostLookedThrough) return kMostCost;
      int all = prim_of(v) == Prim::Pointwise ? work_of(v) : 0;
      each_read(v, [&](Value in) { all = std::min(kMostCost, all + cost(in.node)); });
      return all;
    };
    int now = cost(n);
    if (now > limit) return false;
    for (const Node* v : repeated)
      if (cost_[v->id] > 1) materialise(Value{const_cast<Node*>(v), 0});
    cost_[n->id] = now;
    return true;
  }

  // What is read where the node is computed: each tensor once, though an expression names it often; no more than says that they are many.
  // A value for each channel takes next to no time to read again: it is the same in all rows.
  void note_tensors(const Node* n) {
    auto& all = tensors_[n->id];
    auto note = [&](const Node* tensor) {
      if (gpu_ && is_by_channel(tensor->types[0], n->types[0])) return;
      if (all.size() <= kFewTensors && std::find(all.begin(), all.end(), tensor) == all.end()) all.push_back(tensor);
    };
    each_read(n, [&](Value v) {
      if (memory_[v.node->id] || prim_of(v) == Prim::Input)
        note(v.node);
      else
        std::for_each(tensors_[v.node->id].begin(), tensors_[v.node->id].end(), note);
    });
  }

  // What a broadcast repeats in all rows, and has in memory. On a GPU each thread reads it.
  bool is_near_all(Value v, const Node* n) const {
    if (gpu_ || prim_of(n) != Prim::Broadcast || !is_by_channel(type_of(v), n->types[0])) return false;
    while (is_view(prim_of(v)) && !memory_[v.node->id]) v = v.node->arg<Value>(0);
    return memory_[v.node->id] || ir::is_input(v);
  }

  // A gather of so few elements, a label's of each row, that what it reads need not be in memory for it.
  bool picks_few(const Node* n) const {
    return prim_of(n) == Prim::Gather && far_fewer(n->types[0].numel(), type_of(n->arg<Value>(0)).numel());
  }
  // Whether what is computed to it is, too.
  static bool is_of_integers(const Node* v) {
    std::vector<const Node*> rest{v};
    std::unordered_set<const Node*> seen;
    while (!rest.empty()) {
      const Node* n = rest.back();
      rest.pop_back();
      if (!seen.insert(n).second) continue;
      if (is_floating(n->types[0].dtype) || is_complex(n->types[0].dtype) || seen.size() > kMostLookedThrough)
        return false;
      n->for_each_input([&](Value in) { rest.push_back(in.node); });
    }
    return true;
  }

  int most_repeated(const Node* broadcast) const {
    const Node* v = broadcast->arg<Value>(0).node;
    Expr repeats = broadcast->types[0].numel();
    // What differs along the last dimension is computed again in each vector.
    bool along_vectors = differs_along_rows(broadcast) && !(v->types[0].numel() == broadcast->types[0].numel());
    if (!gpu_ && along_vectors) return kCheap;
    if (gpu_ && leaves_[v->id] == 0 && is_of_integers(v)) return kCheapOfPlaces;
    bool short_time = repeats.is_constant() && repeats.constant() < kStart / std::max(cost_[v->id], 1);
    return gpu_ && !short_time && !v->types[0].numel().is(1) ? kCheapForEachThread : kCheapRepeated;
  }

  // An operand whose elements are read many times each is computed once.
  void repeated_operands(const Node* n) {
    // Places that are short numbers are so in memory, too.
    auto once = [&](Value v, int limit) {
      if (memory_[v.node->id] || cost_[v.node->id] <= limit) return;
      Value source = v;
      while (!gpu_ && !memory_[source.node->id] && (is_view(prim_of(source)) || widens_places(source.node)))
        source = source.node->arg<Value>(0);
      materialise(source);
      if (source != v) cost_[v.node->id] = leaves_[v.node->id] = 1;
    };
    switch (prim_of(n)) {
      case Prim::Broadcast:
        if (below_padding_once(n, most_repeated(n))) break;
        once(n->arg<Value>(0), most_repeated(n));
        if (gpu_) cost_[n->id] = seen_cost(n->arg<Value>(0).node);
        break;
      case Prim::Window:
        if (below_padding_once(n, kCheap)) break;
        once(n->arg<Value>(0), kCheap);
        cost_[n->id] = seen_cost(n->arg<Value>(0).node);
        break;
      case Prim::Gather:
        if (!picks_few(n)) once(n->arg<Value>(0), kCheap);
        break;
      case Prim::Dot: {
        // The rows are read once for each block of columns; where they come from another contraction, the work is free at its end.
        Value v = n->arg<Value>(0);
        bool shared = users_[v.node->id] > 1;
        while (is_view(prim_of(v)) && !memory_[v.node->id]) {
          v = v.node->arg<Value>(0);
          shared = shared || users_[v.node->id] > 1;
        }
        once(v, shared ? kCheapShared : kCheap);
        break;
      }
      case Prim::Scatter:
        for (Value v : n->arg<std::vector<Value>>(1)) once(v, kCheap);
        break;
      default: break;
    }
  }

  // On a GPU what lies below padding and widening: reading that under a condition takes less than another copy does. Whether there is any.
  bool below_padding_once(const Node* n, int limit) {
    std::vector<const Node*> above{n};
    Value v = n->arg<Value>(0);
    bool padded = false;
    while (below_padding_ && !memory_[v.node->id] && !ir::is_input(v)) {
      Prim p = prim_of(v);
      bool pads = p == Prim::Pad || widens(v.node);
      if (!pads && (!is_view(p) || p == Prim::Transpose)) break;
      padded |= pads;
      above.push_back(v.node);
      v = v.node->arg<Value>(0);
    }
    if (!padded) return false;
    if (cost_[v.node->id] > limit) materialise(v);
    int cost = seen_cost(v.node);
    for (size_t i = above.size(); i-- > 0;) {
      Prim p = prim_of(above[i]);
      cost += p == Prim::Pad ? 2 : p == Prim::Pointwise ? 1 : 0;
      cost_[above[i]->id] = cost;
    }
    return true;
  }
  // On a GPU memory holds what a reduction is narrowed to, where nothing reads what lies between.
  bool narrows_result(const Node* n) const {
    if (!narrow_results_ || !converts(n)) return false;
    const Node* at = n;
    while (at && !is_reduction(prim_of(at))) at = only_operand(at);
    return at && !library_[at->id] && size_of(n->types[0].dtype) < size_of(at->types[0].dtype);
  }
  // The one operand that has as many elements, and no other user; null where there is no such one.
  const Node* only_operand(const Node* n) const {
    if (prim_of(n) != Prim::Pointwise && prim_of(n) != Prim::Reshape) return nullptr;
    const Node* out = nullptr;
    bool one = true;
    n->for_each_input([&](Value v) {
      bool same = type_of(v).numel() == n->types[0].numel() && prim_of(v) != Prim::Broadcast;
      one = one && !(same && out);
      if (same) out = v.node;
    });
    return one && out && users_[out->id] == 1 && prim_of(out) != Prim::Input ? out : nullptr;
  }

  const ir::Graph& graph_;
  std::vector<Node*> live_;
  std::vector<bool> memory_;
  std::vector<const Implementation*>& library_;
  const std::vector<const Implementation*> alone_;  // what computes each node alone
  const LibraryGroups& groups_;
  std::vector<bool> inside_;  // by node id: of a call that computes more than it
  int recompute_;
  bool gpu_;
  const bool below_padding_, narrow_results_;
  static constexpr int kNowhere = -1;
  std::vector<int> meeting_;                        // by node id: of all its users, or kNowhere
  std::vector<int> users_, cost_, leaves_, nodes_;  // of what a node's expression is made of
  std::vector<std::vector<const Node*>> tensors_, readers_;
  std::vector<int> level_;  // by node id
};

}  // namespace

std::vector<bool> values_in_memory(const ir::Graph& graph, const std::unordered_set<Value>& forced,
                                   std::vector<const Implementation*>& library, const LibraryGroups& groups,
                                   const Machine& machine) {
  return Chooser(graph, forced, library, groups, machine).run();
}

}  // namespace brasa::compiler
