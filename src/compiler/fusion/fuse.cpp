#include "compiler/fusion/fuse.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/members.h"
#include "compiler/fusion/padded_rows.h"
#include "compiler/fusion/places.h"
#include "compiler/fusion/quotients.h"
#include "compiler/fusion/values_in_memory.h"
#include "compiler/libraries/library.h"
#include "compiler/passes/pass_runner.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

namespace {

constexpr size_t kMaxRoots = 24;
// A search for paths between two kernels ends after this many others, so that fusion takes time in proportion to the graph.
constexpr int kFarthest = 4000;
// What is made of inputs alone is made apart for readers that are so many kernels apart.
constexpr int kFarReaders = 64;
// Sums of columns in a kernel that walks along rows: their threads keep them in registers.
constexpr int kMostSums = 4;

// Nodes that become one kernel.
struct Cluster {
  GroupKind kind;
  Domain domain;
  std::vector<Node*> roots;               // in topological order
  std::vector<int> producers, consumers;  // clusters; may repeat, may name merged ones
  int merged_into = -1;
  int nodes = 0;       // that its expressions are made of
  bool again = false;  // for the second time, so that it need not lie in memory in between
};

class Fuser {
 public:
  Fuser(const ir::Graph& graph, const std::unordered_set<Value>& forced, const Machine& machine,
        const LibraryGroups& groups, const std::unordered_set<Value>& apart)
      : graph_(graph),
        machine_(machine),
        apart_(apart),
        sum_columns_(machine.gpu && !PassRunner::switched_off("sum_columns")),
        live_(live_nodes(graph)) {
    cluster_of_.assign(graph.nodes().size(), -1);
    library_.assign(graph.nodes().size(), nullptr);
    for (Node* node : live_) {
      library_[node->id] = machine.libraries.find(*node);
      BRASA_CHECK(
          prim_of(node) != Prim::Loop || library_[node->id], node->op->name(), " of ", node->types,
          ": a loop whose number of steps is known only when it runs has no form that runs alone; where that is a "
          "size, give it one value");
      if (prim_of(node) == Prim::Whole && !library_[node->id])
        fail(str(node->op->name(),
                 " is not defined, or no library computes it where this is to run: ", ir::print(*node)));
    }
    memory_ = values_in_memory(graph, forced, library_, groups, machine);
    for (const auto& [last, group] : groups)
      for (const Node* r : group.covered.results)
        if (library_[last->id] == group.by) last_of_[r] = last;
    for (const ir::Output& o : graph.outputs())
      if (o.into >= 0) overwrites_.insert(o.value.node);
  }

  FusedGraph run() {
    make_clusters();
    merge_along_rows();
    merge_clusters();
    rows_ = padded_rows(graph_, memory_, library_, [this](const Node* n) { return group_kind(n); });
    return extract();
  }

 private:
  template <class F>
  int frontier(const Node* root, F f) const {
    return each_read_value(root, memory_, f);
  }

  GroupKind group_kind(const Node* n) const {
    if (library_[n->id] || last_of_.count(n)) return GroupKind::Library;
    switch (prim_of(n)) {
      case Prim::Dot: return GroupKind::Contraction;
      case Prim::Scatter: return GroupKind::Scatter;
      default: return GroupKind::Loops;
    }
  }

  // Elements that are only counted anew on their way to memory lie there in the same order: along the dimensions that they had before, no
  // place is a quotient. Dimensions that are short stay together with others.
  const ir::Shape& before_reshapes(const Node* n) const {
    constexpr int64_t kShort = 16;
    while (prim_of(n) == Prim::Reshape) {
      const Node* before = n->arg<Value>(0).node;
      const ir::Shape& shape = type_of(n->arg<Value>(0)).shape;
      bool is_short = shape.empty() || (shape.back().is_constant() && shape.back().constant() < kShort);
      if (memory_[before->id] || prim_of(before) == Prim::Input || is_short || shape.size() <= n->types[0].shape.size())
        break;
      n = before;
    }
    return n->types[0].shape;
  }

