#include "transforms/memory.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/table.h"

namespace brasa::transforms {

namespace {
constexpr int64_t kMost = int64_t{1} << 40;  // bytes of a value: 16 times as much of 100,000 values can be added up
}

int64_t ExampleSizes::numel(const ir::Type& t) const {
  int64_t out = 1;
  for (ir::Expr e : t.shape) {
    int64_t size = e.is_constant() ? e.constant() : facts_.has_hint(e) ? facts_.hint(e) : 64;
    if (__builtin_mul_overflow(out, std::max<int64_t>(size, 1), &out) || out > kMost) return kMost;
  }
  return out;
}

int64_t ExampleSizes::bytes(const ir::Type& t) const {
  return std::min(numel(t), kMost / size_of(t.dtype)) * size_of(t.dtype);
}

int64_t ExampleSizes::bytes(const ir::Node& n) const {
  int64_t total = 0;
  for (const ir::Type& t : n.types) total += bytes(t);
  return std::min(total, kMost);
}

namespace {

class Peak {
 public:
  Peak(const ir::Graph& graph, const ir::Facts& facts)
      : sizes_(facts), nodes_(ir::live_nodes(graph)), about_(graph.nodes().size()) {
    for (const ir::Output& o : graph.outputs()) of(*o.value.node).result = true;
    find_readers();
    find_places();
    find_ends();
  }

  int64_t bytes() const {
    int64_t now = 0, most = 0;
    std::vector<int64_t> ended(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ir::Node& node = *nodes_[i];
      if (of(node).lies) {
        now += sizes_.bytes(node);
        ended[of(node).last] += sizes_.bytes(node);
      }
      most = std::max(most, now);
      now -= ended[i];
    }
    return most;
  }

 private:
  struct About {
    bool result = false;
    bool in_loops = true;        // only loops read it
    bool to_results = true;      // only results follow from it, element by element
    bool lies = false;           // has memory of its own
    size_t place = 0, last = 0;  // when it is computed, and read for the last time
  };
  About& of(const ir::Node& n) { return about_[n.id]; }
  const About& of(const ir::Node& n) const { return about_[n.id]; }
  static bool is_view(const ir::Node& n) { return ops::is_view(ops::kind_of(n)); }
  static bool is_element_wise(const ir::Node& n) { return ops::kind_of(n) == ops::Kind::Pointwise || is_view(n); }
  static bool is_loop(const ir::Node& n) { return is_element_wise(n) || ops::kind_of(n) == ops::Kind::Reduce; }

  void find_readers() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const ir::Node& node = *nodes_[i];
      const About& a = of(node);
      bool loop = is_view(node) ? a.in_loops && ops::kind_of(node) != ops::Kind::Later : is_loop(node);
      bool to_results = is_element_wise(node) && (a.result || a.to_results);
      node.for_each_input([&](ir::Value v) {
        of(*v.node).in_loops = of(*v.node).in_loops && loop;
        of(*v.node).to_results = of(*v.node).to_results && to_results;
      });
    }
  }

  // In order, but what leads to results alone, as an optimizer's step does, comes as soon as it can.
  void find_places() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ir::Node& node = *nodes_[i];
      stage_.push_back((i == 0 ? 0 : stage_[i - 1]) + !is_loop(node));
      About& a = of(node);
      a.place = i;
      if (!a.to_results || !is_element_wise(node)) continue;
      a.place = 0;
      node.for_each_input([&](ir::Value v) { a.place = std::max(a.place, of(*v.node).place); });
    }
  }

  void find_ends() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const ir::Node& node = *nodes_[i];
      About& a = of(node);
      a.last = std::max(a.last, a.place);
      bool passes = is_view(node) || (is_element_wise(node) && a.in_loops && !a.result && follows(node));
      bool is_leaf = ops::kind_of(node) == ops::Kind::Input || ops::is_leaf(ops::kind_of(node));
      a.lies = !passes && !a.result && !is_leaf;
      node.for_each_input(
          [&](ir::Value v) { of(*v.node).last = std::max(of(*v.node).last, passes ? a.last : a.place); });
    }
  }

  // Whether the loops that read it compute it from its operands, because these are there as long or take no more memory than it.
  bool follows(const ir::Node& node) const {
    int64_t more = 0;
    node.for_each_input([&](ir::Value v) {
      while (is_view(*v.node)) v = v.node->inputs()[0];
      bool there = v.node->inputs().empty() || stage_[of(*v.node).last] >= stage_[of(node).last];
      if (!there) more += sizes_.bytes(type_of(v));
    });
    return more <= sizes_.bytes(node);
  }

  ExampleSizes sizes_;
  std::vector<ir::Node*> nodes_;
  std::vector<About> about_;  // by node
  // By place: loops of one stage, which lie between two operations that are none, are about one.
  std::vector<size_t> stage_;
};

}  // namespace

int64_t peak_bytes(const ir::Graph& graph, const ir::Facts& facts) { return Peak(graph, facts).bytes(); }

}  // namespace brasa::transforms
