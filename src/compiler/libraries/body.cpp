#include "compiler/libraries/body.h"

#include <algorithm>

#include "compiler/pipeline.h"
#include "ir/copy.h"
#include "ops/bodies.h"
#include "support/error.h"

namespace brasa::compiler {

CompiledBody::CompiledBody(const ir::Graph& body, const std::vector<Expr>& sizes, std::string_view name,
                           const CompilerOptions& given, ir::Facts& facts, const std::vector<size_t>& lasting) {
  CompilerOptions options = given;
  options.keep_launches = false;  // its operands are elsewhere in each step
  options.lasting.assign(body.inputs().size(), false);
  for (size_t i : lasting) options.lasting[i] = true;
  for (Expr e : sizes) sizes_.emplace_back(e);
  auto known = [&](Expr s) { return sizes[s->id].is_constant() ? sizes[s->id] : s; };
  std::unique_ptr<ir::Graph> graph = ir::with_sizes(
      body, [&](Expr e) { return ir::substitute(e, [&](Expr s) { return std::optional<Expr>(known(s)); }); });
  graph->name = name;
  std::vector<int64_t> hints;
  if (std::all_of(sizes.begin(), sizes.end(), [&](Expr e) { return facts.has_hint(e); }))
    for (Expr e : sizes) hints.push_back(facts.hint(e));
  ir::Facts own(std::move(hints));
  options.aligned = options.aligned && !options.portable;  // items begin anywhere, and there is no second try
  if (options.portable)
    portable_ = std::make_shared<Portable>(compile_portable(*graph, own, options));
  else
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

const Report& CompiledBody::report() const { return portable_ ? portable_->parts.report : *report_of(*executable_); }

void BodyCall::add_body(CompiledBody body) {
  const Report& of = body.report();
  report_.kernels.insert(report_.kernels.end(), of.kernels.begin(), of.kernels.end());
  report_.kernels_after += of.kernels_after;
  flow_.bodies.push_back(std::move(body));
}

SizeProgram bytes_outside(Value v, const std::vector<Expr>& sizes) {
  ir::Type t = ops::outside(type_of(v), sizes);
  return SizeProgram(t.numel() * Expr(size_of(t.dtype)));
}

}  // namespace brasa::compiler