  void make_clusters() {
    std::vector<bool> again(graph_.nodes().size());
    for (Node* n : live_) {
      again[n->id] = prim_of(n) == Prim::Later;
      n->for_each_input([&](Value v) { again[n->id] = again[n->id] || (again[v.node->id] && !memory_[v.node->id]); });
      if (!memory_[n->id] || prim_of(n) == Prim::Input) continue;
      if (auto call = call_of_.find(n); call != call_of_.end()) {
        clusters_[call->second].roots.push_back(n);
        add_producers(n, call->second);
        continue;
      }
      Cluster k{group_kind(n), domain_of(before_reshapes(n)), {n}, {}, {}, -1, 0, again[n->id]};
      if (k.kind == GroupKind::Loops && is_reduction(prim_of(n))) k.domain = reduced_domain(n);
      if (k.kind == GroupKind::Loops && prim_of(n) == Prim::Scan) k.domain.scanned = scanned_dim(n);
      int id = static_cast<int>(clusters_.size());
      clusters_.push_back(std::move(k));
      clusters_[id].nodes = add_producers(n, id);
      if (auto last = last_of_.find(n); last != last_of_.end()) call_of_[last->second] = id;
    }
  }
  // Of a root of the cluster, which is new there; how many nodes it has.
  int add_producers(const Node* root, int cluster) {
    cluster_of_[root->id] = cluster;
    return frontier(root, [&](const Node* p) {
      if (prim_of(p) == Prim::Input || cluster_of_[p->id] == cluster) return;
      clusters_[cluster].producers.push_back(cluster_of_[p->id]);
      clusters_[cluster_of_[p->id]].consumers.push_back(cluster);
    });
  }

  int find(int k) const {
    while (clusters_[k].merged_into >= 0) k = clusters_[k].merged_into;
    return k;
  }

  static std::optional<int64_t> bytes_of(const Node* n) {
    auto numel = n->types[0].numel().maybe_constant();
    return numel ? std::optional(*numel * size_of(n->types[0].dtype)) : std::nullopt;
  }

  // What walks along the rows of a value that no cache holds is joined first by who reads the same value and what was made of its rows, as the
  // derivative of a loss does: small kernels in between, joined by others before, would stand in their way.
  void merge_along_rows() {
    constexpr int64_t kCacheBytes = int64_t{32} << 20;
    using Values = std::unordered_set<const Node*>;
    seen_.resize(clusters_.size());
    if (PassRunner::switched_off("along_rows")) return;
    std::vector<Values> along(clusters_.size());  // of sums of rows, and what follows from these
    for (int c = 0; c < static_cast<int>(clusters_.size()); ++c) {
      const Node* root = clusters_[c].roots[0];
      if (clusters_[c].kind != GroupKind::Loops) continue;
      newest_ = c;
      Values large;
      std::vector<const Node*> rows;
      frontier(root, [&](const Node* p) {
        if (same_numel(p, root) && bytes_of(p).value_or(0) > kCacheBytes) large.insert(p);
        if (prim_of(p) != Prim::Input && !along[cluster_of_[p->id]].empty()) rows.push_back(p);
      });
      if (clusters_[c].domain.has_reduced()) along[c] = large;
      for (const Node* p : rows) {
        const Values& theirs = along[cluster_of_[p->id]];
        bool follows = root->types[0].numel() == clusters_[find(cluster_of_[p->id])].domain.rows();
        if (!follows && std::none_of(theirs.begin(), theirs.end(), [&](const Node* v) { return large.count(v) > 0; }))
          continue;
        merge(find(cluster_of_[p->id]), find(c), true);
        if (find(cluster_of_[p->id]) != find(c)) continue;
        joined_ = c;
        if (follows) along[c].insert(theirs.begin(), theirs.end());
      }
    }
  }

  void merge_clusters() {
    for (int c = 0; c < static_cast<int>(clusters_.size()); ++c) {
      newest_ = std::max(c, joined_);
      const Node* root = clusters_[c].roots[0];
      std::vector<Node*> read, inputs;
      frontier(root,
               [&](const Node* p) { (prim_of(p) == Prim::Input ? inputs : read).push_back(const_cast<Node*>(p)); });
      auto bytes = [](const Node* n) { return bytes_of(n).value_or(int64_t{1} << 20); };
      // The largest producers first: most memory traffic is saved there.
      std::stable_sort(read.begin(), read.end(), [&](Node* a, Node* b) { return bytes(a) > bytes(b); });
      for (Node* p : read) merge(find(cluster_of_[p->id]), find(c), true);
      // Kernels that read the same large value.
      for (const auto* values : {&read, &inputs})
        for (Node* p : *values)
          if (same_numel(p, root)) siblings(p, c);
    }
    if (machine_.gpu) merge_sums();
  }

