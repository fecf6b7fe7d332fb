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

}  // namespace brasa::compiler
