#include <algorithm>
#include <iterator>

#include "ir/expr_table.h"
#include "support/checked.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/thread_object.h"

namespace brasa::ir {
namespace {

Expr make(ExprKind kind, int64_t value, std::vector<Expr> args) {
  return ExprTable::make(kind, value, std::move(args));
}

// Sorted by the text-stable key (kind, id) first, so that printed graphs do not depend on the process's history. Of large ones the
// weight and the hash say which comes first, since their first difference may lie as deep as a program is long.
bool before(const Expr& a, const Expr& b) {
  constexpr uint32_t kSmall = 64;
  if (a == b) return false;
  if (a->kind != b->kind) return a->kind < b->kind;
  if (a->id != b->id) return a->id < b->id;
  if (a->args.size() != b->args.size()) return a->args.size() < b->args.size();
  if (uint32_t weight_a = std::max(a->weight, kSmall), weight_b = std::max(b->weight, kSmall); weight_a != weight_b)
    return weight_a < weight_b;
  if (a->weight > kSmall && a->hash != b->hash) return a->hash < b->hash;
  for (size_t i = 0; i < a->args.size(); ++i)
    if (!(a->args[i] == b->args[i])) return before(a->args[i], b->args[i]);
  if (a->value != b->value) return a->value < b->value;
  return a->order < b->order;
}

struct Term {
  std::vector<Expr> factors;  // sorted atoms
  int64_t coefficient;
};

Term term_of(const Expr& e) {
  if (e.is_constant()) return {{}, e.constant()};
  if (e->kind == ExprKind::Mul) return {e->args, e->value};
  return {{e}, 1};
}

Expr expr_of(const Term& t) {
  if (t.coefficient == 0) return Expr(0);
  if (t.factors.empty()) return Expr(t.coefficient);
  if (t.coefficient == 1 && t.factors.size() == 1) return t.factors[0];
  return make(ExprKind::Mul, t.coefficient, t.factors);
}

// An expression as constant + terms.
std::vector<Term> terms_of(const Expr& e, int64_t& constant) {
  constant = 0;
  if (e.is_constant()) {
    constant = e.constant();
    return {};
  }
  if (e->kind == ExprKind::Add) {
    constant = e->value;
    std::vector<Term> out;
    for (const Expr& a : e->args) out.push_back(term_of(a));
    return out;
  }
  return {term_of(e)};
}

bool factors_before(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return a.size() > b.size();
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return before(a[i], b[i]);
  return false;
}

bool recombine(std::vector<Term>& terms, int64_t& constant);

Expr expr_of(std::vector<Term> terms, int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return factors_before(a.factors, b.factors); });
  std::vector<Term> merged;
  for (Term& t : terms) {
    if (!merged.empty() && merged.back().factors == t.factors)
      merged.back().coefficient = checked_add(merged.back().coefficient, t.coefficient);
    else
      merged.push_back(std::move(t));
  }
  std::erase_if(merged, [](const Term& t) { return t.coefficient == 0; });
  if (merged.size() > 1 && recombine(merged, constant)) return expr_of(std::move(merged), constant);
  if (merged.empty()) return Expr(constant);
  if (merged.size() == 1 && constant == 0) return expr_of(merged[0]);
  std::vector<Expr> args;
  for (const Term& t : merged) args.push_back(expr_of(t));
  return make(ExprKind::Add, constant, std::move(args));
}

// x / d if every term of x is a multiple of the single term d, as polynomials.
std::optional<Expr> exact_quotient(const Term& t, const Term& d) {
  if (floor_mod(t.coefficient, d.coefficient) != 0) return std::nullopt;
  std::vector<Expr> rest = t.factors;
  for (const Expr& f : d.factors) {
    auto it = std::find(rest.begin(), rest.end(), f);
    if (it == rest.end()) return std::nullopt;
    rest.erase(it);
  }
  return expr_of(Term{std::move(rest), floor_div(t.coefficient, d.coefficient)});
}

// The terms without those that are wanted; nothing where one of these is missing.
std::optional<std::vector<Term>> taken_from(std::vector<Term> terms, const std::vector<Term>& wanted) {
  for (const Term& w : wanted) {
    auto it = std::find_if(terms.begin(), terms.end(),
                           [&](const Term& t) { return t.factors == w.factors && t.coefficient == w.coefficient; });
    if (it == terms.end()) return std::nullopt;
    terms.erase(it);
  }
  return terms;
}

