#include "compiler/report.h"

#include <map>
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

void report_memory(const Plan& p, Report& report) {
  report.arena_bytes = p.arena_bytes;
  report.prepared_bytes = p.prepared_bytes;
  std::map<std::pair<int, const void*>, size_t> newest;  // at each place
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const Group& g = p.steps[s];
    for (size_t i = 0; i < p.places[s].size(); ++i) {
      const Place& place = p.places[s][i];
      if (place.kind != Place::Arena && place.kind != Place::Prepared) continue;
      bool written = i >= g.inputs.size();
      auto [at, fresh] = newest.try_emplace({place.kind, place.offset.node()}, report.memory.size());
      if (written) {
        at->second = report.memory.size();
        report.memory.push_back(
            {type_of(g.outputs[i - g.inputs.size()]), place.kind == Place::Prepared, place.offset, s, s});
      } else if (!fresh) {
        report.memory[at->second].last = s;
      } else {
        newest.erase(at);  // a part of a value that begins before
      }
    }
  }
}

}  // namespace brasa::compiler
