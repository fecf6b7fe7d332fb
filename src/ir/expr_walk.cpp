#include "ir/expr_walk.h"

#include <algorithm>
#include <unordered_map>

#include "ir/expr_table.h"
#include "support/checked.h"
#include "support/error.h"
#include "support/fresh_stack.h"
#include "support/thread_object.h"

// Values, substitution, symbols, text.
namespace brasa::ir {

namespace {

// Expressions share parts: what is large as a tree is gone through part by part, each once. It may nest as deep as a program is long.
constexpr uint32_t kSmallTree = 64;

template <typename T, typename Compute>
T once(std::unordered_map<Expr, T>& known, const Expr& e, Compute compute) {
  if (e->weight <= kSmallTree) return compute(e);
  if (auto it = known.find(e); it != known.end()) return it->second;
  T result = with_room([&] { return compute(e); });
  known.emplace(e, result);
  return result;
}

struct Evaluation {
  const std::function<int64_t(const ExprNode&)>& symbol;
  std::unordered_map<Expr, int64_t>& known;

  int64_t of(const Expr& e) {
    return once(known, e, [this](const Expr& part) { return compute(part); });
  }
  int64_t compute(const Expr& e) {
    switch (e->kind) {
      case ExprKind::Constant: return e->value;
      case ExprKind::Size:
      case ExprKind::Range:
      case ExprKind::Value: return symbol(*e.node());
      case ExprKind::Mul: {
        int64_t r = e->value;
        for (const Expr& a : e->args) r = checked_mul(r, of(a));
        return r;
      }
      case ExprKind::Add: {
        int64_t r = e->value;
        for (const Expr& a : e->args) r = checked_add(r, of(a));
        return r;
      }
      default: break;
    }
    int64_t a = of(e->args[0]), b = of(e->args[1]);
    switch (e->kind) {
      case ExprKind::FloorDiv: return b == 0 ? 0 : floor_div(a, b);
      case ExprKind::Mod: return b == 0 ? 0 : floor_mod(a, b);
      case ExprKind::Min: return std::min(a, b);
      default: return std::max(a, b);
    }
  }
};

struct Substitution {
  const std::function<std::optional<Expr>(Expr)>& f;
  std::unordered_map<const ExprNode*, std::optional<Expr>> symbols;
  std::unordered_map<Expr, Expr> known;

  const std::optional<Expr>& replacement(const Expr& s) {
    auto it = symbols.find(s.node());
    return it != symbols.end() ? it->second : symbols.emplace(s.node(), f(s)).first->second;
  }
  // A part without a symbol that changes is in normal form already.
  Expr of(const Expr& e) {
    if (std::none_of(e->symbols->begin(), e->symbols->end(), [&](const Expr& s) { return replacement(s).has_value(); }))
      return e;
    return once(known, e, [this](const Expr& part) { return compute(part); });
  }
  Expr compute(const Expr& e) {
    if (is_symbol(e)) return *replacement(e);
    return with_parts(e, [this](const Expr& part) { return of(part); });
  }
};

}  // namespace

Expr with_parts(const Expr& e, const std::function<Expr(const Expr&)>& f) {
  if (e.is_constant() || is_symbol(e)) return e;
  if (e->kind == ExprKind::Mul || e->kind == ExprKind::Add) {
    Expr r(e->value);
    for (const Expr& a : e->args) r = e->kind == ExprKind::Mul ? r * f(a) : r + f(a);
    return r;
  }
  Expr a = f(e->args[0]), b = f(e->args[1]);
  switch (e->kind) {
    case ExprKind::FloorDiv: return floordiv(a, b);
    case ExprKind::Mod: return mod(a, b);
    case ExprKind::Min: return min(a, b);
    default: return max(a, b);
  }
}

int64_t evaluate(const Expr& e, const std::function<int64_t(const ExprNode&)>& symbol) {
  std::unordered_map<Expr, int64_t> known;
  return Evaluation{symbol, known}.of(e);
}

int64_t value_of(const Expr& e, std::span<const int64_t> symbols) {
  if (e.is_constant()) return e->value;
  for (const Expr& s : *e->symbols)
    if (s->kind != ExprKind::Size || s->id >= symbols.size()) fail_internal(str("no value for ", s));
  const std::function<int64_t(const ExprNode&)> symbol = [&](const ExprNode& s) { return symbols[s.id]; };
  if (e->weight <= kSmallTree) return evaluate(e, symbol);
  struct Known {
    std::vector<int64_t> symbols;
    std::unordered_map<Expr, int64_t> values;
  };
  Known* kept = ThreadObject<Known>::get();
  if (!kept) return evaluate(e, symbol);  // in destructors at the thread's end
  Known& known = *kept;
  constexpr size_t kMost = size_t{1} << 16;
  size_t both = std::min(symbols.size(), known.symbols.size());
  if (!std::equal(symbols.begin(), symbols.begin() + both, known.symbols.begin()) || known.values.size() > kMost)
    known = {};
  if (known.symbols.size() < symbols.size()) known.symbols.assign(symbols.begin(), symbols.end());
  return Evaluation{symbol, known.values}.of(e);
}

Expr substitute(const Expr& e, const std::function<std::optional<Expr>(Expr)>& f) {
  return Substitution{f, {}, {}}.of(e);
}

void collect_symbols(const Expr& e, std::vector<Expr>& out) {
  for (const Expr& s : *e->symbols)
    if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
}

bool contains_symbol(const Expr& e, const Expr& symbol) {
  return std::find(e->symbols->begin(), e->symbols->end(), symbol) != e->symbols->end();
}

Expr product(std::span<const Expr> items) {
  Expr r(1);
  for (const Expr& e : items) r = r * e;
  return r;
}

void append_to(std::string& out, const Expr& e) {
  constexpr uint32_t kLongest = 1000;
  append_to(out, e, [&](const Expr& part) {
    if (part->weight <= kLongest) return false;
    out += str("e#", part->order);
    return true;
  });
}

void append_to(std::string& out, const Expr& e, const std::function<bool(Expr)>& part) {
  if (part(e)) return;
  auto atom = [&](const Expr& a) {
    bool wrap = a->kind == ExprKind::Add || a->kind == ExprKind::Mul || a->kind == ExprKind::FloorDiv ||
                a->kind == ExprKind::Mod || (a.is_constant() && a->value < 0);
    if (wrap) out += '(';
    append_to(out, a, part);
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
      for (const Expr& a : e->args) {
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
      for (const Expr& a : e->args) {
        if (!first) out += " + ";
        first = false;
        append_to(out, a, part);
      }
      if (e->value != 0) {
        auto magnitude = static_cast<uint64_t>(e->value);
        // What has no opposite is not read as a number behind a minus.
        bool minus = e->value < 0 && e->value != INT64_MIN;
        out += minus ? " - " : e->value < 0 ? " + -" : " + ";
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
      append_to(out, e->args[0], part);
      out += ", ";
      append_to(out, e->args[1], part);
      out += ')';
      return;
  }
}

}  // namespace brasa::ir
