#include "compiler/report.h"

#include <unordered_map>

#include "compiler/fusion/indexing.h"

namespace brasa::compiler {

namespace {

int64_t bytes_of(const ir::Type& t) {
  Expr n = t.numel();
  return n.is_constant() ? n.constant() * size_of(t.dtype) : 0;
}

}  // namespace

std::string describe(const Group& g, const Schedule& s) {
  std::unordered_map<std::string, int> counts;
  std::vector<std::string> order;
  for (const ir::Node* n : g.graph->nodes()) {
    Prim p = prim_of(n);
    if (p == Prim::Input || is_leaf(p) || is_view(p)) continue;
    std::string op = n->op->name().substr(6);
    if (counts[op]++ == 0) order.push_back(op);
  }
  std::string out = str(name(g.kind), " ", g.domain, ":");
  for (const std::string& op : order) out += counts[op] > 1 ? str(" ", counts[op], "x", op) : str(" ", op);
  if (order.empty()) out += " copy";
  std::string how = str(s);
  if (!how.empty()) out += str("  {", how, "}");
  return out;
}

void count_before(const ir::Graph& g, Report& report) {
  for (const ir::Node* n : live_nodes(g)) {
    Prim p = prim_of(n);
    if (p == Prim::Input || is_leaf(p) || is_view(p)) continue;
    ++report.kernels_before;
    n->for_each_input([&](Value v) { report.bytes_before += bytes_of(type_of(v)); });
    for (const ir::Type& t : n->types) report.bytes_before += bytes_of(t);
  }
}

void count_after(const Group& g, Report& report) {
  ++report.kernels_after;
  for (Value v : g.inputs) report.bytes_after += bytes_of(type_of(v));
  for (Value v : g.outputs) report.bytes_after += bytes_of(type_of(v));
}

}  // namespace brasa::compiler
