#include "transforms/branch.h"

#include "ops/branch.h"
#include "ops/primitives/rules.h"
#include "support/error.h"
#include "transforms/bodies.h"
#include "transforms/tangent.h"
#include "transforms/vjp.h"
#include "transforms/vmap.h"

namespace brasa::transforms {
namespace {

using ir::Expr;
using ir::Graph;
using ir::Node;
using ir::Value;
using ops::BranchNode;
using Span = std::span<const Value>;

// A mask by result as one by output, checks among them.
std::vector<bool> by_output(const Graph& body, const std::vector<bool>& results) {
  std::vector<bool> out;
  size_t k = 0;
  for (const ir::Output& o : body.outputs()) out.push_back(o.check.empty() && results[k++]);
  return out;
}

}  // namespace

std::vector<Value> branch_vjp(const Node& node, Span cts, const std::vector<bool>& needs) {
  BranchNode n(node);
  std::vector<bool> given;
  std::vector<Value> operands(n.operands.begin(), n.operands.end());
  for (size_t i = 0; i < cts.size(); ++i) {
    given.push_back(cts[i] && has_tangent(cts[i]));
    if (given.back()) operands.push_back(cts[i]);
  }
  auto side = [&](const Graph& closed) {
    return [&](Span in) {
      std::unique_ptr<Graph> body = ops::outside(closed, n.sizes);
      std::vector<bool> wanted(needs.begin() + 1, needs.end());  // the predicate is the first operand
      wanted.resize(body->inputs().size());
      Span own = in.first(n.operands.size());
      return derivative(*body, wanted, by_output(*body, given), all_inputs(*body, own), in.subspan(own.size()));
    };
  };
  std::vector<Value> made = ops::cond(n.predicate, operands, side(n.yes), side(n.no)), out(needs.size());
  size_t next = 0;
  for (size_t i = 0; i < needs.size(); ++i)
    if (needs[i]) out[i] = made[next++];
  return out;
}

std::vector<Value> branch_jvp(const Node& node, Span tangents) {
  BranchNode n(node);
  std::vector<Value> operands(n.operands.begin(), n.operands.end());
  std::vector<bool> moves;
  for (size_t i = 0; i < n.operands.size(); ++i) {
    Value t = tangents[i + 1];
    moves.push_back(t && has_tangent(n.operands[i]));
    if (moves.back()) operands.push_back(t);
  }
  auto side = [&](const Graph& closed) {
    return [&](Span in) {
      Span own = in.first(n.operands.size());
      Pushed p = pushed(*ops::outside(closed, n.sizes), own, moves, in.subspan(own.size()));
      std::vector<Value> out;
      for (size_t i = 0; i < p.results.size(); ++i)
        if (has_tangent(p.results[i])) out.push_back(ops::or_zeros(p.tangents[i], p.results[i]));
      return out;
    };
  };
  std::vector<Value> made = ops::cond(n.predicate, operands, side(n.yes), side(n.no)), out;
  size_t next = 0;
  for (uint32_t r = 0; r < node.types.size(); ++r)
    out.push_back(has_tangent(const_cast<Node&>(node).out(r)) ? made[next++] : Value{});
  return out;
}

std::vector<Value> batched_branch(const Node& node, Span operands, const std::vector<bool>& mapped, Expr count) {
  BranchNode n(node);
  ir::Facts& facts = ops::Builder::current().facts();
  if (!mapped[0]) {
    std::vector<bool> in_body(mapped.begin() + 1, mapped.end());
    auto side = [&](const Graph& closed) {
      return [&](Span in) {
        std::unique_ptr<Graph> body = ops::outside(closed, n.sizes);
        std::vector<bool> marked = in_body;
        marked.resize(body->inputs().size());
        return ops::inlined(*vmap(*body, facts, marked, count), in);
      };
    };
    return ops::cond(operands[0], {operands.begin() + 1, operands.end()}, side(n.yes), side(n.no));
  }
  Graph one;
  {
    ops::Builder builder(one, facts, detaches);
    std::vector<Value> in;
    node.for_each_input([&](Value v) { in.push_back(one.add_input(ir::type_of(v))); });
    ir::Args args = node.args;
    args[0] = ir::Arg(in[0]);
    args[1] = ir::Arg(std::vector<Value>(in.begin() + 1, in.end()));
    for (Value v : ops::selected(BranchNode(args))) one.add_output(v);
  }
  return ops::inlined(*vmap(one, facts, mapped, count), operands);
}

}  // namespace brasa::transforms
