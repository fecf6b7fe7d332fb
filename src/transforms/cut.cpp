#include "transforms/cut.h"

#include <algorithm>
#include <bit>

#include "ops/table.h"
#include "transforms/max_flow.h"
#include "transforms/memory.h"
#include "transforms/vjp.h"

namespace brasa::transforms {
namespace {

using ir::Node;
using ir::Value;

// Bytes that are worth a second computation: less stays in the caches anyway.
constexpr int64_t kWorthwhile = int64_t{16} << 20;
// So many parts of the memory are one that is worth it: activations cost a ViT's step 2 % and give back a fifth, all that is cheap 4 %.
constexpr int64_t kPartForAll = 4, kPartForActivations = 6;

// Work that the backward part may repeat: point-wise arithmetic and movement, which fuse into their readers.
bool cheap(const Node& n) {
  const ops::Row& row = ops::row_of(n);
  return !row.costly && (row.is_pointwise() || row.view_rule || n.inputs().empty());
}

// A sort, a search, the place of a largest element.
bool finds_places(const Node& n) {
  if (n.op == ir::input_op() || n.inputs().empty() || ops::row_of(n).is_pointwise()) return false;
  bool floats = false, integers = false;
  n.for_each_input([&](Value v) { floats = floats || is_floating(ir::type_of(v).dtype); });
  for (const ir::Type& t : n.types) integers = integers || is_integral(t.dtype, true);
  return floats && integers;
}

class Cutter {
 public:
  Cutter(const ir::Graph& graph, const std::vector<bool>& forward, const std::vector<Value>& outputs,
         const std::vector<Value>& gradients, const ir::Facts& facts, const Keeping& keeping)
      : graph_(graph),
        forward_(forward),
        gradients_(gradients),
        sizes_(facts),
        keeping_(keeping),
        free_(graph.nodes().size()),
        given_(free_),
        own_(free_),
        original_(free_),
        read_(free_),
        live_(free_),
        constant_(free_),
        inner_(free_),
        leaves_(free_) {
    for (const ir::Input& in : graph.inputs()) free_[in.value.node->id] = true;
    for (Value v : outputs) free_[v.node->id] = true;
    for (Value v : gradients) live_[v.node->id] = true;
    ir::add_operands(graph, live_);
    for (Value v : gradients)
      if (forward_[v.node->id]) read_[v.node->id] = true;
    for (const Node* n : graph.nodes())
      if (live_[n->id] && !forward_[n->id])
        n->for_each_input([&](Value v) { read_[v.node->id] = forward_[v.node->id]; });
    for (const Node* n : graph.nodes()) {
      constant_[n->id] = n->op != ir::input_op();
      n->for_each_input([&](Value v) { constant_[n->id] = constant_[n->id] && constant_[v.node->id]; });
    }
    compared_ = find_compared();
    find_inner(outputs);
    if (!keeping_.published.empty()) find_given(outputs);
  }

  Cut run(const Measure& measure) {
    Cut out = with({});
    auto bytes = [&](const Cut& c) { return measure ? measure(c) : kept_bytes(c); };
    if (keeping_.budget < 1) return within(keeping_.budget, out, bytes);
    int64_t kept = keeping_.spare == Keeping::Spare::Nothing ? 0 : kept_bytes(out);
    if (kept < kWorthwhile) return out;
    std::vector<const Node*> repeated = by_cost(kept, true);
    bool activations = keeping_.spare == Keeping::Spare::Activations;
    if (activations) {
      std::vector<bool> leads = leads_to_products();
      std::erase_if(repeated, [&](const Node* n) { return !leads[n->id]; });
    }
    Cut less = with(repeated);
    int64_t most = bytes(out);
    return bytes(less) < most - most / (activations ? kPartForActivations : kPartForAll) ? less : out;
  }

 private:
  // Computes more and more again, until that is enough. More need not take less memory: what follows from one value waits for its readers.
  Cut within(double budget, const Cut& none, const Measure& bytes) const {
    std::vector<const Node*> order = by_cost(kept_bytes(none), false);
    auto at = [&](size_t count) { return with(std::vector<const Node*>(order.begin(), order.begin() + count)); };
    constexpr size_t kSteps = 16;
    std::vector<size_t> counts;
    std::vector<int64_t> taken;
    for (size_t i = 0; i <= kSteps; ++i) {
      size_t count = order.size() * i / kSteps;
      if (!counts.empty() && counts.back() == count) continue;
      counts.push_back(count);
      taken.push_back(bytes(at(count)));
    }
    int64_t most = taken[0], least = *std::min_element(taken.begin(), taken.end());
    auto wanted = least + static_cast<int64_t>(budget * static_cast<double>(most - least));
    size_t place = 0;
    while (taken[place] > wanted) ++place;
    if (place == 0) return none;
    size_t low = counts[place - 1], high = counts[place];  // too much memory, and not
    while (high - low > 1) {
      size_t middle = (low + high) / 2;
      (bytes(at(middle)) <= wanted ? high : low) = middle;
    }
    return at(high);
  }

