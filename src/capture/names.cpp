#include "capture/names.h"

#include <algorithm>
#include <atomic>

#include "capture/path.h"

namespace brasa::capture {

using ir::Expr;

uint32_t name_of(const CallArg& a, size_t item) {
  if (!a.named) return 0;
  if (a.kind != CallArg::Kind::Ints) return a.size;
  // One integer may stand for a list of equal ones.
  return a.size == 0 ? 0 : static_cast<uint32_t>(a.ints[a.size + std::min<size_t>(item, a.size - 1)]);
}

std::optional<Expr> Names::size_of(const Tensor& t, int64_t dim) {
  std::optional<Number> value = number_of_(t);
  if (!value) return std::nullopt;
  Expr known = path_.type(*value).shape[static_cast<size_t>(dim)];
  if (known.is_constant()) return known;
  auto [at, fresh] = symbols_.try_emplace({*value, dim});
  if (fresh) {
    at->second = Expr::size(static_cast<uint32_t>(sizes_.size()), known->min);
    sizes_.push_back(at->first);
  }
  return at->second;
}

// Views keep the arguments of their calls, longer than a recording lives: no two recordings have a name in common.
uint32_t Names::name_of(Expr e) {
  static std::atomic<uint32_t> latest{0};
  uint32_t name;
  do name = latest.fetch_add(1, std::memory_order_relaxed) + 1;
  while (name == 0);
  named_.emplace(name, e);
  return name;
}

std::optional<Expr> Names::named(uint32_t name) const {
  auto at = named_.find(name);
  return at == named_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<Expr> Names::of(uint32_t name) const {
  std::optional<Expr> e = named(name);
  return e ? std::optional(in_trace(*e)) : std::nullopt;
}

Expr Names::in_trace(const Expr& e) const {
  return ir::substitute(e, [&](Expr symbol) -> std::optional<Expr> {
    const auto& [value, dim] = sizes_[symbol->id];
    return path_.type(value).shape[static_cast<size_t>(dim)];
  });
}

uint64_t Names::put_in(Event& event, std::span<const CallArg> args) const {
  uint64_t whole = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const CallArg& a = args[i];
    if (!a.named || event.row->schema.params[i].use == ir::NumberUse::Known) continue;
    bool all = true;
    auto put = [&](Expr& item, size_t k) {
      std::optional<Expr> e = of(capture::name_of(a, k));
      if (e) item = *e;
      all = all && e;
    };
    if (auto* one = std::get_if<Expr>(&event.args[i].variant()))
      put(*one, 0);
    else if (auto* list = std::get_if<std::vector<Expr>>(&event.args[i].variant()))
      for (size_t k = 0; k < list->size(); ++k) put((*list)[k], k);
    else
      continue;
    if (all) whole |= uint64_t{1} << i;
  }
  return whole;
}

}  // namespace brasa::capture
