#include "export/value_range.h"

#include <cmath>
#include <string_view>

#include "ops/table.h"

namespace brasa::exporting {

using ir::Expr;

namespace {

using Bound = std::optional<Expr>;

template <class F>
Bound both(const Bound& a, const Bound& b, F f) {
  return a && b ? Bound(f(*a, *b)) : std::nullopt;
}
Bound lesser(const Bound& a, const Bound& b) {
  return both(a, b, [](const Expr& x, const Expr& y) { return ir::min(x, y); });
}
Bound greater(const Bound& a, const Bound& b) {
  return both(a, b, [](const Expr& x, const Expr& y) { return ir::max(x, y); });
}
Bound sum(const Bound& a, const Bound& b) {
  return both(a, b, [](const Expr& x, const Expr& y) { return x + y; });
}
Bound product(const Bound& a, const Bound& b) {
  return both(a, b, [](const Expr& x, const Expr& y) { return x * y; });
}
Bound negative(const Bound& a) { return a ? Bound(-*a) : std::nullopt; }
bool not_negative(const Bound& a) { return a && (*a)->min >= 0; }

ValueRange either(const ValueRange& a, const ValueRange& b) {
  return {lesser(a.least, b.least), greater(a.greatest, b.greatest)};
}

// Of what has this dtype.
ValueRange all_of(DType t) {
  switch (t) {
    case DType::Bool: return {Expr(0), Expr(1)};
    case DType::UInt8: return {Expr(0), Expr(UINT8_MAX)};
    case DType::Int8: return {Expr(INT8_MIN), Expr(INT8_MAX)};
    case DType::Int16: return {Expr(INT16_MIN), Expr(INT16_MAX)};
    default: return {};
  }
}

ValueRange literal(const ir::Arg& a) {
  if (const auto* e = a.get_if<Expr>()) return {*e, *e};
  if (const auto* b = a.get_if<bool>()) return {Expr(int64_t{*b}), Expr(int64_t{*b})};
  const auto* d = a.get_if<double>();
  if (!d || !(std::abs(*d) < 0x1p62)) return {};
  return {Expr(static_cast<int64_t>(std::floor(*d))), Expr(static_cast<int64_t>(std::ceil(*d)))};
}

// Positions along a dimension.
ValueRange below(const Expr& size) { return {Expr(0), ir::max(size - Expr(1), Expr(0))}; }

// Of sums of so many elements.
ValueRange sums(const ValueRange& of, const Expr& count, bool of_fewer) {
  auto times = [&](const Bound& b) { return b ? Bound(*b * count) : std::nullopt; };
  ValueRange out{times(of.least), times(of.greatest)};
  if (of_fewer) out = either(out, of);
  return out;
}

ValueRange extremum(const ValueRange& a, const ValueRange& b, bool greatest) {
  // One bound is enough where the other operand cannot pass it.
  auto known = [](const Bound& x, const Bound& y) { return x ? x : y; };
  if (greatest) {
    Bound least = a.least && b.least ? greater(a.least, b.least) : known(a.least, b.least);
    return {least, greater(a.greatest, b.greatest)};
  }
  Bound most = a.greatest && b.greatest ? lesser(a.greatest, b.greatest) : known(a.greatest, b.greatest);
  return {lesser(a.least, b.least), most};
}

}  // namespace

ValueRange ValueRanges::of(ir::Value v) {
  if (auto it = known_.find(v); it != known_.end()) return it->second;
  ValueRange out = compute(v), all = all_of(ir::type_of(v).dtype);
  if (!out.least) out.least = all.least;
  if (!out.greatest) out.greatest = all.greatest;
  return known_[v] = out;
}

ValueRange ValueRanges::pointwise(const ir::Node& n) {
  std::string_view name = n.op->name();
  auto operand = [&](size_t i) { return of(n.arg<ir::Value>(i)); };
  if (name == "prim::convert" && n.types[0].dtype != DType::Bool) return operand(0);
  if (name == "prim::floor" || name == "prim::ceil" || name == "prim::round" || name == "prim::trunc")
    return operand(0);
  if (name == "prim::select") {
    auto condition = n.arg<ir::Value>(0);
    return either(where(n.arg<ir::Value>(1), condition, true), where(n.arg<ir::Value>(2), condition, false));
  }
  if (name == "prim::max" || name == "prim::min") return extremum(operand(0), operand(1), name == "prim::max");
  if (name == "prim::neg") {
    ValueRange a = operand(0);
    return {negative(a.greatest), negative(a.least)};
  }
  if (name == "prim::add")
    return {sum(operand(0).least, operand(1).least), sum(operand(0).greatest, operand(1).greatest)};
  if (name == "prim::sub")
    return {sum(operand(0).least, negative(operand(1).greatest)), sum(operand(0).greatest, negative(operand(1).least))};
  if (name == "prim::mul" && not_negative(operand(0).least) && not_negative(operand(1).least))
    return {product(operand(0).least, operand(1).least), product(operand(0).greatest, operand(1).greatest)};
  if ((name == "prim::div" || name == "prim::rem") && not_negative(operand(0).least))
    if (Bound by = operand(1).least; by && (*by)->min >= 1) return {Expr(0), operand(0).greatest};
  return {};
}

// Of an element where a comparison, if it is one of it with another value, is true or false: a clamp is such a choice.
ValueRange ValueRanges::where(ir::Value v, ir::Value condition, bool is) {
  ValueRange out = of(v);
  std::string_view name = condition.node->op->name();
  bool less = name == "prim::le" || name == "prim::lt", greater = name == "prim::ge" || name == "prim::gt";
  if (!less && !greater) return out;
  auto left = condition.node->arg<ir::Value>(0), right = condition.node->arg<ir::Value>(1);
  if (!(v == left) && !(v == right)) return out;
  ValueRange other = of(v == left ? right : left);
  bool at_most = (less == is) == (v == left);
  return at_most ? ValueRange{out.least, extremum(out, other, false).greatest}
                 : ValueRange{extremum(out, other, true).least, out.greatest};
}

ValueRange ValueRanges::reduced(const ir::Node& n) {
  auto x = n.arg<ir::Value>(0);
  const auto& how = n.arg<std::string>(2);
  if (how == "max" || how == "min") return of(x);
  Expr count(1);
  for (const Expr& d : n.arg<std::vector<Expr>>(1))
    count = count * ir::type_of(x).shape[static_cast<size_t>(d.constant())];
  return how == "add" ? sums(of(x), count, false) : ValueRange{};
}

ValueRange ValueRanges::compute(ir::Value v) {
  using ops::Kind;
  const ir::Node& n = *v.node;
  auto operand = [&](size_t i) { return of(n.arg<ir::Value>(i)); };
  auto size = [&](const Expr& dim) {
    return ir::type_of(n.arg<ir::Value>(0)).shape[static_cast<size_t>(dim.constant())];
  };
  Kind kind = ops::kind_of(n);
  if (ops::is_view(kind)) return operand(0);
  switch (kind) {
    case Kind::Full: return literal(n.arg(0));
    case Kind::Iota: return below(n.types[0].shape[static_cast<size_t>(n.arg<Expr>(1).constant())]);
    case Kind::SizeValue: return {n.arg<Expr>(0), n.arg<Expr>(0)};
    case Kind::Pointwise: return pointwise(n);
    case Kind::Pad: return either(operand(0), operand(1));
    case Kind::Gather: return operand(0);
    case Kind::Reduce: return reduced(n);
    case Kind::ArgReduce: return below(size(n.arg<Expr>(1)));
    case Kind::Concat: {
      const auto& parts = n.arg<std::vector<ir::Value>>(0);
      ValueRange out = of(parts[0]);
      for (ir::Value part : parts) out = either(out, of(part));
      return out;
    }
    case Kind::Scan: {
      const auto& how = n.arg<std::string>(2);
      if (how == "max" || how == "min") return operand(0);
      return how == "add" && n.arg(3).is_none() ? sums(operand(0), size(n.arg<Expr>(1)), true) : ValueRange{};
    }
    case Kind::Whole:
      if (n.op->name() == "prim::sort") return v.index == 0 ? operand(0) : below(size(n.arg<Expr>(1)));
      return {};
    default: return {};
  }
}

}  // namespace brasa::exporting
