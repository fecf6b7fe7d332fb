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
    std::vector<size_t> there(about_.size());  // by node: until which stage it is, or what it follows from by loops
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ir::Node& node = *nodes_[i];
      const About& a = of(node);
      size_t operands = SIZE_MAX, end = stage_[a.last];
      node.for_each_input([&](ir::Value v) { operands = std::min(operands, there[v.node->id]); });
      // Loops that read it compute it from what is there as long.
      bool follows = is_element_wise(node) && a.in_loops && operands >= end;
      there[node.id] = is_element_wise(node) || operands == SIZE_MAX ? std::max(end, operands) : end;
      if (ops::kind_of(node) != ops::Kind::Input && !ops::is_leaf(ops::kind_of(node)) && !a.passes && !a.result &&
          !follows) {
        now += sizes_.bytes(node);
        ended[a.last] += sizes_.bytes(node);
      }
      most = std::max(most, now);
      now -= ended[i];
    }
    return most;
  }

 private:
  struct About {
    bool result = false;
    bool in_loops = true;    // only loops read it
    bool to_results = true;  // only results follow from it, element by element
    bool passes = false;     // has no memory of its own, as its operands are read in its place
    int readers = 0;
    size_t place = 0, last = 0;  // when it is computed, and read for the last time
  };
  About& of(const ir::Node& n) { return about_[n.id]; }
  const About& of(const ir::Node& n) const { return about_[n.id]; }
  static bool is_element_wise(const ir::Node& n) {
    return ops::kind_of(n) == ops::Kind::Pointwise || ops::is_view(ops::kind_of(n));
  }
  static bool is_loop(const ir::Node& n) { return is_element_wise(n) || ops::kind_of(n) == ops::Kind::Reduce; }

  void find_readers() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const ir::Node& node = *nodes_[i];
      About& a = of(node);
      bool view = ops::is_view(ops::kind_of(node)), pointwise = is_element_wise(node) && !view;
      // One loop computes it and its only reader.
      a.passes = view || (pointwise && a.readers == 1 && a.in_loops && !a.result);
      a.to_results = is_element_wise(node) && (a.result || (a.readers > 0 && a.to_results));
      bool loop = view ? a.in_loops && ops::kind_of(node) != ops::Kind::Later : is_loop(node);
      node.for_each_input([&](ir::Value v) {
        About& operand = of(*v.node);
        ++operand.readers;
        operand.in_loops = operand.in_loops && loop;
        operand.to_results = operand.to_results && a.to_results;
      });
    }
  }

  // In order, but what leads to results alone, as an optimizer's step does, comes as soon as it can.
  void find_places() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const ir::Node& node = *nodes_[i];
      stage_.push_back((i == 0 ? 0 : stage_[i - 1]) + !is_loop(node));
      About& a = of(node);
      a.place = a.to_results ? 0 : i;
      if (a.to_results) node.for_each_input([&](ir::Value v) { a.place = std::max(a.place, of(*v.node).place); });
    }
  }

  void find_ends() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const ir::Node& node = *nodes_[i];
      About& a = of(node);
      a.last = std::max(a.last, i);
      size_t read = a.to_results ? a.place : a.passes ? a.last : i;
      node.for_each_input([&](ir::Value v) { of(*v.node).last = std::max(of(*v.node).last, read); });
    }
  }

  ExampleSizes sizes_;
  std::vector<ir::Node*> nodes_;
  std::vector<About> about_;  // by node
  std::vector<size_t>
      stage_;  // by place: loops of one stage, which lie between two operations that are none, are about one
};

}  // namespace

int64_t peak_bytes(const ir::Graph& graph, const ir::Facts& facts) { return Peak(graph, facts).bytes(); }

}  // namespace brasa::transforms