// As split_by, of a divisor that is a sum: terms of `a` that are those of one multiple of it divide out together.
void split_by_sum(const Expr& a, const Expr& d, Expr& quotient, Expr& rest) {
  constexpr size_t kMostTerms = 8;
  int64_t c, dc;
  std::vector<Term> terms = terms_of(a, c), divisor = terms_of(d, dc);
  quotient = Expr(0);
  rest = a;
  if (divisor.size() > kMostTerms && !(a == d)) return;
  for (size_t i = 0; i < terms.size() && terms.size() >= divisor.size(); ++i) {
    std::optional<Expr> q = exact_quotient(terms[i], divisor[0]);
    int64_t wc = 0;
    auto left = q ? taken_from(terms, terms_of(*q * d, wc)) : std::nullopt;
    bool nearer = wc == 0 || (wc > 0 ? c >= wc : c <= wc);  // the constant to 0
    if (!left || !nearer) continue;
    terms = std::move(*left);
    c = checked_sub(c, wc);
    quotient = quotient + *q;
    i = static_cast<size_t>(-1);  // begin anew
  }
  if (!quotient.is(0)) rest = expr_of(std::move(terms), c);
}

// Splits a = d * quotient + rest where quotient takes every term that d divides.
void split_by(const Expr& a, const Expr& d, Expr& quotient, Expr& rest) {
  int64_t dc;
  std::vector<Term> dt = terms_of(d, dc);
  if (dt.size() > 1 || (dt.size() == 1 && dc != 0)) return split_by_sum(a, d, quotient, rest);
  const Term divisor = term_of(d);
  int64_t c;
  std::vector<Term> terms = terms_of(a, c), keep;
  Expr q(0);
  for (Term& t : terms) {
    if (auto part = exact_quotient(t, divisor))
      q = q + *part;
    else
      keep.push_back(std::move(t));
  }
  int64_t constant_rest = c;
  if (divisor.factors.empty() && divisor.coefficient > 0) {
    int64_t whole = floor_div(c, divisor.coefficient);
    q = q + Expr(whole);
    constant_rest = floor_mod(c, divisor.coefficient);
  }
  quotient = q;
  rest = expr_of(std::move(keep), constant_rest);
}

// The last results of one operation on this thread. Simplifying asks for the same ones again and again; without this
// the cost grows exponentially with the nesting of divisions, minima and maxima.
using Operation = Expr (*)(const Expr&, const Expr&);
template <Operation operation>
Expr remembered(const Expr& a, const Expr& b) {
  struct Entry {
    Expr a, b, result;
  };
  struct Entries {
    std::vector<Entry> list = std::vector<Entry>(1024);
  };
  if (a.is_constant() && b.is_constant()) return operation(a, b);
  auto* entries = ThreadObject<Entries>::get();
  if (!entries) return operation(a, b);  // in destructors at the thread's end
  Entry& known = entries->list[mix(a->order, b->order) % entries->list.size()];
  if (known.a == a && known.b == b) return known.result;
  Expr result = operation(a, b);
  known = {a, b, result};
  return result;
}

