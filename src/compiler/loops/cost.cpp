#include "compiler/loops/cost.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "compiler/loops/linearize.h"
#include "ir/text.h"
#include "ops/table.h"

namespace brasa::compiler {

KernelCost cost_of(const ir::Graph& loops, const std::function<std::optional<int64_t>(Expr symbol)>& size) {
  const LoopAnalysis analysis(loops, std::vector<Ranges>(loops.nodes().size(), 0));
  // Outer loops are declared first; what depends on their indices is taken in the middle of them.
  std::unordered_map<const ir::ExprNode*, int64_t> values;
  std::vector<double> copies, iterations;
  for (const For& f : analysis.loops()) {
    const Expr extent = f.extent();
    bool known = true;
    for (Expr symbol : *extent->symbols) {
      if (values.count(symbol.node())) continue;
      if (std::optional<int64_t> value = size(symbol))
        values[symbol.node()] = *value;
      else
        known = false;
    }
    auto value_of = [&](const ir::ExprNode& symbol) {
      auto it = values.find(&symbol);
      return it == values.end() ? 0 : it->second;
    };
    int64_t count = std::max<int64_t>(ir::evaluate(extent, value_of), 0);
    values[f.range.node()] = count / 2;
    iterations.push_back(known ? static_cast<double>(count) : std::numeric_limits<double>::infinity());
    copies.push_back(f.kind == ForKind::Unroll ? iterations.back() : f.kind == ForKind::Vector ? f.unroll : 1);
  }
  KernelCost out;
  for (const ir::Node* n : loops.nodes()) {
    if (n->op == ir::input_op() || loop_kind(n->op) == LoopOp::For) continue;
    double code = loop_kind(n->op) ? 1 : ops::row_of(*n).work, run = code;
    for (Ranges r = analysis.inside(n); r; r &= r - 1) {
      auto loop = static_cast<size_t>(std::countr_zero(r));
      code *= copies[loop];
      run *= iterations[loop];
    }
    out.code += code;
    out.run += run;
  }
  return out;
}

double code_of(std::string_view text) {
  return cost_of(*ir::parse(text, find_loop_level_op), [](Expr) { return std::nullopt; }).code;
}

}  // namespace brasa::compiler
