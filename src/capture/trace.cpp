#include "capture/trace.h"

#include <algorithm>

#include "support/error.h"

namespace brasa::capture {

namespace {
ir::Node argument_node{};
}

ir::Value argument(uint32_t index) { return {&argument_node, index}; }
bool is_argument(ir::Value v) { return v.node == &argument_node; }

int64_t Binding::operator()(ir::Expr e) const {
  if (e.is_constant()) return e->value;
  if (e->kind == ir::ExprKind::Size) return symbols[e->id];
  return ir::evaluate(e, [&](const ir::ExprNode& s) { return symbols[s.id]; });
}

void append_to(std::string& out, const InputGuard& g) {
  using brasa::append_to;
  if (g.weak) out += "number ";
  out += short_name(g.dtype);
  append_to(out, g.sizes);
  if (g.strides.empty()) return;
  out += " strides ";
  append_to(out, g.strides);
}

std::unique_ptr<ir::Graph> Trace::graph(const std::vector<Delivery>& deliveries) const {
  auto g = std::make_unique<ir::Graph>();
  std::vector<ir::Value> values, given;
  auto mapped = [&](ir::Value v) {
    if (is_argument(v)) return given.at(v.index);
    return v.index == 0 ? ir::Value{} : values.at(v.index - 1);
  };
  // Inputs come before the calls, the arguments where the caller has them.
  std::vector<ir::Value> inputs;
  auto add_arguments = [&] {
    for (const Argument& a : arguments)
      given.push_back(a.size ? g->add_input({DType::Bool, {*a.size}}, "size", {ir::Expr(0)})
                             : g->add_input({a.dtype, {}, true}, "number"));
  };
  for (const Event& e : events) {
    if (e.row) continue;
    if (inputs.size() == own_inputs) add_arguments();
    inputs.push_back(g->add_input(types[e.first], "", e.guard.strides));
  }
  if (given.empty()) add_arguments();
  size_t input = 0;
  for (const Event& e : events) {
    if (!e.row) {
      values.push_back(inputs[input++]);
      continue;
    }
    ir::Args args;
    for (const ir::Arg& a : e.args) {
      if (auto* v = a.get_if<ir::Value>()) {
        args.push_back(ir::Arg(mapped(*v)));
      } else if (auto* list = a.get_if<std::vector<ir::Value>>()) {
        std::vector<ir::Value> items;
        for (ir::Value v : *list) items.push_back(mapped(v));
        args.push_back(ir::Arg(std::move(items)));
      } else {
        args.push_back(a);
      }
    }
    ir::Node* n = g->add(e.row, std::move(args), {types.begin() + e.first, types.begin() + e.first + e.count});
    for (uint32_t r = 0; r < e.count; ++r) values.push_back(n->out(r));
  }
  for (const Delivery& d : deliveries) g->add_output(values.at(d.number), d.into);
  return g;
}

Trace Trace::copy() const {
  Trace out;
  out.events = events;
  out.types = types;
  out.arguments = arguments;
  out.own_inputs = own_inputs;
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
