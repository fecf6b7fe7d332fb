#include "compiler/targets/emitter.h"
#include "support/fresh_stack.h"

// A chain of operations is longer than what a processor keeps of operations that wait for each other: of several vectors each operation is
// written for all of them before the next one, so that some of these need not wait.
namespace brasa::compiler {

namespace {

// A short chain is not waited for.
constexpr size_t kChain = 8;

}  // namespace

// What these nodes compute in any case, but for what is read from memory: others may leave out a branch, or a product that is part of a sum.
std::set<const Node*, Emitter::ById> Emitter::computed_for(const std::vector<const Node*>& users) const {
  std::set<const Node*, ById> out;
  std::function<void(Value)> add;
  auto add_operands = [&](const Node* n, Ranges ranges) {
    ScalarOp op = scalar_op_of(n->op);
    bool sum = op == ScalarOp::Add || op == ScalarOp::Sub || loop_kind(n->op) == LoopOp::Reduce;
    const Node* product = nullptr;
    n->for_each_input([&](Value v) {
      if (sum && !product) product = fused_product(v, n, ranges);
      if (product == v.node)
        product->for_each_input(add);
      else
        add(v);
    });
  };
  add = [&](Value v) {
    const Node* n = v.node;
    ScalarOp op = scalar_op_of(n->op);
    if (out.count(n) || !in_vector(analysis_.of(n))) return;
    if (op == ScalarOp::None && loop_kind(n->op) != LoopOp::Scale) return;
    out.insert(n);
    if (op != ScalarOp::Select || !(branches_.count({n, 1}) || branches_.count({n, 2})))
      with_room([&] { add_operands(n, analysis_.of(n)); });
    else
      add(n->arg<Value>(0));
  };
  for (const Node* n : users) {
    if (loop_kind(n->op) == LoopOp::Store) add(n->arg<Value>(2));
    if (loop_kind(n->op) == LoopOp::Stage) add(n->arg<Value>(0));
    if (loop_kind(n->op) == LoopOp::Reduce) add_operands(n, analysis_.inside(n));
  }
  return out;
}

void Emitter::compute_together(const std::vector<const Node*>& users) {
  if (target_.gpu || target_.baseline || vector_.copies == 1 || vector_.lanes == 1) return;
  // What runs from vector to vector is computed in between.
  for (const Node* n : users)
    if (loop_kind(n->op) == LoopOp::Scan) return;
  std::set<const Node*, ById> nodes = computed_for(users);
  if (nodes.size() < kChain) return;
  for (const Node* n : nodes) for_combinations(analysis_.of(n), true, [&] { eval(Value{const_cast<Node*>(n), 0}); });
}

}  // namespace brasa::compiler
