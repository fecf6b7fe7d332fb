#include "compiler/passes/simplify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "compiler/passes/passes.h"
#include "ops/primitives/interp.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::compiler {
namespace {

using ir::Arg;
using ir::Match;
using ir::Rule;
using Dims = std::vector<Expr>;  // an int[] or SymInt[] argument

// --- when a rule holds ---

bool integer(Match& m) { return is_integral(m.result().dtype, true); }
bool truth(Match& m) { return m.result().dtype == DType::Bool; }
bool number(Match& m) { return !truth(m); }
bool with_sign(Match& m) { return number(m) && is_signed(m.result().dtype); }
bool truth_operand(Match& m) { return m.type("x").dtype == DType::Bool; }

bool let(Match& m, std::string_view name, Arg value) {
  m.let(name, std::move(value));
  return true;
}

// Whether every value of `from` is one of `to`.
bool holds(DType from, DType to) {
  if (from == to) return true;
  if (is_complex(from) || is_complex(to) || to == DType::Bool) return false;
  const DTypeInfo &a = info_of(from), &b = info_of(to);
  if (is_floating(from)) return is_floating(to) && a.bytes < b.bytes;
  return a.digits <= b.digits && (is_signed(to) || !is_signed(from));
}

// Whether x is of dtype t, and of the wider one to which it was converted in between.
bool widened(Match& m) {
  DType from = m.type("x").dtype;
  return from == m.get<DType>("t") && holds(from, m.get<DType>("s"));
}

// --- constants ---

bool is_number(const Arg& a) { return a.is<double>() || a.is<bool>() || (a.is<Expr>() && a.get<Expr>().is_constant()); }

// A literal as an element of this dtype, and an element as prim::full spells it.
ops::Array element(DType t, const Arg& v) {
  ops::Array a = ops::make_array(t, {1});
  ops::set_literal(a, 0, v);
  return a;
}
Arg literal(const ops::Array& a) {
  if (is_floating(a.dtype)) return Arg(ops::get(a, 0));
  if (a.dtype == DType::Bool) return Arg(ops::get_int(a, 0) != 0);
  return Arg(ops::get_int(a, 0));
}

bool converted_constant(Match& m) {
  DType from = m.get<DType>("s"), to = m.get<DType>("t");
  if (!is_number(m["v"]) || is_complex(from) || is_complex(to)) return false;
  ops::Array x = element(from, m["v"]), y = ops::make_array(to, {1});
  ops::convert_element(y, 0, x, 0);
  return let(m, "w", literal(y));
}

// Computed as the interpreter does: floating numbers in double and rounded once, integers in 64 bits and wrapped.
template <char op>
bool folded(Match& m) {
  DType t = m.get<DType>("t");
  if (!is_number(m["v"]) || !is_number(m["u"]) || is_complex(t)) return false;
  ops::Array a = element(t, m["v"]), b = element(t, m["u"]), out = ops::make_array(t, {1});
  if (ops::by_int(t)) {
    auto x = static_cast<uint64_t>(ops::get_int(a, 0)), y = static_cast<uint64_t>(ops::get_int(b, 0));
    ops::set_int(out, 0, static_cast<int64_t>(op == '+' ? x + y : op == '-' ? x - y : x * y));
  } else {
    double x = ops::get(a, 0), y = ops::get(b, 0);
    double r = op == '+' ? x + y : op == '-' ? x - y : x * y;
    // Text knows one NaN, processors make others.
    ops::set(out, 0, std::isnan(r) ? std::numeric_limits<double>::quiet_NaN() : r);
  }
  return let(m, "w", literal(out));
}

// --- movement ---

bool all(const Dims& v, int64_t n) {
  return std::all_of(v.begin(), v.end(), [n](Expr e) { return e.is(n); });
}

bool counted(const Dims& dims) {
  for (size_t i = 0; i < dims.size(); ++i)
    if (!dims[i].is(static_cast<int64_t>(i))) return false;
  return true;
}

// outer[inner[i]]
Dims picked(const Dims& outer, const Dims& inner) {
  Dims out;
  for (Expr e : inner) out.push_back(outer[e.constant()]);
  return out;
}

Dims zipped(const Dims& a, const Dims& b, Expr (*f)(Expr, Expr)) {
  Dims out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(f(a[i], b[i]));
  return out;
}
Expr plus(Expr a, Expr b) { return a + b; }
Expr minus(Expr a, Expr b) { return a - b; }
Expr times(Expr a, Expr b) { return a * b; }

bool same_shape(Match& m) { return m.type("x").shape == m.result().shape; }
bool let_result_shape(Match& m) { return let(m, "r", m.result().shape); }

// What two broadcasts make of x: a dimension that is 1 between them is spread by the second, so that x must have it as 1, not as a size
// that facts say is 1.
bool still_ones(Match& m) {
  const Dims &dims = m.get<Dims>("d"), &between = m.get<Dims>("s");
  for (size_t i = 0; i < dims.size(); ++i)
    if (between[static_cast<size_t>(dims[i].constant())].is(1) && !m.type("x").shape[i].is(1)) return false;
  return true;
}

// Dimensions of x that two reductions, one of what the other left, remove.
Dims removed(const Dims& first, const Dims& second, int64_t rank) {
  Dims kept, out = first;
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(first.begin(), first.end(), Expr(d)) == first.end()) kept.push_back(d);
  for (Expr e : second) out.push_back(kept[e.constant()]);
  std::sort(out.begin(), out.end(), [](Expr a, Expr b) { return a.constant() < b.constant(); });
  return out;
}

