#include "ir/facts.h"

#include <algorithm>
#include <numeric>

#include "support/error.h"

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

// Whether the fact says of this symbol that it is a multiple of something.
bool is_multiple(const Fact& f, Expr symbol) {
  return f.left->kind == ExprKind::Mod && f.left->args[0] == symbol && f.left->args[1].is_constant() && f.right.is(0);
}

}  // namespace

Expr Facts::known(Expr e) const {
  if (facts_.empty() || e.is_constant()) return e;
  // A fact's right side may have been learnt more about since; that ends, because it names no left side of earlier facts.
  return substitute(e, [&](Expr s) -> std::optional<Expr> {
    for (const Fact& f : facts_)
      if (f.equal && f.left == s && !contains(f.right, s)) return known(f.right);
    for (const Fact& f : facts_)
      if (f.equal && is_multiple(f, s)) {
        int64_t multiple = std::lcm(s->multiple, f.left->args[1].constant());
        return known(Expr::size(s->id, s->value, multiple));
      }
    return std::nullopt;
  });
}

bool Facts::has_hint(Expr e) const {
  std::vector<Expr> symbols;
  collect_symbols(e, symbols);
  return std::all_of(symbols.begin(), symbols.end(),
                     [&](Expr s) { return s->kind == ExprKind::Size && s->id < hints_.size(); });
}

int64_t Facts::hint(Expr e) const {
  return evaluate(e, [&](const ExprNode& s) {
    if (s.kind != ExprKind::Size || s.id >= hints_.size()) fail_internal(str("no example value for s", s.id));
    return hints_[s.id];
  });
}

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
