#include "compiler/loops/rare.h"

#include <algorithm>

#include "compiler/loops/builder.h"
#include "compiler/loops/ops.h"
#include "ir/copy.h"
#include "ops/table.h"

namespace brasa::compiler {

namespace {

using ir::Node;
using ir::Value;
using Nodes = std::unordered_set<const Node*>;

// All that is computed for it in any case.
void add_all_below(const Node* n, Nodes& out) {
  std::vector<const Node*> open{n};
  while (!open.empty()) {
    const Node* next = open.back();
    open.pop_back();
    if (!out.insert(next).second) continue;
    bool branches = loop_kind(next->op) == LoopOp::Unlikely;
    next->for_each_input([&](Value v) {
      if (!branches || v != next->arg<Value>(1)) open.push_back(v.node);
    });
  }
}

// What a function has of its own, although the kernel has it, too: it is no number, or costs nothing.
bool is_repeated(const Node* n) {
  std::optional<LoopOp> kind = loop_kind(n->op);
  return kind ? kind == LoopOp::Table || kind == LoopOp::Bind : ops::kind_of(*n) == ops::Kind::Full;
}

// Whether it is the same in a function as in the kernel: nothing but operands makes it.
bool is_pure(const Node* n) {
  std::optional<LoopOp> kind = loop_kind(n->op);
  if (!kind) return !ir::is_input(Value{const_cast<Node*>(n), 0}) && ops::kind_of(*n) != ops::Kind::SizeValue;
  switch (*kind) {
    case LoopOp::Table:
    case LoopOp::Unlikely: return true;
    case LoopOp::Bind: return n->arg<std::vector<ir::Expr>>(2).empty();
    case LoopOp::Load: {
      const auto& symbols = *n->arg<ir::Expr>(1)->symbols;
      const auto& values = n->arg<std::vector<Value>>(3);
      return loop_kind(n->arg<Value>(0).node->op) == LoopOp::Table &&
             std::all_of(symbols.begin(), symbols.end(), [](ir::Expr s) { return s->kind == ir::ExprKind::Value; }) &&
             std::all_of(values.begin(), values.end(), [](Value v) { return is_pure(v.node); });
    }
    default: return false;
  }
}

}  // namespace

RareBody rare_body(const Node* unlikely, const ExpandedMath& kernel) {
  Nodes usual, inside;
  for (size_t i : {0, 2}) add_all_below(unlikely->arg<Value>(i).node, usual);
  RareBody out;
  std::vector<Value> open{unlikely->arg<Value>(1)};
  Nodes seen;
  while (!open.empty()) {
    Value v = open.back();
    open.pop_back();
    if (!seen.insert(v.node).second) continue;
    if (is_pure(v.node) && (is_repeated(v.node) || !usual.count(v.node))) {
      inside.insert(v.node);
      v.node->for_each_input([&](Value operand) { open.push_back(operand); });
    } else {
      out.operands.push_back(v);
    }
  }
  out.math.graph = std::make_unique<ir::Graph>(ir::Level::Loops);
  LoopBuilder builder(*out.math.graph);
  Value result = builder.buffer(ir::type_of(unlikely->arg<Value>(1)).dtype, 1);
  ir::ValueMap map;
  for (Value v : out.operands) map.set(v, builder.number(ir::type_of(v).dtype));
  for (const Node* n : kernel.graph->nodes()) {
    if (!inside.count(n)) continue;
    Node* copy = ir::copy_node(*out.math.graph, *n, map);
    if (kernel.exact.count(n)) out.math.exact.insert(copy);
  }
  builder.store(result, 0, map(unlikely->arg<Value>(1)));
  return out;
}

}  // namespace brasa::compiler
