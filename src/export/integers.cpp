#include "export/integers.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <brasa/brasa.h>
#include <brasa/export_program.h>

#include "export/value_range.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "ops/decompose.h"
#include "support/error.h"

namespace brasa::exporting {

std::vector<ir::Fact> Captured::known_with(const std::vector<ir::Fact>& facts, size_t integers) const {
  // The first stage that begins with an integer which is not known.
  size_t unknown = stages.list.size();
  for (const auto& [count, stage] : stages.read_in)
    if (count >= integers) unknown = std::min(unknown, stage);
  std::vector<ir::Fact> out;
  for (const ir::Fact& f : facts)
    if (std::max(stages.stage_of(f.left), stages.stage_of(f.right)) < unknown) out.push_back(f);
  return out;
}

std::optional<ir::Expr> Captured::symbol_of(size_t integer) const {
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].input != static_cast<int>(sizes.size() - counts.size() + integer)) continue;
    const ir::Expr& e = ir::type_of(graph->inputs()[i].value).shape[0];
    if (e->kind == ir::ExprKind::Size) return e;
  }
  return std::nullopt;
}

namespace {

// The graph with numbers in place of some symbols, the others in the order in which inputs show them.
std::string text_of(const ir::Graph& graph, const std::map<uint32_t, int64_t>& numbers) {
  std::map<uint32_t, ir::Expr> names;
  auto named = [&](const ir::Expr& e) {
    return ir::substitute(e, [&](const ir::Expr& s) -> std::optional<ir::Expr> {
      if (auto it = numbers.find(s->id); it != numbers.end()) return ir::Expr(it->second);
      return names.try_emplace(s->id, ir::Expr::size(static_cast<uint32_t>(names.size()))).first->second;
    });
  };
  return ir::print(*ir::with_sizes(graph, named));
}

}  // namespace

bool Captured::is_case_of(const Captured& general) const {
  if (counts.size() != general.counts.size()) return false;
  std::map<uint32_t, int64_t> numbers;
  for (size_t k = 0; k < counts.size(); ++k)
    if (std::optional<ir::Expr> e = general.symbol_of(k); e && !symbol_of(k))
      numbers[(*e)->id] = sizes[sizes.size() - counts.size() + k][0];
  return text_of(*graph, {}) == text_of(*general.graph, numbers);
}

std::vector<Tensor> Captured::integers() const {
  std::vector<Tensor> out;
  for (size_t i = sizes.size() - counts.size(); i < sizes.size(); ++i)
    out.push_back(zeros({}, TensorOptions(kBool).device(Device(kCPU))).expand(sizes[i]));
  return out;
}

namespace {

// An integer that is read, and its range as the graph of operators says it.
Captured::Read read_of(const ir::Graph& graph, ir::Facts facts, ir::Value value, const Count& count) {
  auto primitives = std::make_unique<ir::Graph>(ir::Level::Primitives);
  ir::ValueMap map;
  ir::copy_inputs(*primitives, graph, map);
  ops::decompose(graph, {value}, *primitives, map, facts);
  ValueRange range = ValueRanges().of(map(value));
  return {count.reader, ir::max(range.least.value_or(ir::Expr(0)), ir::Expr(0)),
          range.greatest.value_or(ir::Expr(INT64_MAX))};
}

// What is not negative where a fact holds, by its comparison with the least of two sizes; nothing where it is none.
std::vector<ir::Expr> not_negative_by(const ir::Fact& f) {
  std::vector<ir::Expr> out;
  for (const auto& [least, one] : {std::pair(f.left, f.right), std::pair(f.right, f.left)}) {
    if (least->kind != ir::ExprKind::Min) continue;
    const auto& of = least->args;
    if (f.equal)
      for (const ir::Expr& e : of) out.push_back(e - one);
    else if (of.size() == 2 && (of[0] == one || of[1] == one))
      out.push_back(one - (of[0] == one ? of[1] : of[0]) - ir::Expr(1));
  }
  return out;
}

// The range of an integer, which the symbol stands for, by what assertions say of it; where they give no bound, by what the code takes for
// granted (a part of a tensor ends within it).
void narrow(const Captured& c, const ir::Expr& symbol, Captured::Read& read) {
  if (!ir::is_symbol(symbol)) return;
  size_t stage = c.stages.stage_of(symbol);
  auto known = [&](const ir::Expr& e) { return !ir::contains_symbol(e, symbol) && c.stages.stage_of(e) < stage; };
  auto most = [&](const ir::Expr& not_negative) {
    ir::Expr e = not_negative + symbol;
    if (ir::contains_symbol(not_negative, symbol) && known(e)) read.greatest = ir::min(read.greatest, e);
  };
  for (const auto& [not_negative, message] : c.requirements) {
    most(not_negative);
    ir::Expr least = symbol - not_negative;
    if (ir::contains_symbol(not_negative, symbol) && known(least)) read.least = ir::max(read.least, least);
  }
  if (!read.greatest.is(INT64_MAX)) return;
  for (const ir::Fact& f : c.facts.facts())
    for (const ir::Expr& e : not_negative_by(f)) most(e);
}

// The symbols that nodes and assertions have.
std::unordered_set<uint32_t> symbols_in(const ir::Graph& graph,
                                        const std::vector<std::pair<ir::Expr, std::string>>& requirements) {
  std::unordered_set<uint32_t> out;
  auto add = [&](const ir::Expr& e) {
    std::vector<ir::Expr> symbols;
    ir::collect_symbols(e, symbols);
    for (const ir::Expr& s : symbols) out.insert(s->id);
  };
  for (const ir::Node* n : ir::live_nodes(graph))
    if (n->op != ir::input_op()) ir::each_size(*n, add);
  for (const ir::Output& o : graph.outputs())
    for (const ir::Expr& e : ir::type_of(o.value).shape) add(e);
  for (const auto& r : requirements) add(r.first);
  return out;
}

}  // namespace

