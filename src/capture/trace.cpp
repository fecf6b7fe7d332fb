#include "capture/trace.h"

#include <algorithm>

#include "compiler/run/executable.h"
#include "support/error.h"

namespace brasa::capture {

namespace {
ir::Node argument_node{};
}

ir::Value argument(uint32_t index) { return {&argument_node, index}; }
bool is_argument(ir::Value v) { return v.node == &argument_node; }

int64_t Binding::operator()(ir::Expr e) const { return compiler::Executable::evaluate(e, symbols.data()); }

void append_to(std::string& out, const InputGuard& g) {
  using brasa::append_to;
  if (g.weak) out += "number ";
  out += short_name(g.dtype);
  append_to(out, g.sizes);
  if (g.strides.empty()) return;
  out += " strides ";
  append_to(out, g.strides);
}

ir::Value Trace::Body::operator()(ir::Value v) const {
  if (is_argument(v)) return arguments.at(v.index);
  return v.index == 0 ? ir::Value{} : values.at(v.index - 1);
}

ir::Value Delivery::of(ir::Graph& graph, ir::Value value) const {
  if (order.empty()) return value;
  ir::Type type = ir::type_of(value);
  std::vector<ir::Expr> dims;
  for (size_t k = 0; k < order.size(); ++k) {
    dims.emplace_back(order[k]);
    type.shape[k] = ir::type_of(value).shape[order[k]];
  }
  type.weak = false;
  return graph.add(&ops::at("prim::transpose"), {ir::Arg(value), ir::Arg(std::move(dims))}, {type})->out();
}

Trace::Body Trace::body() const {
  Body out{std::make_unique<ir::Graph>(), {}, {}};
  out.values.resize(types.size());
  for (const Event& e : events)
    if (!e.row) out.values[e.first] = out.graph->add_input(types[e.first], "", e.guard.strides, e.guard.by_value);
  for (const Argument& a : arguments)
    out.arguments.push_back(a.size ? out.graph->add_input({DType::Bool, {*a.size}}, "size", {ir::Expr(0)}, true)
                                   : out.graph->add_input({a.dtype, {}, true}, "number", {}, true));
  for (const Event& e : events) {
    if (!e.row) continue;
    ir::Node* n =
        out.graph->add(e.row, mapped_args(e, out), {types.begin() + e.first, types.begin() + e.first + e.count});
    for (uint32_t r = 0; r < e.count; ++r) out.values[e.first + r] = n->out(r);
  }
  return out;
}

std::unique_ptr<ir::Graph> Trace::graph(const std::vector<Delivery>& deliveries) const {
  Body out = body();
  for (const Delivery& d : deliveries) out.graph->add_output(d.of(*out.graph, out.values.at(d.number)), d.into);
  return std::move(out.graph);
}

void Trace::finish() {
  for (const ir::Type& t : types) {
    std::vector<int64_t> sizes;
    for (ir::Expr e : t.shape)
      if (e.is_constant()) sizes.push_back(e.constant());
    bool known = sizes.size() == t.shape.size();
    shapes.push_back(known ? &distinct_shapes.try_emplace({t.dtype, sizes}, sizes, t.dtype).first->second : nullptr);
  }
}

Trace Trace::copy() const {
  Trace out;
  out.events = events;
  out.types = types;
  out.arguments = arguments;
  out.own = own;
  return out;
}

Trace Trace::sized(const Binding& binding) const {
  Trace out = copy();
  auto size = [&](ir::Expr& e) { e = ir::Expr(binding(e)); };
  auto all = [&](std::vector<ir::Expr>& list) { std::for_each(list.begin(), list.end(), size); };
  for (ir::Type& t : out.types) all(t.shape);
  for (Argument& a : out.arguments)
    if (a.size) size(*a.size);
  for (Event& e : out.events) {
    all(e.guard.sizes);
    all(e.guard.strides);
    e.facts.clear();
    for (ir::Arg& a : e.args) {
      if (auto* one = std::get_if<ir::Expr>(&a.variant())) size(*one);
      if (auto* list = std::get_if<std::vector<ir::Expr>>(&a.variant())) all(*list);
    }
  }
  return out;
}

}  // namespace brasa::capture
