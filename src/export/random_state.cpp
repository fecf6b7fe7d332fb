#include "export/random_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/copy.h"
#include "ops/algebra.h"
#include "ops/builder.h"
#include "ops/primitives.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::exporting {
namespace {

using ops::operator+;

struct Draws {
  std::map<int, ir::Expr> before;  // the numbers drawn before this key's, by input of the graph
  ir::Expr total = 0;
};

Draws draws_of(const Captured& c, const capture::Trace& trace) {
  Draws out;
  std::vector<bool> read = inputs_read(*c.graph, c.facts);
  std::vector<int> input_of;  // of a number of the trace
  int inputs = 0;
  for (const capture::Event& e : trace.events) {
    input_of.resize(e.first + e.count, -1);
    if (!e.row) {
      input_of[e.first] = inputs++;
      continue;
    }
    if (!e.row->random) continue;
    size_t at = 0;
    while (e.row->schema.params[at].type != ir::ParamType::Generator) ++at;
    auto* key = e.args[at].get_if<ir::Value>();
    if (!key || key->index == 0) continue;
    int input = input_of[key->index - 1];
    // A derivative has the key of the call that drew.
    if (input < 0 || !c.sources[input].unknown || !out.before.try_emplace(input, out.total).second) continue;
    // As Generator::take counts; `check` would notice another way. Dropout that is off takes nothing.
    if (read[input]) out.total = out.total + ir::floordiv(trace.types[e.first].numel() + 63, 64) * 64;
  }
  return out;
}

void check(const Captured& c, const Draws& draws, Generator::Key start) {
  for (const auto& [input, before] : draws.before) {
    auto* key = static_cast<const int64_t*>(c.sources[input].tensor.data_ptr());
    BRASA_CHECK(
        key[0] == start.seed && key[1] == start.offset + c.facts.hint(before),
        "export: the function draws random numbers from a generator of its own, or beside its tensors; programs "
        "that run alone have one stream, the default generator's");
  }
}

// A graph that was made for these sizes alone shows no symbols for them.
ir::Expr shown(const Captured& c, ir::Expr e) {
  std::vector<ir::Expr> symbols;
  for (const ir::Input& in : c.graph->inputs())
    for (ir::Expr size : ir::type_of(in.value).shape) ir::collect_symbols(size, symbols);
  return ir::substitute(e, [&](ir::Expr symbol) -> std::optional<ir::Expr> {
    if (std::find(symbols.begin(), symbols.end(), symbol) != symbols.end()) return std::nullopt;
    return ir::Expr(c.facts.hint(symbol));
  });
}

}  // namespace

void keep_random_state(Captured& c, const capture::Trace& trace, const Surroundings& surroundings) {
  Draws draws = draws_of(c, trace);
  if (draws.before.empty()) return;
  check(c, draws, surroundings.key());

  auto graph = std::make_unique<ir::Graph>(c.graph->level());
  ops::Builder builder(*graph, c.facts);
  ir::ValueMap map;
  std::vector<int> moved(c.sources.size(), -1);
  std::vector<Captured::Source> sources;
  for (size_t i = 0; i < c.sources.size(); ++i) {
    if (draws.before.count(static_cast<int>(i))) continue;
    const ir::Input& in = c.graph->inputs()[i];
    moved[i] = static_cast<int>(sources.size());
    sources.push_back(c.sources[i]);
    map.set(in.value, graph->add_input(ir::type_of(in.value), in.name, in.strides, in.by_value));
  }
  ir::Value state = graph->add_input({DType::Int64, {ir::Expr(2)}}, "random"), seed = ops::narrow(state, 0, 0, 1),
            offset = ops::narrow(state, 0, 1, 1);
  auto after = [&](ir::Expr count) {
    return ops::prim::concat({seed, offset + ops::size_tensor(shown(c, count), {ir::Expr(1)})}, 0);
  };
  for (const auto& [input, before] : draws.before) map.set(c.graph->inputs()[input].value, after(before));
  ir::copy_live_nodes(*graph, *c.graph, map);
  for (const ir::Output& o : c.graph->outputs())
    graph->outputs().push_back({map(o.value), o.into < 0 ? -1 : moved[o.into], o.check});
  graph->add_output(after(draws.total), static_cast<int>(sources.size()));
  sources.push_back({.tensor = surroundings.random(), .number = {}, .written = true});
  c.graph = std::move(graph);
  c.sources = std::move(sources);
}

}  // namespace brasa::exporting
