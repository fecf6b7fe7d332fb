#include "export/archive_sizes.h"

#include <algorithm>

#include "support/error.h"

namespace brasa::exporting {

// PyTorch tells by the letter whether values decide.
std::string ArchiveSizes::name_of(ir::Expr symbol) const { return str(is_known(symbol) ? "s" : "u", symbol->id); }

ArchiveSizes::ArchiveSizes(const Captured& captured, const std::vector<InputType>& types) : captured_(captured) {
  for (const Captured::Fixed& f : captured.fixed()) {
    auto input = static_cast<size_t>(f.input);
    BRASA_CHECK(input < types.size(), "export: the program holds where ",
                captured.counts[input - std::min(input, types.size())].reader, " is ", f.size, " only");
    const InputType& t = types[f.input];
    BRASA_CHECK(t.sizes[f.dim].fixed(), "export: the program holds for size ", f.size, " of dimension ", f.dim, " of '",
                t.name, "' only, which is to vary; where the example has 1 there, give one that has more");
  }
  std::map<std::pair<int, int>, ir::Expr> first;
  for (size_t i = 0; i < captured.sources.size(); ++i) {
    int input = captured.sources[i].input;
    const ir::Shape& shape = ir::type_of(captured.graph->inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d]->kind != ir::ExprKind::Size) continue;
      uint32_t id = shape[d]->id;
      if (input >= static_cast<int>(types.size())) {
        if (is_known(shape[d])) continue;  // one that an input has, too
        const Captured::Read& read = captured.counts[static_cast<size_t>(input) - types.size()];
        std::optional<int64_t> greatest = read.greatest.maybe_constant();
        symbols_.emplace(id, shape[d]);
        ranges_[name_of(shape[d])] = {read.least.maybe_constant().value_or(0),
                                      greatest == INT64_MAX ? std::nullopt : greatest};
        continue;
      }
      if (input < 0 || types[input].sizes[d].fixed()) {
        symbols_[id] = captured.facts.hint(shape[d]);
        continue;
      }
      const InputType::Size& s = types[input].sizes[d];
      auto here = std::pair(input, static_cast<int>(d));
      auto [at, fresh] = first.try_emplace(s.same_input >= 0 ? std::pair(s.same_input, s.same_dim) : here, shape[d]);
      if (auto known = symbols_.find(id); known != symbols_.end()) {
        BRASA_CHECK(known->second == at->second, "export: the program needs dimension ", d, " of '", types[input].name,
                    "' to be another size of its inputs; give both the same name in `dynamic`");
        continue;
      }
      symbols_.emplace(id, at->second);
      if (!fresh) continue;
      places_[id] = here;
      ranges_[name_of(shape[d])] = {s.least, s.greatest};
    }
  }
}

ir::Expr ArchiveSizes::operator()(ir::Expr e) const {
  return ir::substitute(e, [&](ir::Expr symbol) -> std::optional<ir::Expr> {
    auto at = symbols_.find(symbol->id);
    BRASA_CHECK(symbol->kind == ir::ExprKind::Size && at != symbols_.end(),
                "export: a size that is none of the inputs' has no form in an archive");
    return at->second;
  });
}

ir::Shape ArchiveSizes::of_input(size_t i) const { return {captured_.sizes[i].begin(), captured_.sizes[i].end()}; }

std::string ArchiveSizes::text(ir::Expr e) const {
  auto call = [&](const char* name, std::optional<int64_t> number) {
    std::string out = str(name, "(");
    if (number) out += str("Integer(", *number, ")");
    for (size_t i = 0; i < e->args.size(); ++i) out += (i || number ? ", " : "") + text(e->args[i]);
    return out + ")";
  };
  switch (e->kind) {
    case ir::ExprKind::Constant: return str("Integer(", e.constant(), ")");
    case ir::ExprKind::Size:
      return str("Symbol('", name_of(e), is_known(e) ? "', positive=True, integer=True)" : "', integer=True)");
    case ir::ExprKind::Add: return call("Add", e->value);
    case ir::ExprKind::Mul: return call("Mul", e->value);
    case ir::ExprKind::FloorDiv: return call("FloorDiv", std::nullopt);
    case ir::ExprKind::Mod: return call("Mod", std::nullopt);
    case ir::ExprKind::Min: return call("Min", std::nullopt);
    case ir::ExprKind::Max: return call("Max", std::nullopt);
    default: fail("export: a size has no form in an archive");
  }
}

}  // namespace brasa::exporting
