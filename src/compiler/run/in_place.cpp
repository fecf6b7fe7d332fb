#include "compiler/run/in_place.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/fusion/indexing.h"

namespace brasa::compiler {

Value input_for(const Group& g, Value whole) {
  auto it = std::find(g.inputs.begin(), g.inputs.end(), whole);
  return it == g.inputs.end() ? Value{} : g.graph->inputs()[it - g.inputs.begin()].value;
}

namespace {

// Which dimension of another value each one of a value is, whose elements are made of that one's at the same places.
using Order = std::vector<int64_t>;

Order same_order(Value v) {
  Order out(type_of(v).shape.size());
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

// That of a node's result from its operands'; absent where it reads other places. Rows stay rows through a reshape, if nothing is turned.
std::optional<Order> order_of(const ir::Node* n, const Order& operands) {
  Value made = const_cast<ir::Node*>(n)->out();
  switch (prim_of(n)) {
    case Prim::Pointwise: return operands;
    case Prim::Reshape:
      if (!std::is_sorted(operands.begin(), operands.end())) return std::nullopt;
      return same_order(made);
    case Prim::Transpose: {
      Order out;
      for (int64_t d : int_args(n, 1)) out.push_back(operands[static_cast<size_t>(d)]);
      return out;
    }
    default: return std::nullopt;
  }
}

// A scatter that reads `old` as what its updates go into, and nowhere else.
bool only_updates(const Group& g, Value old) {
  const ir::Node* scatter = g.graph->outputs()[0].value.node;
  Value in = input_for(g, old);
  if (g.outputs.size() != 1 || scatter->arg<Value>(0) != in) return false;
  int reads = 0;
  for (const ir::Node* n : g.graph->nodes()) n->for_each_input([&](Value v) { reads += v == in; });
  return reads == 1;
}

}  // namespace

bool same_elements(const Group& g, Value old) {
  if (g.kind == GroupKind::Scatter) return only_updates(g, old);
  if (g.domain.has_reduced() || (g.kind != GroupKind::Loops && g.kind != GroupKind::Contraction)) return false;
  Value in = input_for(g, old);
  if (!(type_of(in).numel() == ir::product(g.domain.dims))) return false;
  // From there to the outputs only point-wise work on the whole domain, whichever way dimensions are turned in between.
  std::vector<std::optional<Order>> orders(g.graph->nodes().size());
  orders[in.node->id] = same_order(in);
  for (const ir::Node* n : g.graph->nodes()) {
    std::optional<Order> operands;
    bool alike = true;
    n->for_each_input([&](Value v) {
      const std::optional<Order>& order = orders[v.node->id];
      if (order) alike = alike && order == std::exchange(operands, order).value_or(*order);
    });
    if (!operands) continue;
    if (alike) orders[n->id] = order_of(n, *operands);
    if (!orders[n->id]) return false;
  }
  return std::all_of(g.graph->outputs().begin(), g.graph->outputs().end(), [&](const ir::Output& o) {
    const std::optional<Order>& order = orders[o.value.node->id];
    return !order || std::is_sorted(order->begin(), order->end());
  });
}

bool order_stores(Group& g, const std::vector<Value>& overwritten) {
  size_t n = g.outputs.size();
  std::vector<std::vector<bool>> reads(n, std::vector<bool>(g.graph->nodes().size()));  // by output and node
  for (size_t k = 0; k < n; ++k) {
    reads[k][g.graph->outputs()[k].value.node->id] = true;
    ir::add_operands(*g.graph, reads[k]);
  }
  std::vector<bool> reshaped(g.graph->nodes().size());
  for (const ir::Node* node : g.graph->nodes())
    reshaped[node->id] =
        prim_of(node) == Prim::Reshape && !(type_of(node->arg<Value>(0)).shape == node->types[0].shape);
  ir::add_operands(*g.graph, reshaped);
  std::vector<size_t> order, left(n);
  std::iota(left.begin(), left.end(), size_t{0});
  while (!left.empty()) {
    auto fits = [&](size_t k) {
      if (!overwritten[k]) return true;
      size_t id = overwritten[k].node->id;
      auto loads = [&](size_t o) { return reads[o][id]; };
      bool later = std::any_of(left.begin(), left.end(), [&](size_t o) { return o != k && loads(o); });
      bool loaded = !reshaped[id] && (loads(k) || std::any_of(order.begin(), order.end(), loads));
      return !later || loaded;
    };
    auto next = std::find_if(left.begin(), left.end(), fits);
    if (next == left.end()) return false;
    order.push_back(*next);
    left.erase(next);
  }
  auto reordered = [&](auto& list) {
    auto from = list;
    for (size_t k = 0; k < n; ++k) list[k] = from[order[k]];
  };
  reordered(g.outputs);
  reordered(g.output_strides);
  reordered(g.graph->outputs());
  return true;
}

}  // namespace brasa::compiler
