#include "ir/facts.h"

#include <algorithm>
#include <numeric>

#include "ir/expr_walk.h"

namespace brasa::ir {

void append_to(std::string& out, const Fact& f) {
  append_to(out, f.left);
  out += f.equal ? " == " : " != ";
  append_to(out, f.right);
}

namespace {

bool contains(Expr e, Expr symbol) {
  std::vector<Expr> symbols;
  collect_symbols(e, symbols);
  return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
}

// What the symbol is a multiple of by these facts.
int64_t multiple_of(const std::vector<Fact>& facts, Expr symbol) {
  int64_t out = symbol->multiple;
  for (const Fact& f : facts)
    if (f.equal && f.left->kind == ExprKind::Mod && f.right.is(0))
      if (Expr of = f.left->args[0], by = f.left->args[1]; of->kind == ExprKind::Size && of->id == symbol->id)
        if (by.is_constant()) out = std::lcm(out, by.constant());
  return out;
}

}  // namespace

Expr Facts::known(Expr e) const {
  if (facts_.empty() || e.is_constant()) return e;
  // What a symbol equals may be computed, and a number by another fact.
  auto number = [&](Expr computed) {
    for (const Fact& f : facts_)
      if (f.equal && f.left == computed && f.right.is_constant()) return f.right;
    return computed;
  };
  // A fact's right side may have been learnt more about since; that ends, because it names no left side of earlier facts.
  return substitute(e, [&](Expr s) -> std::optional<Expr> {
    for (const Fact& f : facts_)
      if (f.equal && f.left == s && !contains(f.right, s)) return number(known(f.right));
    if (s->kind != ExprKind::Size) return std::nullopt;
    int64_t multiple = multiple_of(facts_, s);
    return multiple == s->multiple ? std::nullopt : std::optional(known(Expr::size(s->id, s->value, multiple)));
  });
}

bool Facts::has_hint(Expr e) const {
  std::vector<Expr> symbols;
  collect_symbols(e, symbols);
  return std::all_of(symbols.begin(), symbols.end(),
                     [&](Expr s) { return s->kind == ExprKind::Size && s->id < hints_.size(); });
}

int64_t Facts::hint(Expr e) const { return value_of(e, hints_); }

bool Facts::equal(Expr a, Expr b) {
  a = known(a);
  b = known(b);
  if (auto known_answer = provably_equal(a, b)) return *known_answer;
  for (const Fact& f : facts_)
    if ((f.left == a && f.right == b) || (f.left == b && f.right == a)) return f.equal;
  bool answer = hint(a) == hint(b);
  // A symbol stands on the left, the newest one of two, so that `known` replaces it by what it equals; a number on the right.
  if ((!is_symbol(a) && !b.is_constant()) || (is_symbol(b) && b->id > a->id)) std::swap(a, b);
  facts_.push_back({a, b, answer});
  return answer;
}

}  // namespace brasa::ir