  // Sums of what one kernel made, as those of parts of sums: on a GPU to begin a kernel of its own takes longer than it runs. Equal kernels are
  // one launch anyway, with others that are further away.
  void merge_sums() {
    std::unordered_map<int, std::vector<int>> by_maker;
    newest_ = static_cast<int>(clusters_.size());
    for (const Node* root : live_) {
      if (!memory_[root->id] || !is_reduction(prim_of(root))) continue;
      std::unordered_set<int> makers;
      frontier(root, [&](const Node* p) {
        if (prim_of(p) != Prim::Input && same_numel(p, root)) makers.insert(find(cluster_of_[p->id]));
      });
      for (int maker : makers) {
        for (int other : by_maker[maker]) {
          int a = find(other), b = find(cluster_of_[root->id]);
          if (clusters_[a].nodes != clusters_[b].nodes) merge(std::min(a, b), std::max(a, b), false);
        }
        by_maker[maker].push_back(cluster_of_[root->id]);
      }
    }
  }

  bool same_numel(const Node* value, const Node* root) {
    Expr numel = value->types[0].numel();
    if (numel == clusters_[find(cluster_of_[root->id])].domain.numel()) return true;
    return is_reduction(prim_of(root)) && numel == type_of(before_parts(root->arg<Value>(0))).numel();
  }

  // What is reduced in parts, which have one length by what is put behind the last.
  static Value before_parts(Value v) {
    while (prim_of(v) == Prim::Reshape || prim_of(v) == Prim::Pad) v = v.node->arg<Value>(0);
    return v;
  }

  void siblings(Node* value, int c) {
    std::vector<int>& readers = readers_[value];
    int tried = 0;
    for (size_t i = readers.size(); i-- > 0 && tried < 4; ++tried) {
      int a = find(readers[i]), b = find(c);
      if (a != b && !turns(clusters_[a], clusters_[b], value)) merge(std::min(a, b), std::max(a, b), false);
    }
    readers.push_back(c);
  }

  // Whether these kernels, side by side, would walk along different dimensions of a value. On a CPU each turns squares by itself.
  bool turns(const Cluster& a, const Cluster& b, const Node* value) {
    auto plain = [](const Cluster& k) { return k.kind == GroupKind::Loops && !k.domain.folds(); };
    Domain d;
    if (machine_.gpu || !plain(a) || !plain(b) || !compatible(a, b, d) || d.dims.empty()) return false;
    auto of_a = members_.steps(a.roots, value, d), of_b = members_.steps(b.roots, value, d);
    return std::none_of(of_a.begin(), of_a.end(),
                        [&](const auto& s) { return std::find(of_b.begin(), of_b.end(), s) != of_b.end(); });
  }

  bool compatible(const Cluster& p, const Cluster& c, Domain& d) {
    if (p.kind == GroupKind::Contraction) {
      if (c.kind != GroupKind::Loops || c.domain.folds()) return false;
      d = p.domain;
    } else if (p.kind == GroupKind::Loops && c.kind == GroupKind::Loops) {
      bool scans = p.domain.scanned || c.domain.scanned;
      if (scans && (p.domain.has_reduced() || c.domain.has_reduced())) return false;
      d = scans ? (p.domain.scanned ? p.domain : c.domain) : common_domain(p.domain, c.domain, sum_columns_);
    } else {
      return false;
    }
    int sums = 0;
    for (const Cluster* k : {&p, &c})
      for (Node* root : k->roots) {
        if (p.kind == GroupKind::Contraction && prim_of(root) == Prim::Dot) continue;
        Member m = members_.of(root, d);
        if (m == Member::None || (p.kind == GroupKind::Contraction && m != Member::Full)) return false;
        sums += m == Member::Columns;
      }
    return sums <= kMostSums;
  }

  // Is there a path from one to the other through a third kernel? Beyond kFarthest kernels nobody looks: there may be one.
  bool path_around(int from, int to) {
    ++search_;
    std::vector<int> stack;
    auto push = [&](int k) {
      for (int c : clusters_[k].consumers) {
        c = find(c);
        // What comes after the kernel that is being merged is as it was made: it reads that one, never the other way round.
        if (c > newest_ || seen_[c] == search_ || (k == from && c == to)) continue;
        seen_[c] = search_;
        stack.push_back(c);
      }
    };
    seen_[from] = search_;
    push(from);
    for (int visited = 0; !stack.empty(); ++visited) {
      int k = stack.back();
      stack.pop_back();
      if (k == to || visited == kFarthest) return true;
      push(k);
    }
    return false;
  }