// Nothing where it does not fit: limits such as "to the end" are as large as integers get.
std::optional<Expr> difference_of(const Expr& a, const Expr& b) {
  try {
    return a - b;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What is sure of a < b, a <= b, a >= b.
struct Order {
  bool before, not_after, not_before;
};

// The sum at the least or the greatest values of its indices. Where an index stands once in each of some terms of one sign,
// beside factors that are not negative, the sum is monotone in it: its extreme values 0 and extent - 1 give bounds in which
// symbols may cancel. Such an index is a factor of its terms, so the others, and what is inside of factors, stay as they are.
Expr at_extreme(const Expr& sum, bool least) {
  int64_t constant;
  std::vector<Term> terms = terms_of(sum, constant), out;
  bool changed = false;
  auto replaces = [&](const Term& t, const Expr& f) {
    if (f->kind != ExprKind::Range && f->kind != ExprKind::Value) return false;
    return std::all_of(terms.begin(), terms.end(), [&](const Term& other) {
      int64_t occurrences = 0;
      for (const Expr& g : other.factors) occurrences += contains_symbol(g, f);
      if (occurrences == 0) return true;
      return occurrences == 1 && std::find(other.factors.begin(), other.factors.end(), f) != other.factors.end() &&
             (other.coefficient < 0) == (t.coefficient < 0) &&
             std::none_of(other.factors.begin(), other.factors.end(), [](const Expr& g) { return g->min < 0; });
    });
  };
  for (Term& t : terms) {
    Expr product(1);
    std::vector<Expr> rest;
    bool any = false;
    for (const Expr& f : t.factors)
      if (replaces(t, f)) {
        any = true;
        product = product * ((t.coefficient < 0) == least ? f->args[0] - Expr(1) : Expr(0));
      } else {
        rest.push_back(f);
      }
    if (!any) {
      out.push_back(t);
      continue;
    }
    changed = true;
    int64_t c;
    std::vector<Term> more = terms_of(product * expr_of(Term{std::move(rest), t.coefficient}), c);
    out.insert(out.end(), more.begin(), more.end());
    constant = checked_add(constant, c);
  }
  return changed ? expr_of(std::move(out), constant) : sum;
}

Order order_of(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return {a->value < b->value, a->value <= b->value, a->value >= b->value};
  auto difference = difference_of(b, a);
  if (!difference) return {};
  Expr d = *difference;
  Order order{d->min >= 1, d->min >= 0, d->max <= 0};
  if (order.before || order.not_before) return order;
  int64_t least = at_extreme(d, true)->min;
  if (least >= 1) return {true, true, false};
  return {false, order.not_after || least >= 0, at_extreme(d, false)->max <= 0};
}

bool within(const Expr& x, const Expr& d) {  // 0 <= x < d, provably
  if (!(x->min >= 0)) return false;
  if (x->kind == ExprKind::FloorDiv && within(x->args[0], d * x->args[1])) return true;
  return order_of(x, d).before;
}

// What a difference above and below zero adds up to:  q max(0, x) - q max(0, -x) -> q x
bool cancel_limits(std::vector<Term>& terms, int64_t& constant) {
  auto limited = [](const Expr& e) -> std::optional<Expr> {  // x of max(0, x)
    if (e->kind != ExprKind::Max) return std::nullopt;
    if (e->args[0].is(0)) return e->args[1];
    return e->args[1].is(0) ? std::optional(e->args[0]) : std::nullopt;
  };
  auto without = [](const Term& t, size_t f) {
    std::vector<Expr> rest = t.factors;
    rest.erase(rest.begin() + static_cast<int64_t>(f));
    return rest;
  };
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t f = 0; f < terms[i].factors.size(); ++f) {
      auto x = limited(terms[i].factors[f]);
      if (!x) continue;
      for (size_t j = i + 1; j < terms.size(); ++j)
        for (size_t g = 0; g < terms[j].factors.size(); ++g) {
          auto y = limited(terms[j].factors[g]);
          int64_t left;
          if (!y || __builtin_add_overflow(terms[i].coefficient, terms[j].coefficient, &left) || left != 0) continue;
          Term rest{without(terms[i], f), terms[i].coefficient};
          if (rest.factors != without(terms[j], g) || !(*x + *y).is(0)) continue;
          int64_t c;
          std::vector<Term> sum = terms_of(expr_of(rest) * *x, c);
          terms.erase(terms.begin() + static_cast<int64_t>(j));
          terms.erase(terms.begin() + static_cast<int64_t>(i));
          terms.insert(terms.end(), sum.begin(), sum.end());
          constant = checked_add(constant, c);
          return true;
        }
    }
  return false;
}

// Splitting an index and putting it together again gives it back:
//   q b (x // b) + q (x % b) -> q x        q b ((x // b) % a) + q (x % b) -> q (x % (a b))
bool recombine(std::vector<Term>& terms, int64_t& constant) {
  if (cancel_limits(terms, constant)) return true;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t f = 0; f < terms[i].factors.size(); ++f) {
      Expr m = terms[i].factors[f];
      if (m->kind != ExprKind::Mod) continue;
      Expr x = m->args[0], b = m->args[1], quotient = floordiv(x, b);
      Term rest = terms[i];
      rest.factors.erase(rest.factors.begin() + static_cast<int64_t>(f));
      Expr q = expr_of(rest);
      // What replaces both terms, if the partner is there.
      auto replace = [&](const Expr& partner, const Expr& by) {
        int64_t pc, bc;
        std::vector<Term> wanted = terms_of(q * b * partner, pc), others;
        for (size_t j = 0; j < terms.size(); ++j)
          if (j != i) others.push_back(terms[j]);
        auto left = taken_from(std::move(others), wanted);
        if (!left) return false;
        std::vector<Term> more = terms_of(q * by, bc);
        left->insert(left->end(), more.begin(), more.end());
        terms = std::move(*left);
        constant = checked_add(constant, checked_sub(bc, pc));
        return true;
      };
      if (quotient.is_constant()) continue;
      if (replace(quotient, x)) return true;
      // The remainders of the quotient that are present.
      for (size_t j = 0; j < terms.size(); ++j) {
        if (j == i) continue;
        for (const Expr& other : terms[j].factors)
          if (other->kind == ExprKind::Mod && other->args[0] == quotient && replace(other, mod(x, b * other->args[1])))
            return true;
      }
    }
  return false;
}

