#include "ops/loop.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/copy.h"
#include "ops/positions.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// The body with symbols of its own, and what they stand for outside.
struct Closed {
  std::unique_ptr<ir::Graph> graph;
  std::vector<Expr> sizes;
};

Closed closed(const ir::Graph& live) {
  Closed out;
  for (const Node* n : live.nodes()) ir::each_size(*n, [&](Expr e) { ir::collect_symbols(e, out.sizes); });
  std::unordered_map<Expr, Expr> own;
  for (Expr s : out.sizes) own.emplace(s, Expr::size(static_cast<uint32_t>(own.size()), s->value, s->multiple));
  out.graph = ir::with_sizes(
      live, [&](Expr e) { return ir::substitute(e, [&](Expr s) { return std::optional<Expr>(own.at(s)); }); });
  // Each symbol is a size of an input: of one that nobody reads, if of no other.
  std::vector<Expr> shown;
  for (const ir::Input& in : out.graph->inputs())
    for (Expr e : type_of(in.value).shape) shown.push_back(e);
  for (Expr s : out.sizes)
    if (Expr e = own.at(s); std::find(shown.begin(), shown.end(), e) == shown.end())
      out.graph->add_input({DType::Bool, {e}, false}, "size", {Expr(0)}, true);
  return out;
}

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

// Rows that say themselves what their derivative is stay whole in a body.
bool stays(const Row& row) { return row.vjp || row.jvp || row.no_gradient; }

}  // namespace

std::vector<Value> scan_loop(const LoopOperands& loop, const LoopStep& step) {
  ir::Graph body(ir::Level::Operators);
  std::vector<Value> operands, carried, items, others;
  auto add = [&](Value v, Shape shape, std::vector<Value>& to) {
    operands.push_back(v);
    to.push_back(body.add_input({dtype_of(v), std::move(shape), false}));
  };
  for (Value v : loop.carried) add(v, shape_of(v), carried);
  for (Value v : loop.along) {
    v = with_sizes(v, with_steps(loop.steps, Shape(shape_of(v).begin() + 1, shape_of(v).end())));
    add(v, Shape(shape_of(v).begin() + 1, shape_of(v).end()), items);
  }
  for (Value v : loop.others) add(v, shape_of(v), others);
  {
    Builder builder(body, Builder::current().facts(), stays);
    std::vector<Value> results = step(carried, items, others);
    BRASA_ASSERT(results.size() >= carried.size(), "a step of a loop gives fewer values than it has states");
    std::vector<ir::Output> checks = std::exchange(body.outputs(), {});
    for (size_t i = 0; i < results.size(); ++i) {
      BRASA_CHECK(i >= carried.size() || dtype_of(results[i]) == dtype_of(carried[i]), "a state of a loop is ",
                  type_of(carried[i]), " before a step, and ", type_of(results[i]), " after it");
      body.add_output(i < carried.size() ? with_sizes(results[i], shape_of(carried[i])) : results[i]);
    }
    for (ir::Output& o : checks) body.add_check(o.value, std::move(o.check));
  }
  Closed c = closed(*ir::copy(body));
  return call_all("prim::scan_loop", {operands, loop.steps, c.sizes, Expr(static_cast<int64_t>(carried.size())),
                                      Expr(static_cast<int64_t>(items.size())), loop.reverse,
                                      ir::Body(std::shared_ptr<const ir::Graph>(std::move(c.graph)))});
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

Expr LoopNode::outside(Expr size) const {
  return ir::substitute(size, [&](Expr s) { return std::optional<Expr>(sizes.at(s->id)); });
}

std::unique_ptr<ir::Graph> LoopNode::body_outside() const {
  return ir::with_sizes(body, [&](Expr e) { return outside(e); });
}

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

std::vector<Value> inlined(const ir::Graph& graph, std::span<const Value> inputs) {
  Builder& builder = Builder::current();
  ir::ValueMap map;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = shape_of(graph.inputs()[i].value);
    map.set(graph.inputs()[i].value, shape_of(inputs[i]) == shape ? inputs[i] : prim::reshape(inputs[i], shape));
  }
  for (Node* n : ir::live_nodes(graph)) {
    if (n->op == ir::input_op()) continue;
    std::vector<Value> results = builder.call(row_of(*n), ir::mapped(n->args, map));
    for (uint32_t r = 0; r < results.size(); ++r)
      if (results[r]) map.set(n->out(r), results[r]);
  }
  std::vector<Value> out;
  for (const ir::Output& o : graph.outputs())
    if (o.check.empty())
      out.push_back(map(o.value));
    else
      builder.graph().add_check(map(o.value), o.check);
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