// Where a slice s, n, t of what pad(…, l, h, g) makes lies: in what was padded, in the padding, or in both as far as is known.
enum class Reads { Inside, Padding, Both };
Reads reads(Match& m, const Dims& padded) {
  const Dims &start = m.get<Dims>("s"), &count = m.get<Dims>("n"), &step = m.get<Dims>("t");
  const Dims &low = m.get<Dims>("l"), &high = m.get<Dims>("h");
  if (!all(m.get<Dims>("g"), 0)) return Reads::Both;
  bool inside = true;
  for (size_t d = 0; d < padded.size(); ++d) {
    Expr last = start[d] + (count[d] - 1) * step[d], begin = low[d], end = padded[d] - high[d];
    bool known = true;
    for (Expr e : {start[d], count[d], last, begin, end}) known = known && e.is_constant();
    if (!known || count[d].constant() < 1) return Reads::Both;
    if (last.constant() < begin.constant() || start[d].constant() >= end.constant()) return Reads::Padding;
    inside = inside && start[d].constant() >= begin.constant() && last.constant() < end.constant();
  }
  return inside ? Reads::Inside : Reads::Both;
}

// Not -0, without which a sum of it and -0 would be 0.
bool is_positive_zero(Value x) {
  const ir::Node* n = x.node;
  if (ops::kind_of(*n) != ops::Kind::Full || !is_number(n->args[0])) return false;
  ops::Array v = element(DType::Float64, n->args[0]);
  return ops::get(v, 0) == 0 && !std::signbit(ops::get(v, 0));
}

// What a sum of 0 and values joined along this dimension joins; x alone where it is no such sum.
std::vector<Value> joined(Value x, Expr dim) {
  const ir::Node* sum = x.node;
  bool adds = ops::kind_of(*sum) == ops::Kind::Pointwise && ops::row_of(*sum).scalar == ops::ScalarOp::Add;
  if (adds && is_positive_zero(sum->arg<Value>(1))) {
    const ir::Node* list = sum->arg<Value>(0).node;
    if (ops::kind_of(*list) == ops::Kind::Concat && list->arg<Expr>(1) == dim) return list->arg<std::vector<Value>>(0);
  }
  return {x};
}