  int64_t kept_bytes(const Cut& c) const {
    int64_t out = 0;
    for (Value v : c.kept)
      if (!free_[v.node->id]) out += sizes_.bytes(type_of(v));
    return out;
  }

  // By node: whether all that the forward part makes of it are operands of products, by cheap work. What is made of inputs alone, as weights
  // in another type, is none: no kernel of a derivative reads the same. Nor is what cheap work makes of sums.
  std::vector<bool> leads_to_products() const {
    std::vector<bool> computed(graph_.nodes().size()), read(computed), summed(computed), leads(computed.size(), true);
    for (const Node* n : graph_.nodes()) {
      if (n->inputs().empty()) continue;
      n->for_each_input([&](Value v) {
        computed[n->id] = computed[n->id] || computed[v.node->id] || (!ir::is_input(v) && !cheap(*v.node));
        summed[n->id] = summed[n->id] || summed[v.node->id];
      });
      if (!cheap(*n)) summed[n->id] = ops::kind_of(*n) == ops::Kind::Reduce;
    }
    for (const ir::Output& o : graph_.outputs()) leads[o.value.node->id] = false;
    std::vector<Node*> live = ir::live_nodes(graph_);
    for (size_t i = live.size(); i-- > 0;) {
      const Node& n = *live[i];
      leads[n.id] = leads[n.id] && read[n.id] && !summed[n.id];
      if (!forward_[n.id] || n.inputs().empty()) continue;
      bool product = ops::kind_of(n) == ops::Kind::Dot, passes = cheap(n) && leads[n.id];
      n.for_each_input([&](Value v) {
        read[v.node->id] = true;
        leads[v.node->id] = leads[v.node->id] && (passes || (product && computed[v.node->id]));
      });
    }
    return leads;
  }

  static Value below_views(Value v) {
    while (v.node->op != ir::input_op() && ops::row_of(*v.node).view_rule) v = v.node->inputs()[0];
    return v;
  }

  // The value of which this one's elements are some: its largest, its first ones in an order.
  static Value picked_from(Value v) {
    for (;; v = v.node->inputs()[0]) {
      v = below_views(v);
      const Node& n = *v.node;
      const std::string& name = n.op->name();
      bool extreme = (name == "prim::reduce" || name == "prim::scan") &&
                     (n.arg<std::string>(2) == "max" || n.arg<std::string>(2) == "min");
      if (!extreme && name != "prim::gather" && (name != "prim::sort" || v.index != 0)) return v;
    }
  }

  // Numbers whose comparison with equal ones decides a gradient, such as that of a maximum: computed again they may round in another way (a
  // product and a sum may be one operation), and none would be equal. So it is with orders and places: of numbers that are nearly equal
  // another one could be the first, and the gradient would go there.
  std::vector<bool> find_compared() const {
    std::vector<bool> found(graph_.nodes().size());
    auto is_number = [](Value v) { return v.node->op != ir::input_op() && v.node->inputs().empty(); };
    for (const Node* node : graph_.nodes()) {
      if (finds_places(*node)) found[node->id] = true;
      const std::string& name = node->op->name();
      bool equality = name == "prim::eq" || name == "prim::ne";
      bool order = name == "prim::lt" || name == "prim::le" || name == "prim::gt" || name == "prim::ge";
      if (!equality && !order) continue;
      Value a = below_views(node->inputs()[0]), b = below_views(node->inputs()[1]);
      if (a == b || !is_floating(ir::type_of(a).dtype) || is_number(a) || is_number(b)) continue;
      Value all = picked_from(a);
      bool of_one = all == picked_from(b);
      if (of_one) found[all.node->id] = true;
      if (equality || of_one) found[a.node->id] = found[b.node->id] = true;
    }
    return found;
  }

