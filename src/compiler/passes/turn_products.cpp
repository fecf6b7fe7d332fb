#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"

// The derivative by a transposed operand is a product that is transposed again, as that by an attention's keys or by the weights of a
// convolution of single places: with its operands exchanged it lies as what follows reads it, and need not be packed where only the other
// order has rows that tiles do not fill. Few columns, as an attention's gradient has where its heads are narrow, leave vectors mostly
// empty, which the rows of a transposed operand fill.
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

// Whether neighbours along the dimension lie beside each other in memory.
bool lies_along(Value v, int64_t dim, const Primitives& p) {
  Index index = probe(ops::shape_of(v));
  Expr along = index[dim];
  for (; is_view(prim_of(v)) && !p.in_memory.count(v); v = v.node->arg<Value>(0)) index = view_index(v.node, index);
  std::optional<Expr> step = coefficient(place_in(*p.graph, v, index), along);
  return step && step->is(1);
}

// The product with its operands exchanged, where it has few columns and rows lie along memory; else nothing.
std::vector<Value> turned_if_narrow(const Node* n, ir::Args& args, Primitives& p, const PassContext& context) {
  Value a = args[0].get<Value>(), b = args[1].get<Value>();
  std::vector<int64_t> sum_a = int_args(n, 2), sum_b = int_args(n, 3), batch_a = int_args(n, 4),
                       batch_b = int_args(n, 5);
  auto left = [](Value v, std::vector<int64_t> dims, const std::vector<int64_t>& batch) {
    dims.insert(dims.end(), batch.begin(), batch.end());
    return other_dims(dims, ops::rank_of(v));
  };
  std::vector<int64_t> rows = left(a, sum_a, batch_a), columns = left(b, sum_b, batch_b);
  if (rows.empty() || columns.empty() || !lies_along(a, rows.back(), p)) return {};
  const int lanes = context.machine.lanes(size_of(n->types[0].dtype));
  if (has_overlaps(a) && !at_least(ops::shape_of(a)[rows.back()], lanes, context)) return {};
  Expr few = free_size(b, sum_b, batch_b);
  if (few.is(1) || at_least(few, lanes, context) ||
      !at_least(free_size(a, sum_a, batch_a), 2 * int64_t{lanes}, context))
    return {};
  Value turned = prim::dot_general(b, a, sum_b, sum_a, batch_b, batch_a);
  auto batches = std::ssize(batch_a), first = batches + std::ssize(columns);
  std::vector<int64_t> order = ops::counted(0, batches);
  for (int64_t d = first; d < ops::rank_of(turned); ++d) order.push_back(d);
  for (int64_t d = batches; d < first; ++d) order.push_back(d);
  return std::vector{prim::transpose(turned, order)};
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
  auto narrow = [&](const Node* n) { return prim_of(n) == Prim::Dot && !context.machine.one_order; };
  auto matches = [&](const Node* n) { return narrow(n) || of_product(n); };
  transform(p, context.facts, matches, [&](const Node* n, ir::Args& args, Primitives& out) -> std::vector<Value> {
    if (narrow(n)) return turned_if_narrow(n, args, out, context);
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