// Of pad(x, 0, l, h, g) + pad(y, 0, a, b, g), as gradients of parts are: whether one of x and y begins where the other one ends, so that
// they are padded together. Neither sum has a -0.
bool side_by_side(Match& m) {
  if (!all(m.get<Dims>("g"), 0) || !number(m)) return false;
  for (bool turned : {false, true}) {
    auto of = [&](std::string_view one, std::string_view other) { return m.get<Dims>(turned ? other : one); };
    Dims first_low = of("l", "a"), first_high = of("h", "b"), next_low = of("a", "l"), next_high = of("b", "h");
    Value first = m.get<Value>(turned ? "y" : "x"), next = m.get<Value>(turned ? "x" : "y");
    std::optional<size_t> along;
    bool fits = true;
    for (size_t d = 0; d < first_low.size() && fits; ++d) {
      if (first_low[d] == next_low[d] && first_high[d] == next_high[d]) continue;
      fits = !along && next_low[d] == first_low[d] + ir::type_of(first).shape[d] &&
             first_high[d] == next_high[d] + ir::type_of(next).shape[d];
      along = d;
    }
    if (!fits || !along) continue;
    Expr dim(static_cast<int64_t>(*along));
    Dims both = ir::type_of(first).shape;
    both[*along] = both[*along] + ir::type_of(next).shape[*along];
    m.let("n", std::move(both));
    m.let("s", Dims());
    m.let("t", m.result().dtype);
    m.let("o", is_floating(m.result().dtype) ? Arg(0.0) : Arg(0));
    std::vector<Value> parts = joined(first, dim), others = joined(next, dim);
    parts.insert(parts.end(), others.begin(), others.end());
    m.let("p", std::move(parts));
    m.let("e", dim);
    m.let("u", std::move(first_low));
    return let(m, "w", std::move(next_high));
  }
  return false;
}

