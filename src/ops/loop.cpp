#include "ops/loop.h"

#include <algorithm>

#include "ops/positions.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

Shape with_steps(Expr steps, Shape shape) {
  shape.insert(shape.begin(), steps);
  return shape;
}

Value items_of(Value trace, Expr first, Expr count) {
  Shape size = shape_of(trace);
  std::vector<Expr> start(size.size(), Expr(0)), step(size.size(), Expr(1));
  start[0] = first;
  size[0] = count;
  return prim::slice(trace, start, size, step);
}
Value item_of(Value trace, Expr at) {
  Shape shape = shape_of(trace);
  shape.erase(shape.begin());
  return prim::reshape(items_of(trace, at, Expr(1)), shape);
}

}  // namespace

std::vector<Value> scan_loop(const LoopOperands& loop, const LoopStep& step) {
  std::vector<Value> operands;
  std::vector<Type> types;
  auto add = [&](Value v, Type t) {
    operands.push_back(v);
    types.push_back(std::move(t));
  };
  for (Value v : loop.carried) add(v, {dtype_of(v), shape_of(v), false});
  for (Value v : loop.along) {
    Type item = type_of(v);
    item.shape.erase(item.shape.begin());
    add(with_sizes(v, with_steps(loop.steps, item.shape)), item);
  }
  for (Value v : loop.others) add(v, type_of(v));
  size_t carried = loop.carried.size(), along = loop.along.size();
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  bodies.push_back(body_of(types, [&](std::span<const Value> in) {
    std::vector<Value> results = step(in.first(carried), in.subspan(carried, along), in.subspan(carried + along));
    BRASA_ASSERT(results.size() >= carried, "a step of a loop gives fewer values than it has states");
    for (size_t i = 0; i < carried; ++i) {
      BRASA_CHECK(dtype_of(results[i]) == dtype_of(in[i]), "a state of a loop is ", type_of(in[i]),
                  " before a step, and ", type_of(results[i]), " after it");
      results[i] = with_sizes(results[i], shape_of(in[i]));
    }
    return results;
  }));
  Closed c = closed(std::move(bodies));
  return call_all("prim::scan_loop", {operands, loop.steps, c.sizes, Expr(static_cast<int64_t>(carried)),
                                      Expr(static_cast<int64_t>(along)), loop.reverse, c.bodies[0]});
}

Value last_state(Value trace, const LoopOperands& loop) { return item_of(trace, loop.reverse ? Expr(0) : loop.steps); }
Value states_before(Value trace, const LoopOperands& loop) {
  return items_of(trace, Expr(loop.reverse ? 1 : 0), loop.steps);
}
Value states_after(Value trace, const LoopOperands& loop) {
  return items_of(trace, Expr(loop.reverse ? 0 : 1), loop.steps);
}

LoopNode::LoopNode(const Args& args, size_t results)
    : body(*args[6].get<ir::Body>()),
      sizes(args[2].get<std::vector<Expr>>()),
      operands(args[0].get<std::vector<Value>>()),
      carried(static_cast<size_t>(args[3].get<Expr>().constant())),
      along(static_cast<size_t>(args[4].get<Expr>().constant())),
      given(results - carried),
      steps(args[1].get<Expr>()),
      reverse(args[5].get<bool>()) {}
LoopNode::LoopNode(const Node& n) : LoopNode(n.args, n.types.size()) {}

LoopOperands LoopNode::loop() const {
  LoopOperands out;
  auto from = operands.begin();
  auto take = [&](size_t n) {
    std::vector<Value> part(from, from + static_cast<std::ptrdiff_t>(n));
    from += static_cast<std::ptrdiff_t>(n);
    return part;
  };
  out.carried = take(carried);
  out.along = take(along);
  out.others = take(others());
  out.steps = steps;
  out.reverse = reverse;
  return out;
}

std::vector<Value> unrolled(const LoopNode& n) {
  std::unique_ptr<ir::Graph> body = n.body_outside();
  LoopOperands loop = n.loop();
  int64_t steps = n.steps.constant();
  std::vector<std::vector<Value>> traces(n.carried), given(n.given);
  for (size_t i = 0; i < n.carried; ++i) traces[i].push_back(loop.carried[i]);
  for (int64_t k = 0; k < steps; ++k) {
    std::vector<Value> in;
    for (const auto& trace : traces) in.push_back(trace.back());
    for (Value v : loop.along) in.push_back(item_of(v, Expr(loop.reverse ? steps - 1 - k : k)));
    in.insert(in.end(), loop.others.begin(), loop.others.end());
    std::vector<Value> out = inlined(*body, in);
    for (size_t i = 0; i < out.size(); ++i) (i < n.carried ? traces[i] : given[i - n.carried]).push_back(out[i]);
  }
  std::vector<Value> results;
  auto stack = [&](std::vector<Value>& items, const ir::Type& item) {
    if (n.reverse) std::reverse(items.begin(), items.end());
    for (Value& v : items) v = prim::reshape(v, with_steps(Expr(1), shape_of(v)));
    results.push_back(items.empty() ? full(0, with_steps(Expr(0), item.shape), item.dtype) : prim::concat(items, 0));
  };
  for (size_t i = 0; i < n.carried; ++i) stack(traces[i], type_of(loop.carried[i]));
  for (size_t i = 0; i < n.given; ++i) stack(given[i], type_of(body->outputs()[n.carried + i].value));
  return results;
}

}  // namespace brasa::ops
