#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"

// The derivative by a transposed operand is a product that is transposed again, as that by an attention's keys or by the weights of a
// convolution of single places: with its operands exchanged it lies as what follows reads it, and need not be packed where only the other
// order has rows that tiles do not fill.
namespace brasa::compiler {

namespace prim = ops::prim;

namespace {

// The product that a chain of views shows, none of which anybody else reads.
const Node* product_below(const Node* n, const std::unordered_map<const Node*, int>& uses) {
  while (prim_of(n) == Prim::Transpose || prim_of(n) == Prim::Reshape) {
    n = n->arg<Value>(0).node;
    auto it = uses.find(n);
    if (it == uses.end() || it->second != 1) return nullptr;
  }
  return prim_of(n) == Prim::Dot ? n : nullptr;
}

// Windows that overlap would be packed element by element.
bool has_overlaps(Value operand) {
  for (; is_view(prim_of(operand)); operand = operand.node->arg<Value>(0)) {
    if (prim_of(operand) != Prim::Window) continue;
    Expr more = type_of(operand).numel() - type_of(operand.node->arg<Value>(0)).numel();
    if (!max(more, 0).is(0)) return true;
  }
  return false;
}

// What is left of both operands changes its place as a whole; the batch stays.
bool exchanges(const Node* transpose, const Node* views, const Node* dot) {
  const Index shown = probe(transpose->types[0].shape);
  Index at = view_index(transpose, shown);
  for (const Node* n = views; n != dot; n = n->arg<Value>(0).node) at = view_index(n, at);
  size_t batches = int_args(dot, 4).size(), summed = int_args(dot, 2).size();
  size_t seconds = static_cast<size_t>(type_of(dot->arg<Value>(0)).rank()) - summed;
  Index exchanged, order;
  auto add = [](Index& to, const Index& index, const Shape& shape, size_t from, size_t end) {
    size_t before = to.size();
    for (size_t d = from; d < end; ++d)
      if (!shape[d].is(1)) to.push_back(index[d]);
    return to.size() > before;
  };
  const Shape& shape = dot->types[0].shape;
  add(exchanged, at, shape, 0, batches);
  bool both = add(exchanged, at, shape, seconds, at.size()) && add(exchanged, at, shape, batches, seconds);
  add(order, shown, transpose->types[0].shape, 0, shown.size());
  return both && exchanged == order;
}

}  // namespace

void turn_products(Primitives& p, const PassContext& context) {
  if (context.machine.gpu) return;
  std::unordered_map<const Node*, int> uses = ir::count_uses(*p.graph);
  auto of_product = [&](const Node* n) {
    if (prim_of(n) != Prim::Transpose) return false;
    const Node* dot = product_below(n, uses);
    return dot && exchanges(n, n->arg<Value>(0).node, dot) && !has_overlaps(dot->arg<Value>(0));
  };
  transform(p, context.facts, of_product, [](const Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    const Node *views = args[0].get<Value>().node, *dot = views;
    while (prim_of(dot) != Prim::Dot) dot = dot->arg<Value>(0).node;
    // A transposition between may have turned it.
    if (!exchanges(n, views, dot)) return {};
    Value turned = prim::dot_general(dot->arg<Value>(1), dot->arg<Value>(0), int_args(dot, 3), int_args(dot, 2),
                                     int_args(dot, 5), int_args(dot, 4));
    return std::vector{prim::reshape(turned, n->types[0].shape)};
  });
}

}  // namespace brasa::compiler