  size_t buffers(const Cluster& a, const Cluster& b) {
    std::unordered_set<const Node*> all;
    for (const Cluster* k : {&a, &b})
      for (Node* root : k->roots) {
        all.insert(root);
        frontier(root, [&](const Node* p) { all.insert(p); });
      }
    return all.size();
  }

  void merge(int p, int c, bool reads) {
    if (p == c) return;
    Cluster &kp = clusters_[p], &kc = clusters_[c];
    Domain d;
    if (kp.roots.size() + kc.roots.size() > kMaxRoots || kp.nodes + kc.nodes > kMostNodes || !compatible(kp, kc, d))
      return;
    if (writes_beside_columns(kp, kc, d) || writes_beside_columns(kc, kp, d)) return;
    // Two contractions' tiles do not fit in the registers together, and a shared operand alone is no reason to join; but what is made again,
    // as a normalisation's result, is made where its derivative walks along the same rows.
    bool alike = kp.domain.folds() == kc.domain.folds() || (machine_.gpu && (kp.again || kc.again));
    if (!reads && (kp.kind == GroupKind::Contraction || !alike)) return;
    // Beside rows nothing is turned.
    if (!reads && kp.domain.folds() != kc.domain.folds() &&
        !members_.read_evenly((kp.domain.folds() ? kc : kp).roots, d))
      return;
    if (!reads && stays_apart(kp, kc)) return;
    // What overwrites an input beside a reduction could not be computed in its memory.
    if (machine_.gpu && (kp.domain.has_reduced() || kc.domain.has_reduced()) && (overwrites(kp) || overwrites(kc)))
      return;
    if (path_around(p, c) || path_around(c, p)) return;
    if (kp.kind == GroupKind::Contraction && !members_.read_evenly(kc.roots, d)) return;
    // Of siblings the first may read the other one, through an earlier merge.
    if (!members_.aligned(kp.roots, kc.roots, d) || (!reads && !members_.aligned(kc.roots, kp.roots, d)) ||
        buffers(kp, kc) > kMaxBuffers)
      return;
    kp.domain = d;
    kp.nodes += kc.nodes;
    kp.again = kp.again || kc.again;
    kp.roots.insert(kp.roots.end(), kc.roots.begin(), kc.roots.end());
    std::sort(kp.roots.begin(), kp.roots.end(), [](Node* a, Node* b) { return a->id < b->id; });
    auto add = [&](std::vector<int>& to, const std::vector<int>& from) {
      to.insert(to.end(), from.begin(), from.end());
      for (int& k : to) k = find(k);
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
      std::erase(to, p);
    };
    kc.merged_into = p;
    add(kp.producers, kc.producers);
    add(kp.consumers, kc.consumers);
  }

  // What is made of inputs alone can wait until it is read: weights in panels for the forward pass and for the backward pass, made
  // together, would fill memory in between. And an update of the weights, which comes last, walks along them and not along their panels.
  bool stays_apart(const Cluster& a, const Cluster& b) const {
    auto waits = [](const Cluster& k) { return k.producers.empty() && !k.consumers.empty(); };
    auto first = [](const Cluster& k) { return *std::min_element(k.consumers.begin(), k.consumers.end()); };
    if (waits(a) && waits(b)) return std::abs(first(a) - first(b)) > kFarReaders;
    return (waits(a) && overwrites(b)) || (waits(b) && overwrites(a));
  }

  bool writes_beside_columns(const Cluster& sums, const Cluster& elements, const Domain& d) const {
    auto apart = [&](Node* n) { return apart_.count(n->out()) > 0; };
    auto writes = [&](Node* n) { return !is_reduction(prim_of(n)) && n->types[0].numel() == d.numel(); };
    return std::any_of(sums.roots.begin(), sums.roots.end(), apart) &&
           std::any_of(elements.roots.begin(), elements.roots.end(), writes);
  }

  bool overwrites(const Cluster& k) const {
    return std::any_of(k.roots.begin(), k.roots.end(), [&](const Node* n) { return overwrites_.count(n) > 0; });
  }

  // Kernels in an order in which each comes after what it reads.
  std::vector<int> order() {
    std::vector<int> out, state(clusters_.size(), 0);
    std::function<void(int)> visit = [&](int k) {
      k = find(k);
      if (state[k]) return;
      state[k] = 1;
      for (int p : clusters_[k].producers)
        if (find(p) != k) with_room([&] { visit(p); });
      out.push_back(k);
    };
    for (int k = 0; k < static_cast<int>(clusters_.size()); ++k)
      if (clusters_[k].merged_into < 0) visit(k);
    return out;
  }