void take_integers(Captured& out, const std::vector<Count>& counts, const std::vector<int>& outputs,
                   const std::vector<std::pair<ir::Expr, std::string>>& requirements) {
  std::vector<ir::Output*> fresh;
  for (ir::Output& o : out.graph->outputs())
    if (o.check.empty() && o.into < 0) fresh.push_back(&o);
  size_t inputs = out.sizes.size() - counts.size();
  std::unordered_set<uint32_t> symbols = symbols_in(*out.graph, requirements);
  std::vector<CountedValue> values;
  for (size_t k = 0; k < counts.size(); ++k) {
    auto is = [&](const Captured::Source& s) { return s.input == static_cast<int>(inputs + k); };
    auto source = std::find_if(out.sources.begin(), out.sources.end(), is);
    BRASA_ASSERT(source != out.sources.end(), "an integer that is read is no input of the recording");
    auto at = static_cast<size_t>(source - out.sources.begin());
    const ir::Expr& size = ir::type_of(out.graph->inputs()[at].value).shape[0];
    bool used = size.is_constant() || symbols.count(size->id) > 0;
    BRASA_CHECK(
        used || !out.one_graph || !counts[k].by_host, "export: ", counts[k].reader,
        " is no size of the program and no operand: what the function's own language makes of it, a branch or a "
        "loop, is known for no other number; cond() and while_loop() are branches and loops of the program");
    if (used || !out.one_graph) {
      values.push_back({k, fresh[static_cast<size_t>(outputs[k])]->value, static_cast<int>(at)});
    } else {
      // What is no size has its value where it is an operand.
      source->input = -1;
      source->tensor.reset();
    }
  }
  std::vector<int> moved(fresh.size(), -1);
  std::vector<ir::Output> kept;
  int count = 0, at = 0;
  for (ir::Output& o : out.graph->outputs()) {
    bool is_fresh = o.check.empty() && o.into < 0;
    if (is_fresh && std::find(out.outputs.begin(), out.outputs.end(), at++) == out.outputs.end()) continue;
    if (is_fresh) moved[static_cast<size_t>(at - 1)] = count++;
    kept.push_back(std::move(o));
  }
  for (int& r : out.outputs) r = moved[static_cast<size_t>(r)];
  out.graph->outputs() = std::move(kept);
  out.stages = stages_of(*out.graph, values);

  for (const auto& r : requirements)
    if (out.stages.stage_of(r.first) > 0) out.requirements.push_back(r);
  for (const Count& c : counts) out.counts.push_back({c.reader, 0, 0});
  for (const CountedValue& v : values) {
    Captured::Read& read = out.counts[v.number];
    read = read_of(*out.graph, out.facts, v.value, counts[v.number]);
    narrow(out, ir::type_of(out.graph->inputs()[static_cast<size_t>(v.input)].value).shape[0], read);
  }
  out.counted = std::move(values);
}

}  // namespace brasa::exporting

namespace brasa {

int64_t item_within(const Tensor& number, int64_t least, int64_t greatest) {
  BRASA_CHECK(number.defined() && number.numel() == 1 && is_integral(number.scalar_type(), false),
              "item_within: expected a tensor of one integer");
  BRASA_CHECK(0 <= least && least <= greatest, "item_within: there is no number from ", least, " to ", greatest,
              " that is not negative");
  Tensor n = number.detach().to(kLong).reshape({}), inside = n.ge(least).logical_and(n.le(greatest));
  return _functional_assert_async(inside, "item_within: a number is outside of its bounds", n.clamp(least, greatest))
      .item<int64_t>();
}

}  // namespace brasa