  // Values of checkpointed functions, but for those that others take (`leaves_`); what derivatives make of them alone is no better kept.
  void find_inner(const std::vector<Value>& outputs) {
    if (keeping_.origin.empty()) return;
    auto origin = [&](const Node* n) { return keeping_.origin[n->id]; };
    for (const Node* n : graph_.nodes()) {
      if (!forward_[n->id] || n->op == ir::input_op() || constant_[n->id]) continue;
      inner_[n->id] = origin(n) != 0 && origin(n) != Keeping::kDerived;
      n->for_each_input([&](Value v) {
        if (!inner_[v.node->id]) return;
        if (origin(n) == Keeping::kDerived)
          inner_[n->id] = true;
        else if (origin(n) != origin(v.node))
          leaves_[v.node->id] = true;
      });
    }
    for (Value v : outputs) leaves_[v.node->id] = inner_[v.node->id];
    // What cheap work makes of values from outside of the function is like any other value: as one that others take it would wait beside them.
    std::vector<bool> plain(inner_.size());
    for (const Node* n : graph_.nodes()) {
      if (!inner_[n->id]) continue;
      plain[n->id] = cheap(*n);
      n->for_each_input([&](Value v) { plain[n->id] = plain[n->id] && (!inner_[v.node->id] || plain[v.node->id]); });
    }
    for (size_t i = 0; i < inner_.size(); ++i) {
      inner_[i] = inner_[i] && !leaves_[i] && !compared_[i];
      leaves_[i] = leaves_[i] && !plain[i];
    }
  }

  // What eager derivatives read of the outputs, and what they do not.
  void find_given(const std::vector<Value>& outputs) {
    for (Value v : outputs) original_[v.node->id] = true;
    ir::add_operands(graph_, original_);
    std::vector<std::vector<const Node*>> readers(graph_.nodes().size());
    for (const Node* n : graph_.nodes()) n->for_each_input([&](Value v) { readers[v.node->id].push_back(n); });
    // Whether one of those that take a value, or a view of it, is such a node.
    auto taken = [&](const Node& value, const auto& is) {
      std::vector<const Node*> open = {&value};
      while (!open.empty()) {
        const Node* at = open.back();
        open.pop_back();
        for (const Node* n : readers[at->id]) {
          bool view = original_[n->id] && ops::is_view(ops::kind_of(*n));
          if (view)
            open.push_back(n);
          else if (is(*n))
            return true;
        }
      }
      return false;
    };
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Node& n = *outputs[i].node;
      bool own = is_plain_arithmetic(outputs[i]) && !keeping_.published.at(i) &&
                 !taken(n, [&](const Node& by) { return original_[by.id] && !is_linear(by); });
      given_[n.id] = !own && taken(n, [&](const Node& by) { return live_[by.id] && !original_[by.id]; });
      own_[n.id] = own && !compared_[n.id];
    }
  }

  // Whether derivatives of it do not read what it takes.
  bool is_linear(const Node& n) const {
    if (ops::kind_of(n) != ops::Kind::Pointwise) return false;
    ops::ScalarOp op = ops::row_of(n).scalar;
    bool by_constant = false;
    n.for_each_input([&](Value v) { by_constant = by_constant || constant_[v.node->id]; });
    return op == ops::ScalarOp::Add || op == ops::ScalarOp::Sub ||
           ((op == ops::ScalarOp::Mul || op == ops::ScalarOp::Div) && by_constant);
  }

  // Whether the backward part must not compute it again, but for what a small budget asks for. It reads what the forward part gives where eager
  // derivatives do, so that a program which writes that between the two is told. They do not read their own result where that is a sum, a
  // product or a quotient (`own_`), which may be written.
  bool once(const Node& n) const {
    if (inner_[n.id] || constant_[n.id] || own_[n.id]) return false;
    return given_[n.id] || leaves_[n.id] || compared_[n.id] || !cheap(n) || !keeping_.repeats_cheap;
  }

