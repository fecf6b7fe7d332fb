#include "capture/describe.h"

#include "capture/matching.h"

namespace brasa::capture {
namespace {

std::string describe(const Event* e) {
  if (!e) return "the end";
  return e->row ? str("operator ", e->row->name()) : str("an input ", e->guard);
}

std::string text_of(const ir::Arg& a, const Binding& binding) {
  if (auto n = number_of(a, binding)) {
    if (n->isFloatingPoint()) return str(n->toDouble());
    if (n->isBoolean()) return str(n->toBool());
    if (!n->isComplex()) return str(n->toLong());
  }
  if (auto* list = a.get_if<std::vector<ir::Expr>>()) {
    std::vector<int64_t> items;
    for (ir::Expr e : *list) items.push_back(binding(e));
    return str(items);
  }
  if (auto* s = a.get_if<std::string>()) return str("'", *s, "'");
  if (auto* t = a.get_if<DType>()) return std::string(short_name(*t));
  return a.is_none() ? "None" : "another one";
}

}  // namespace

std::string difference(const Event* came, const Event* expected, size_t position, const Binding& binding) {
  Binding none;
  auto bound = [&](const std::vector<ir::Expr>& list) {
    for (ir::Expr e : list) {
      std::vector<ir::Expr> symbols;
      ir::collect_symbols(e, symbols);
      for (ir::Expr s : symbols)
        if (binding.symbols[s->id] == Binding::kUnbound) return false;
    }
    return true;
  };
  if (came && expected && alike(*came, *expected)) {
    if (!came->row && bound(expected->guard.sizes)) {
      for (size_t d = 0; d < came->guard.sizes.size(); ++d)
        if (came->guard.sizes[d].constant() != binding(expected->guard.sizes[d]))
          return str("call ", position, ", an input ", came->guard, ": size ", d, " is ", came->guard.sizes[d],
                     ", the graph is for ", expected->guard.sizes[d],
                     expected->guard.sizes[d].is_constant() ? "" : str(" = ", binding(expected->guard.sizes[d])));
      return str("call ", position, ", an input ", came->guard, ": the graph is for strides ", expected->guard.strides);
    }
    if (came->row && came->args.size() == expected->args.size()) {
      const auto& params = came->row->schema.params;
      for (size_t i = 0; i < came->args.size(); ++i) {
        if (came->args[i] == expected->args[i]) continue;
        std::string now = text_of(came->args[i], none), then;
        if (auto* e = expected->args[i].get_if<ir::Expr>(); e && !bound({*e}))
          then = str(*e);
        else if (auto* list = expected->args[i].get_if<std::vector<ir::Expr>>(); list && !bound(*list))
          then = str(*list);
        else
          then = text_of(expected->args[i], binding);
        if (now != then)
          return str("call ", position, ", ", came->row->name(), ": '", params[i].name, "' is ", now,
                     ", the graph is for ", then);
      }
    }
  }
  if (expected && came && alike(*came, *expected))
    for (const ir::Fact& f : expected->facts)
      if (bound({f.left, f.right}) && !binding.holds(f))
        return str("call ", position, ", ", describe(expected), ": ", f, " does not hold");
  return str("call ", position, ": ", describe(came), " where ", describe(expected), " was expected");
}

std::vector<std::string> guards_of(const Trace& trace) {
  std::vector<std::string> out;
  for (const Event& e : trace.events)
    if (!e.row) out.push_back(str(e.guard));
  for (const Event& e : trace.events)
    for (const ir::Fact& f : e.facts) out.push_back(str(f));
  return out;
}

}  // namespace brasa::capture
