#include "compiler/libraries/body.h"

#include <algorithm>

#include "compiler/pipeline.h"
#include "ir/copy.h"
#include "ops/bodies.h"
#include "support/error.h"

namespace brasa::compiler {

CompiledBody::CompiledBody(const ir::Graph& body, const std::vector<Expr>& sizes, std::string_view name,
                           const CompilerOptions& options, ir::Facts& facts) {
  for (Expr e : sizes) sizes_.emplace_back(e);
  auto known = [&](Expr s) { return sizes[s->id].is_constant() ? sizes[s->id] : s; };
  std::unique_ptr<ir::Graph> graph = ir::with_sizes(
      body, [&](Expr e) { return ir::substitute(e, [&](Expr s) { return std::optional<Expr>(known(s)); }); });
  graph->name = name;
  std::vector<int64_t> hints;
  if (std::all_of(sizes.begin(), sizes.end(), [&](Expr e) { return facts.has_hint(e); }))
    for (Expr e : sizes) hints.push_back(facts.hint(e));
  ir::Facts own(std::move(hints));
  executable_ = run_pipeline(*graph, own, options);
  for (const ir::Fact& f : own.facts()) {
    bool holds = facts.equal(ops::outside(f.left, sizes), ops::outside(f.right, sizes)) == f.equal;
    BRASA_ASSERT(holds, "a body was made for other sizes");
  }
}

SmallVector<int64_t, 16> CompiledBody::symbols(const int64_t* outer) const {
  SmallVector<int64_t, 16> out;
  for (const SizeProgram& s : sizes_) out.push_back(s(outer));
  return out;
}

size_t BodyCall::place_of(const Group& group, Value operand) {
  int at = group.graph->input_index(operand);
  BRASA_ASSERT(at >= 0, "an operand of control flow is not in memory");
  return static_cast<size_t>(at);
}

void BodyCall::add_report(const Executable& body) {
  const Report& of = *report_of(body);
  report_.kernels.insert(report_.kernels.end(), of.kernels.begin(), of.kernels.end());
  report_.kernels_after += of.kernels_after;
}

}  // namespace brasa::compiler
