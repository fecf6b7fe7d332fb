#include "capture/trace.h"

#include "support/error.h"

namespace brasa::capture {

void append_to(std::string& out, const InputGuard& g) {
  using brasa::append_to;
  if (g.kind == InputGuard::Kind::RandomKey) {
    out += "random key";
    return;
  }
  if (g.weak) out += "number ";
  out += short_name(g.dtype);
  append_to(out, g.sizes);
  out += " strides ";
  append_to(out, g.strides);
}

std::unique_ptr<ir::Graph> Trace::graph(const std::vector<Delivery>& deliveries) const {
  auto g = std::make_unique<ir::Graph>();
  std::vector<ir::Value> values;
  auto mapped = [&](ir::Value v) { return v.index == 0 ? ir::Value{} : values.at(v.index - 1); };
  for (const Event& e : events) {
    if (!e.row) {
      std::vector<ir::Expr> strides;
      for (int64_t s : e.guard.strides) strides.emplace_back(s);
      const ir::Type& type = types[e.first];
      if (strides == ir::contiguous_strides(type.shape)) strides.clear();
      values.push_back(
          g->add_input(type, e.guard.kind == InputGuard::Kind::RandomKey ? "random key" : "", std::move(strides)));
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

}  // namespace brasa::capture
