#include "transforms/while.h"

#include "ops/branch.h"
#include "ops/primitives/rules.h"
#include "ops/while.h"
#include "support/error.h"
#include "transforms/bodies.h"
#include "transforms/tangent.h"
#include "transforms/vmap.h"

namespace brasa::transforms {
namespace {

using ir::Expr;
using ir::Graph;
using ir::Node;
using ir::Value;
using ops::WhileNode;
using Values = std::vector<Value>;
using Span = std::span<const Value>;

}  // namespace

Values while_vjp(const Node&, Span, const std::vector<bool>&) {
  fail(
      "while_loop has no derivative backwards, as its number of steps is known only when it has run; scan has one, for a number of "
      "steps that is known before");
}

Values while_jvp(const Node& node, Span tangents) {
  WhileNode n(node);
  std::unique_ptr<Graph> go_on = ops::outside(n.go_on, n.sizes), step = ops::outside(n.step, n.sizes);
  auto first = n.operands.begin(), last = n.operands.end(), behind = first + static_cast<std::ptrdiff_t>(n.carried);
  Values carried(first, behind), others(behind, last);
  std::vector<bool> moves;
  for (size_t i = 0; i < n.operands.size(); ++i) {
    bool state = i < n.carried;
    moves.push_back(has_tangent(n.operands[i]) && (state || tangents[i]));
    if (moves.back()) (state ? carried : others).push_back(ops::or_zeros(tangents[i], n.operands[i]));
  }
  size_t with_tangents = carried.size(), read = n.operands.size() - n.carried;
  // The operands of the loop without tangents, and the tangents.
  auto split = [&](Span in) {
    Values own(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n.carried)),
        moving(in.begin() + own.size(), in.begin() + with_tangents);
    own.insert(own.end(), in.begin() + with_tangents, in.begin() + with_tangents + read);
    moving.insert(moving.end(), in.begin() + with_tangents + read, in.end());
    return std::pair(own, moving);
  };
  auto condition = [&](Span in) { return ops::inlined(*go_on, split(in).first); };
  auto both = [&](Span in) {
    auto [own, moving] = split(in);
    Pushed p = pushed(*step, own, moves, moving);
    Values out = p.results;
    for (size_t i = 0; i < n.carried; ++i)
      if (moves[i]) out.push_back(ops::or_zeros(p.tangents[i], own[i]));
    return out;
  };
  Values all = ops::while_loop(carried, others, condition, both), out;
  size_t next = n.carried;
  for (size_t i = 0; i < n.carried; ++i) out.push_back(moves[i] ? all[next++] : Value{});
  return out;
}

Values batched_while(const Node& node, Span operands, const std::vector<bool>& mapped, Expr count) {
  WhileNode n(node);
  ir::Facts& facts = ops::Builder::current().facts();
  std::unique_ptr<Graph> go_on = ops::outside(n.go_on, n.sizes), step = ops::outside(n.step, n.sizes);
  std::vector<bool> in_body = mapped;
  std::fill_n(in_body.begin(), n.carried, true);
  // Of all calls what `f` makes of one call's operands.
  auto many = [&](const ops::BodyFunction& f) {
    Graph one;
    {
      ops::Builder builder(one, facts, detaches);
      Values in;
      for (Value v : n.operands) in.push_back(one.add_input(ir::type_of(v)));
      for (Value v : f(in)) one.add_output(v);
    }
    return vmap(one, facts, in_body, count);
  };
  std::unique_ptr<Graph> go_on_of_all = many([&](Span in) { return ops::inlined(*go_on, in); });
  std::unique_ptr<Graph> step_of_all = many([&](Span in) {
    return ops::cond(
        ops::inlined(*go_on, in)[0], {in.begin(), in.end()}, [&](Span own) { return ops::inlined(*step, own); },
        [&](Span own) { return Values(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(n.carried)); });
  });
  Values carried, others(operands.begin() + static_cast<std::ptrdiff_t>(n.carried), operands.end());
  for (size_t i = 0; i < n.carried; ++i)
    carried.push_back(mapped[i] ? operands[i] : ops::repeat_along(operands[i], 0, count));
  return ops::while_loop(
      carried, others,
      [&](Span in) { return Values{ops::prim::reduce(ops::inlined(*go_on_of_all, in)[0], {0}, "or")}; },
      [&](Span in) { return ops::inlined(*step_of_all, in); });
}

}  // namespace brasa::transforms