Expr multiply(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return Expr(checked_mul(a->value, b->value));
  if (a.is(0) || b.is(0)) return Expr(0);
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  int64_t ca, cb;
  std::vector<Term> ta = terms_of(a, ca), tb = terms_of(b, cb), out;
  for (const Term& x : ta)
    for (const Term& y : tb) {
      Term t{x.factors, checked_mul(x.coefficient, y.coefficient)};
      t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(t.factors.begin(), t.factors.end(), before);
      out.push_back(std::move(t));
    }
  if (cb != 0)
    for (const Term& x : ta) out.push_back({x.factors, checked_mul(x.coefficient, cb)});
  if (ca != 0)
    for (const Term& y : tb) out.push_back({y.factors, checked_mul(y.coefficient, ca)});
  return expr_of(std::move(out), checked_mul(ca, cb));
}

Term common_factors(const Term& a, const Term& b) {
  Term out{{}, common_divisor(a.coefficient, b.coefficient)};
  std::set_intersection(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
                        std::back_inserter(out.factors), before);
  return out;
}

// step * whole + rest, with 0 <= rest < step and a step that b, a product, is a multiple of.
struct Coarse {
  Expr step, whole, rest, multiple;
};
std::optional<Coarse> coarsened(const Expr& e, const Expr& b) {
  if (b->kind == ExprKind::Add) return std::nullopt;
  const Term divisor = term_of(b);
  if (divisor.coefficient < 1) return std::nullopt;
  int64_t c;
  Term of_all = divisor;
  std::vector<Expr> steps;
  for (const Term& t : terms_of(e, c)) {
    steps.push_back(expr_of(common_factors(divisor, t)));
    of_all = common_factors(of_all, t);
  }
  steps.push_back(expr_of(of_all));
  for (const Expr& step : steps) {
    Expr whole, rest;
    if (step.is(1) || step == b) continue;
    split_by(e, step, whole, rest);
    if (within(rest, step)) return Coarse{step, whole, rest, *exact_quotient(divisor, term_of(step))};
  }
  return std::nullopt;
}

Expr divide(const Expr& a, const Expr& b) {
  BRASA_CHECK(!b.is(0), "a size would be divided by 0: ", a);
  if (b.is(1)) return a;
  if (a.is_constant() && b.is_constant() && b->value != 0) return Expr(floor_div(a->value, b->value));
  if (a.is(0)) return a;
  if (a == b) return Expr(1);
  Expr quotient, rest;
  split_by(a, b, quotient, rest);
  if (rest.is(0) || within(rest, b)) return quotient;
  int64_t c;  // (x // m + c) // n = (x + c m) // (m n)
  if (std::vector<Term> terms = terms_of(rest, c); terms.size() == 1 && terms[0].coefficient == 1)
    if (const std::vector<Expr>& f = terms[0].factors; f.size() == 1 && f[0]->kind == ExprKind::FloorDiv)
      return quotient + floordiv(f[0]->args[0] + Expr(c) * f[0]->args[1], f[0]->args[1] * b);
  if (rest->kind == ExprKind::Mod) {  // (x % (a b)) // b = (x // b) % a
    Expr a, left;
    split_by(rest->args[1], b, a, left);
    if (left.is(0)) return quotient + mod(floordiv(rest->args[0], b), a);
  }
  // (4 x + y) // 8 = x // 2 where y < 4, and of unknown factors alike.
  if (auto c = coarsened(rest, b)) return quotient + floordiv(c->whole, c->multiple);
  return quotient + make(ExprKind::FloorDiv, 0, {rest, b});
}

