#include <algorithm>

#include "ir/expr_table.h"
#include "support/checked.h"

// What goes through an expression from its root: values, substitution, symbols, text.
namespace brasa::ir {

int64_t evaluate(Expr e, const std::function<int64_t(const ExprNode&)>& symbol) {
  switch (e->kind) {
    case ExprKind::Constant: return e->value;
    case ExprKind::Size:
    case ExprKind::Range:
    case ExprKind::Value: return symbol(*e.node());
    case ExprKind::Mul: {
      int64_t r = e->value;
      for (Expr a : e->args) r = checked_mul(r, evaluate(a, symbol));
      return r;
    }
    case ExprKind::Add: {
      int64_t r = e->value;
      for (Expr a : e->args) r = checked_add(r, evaluate(a, symbol));
      return r;
    }
    default: break;
  }
  int64_t a = evaluate(e->args[0], symbol), b = evaluate(e->args[1], symbol);
  switch (e->kind) {
    case ExprKind::FloorDiv: return b == 0 ? 0 : floor_div(a, b);
    case ExprKind::Mod: return b == 0 ? 0 : floor_mod(a, b);
    case ExprKind::Min: return std::min(a, b);
    default: return std::max(a, b);
  }
}

Expr substitute(Expr e, const std::function<std::optional<Expr>(Expr)>& f) {
  switch (e->kind) {
    case ExprKind::Constant: return e;
    case ExprKind::Size:
    case ExprKind::Range:
    case ExprKind::Value: {
      auto r = f(e);
      return r ? *r : e;
    }
    case ExprKind::Mul: {
      Expr r(e->value);
      for (Expr a : e->args) r = r * substitute(a, f);
      return r;
    }
    case ExprKind::Add: {
      Expr r(e->value);
      for (Expr a : e->args) r = r + substitute(a, f);
      return r;
    }
    default: break;
  }
  Expr a = substitute(e->args[0], f), b = substitute(e->args[1], f);
  switch (e->kind) {
    case ExprKind::FloorDiv: return floordiv(a, b);
    case ExprKind::Mod: return mod(a, b);
    case ExprKind::Min: return min(a, b);
    default: return max(a, b);
  }
}

void collect_symbols(Expr e, std::vector<Expr>& out) {
  if (is_symbol(e)) {
    if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
    return;
  }
  for (Expr a : e->args) collect_symbols(a, out);
}

bool contains_symbol(Expr e, Expr symbol) {
  if (e == symbol) return true;
  if (is_symbol(e)) return false;
  return std::any_of(e->args.begin(), e->args.end(), [&](Expr a) { return contains_symbol(a, symbol); });
}

Expr product(std::span<const Expr> items) {
  Expr r(1);
  for (Expr e : items) r = r * e;
  return r;
}

void append_to(std::string& out, Expr e) {
  auto atom = [&](Expr a) {
    bool wrap = a->kind == ExprKind::Add || a->kind == ExprKind::Mul || a->kind == ExprKind::FloorDiv ||
                a->kind == ExprKind::Mod || (a.is_constant() && a->value < 0);
    if (wrap) out += '(';
    append_to(out, a);
    if (wrap) out += ')';
  };
  switch (e->kind) {
    case ExprKind::Constant: brasa::append_to(out, e->value); return;
    case ExprKind::Size:
      out += 's';
      brasa::append_to(out, e->id);
      return;
    case ExprKind::Range:
      out += 'r';
      brasa::append_to(out, e->id);
      return;
    case ExprKind::Value:
      out += 'v';
      brasa::append_to(out, e->id);
      return;
    case ExprKind::Mul: {
      bool first = true;
      for (Expr a : e->args) {
        if (!first) out += "*";
        first = false;
        atom(a);
      }
      if (e->value != 1) {
        out += "*";
        atom(Expr(e->value));
      }
      return;
    }
    case ExprKind::Add: {
      bool first = true;
      for (Expr a : e->args) {
        if (!first) out += " + ";
        first = false;
        append_to(out, a);
      }
      if (e->value != 0) {
        auto magnitude = static_cast<uint64_t>(e->value);
        out += e->value < 0 ? " - " : " + ";
        brasa::append_to(out, e->value < 0 ? -magnitude : magnitude);
      }
      return;
    }
    case ExprKind::FloorDiv:
      atom(e->args[0]);
      out += " // ";
      atom(e->args[1]);
      return;
    case ExprKind::Mod:
      atom(e->args[0]);
      out += " % ";
      atom(e->args[1]);
      return;
    case ExprKind::Min:
    case ExprKind::Max:
      out += e->kind == ExprKind::Min ? "min(" : "max(";
      append_to(out, e->args[0]);
      out += ", ";
      append_to(out, e->args[1]);
      out += ')';
      return;
  }
}

}  // namespace brasa::ir