  FusedGraph extract() {
    std::vector<bool> needed(graph_.nodes().size());
    for (const ir::Output& o : graph_.outputs()) needed[o.value.node->id] = true;
    for (const Cluster& k : clusters_)
      if (k.merged_into < 0)
        for (Node* root : k.roots)
          frontier(root, [&](const Node* p) {
            if (prim_of(p) != Prim::Input && find(cluster_of_[p->id]) != find(cluster_of_[root->id]))
              needed[p->id] = true;
          });
    FusedGraph out;
    for (int k : order()) out.groups.push_back(extract(clusters_[k], needed));
    return out;
  }

  Group extract(const Cluster& k, const std::vector<bool>& needed) {
    Group g;
    g.kind = k.kind;
    g.library = library_[k.roots.back()->id];
    g.domain = k.domain;
    int self = find(cluster_of_[k.roots[0]->id]);
    ir::ValueMap map;
    std::unordered_set<const Node*> done;
    std::vector<Node*> body;
    auto inside = [&](const Node* n) {
      return prim_of(n) != Prim::Input && (!memory_[n->id] || find(cluster_of_[n->id]) == self);
    };
    // Inputs first, in the order in which the expressions read them.
    std::function<void(Node*)> visit = [&](Node* n) {
      if (!done.insert(n).second) return;
      each_read(n, [&](Value v) {
        if (inside(v.node)) {
          with_room([&] { visit(v.node); });
        } else if (!map.find(v)) {
          auto rows = rows_.find(v.node);
          map.set(v, rows == rows_.end() ? g.add_input(v, graph_) : g.add_input(v, rows->second));
        }
      });
      body.push_back(n);
    };
    for (Node* root : k.roots) visit(root);
    for (Node* n : body) {
      if (prim_of(n) != Prim::Later) {
        ir::copy_node(*g.graph, *n, map);
        continue;
      }
      // A kernel runs when it is its turn; alone it is a copy.
      ir::Arg x = map(n->arg(0));
      bool alone = memory_[n->id];
      map.set(n->out(), alone ? g.graph->add(n->op, {x, x}, n->types)->out() : x.get<Value>());
    }
    for (Node* root : k.roots) {
      if (!needed[root->id]) continue;
      for (uint32_t i = 0; i < root->types.size(); ++i) {
        g.graph->add_output(map({root, i}));
        g.outputs.push_back({root, i});
      }
    }
    for (Value v : g.outputs) {
      auto rows = rows_.find(v.node);
      g.output_strides.push_back(rows == rows_.end() ? std::vector<Expr>{} : rows->second);
    }
    if (!machine_.gpu) g.domain = without_quotients(g);
    return g;
  }

  const ir::Graph& graph_;
  const Machine& machine_;
  const std::unordered_set<Value>& apart_;                   // see fuse.h
  std::unordered_set<const Node*> overwrites_;               // roots whose results go into inputs
  std::unordered_map<const Node*, std::vector<Expr>> rows_;  // strides of what has longer rows in memory
  const bool sum_columns_;
  std::vector<Node*> live_;
  std::vector<bool> memory_;  // by node id: its results are values in memory
  Members members_{memory_, machine_};
  std::vector<const Implementation*> library_;  // that computes it
  std::vector<int> cluster_of_;                 // by node id
  std::vector<Cluster> clusters_;
  std::unordered_map<const Node*, std::vector<int>> readers_;
  int newest_ = 0;                                        // the cluster that is being merged with those before it
  int joined_ = 0;                                        // the last one that was joined along rows, before all others
  std::unordered_map<const Node*, const Node*> last_of_;  // of what a call writes besides: the node that it is found by
  std::unordered_map<const Node*, int> call_of_;          // of that node: their cluster
  std::vector<int64_t> seen_;                             // by cluster: the last search that met it
  int64_t search_ = 0;
};

}  // namespace

FusedGraph fuse(const ir::Graph& graph, const std::unordered_set<Value>& materialised, const Machine& machine,
                const LibraryGroups& groups, const std::unordered_set<Value>& apart) {
  return Fuser(graph, materialised, machine, groups, apart).run();
}

}  // namespace brasa::compiler