  // What may be computed again to save memory, if it is no small part of `all`, the cheapest for its bytes first. Of what costs the same, as
  // the layers of a network do, the first ones of any number are spread over the graph: what is computed again in one piece waits for its
  // readers, too.
  std::vector<const Node*> by_cost(int64_t all, bool only_cheap) const {
    constexpr int64_t kSmall = 4096;  // part of all that waits: the count of an optimizer's steps, sums of rows
    std::vector<std::pair<double, const Node*>> costs;
    for (const Node* n : graph_.nodes())
      if (live_[n->id] && forward_[n->id] && n->op != ir::input_op() && !compared_[n->id] && once(*n) &&
          sizes_.bytes(*n) > all / kSmall && (!only_cheap || cheap(*n)))
        costs.emplace_back(work(*n) / static_cast<double>(std::max<int64_t>(sizes_.bytes(*n), 1)), n);
    std::stable_sort(costs.begin(), costs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const Node*> out;
    for (size_t begin = 0, end = 0; begin < costs.size(); begin = end) {
      while (end < costs.size() && costs[end].first == costs[begin].first) ++end;
      size_t count = end - begin, step = std::bit_ceil(count);
      out.push_back(costs[begin].second);
      for (; step > 1; step /= 2)
        for (size_t i = step / 2; i < count; i += step) out.push_back(costs[begin + i].second);
    }
    return out;
  }

  // Simple operations, about.
  double work(const Node& n) const {
    constexpr double kWhole = 64;  // an element of what a library computes
    ops::Kind kind = ops::kind_of(n);
    double out = 0;
    for (const ir::Type& t : n.types) out += static_cast<double>(sizes_.numel(t));
    if (kind == ops::Kind::Dot)
      for (ir::Expr d : n.arg<std::vector<ir::Expr>>(2))
        out *= static_cast<double>(
            sizes_.numel({{}, {type_of(n.arg<Value>(0)).shape[static_cast<size_t>(d.constant())]}}));
    double operands = 0;
    n.for_each_input([&](Value v) { operands += static_cast<double>(sizes_.numel(type_of(v))); });
    return (out + operands) * (kind == ops::Kind::Whole ? kWhole : 1);
  }

  // Each forward node is an edge in -> out whose capacity is what keeping it costs. Flow comes in at inputs and at nodes that must not be
  // computed again, and leaves where the backward part reads.
  Cut with(const std::vector<const Node*>& repeated) const {
    size_t n = graph_.nodes().size();
    int source = static_cast<int>(2 * n), sink = source + 1;
    std::vector<bool> again(n);
    for (const Node* node : repeated) again[node->id] = true;
    MaxFlow flow(sink + 1);
    for (const Node* node : graph_.nodes()) {
      if (!live_[node->id] || !forward_[node->id]) continue;
      int in = static_cast<int>(2 * node->id), out = in + 1;
      // In units of 1/16 byte, so that a free value still counts a little against none at all.
      bool never = inner_[node->id] || own_[node->id];
      flow.edge(in, out, never ? MaxFlow::kInfinite : free_[node->id] ? 1 : 16 * sizes_.bytes(*node));
      bool is_input = node->op == ir::input_op();
      if (is_input || (once(*node) && !again[node->id])) flow.edge(source, in, MaxFlow::kInfinite);
      if (read_[node->id]) flow.edge(out, sink, MaxFlow::kInfinite);
      node->for_each_input([&](Value v) { flow.edge(static_cast<int>(2 * v.node->id + 1), in, MaxFlow::kInfinite); });
    }
    std::vector<bool> side = flow.source_side(source, sink);
    Cut found{{}, std::vector<bool>(n)};
    for (Node* node : graph_.nodes()) {
      if (!live_[node->id] || !forward_[node->id]) continue;
      found.again[node->id] = !side[2 * node->id];
      if (!side[2 * node->id] || side[2 * node->id + 1]) continue;
      for (uint32_t r = 0; r < node->types.size(); ++r)
        if (node->types.size() == 1 || used(*node, r)) found.kept.push_back(node->out(r));
    }
    return found;
  }

  bool used(const Node& node, uint32_t result) const {
    // A gradient that depends on no cotangent may be the value itself.
    for (Value v : gradients_)
      if (v.node == &node && v.index == result) return true;
    for (const Node* n : graph_.nodes()) {
      if (!live_[n->id]) continue;
      bool reads = false;
      n->for_each_input([&](Value v) { reads = reads || (v.node == &node && v.index == result); });
      if (reads) return true;
    }
    return false;
  }

  const ir::Graph& graph_;
  const std::vector<bool>& forward_;
  const std::vector<Value>& gradients_;
  ExampleSizes sizes_;
  const Keeping& keeping_;
  std::vector<bool> free_, given_, own_, original_, read_, live_, constant_, inner_, leaves_, compared_;
};

}  // namespace

Cut cut(const ir::Graph& graph, const std::vector<bool>& forward, const std::vector<Value>& outputs,
        const std::vector<Value>& gradients, const ir::Facts& facts, const Keeping& keeping, const Measure& measure) {
  return Cutter(graph, forward, outputs, gradients, facts, keeping).run(measure);
}

}  // namespace brasa::transforms
