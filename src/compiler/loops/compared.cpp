#include "compiler/loops/compared.h"

#include <string>
#include <vector>

#include "compiler/loops/ops.h"

namespace brasa::compiler {
namespace {

using ir::Node;
using ops::ScalarOp;

bool of_floats(const Node* n) { return is_floating(ir::type_of(n->arg<ir::Value>(0)).dtype); }

// A result of few values, which jumps: that of a comparison, the integer below a number.
bool jumps(const Node* n) {
  switch (ScalarOp op = scalar_op_of(n->op)) {
    case ScalarOp::Sign:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::Trunc:
    case ScalarOp::Round: return true;
    case ScalarOp::Convert: return of_floats(n) && is_integral(n->types[0].dtype, true);
    default: return is_comparison(op) && of_floats(n) && n->arg<ir::Value>(0) != n->arg<ir::Value>(1);
  }
}

// Two products, or what a product is taken from or from it: all digits that the product was rounded to may cancel.
bool may_cancel(const Node* n) {
  ScalarOp op = scalar_op_of(n->op);
  if ((op != ScalarOp::Add && op != ScalarOp::Sub) || !of_floats(n)) return false;
  auto product = [&](size_t i) { return scalar_op_of(n->arg<ir::Value>(i).node->op) == ScalarOp::Mul; };
  return op == ScalarOp::Sub ? product(0) || product(1) : product(0) && product(1);
}

// Gives one of its operands' elements.
bool chooses(const Node* n) {
  if (loop_kind(n->op) == LoopOp::Unlikely) return true;
  if (loop_kind(n->op) != LoopOp::Reduce && loop_kind(n->op) != LoopOp::Scan) return false;
  const auto& combiner = n->arg<std::string>(2);
  return combiner != "add" && combiner != "mul";
}

}  // namespace

std::unordered_set<const Node*> compared(const ir::Graph& graph) {
  std::unordered_set<const Node*> found;
  std::vector<const Node*> open;
  auto see = [&](ir::Value v) {
    if ((scalar_op_of(v.node->op) != ScalarOp::None || chooses(v.node)) && found.insert(v.node).second)
      open.push_back(v.node);
  };
  for (const Node* n : graph.nodes()) {
    if (may_cancel(n)) found.insert(n);
    if (!jumps(n)) continue;
    n->for_each_input(see);
    while (!open.empty()) {
      const Node* next = open.back();
      open.pop_back();
      next->for_each_input(see);
    }
  }
  return found;
}

}  // namespace brasa::compiler
