#include "compiler/loops/compared.h"

#include <string>
#include <vector>

#include "compiler/loops/ops.h"

namespace brasa::compiler {
namespace {

using ir::Node;
using ops::ScalarOp;

bool asks_equality(const Node* n) {
  ScalarOp op = scalar_op_of(n->op);
  if (op != ScalarOp::Eq && op != ScalarOp::Ne) return false;
  ir::Value a = n->arg<ir::Value>(0), b = n->arg<ir::Value>(1);
  auto is_number = [](ir::Value v) { return !ir::is_input(v) && v.node->inputs().empty(); };
  return is_floating(ir::type_of(a).dtype) && a != b && !is_number(a) && !is_number(b);
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
    if (!asks_equality(n)) continue;
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
