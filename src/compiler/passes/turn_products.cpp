#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"

// The derivative by a transposed operand is a product that is transposed again, as that by an attention's keys: with its operands exchanged
// it lies as what follows reads it, and need not be packed where only the other order has rows that tiles do not fill.
namespace brasa::compiler {

namespace prim = ops::prim;

namespace {

// What is left of both operands changes its place as a whole; the batch stays.
bool exchanges(const Node* transpose, const Node* dot) {
  std::vector<int64_t> order = int_args(transpose, 1), batch = int_args(dot, 4), summed = int_args(dot, 2);
  auto rank = static_cast<int64_t>(order.size()), batches = static_cast<int64_t>(batch.size());
  int64_t of_first = type_of(dot->arg<Value>(0)).rank() - batches - static_cast<int64_t>(summed.size());
  if (of_first == 0 || batches + of_first == rank) return false;
  std::vector<int64_t> exchanged = ops::counted(0, batches);
  for (int64_t d = batches + of_first; d < rank; ++d) exchanged.push_back(d);
  for (int64_t d = batches; d < batches + of_first; ++d) exchanged.push_back(d);
  return order == exchanged;
}

}  // namespace

void turn_products(Primitives& p, const PassContext& context) {
  if (context.machine.gpu) return;
  std::unordered_map<const Node*, int> uses = ir::count_uses(*p.graph);
  auto of_product = [&](const Node* n) {
    if (prim_of(n) != Prim::Transpose) return false;
    const Node* dot = n->arg<Value>(0).node;
    return prim_of(dot) == Prim::Dot && uses[dot] == 1 && exchanges(n, dot);
  };
  transform(p, context.facts, of_product, [](const Node*, ir::Args& args, Primitives&) {
    const Node* dot = args[0].get<Value>().node;
    return std::vector{prim::dot_general(dot->arg<Value>(1), dot->arg<Value>(0), int_args(dot, 3), int_args(dot, 2),
                                         int_args(dot, 5), int_args(dot, 4))};
  });
}

}  // namespace brasa::compiler
