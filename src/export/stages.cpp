#include "export/stages.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/copy.h"
#include "ops/table.h"

namespace brasa::exporting {

namespace {

class Splitter {
 public:
  Splitter(const ir::Graph& graph, const std::vector<CountedValue>& counts) : graph_(graph), counts_(counts) {
    find_live();
    for (size_t i = 0; i < graph.inputs().size(); ++i) find_symbols(i);
    for (const ir::Node* n : live_) stage_of(n);
    for (const CountedValue& c : counts) last_ = std::max(last_, stage_of(c.value.node) + 1);
  }

  Stages split() {
    Stages out;
    for (const CountedValue& c : counts_) out.read_in[c.number] = stage_of(c.value.node) + 1;
    for (const auto& [symbol, of] : symbols_) {
      out.known_in.resize(std::max<size_t>(out.known_in.size(), symbol + 1));
      out.known_in[symbol] = symbol_stage(symbol);
    }
    for (size_t s = 0; s < last_; ++s) add(out, s);
    add_last(out);
    for (const CountedValue& c : counts_) out.kept_count[c.number] = kept_.at(c.value);
    return out;
  }

 private:
  void find_live() {
    std::vector<bool> live(graph_.nodes().size());
    for (const ir::Output& o : graph_.outputs()) live[o.value.node->id] = true;
    for (const CountedValue& c : counts_) live[c.value.node->id] = true;
    ir::add_operands(graph_, live);
    for (const ir::Node* n : graph_.nodes())
      if (live[n->id] && n->op != ir::input_op()) live_.push_back(n);
  }

  // What says a symbol: an input, or the input that stands for a counted value.
  void find_symbols(size_t input) {
    auto is = [&](const CountedValue& c) { return c.input == static_cast<int>(input); };
    auto count = std::find_if(counts_.begin(), counts_.end(), is);
    for (const ir::Expr& e : ir::type_of(graph_.inputs()[input].value).shape) {
      if (e->kind != ir::ExprKind::Size) continue;
      if (count == counts_.end())
        symbols_[e->id] = nullptr;
      else
        symbols_.try_emplace(e->id, count->value.node);
    }
  }
  size_t symbol_stage(uint32_t id) {
    auto it = symbols_.find(id);
    return it == symbols_.end() || !it->second ? 0 : stage_of(it->second) + 1;
  }

  size_t stage_of(const ir::Node* n) {
    if (n->op == ir::input_op()) return 0;
    if (auto it = stage_.find(n); it != stage_.end()) return it->second;
    size_t stage = 0;
    n->for_each_input([&](ir::Value v) { stage = std::max(stage, stage_of(v.node)); });
    ir::each_size(*n, [&](const ir::Expr& e) {
      std::vector<ir::Expr> symbols;
      ir::collect_symbols(e, symbols);
      for (const ir::Expr& s : symbols) stage = std::max(stage, symbol_stage(s->id));
    });
    return stage_[n] = stage;
  }

  static bool is_view(const ir::Node* n) { return ops::row_of(*n).view; }
  bool is_done(ir::Value v) const { return v.node->op == ir::input_op() || kept_.count(v); }

  // The nodes that these values are made of, down to what is kept.
  std::vector<const ir::Node*> nodes_for(const std::vector<ir::Value>& values) const {
    std::unordered_set<const ir::Node*> needed;
    std::vector<ir::Value> open = values;
    while (!open.empty()) {
      ir::Value v = open.back();
      open.pop_back();
      if (is_done(v) || !needed.insert(v.node).second) continue;
      v.node->for_each_input([&](ir::Value operand) { open.push_back(operand); });
    }
    std::vector<const ir::Node*> out;
    for (const ir::Node* n : live_)
      if (needed.count(n)) out.push_back(n);
    return out;
  }

  Stage begin(Stages& all, size_t number, const std::vector<const ir::Node*>& nodes,
              const std::vector<ir::Value>& results, ir::ValueMap& map) {
    Stage s;
    s.graph = std::make_unique<ir::Graph>(graph_.level());
    s.graph->name = graph_.name;
    ir::copy_inputs(*s.graph, graph_, map);
    for (const auto& [count, stage] : all.read_in)
      if (stage == number) s.reads.push_back(count);
    auto take = [&](ir::Value v) {
      auto kept = kept_.find(v);
      if (kept == kept_.end() || map.find(v)) return;
      map.set(v, s.graph->add_input(ir::type_of(v)));
      s.takes.push_back(kept->second);
    };
    for (const ir::Node* n : nodes) n->for_each_input(take);
    for (ir::Value v : results) take(v);
    for (const ir::Node* n : nodes) ir::copy_node(*s.graph, *n, map);
    return s;
  }

  void add(Stages& all, size_t number) {
    std::vector<ir::Value> counted;
    for (const CountedValue& c : counts_)
      if (stage_of(c.value.node) == number) counted.push_back(c.value);
    std::vector<const ir::Node*> nodes = nodes_for(counted);
    ir::ValueMap map;
    Stage s = begin(all, number, nodes, counted, map);
    computed_.insert(nodes.begin(), nodes.end());
    for (ir::Value v : counted) keep(all, s, v, map);
    for (const ir::Node* n : live_)
      if (!computed_.count(n)) n->for_each_input([&](ir::Value v) { keep_for_later(all, s, v, map); });
    for (const ir::Output& o : graph_.outputs()) keep_for_later(all, s, o.value, map);
    all.list.push_back(std::move(s));
  }

  // What later stages read: of a view what it looks at, so that nothing is copied.
  void keep_for_later(Stages& all, Stage& s, ir::Value v, const ir::ValueMap& map) {
    if (is_done(v) || !computed_.count(v.node)) return;
    if (is_view(v.node))
      v.node->for_each_input([&](ir::Value operand) { keep_for_later(all, s, operand, map); });
    else
      keep(all, s, v, map);
  }
  void keep(Stages& all, Stage& s, ir::Value v, const ir::ValueMap& map) {
    if (!kept_.try_emplace(v, all.kept.size()).second) return;
    s.keeps.push_back(all.kept.size());
    all.kept.push_back(ir::type_of(v));
    s.graph->add_output(map(v));
  }

  void add_last(Stages& all) {
    std::vector<ir::Value> results;
    for (const ir::Output& o : graph_.outputs()) results.push_back(o.value);
    ir::ValueMap map;
    Stage s = begin(all, last_, nodes_for(results), results, map);
    for (const ir::Output& o : graph_.outputs()) s.graph->outputs().push_back({map(o.value), o.into, o.check});
    all.list.push_back(std::move(s));
  }

  const ir::Graph& graph_;
  const std::vector<CountedValue>& counts_;
  std::vector<const ir::Node*> live_;
  std::unordered_map<uint32_t, const ir::Node*> symbols_;  // and the node that gives it; null: known at once
  std::unordered_map<const ir::Node*, size_t> stage_;
  std::unordered_set<const ir::Node*> computed_;
  std::unordered_map<ir::Value, size_t> kept_;
  size_t last_ = 0;
};

}  // namespace

size_t Stages::stage_of(const ir::Expr& e) const {
  size_t out = 0;
  std::vector<ir::Expr> symbols;
  ir::collect_symbols(e, symbols);
  for (const ir::Expr& s : symbols)
    if (s->id < known_in.size()) out = std::max(out, known_in[s->id]);
  return out;
}

Stages stages_of(const ir::Graph& graph, const std::vector<CountedValue>& counts) {
  return Splitter(graph, counts).split();
}

}  // namespace brasa::exporting