constexpr Rule kRules[] = {
    // Sums and products.
    {"add(x, -0) -> x"},
    {"add(x, 0) -> x", integer},
    {"sub(x, 0) -> x"},
    {"sub(x, x) -> 0", integer},
    {"mul(x, 1) -> x"},
    {"mul(x, 0) -> 0", integer},
    {"mul(x, -1) -> neg(x)", number},
    {"div(x, 1) -> x"},
    {"neg(neg(x)) -> x"},
    {"add(x, neg(y)) -> sub(x, y)", number},
    {"sub(x, neg(y)) -> add(x, y)", number},
    {"abs(abs(x)) -> abs(x)"},
    {"abs(neg(x)) -> abs(x)", with_sign},
    {"max(x, x) -> x"},
    {"min(x, x) -> x"},

    // Bits and truth.
    {"bit_not(bit_not(x)) -> x"},
    {"bit_and(x, x) -> x"},
    {"bit_and(x, 0) -> 0"},
    {"bit_and(x, 1) -> x", truth},
    {"bit_and(x, -1) -> x"},
    {"bit_or(x, x) -> x"},
    {"bit_or(x, 0) -> x"},
    {"bit_or(x, 1) -> 1", truth},
    {"bit_xor(x, x) -> 0"},
    {"bit_xor(x, 0) -> x"},
    {"bit_xor(x, 1) -> bit_not(x)", truth},
    {"shl(x, 0) -> x"},
    {"shr(x, 0) -> x"},
    {"bit_not(eq(x, y)) -> ne(x, y)"},
    {"bit_not(ne(x, y)) -> eq(x, y)"},
    {"ne(x, 0) -> x", truth_operand},
    {"eq(x, 1) -> x", truth_operand},
    {"eq(x, 0) -> bit_not(x)", truth_operand},

    // Choices.
    {"select(1, a, b) -> a"},
    {"select(0, a, b) -> b"},
    {"select(c, a, a) -> a"},
    {"select(bit_not(c), a, b) -> select(c, b, a)"},
    {"select(c, select(c, a, b), d) -> select(c, a, d)"},
    {"select(c, a, select(c, b, d)) -> select(c, a, d)"},
    {"select(c, 1, 0) -> convert(c, t)", [](Match& m) { return let(m, "t", m.result().dtype); }},

    // Conversions.
    {"convert(x, t) -> x", [](Match& m) { return m.type("x").dtype == m.get<DType>("t"); }},
    {"convert(convert(x, s), t) -> convert(x, t)",
     [](Match& m) { return holds(m.type("x").dtype, m.get<DType>("s")); }},
    // A choice between what has no more digits and something else is made without them: rounding again would give the former.
    {"convert(select(c, convert(x, s), y), t) -> select(c, x, convert(y, t))", widened},
    {"convert(select(c, y, convert(x, s)), t) -> select(c, convert(y, t), x)", widened},
    {"bitcast(x, t) -> x", [](Match& m) { return m.type("x").dtype == m.get<DType>("t"); }},
    {"bitcast(bitcast(x, s), t) -> bitcast(x, t)"},

    // Constants.
    {"convert(full(v, n, s), t) -> full(w, n, t)", converted_constant},
    {"add(full(v, n, t), full(u, n, t)) -> full(w, n, t)", folded<'+'>},
    {"sub(full(v, n, t), full(u, n, t)) -> full(w, n, t)", folded<'-'>},
    {"mul(full(v, n, t), full(u, n, t)) -> full(w, n, t)", folded<'*'>},
    {"broadcast(full(v, n, t), s, d) -> full(v, s, t)"},
    {"reshape(full(v, n, t), s) -> full(v, s, t)"},
    {"slice(full(v, n, t), a, s, b) -> full(v, s, t)"},
    {"transpose(full(v, n, t), p) -> full(v, r, t)", let_result_shape},
    {"reverse(full(v, n, t), d) -> full(v, n, t)"},
    {"window(full(v, n, t), d, k, s, b) -> full(v, r, t)", let_result_shape},

    // Movement.
    {"broadcast(x, s, d) -> x", [](Match& m) { return same_shape(m) && counted(m.get<Dims>("d")); }},
    {"broadcast(broadcast(x, s, d), t, e) -> broadcast(x, t, f)",
     [](Match& m) { return still_ones(m) && let(m, "f", picked(m.get<Dims>("e"), m.get<Dims>("d"))); }},
    {"reshape(x, s) -> x", same_shape},
    {"reshape(reshape(x, s), t) -> reshape(x, t)"},
    {"transpose(x, p) -> x", [](Match& m) { return counted(m.get<Dims>("p")); }},
    {"transpose(transpose(x, p), q) -> transpose(x, r)",
     [](Match& m) { return let(m, "r", picked(m.get<Dims>("p"), m.get<Dims>("q"))); }},
    {"slice(x, a, n, s) -> x", same_shape},
    {"slice(slice(x, a, n, s), b, k, t) -> slice(x, c, k, u)",
     [](Match& m) {
       m.let("c", zipped(m.get<Dims>("a"), zipped(m.get<Dims>("b"), m.get<Dims>("s"), times), plus));
       return let(m, "u", zipped(m.get<Dims>("s"), m.get<Dims>("t"), times));
     }},
    {"reverse(x, d) -> x",
     [](Match& m) {
       const Dims& d = m.get<Dims>("d");
       return std::all_of(d.begin(), d.end(), [&](Expr e) { return m.result().shape[e.constant()].is(1); });
     }},
    {"reverse(reverse(x, d), e) -> reverse(x, f)",
     [](Match& m) {
       Dims once;
       for (int64_t i = 0; i < m.result().rank(); ++i) {
         auto in = [&](const char* list) {
           const Dims& v = m.get<Dims>(list);
           return std::find(v.begin(), v.end(), Expr(i)) != v.end();
         };
         if (in("d") != in("e")) once.push_back(i);
       }
       return let(m, "f", std::move(once));
     }},
    {"pad(x, v, l, h, g) -> x",
     [](Match& m) { return all(m.get<Dims>("l"), 0) && all(m.get<Dims>("h"), 0) && all(m.get<Dims>("g"), 0); }},
    {"pad(pad(x, v, l, h, g), v, a, b, g) -> pad(x, v, c, d, g)",
     [](Match& m) {
       m.let("c", zipped(m.get<Dims>("l"), m.get<Dims>("a"), plus));
       m.let("d", zipped(m.get<Dims>("h"), m.get<Dims>("b"), plus));
       return all(m.get<Dims>("g"), 0);
     }},
    {"add(pad(x, 0, l, h, g), pad(y, 0, a, b, g)) -> pad(add(concat(p, e), full(o, n, t)), full(o, s, t), u, w, g)",
     side_by_side},
    {"slice(concat(l, d), s, n, t) -> slice(x, u, n, t)",
     [](Match& m) {
       // Where all that is read lies in one operand.
       int64_t dim = m.get<Expr>("d").constant();
       Dims start = m.get<Dims>("s");
       Expr first = start[dim], count = m.get<Dims>("n")[dim], step = m.get<Dims>("t")[dim];
       if (!first.is_constant() || !count.is_constant() || !step.is_constant() || count.constant() < 1) return false;
       int64_t begin = first.constant(), end = begin + (count.constant() - 1) * step.constant();
       for (Value x : m.get<std::vector<Value>>("l")) {
         Expr size = ir::type_of(x).shape[dim];
         if (!size.is_constant()) return false;
         if (begin < size.constant()) {
           start[dim] = begin;
           m.let("x", x);
           m.let("u", std::move(start));
           return end < size.constant();
         }
         begin -= size.constant();
         end -= size.constant();
       }
       return false;
     }},
    {"slice(pad(x, v, l, h, g), s, n, t) -> slice(x, u, n, t)",
     [](Match& m) {
       const Dims &low = m.get<Dims>("l"), &high = m.get<Dims>("h");
       Dims padded = zipped(zipped(m.type("x").shape, low, plus), high, plus);
       m.let("u", zipped(m.get<Dims>("s"), low, minus));
       return reads(m, padded) == Reads::Inside;
     }},
    // What reads a tensor that was written in part: what was written, or what was there.
    {"slice(select(pad(1, 0, l, h, g), a, b), s, n, t) -> slice(x, s, n, t)",
     [](Match& m) {
       Reads where = reads(m, m.type("a").shape);
       m.let("x", m[where == Reads::Inside ? "a" : "b"]);
       return where != Reads::Both;
     }},
    {"concat(l, d) -> x",
     [](Match& m) {
       const auto& list = m.get<std::vector<Value>>("l");
       m.let("x", list[0]);
       return list.size() == 1;
     }},

    // Reductions; sums of floating numbers are rounded between two.
    {"reduce(x, d, c) -> x", [](Match& m) { return m.get<Dims>("d").empty(); }},
    {"reduce(reduce(x, d, c), e, c) -> reduce(x, f, c)",
     [](Match& m) {
       const auto& c = m.get<std::string>("c");
       m.let("f", removed(m.get<Dims>("d"), m.get<Dims>("e"), m.type("x").rank()));
       return integer(m) || c == "max" || c == "min";
     }},
};

}  // namespace

std::span<const Rule> simplifications() { return kRules; }

std::unique_ptr<ir::Graph> simplify(const ir::Graph& graph) {
  static constinit Lazy<ir::RuleSet> rules(
      [] { return ir::RuleSet(kRules, [](std::string_view name) { return ops::find(str("prim::", name)); }); });
  return rewrite(graph, *rules);
}

void simplify(Primitives& p, const PassContext&) { p.graph = simplify(*p.graph); }

}  // namespace brasa::compiler