Expr remainder(const Expr& a, const Expr& b) {
  BRASA_CHECK(!b.is(0), "a size would be divided by 0: ", a);
  if (b.is(1)) return Expr(0);
  if (a.is_constant() && b.is_constant() && b->value != 0) return Expr(floor_mod(a->value, b->value));
  Expr quotient, rest;
  split_by(a, b, quotient, rest);
  if (rest.is(0) || within(rest, b)) return rest;
  if (rest->kind == ExprKind::Mod && rest->args[1] == b) return rest;
  // (4 x + y) % 8 = 4 (x % 2) + y where y < 4.
  if (auto c = coarsened(rest, b)) return c->step * mod(c->whole, c->multiple) + c->rest;
  if (rest->kind == ExprKind::Mod && b.is_constant() && rest->args[1].is_constant() &&
      rest->args[1]->value % b->value == 0)
    return mod(rest->args[0], b);
  if (rest->kind == ExprKind::Mod) {  // (x % (a b)) % b = x % b
    Expr a, left;
    split_by(rest->args[1], b, a, left);
    if (left.is(0)) return mod(rest->args[0], b);
  }
  return make(ExprKind::Mod, 0, {rest, b});
}

Expr minimum(const Expr& x, const Expr& y) {
  if (x == y) return x;
  // As it is printed, so that what is read back is asked the same.
  bool swapped = before(y, x);
  const Expr &a = swapped ? y : x, &b = swapped ? x : y;
  Order order = order_of(a, b);
  if (order.not_after) return a;
  if (order.not_before) return b;
  return make(ExprKind::Min, 0, {a, b});
}

Expr maximum(const Expr& x, const Expr& y) {
  if (x == y) return x;
  bool swapped = before(y, x);
  const Expr &a = swapped ? y : x, &b = swapped ? x : y;
  Order order = order_of(a, b);
  if (order.not_after) return b;
  if (order.not_before) return a;
  return make(ExprKind::Max, 0, {a, b});
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) return Expr(checked_add(a->value, b->value));
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  int64_t ca, cb;
  std::vector<Term> terms = terms_of(a, ca), more = terms_of(b, cb);
  terms.insert(terms.end(), more.begin(), more.end());
  return expr_of(std::move(terms), checked_add(ca, cb));
}

Expr operator-(const Expr& a) { return a * Expr(-1); }
Expr operator-(const Expr& a, const Expr& b) { return a + (-b); }

Expr operator*(const Expr& a, const Expr& b) { return remembered<multiply>(a, b); }
Expr floordiv(const Expr& a, const Expr& b) { return remembered<divide>(a, b); }
Expr mod(const Expr& a, const Expr& b) { return remembered<remainder>(a, b); }
Expr min(const Expr& a, const Expr& b) { return remembered<minimum>(a, b); }
Expr max(const Expr& a, const Expr& b) { return remembered<maximum>(a, b); }
Expr ceildiv(const Expr& a, const Expr& b) { return floordiv(a + b - Expr(1), b); }

std::optional<bool> provably_equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  auto difference = difference_of(a, b);
  if (!difference) return std::nullopt;
  Expr d = *difference;
  if (d.is_constant()) return d->value == 0;
  if (d->min > 0 || (d->max < 0)) return false;
  int64_t c;
  std::vector<Term> terms = terms_of(d, c);
  int64_t g = 0;
  for (const Term& t : terms) g = common_divisor(g, expr_of(t)->divisor);
  if (g > 1 && c % g != 0) return false;
  return std::nullopt;
}

std::optional<bool> provably_less(const Expr& a, const Expr& b) {
  Order order = order_of(a, b);
  return order.before ? std::optional(true) : order.not_before ? std::optional(false) : std::nullopt;
}

bool provably_divisible(const Expr& a, int64_t d) { return d == 1 || a->divisor % d == 0; }

}  // namespace brasa::ir
