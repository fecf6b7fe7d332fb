#include "capture/matching.h"

#include <algorithm>
#include <bit>

#include "ops/builder.h"
#include "tensor/args.h"

namespace brasa::capture {

ir::Args Numbered::node_args() const {
  ir::Args out;
  out.reserve(row.schema.params.size());
  const ir::Value* at = operands.data();
  for (size_t i = 0; i < args.size(); at += count(i++)) {
    if (kind(i) == CallArg::Kind::Tensor)
      out.push_back(ir::Arg(*at));
    else if (is_list(i))
      out.push_back(ir::Arg(std::vector<ir::Value>(at, at + args[i].size)));
    else
      out.push_back(eager::literal(args[i], row.schema.params[i], row));
  }
  ops::complete_args(row, out);
  return out;
}

bool same_number(const Scalar& a, const Scalar& b) {
  if (a.type() != b.type()) return false;
  if (a.isFloatingPoint()) return std::bit_cast<uint64_t>(a.toDouble()) == std::bit_cast<uint64_t>(b.toDouble());
  return a.isComplex() ? a.toComplexDouble() == b.toComplexDouble() : a.toLong() == b.toLong();
}

std::optional<Scalar> number_of(const ir::Arg& a, const Binding& binding) {
  if (auto* e = a.get_if<ir::Expr>()) return Scalar(binding(*e));
  if (auto* d = a.get_if<double>()) return Scalar(*d);
  if (auto* b = a.get_if<bool>()) return Scalar(*b);
  if (auto* c = a.get_if<std::complex<double>>()) return Scalar(*c);
  if (auto* v = a.get_if<ir::Value>(); v && is_argument(*v)) return binding.numbers[v->index];
  return std::nullopt;
}

void Matching::undo() {
  for (uint64_t b : bound_) {
    if (b % 2)
      binding_.numbers[b / 2].reset();
    else
      binding_.symbols[b / 2] = Binding::kUnbound;
  }
  bound_.clear();
}

bool Matching::size(ir::Expr known, int64_t v) {
  if (known.is_constant()) return known->value == v;
  if (is_negated(known) && binding_.symbols[known->args[0]->id] == Binding::kUnbound)
    return is_negated(v) && size(known->args[0], -v);
  if (known->kind != ir::ExprKind::Size) return binding_(known) == v;
  int64_t& s = binding_.symbols[known->id];
  if (s != Binding::kUnbound) return s == v;
  if (v < 0 || v > eager::kLargestSymbol) return false;
  s = v;
  bound_.push_back(2 * uint64_t{known->id});
  return true;
}

bool Matching::number(uint32_t argument, const Scalar& v) {
  std::optional<Scalar>& n = binding_.numbers[argument];
  if (trace_.arguments[argument].dtype != v.type()) return false;
  if (n) return same_number(*n, v);
  n = v;
  bound_.push_back(2 * uint64_t{argument} + 1);
  return true;
}

bool Matching::facts(const Event& known) const {
  return std::all_of(known.facts.begin(), known.facts.end(), [&](const ir::Fact& f) { return binding_.holds(f); });
}

bool Matching::literal(const Event& known, const CallArg& a, size_t i) {
  const ir::Arg& arg = known.args[i];
  if (eager::surely_equal(a, known.row->schema.params[i], arg)) return true;
  if (!known.general) return false;
  if (auto* e = arg.get_if<ir::Expr>()) {
    if (a.kind == CallArg::Kind::Int) return size(*e, a.integer);
    return a.kind == CallArg::Kind::Scalar && a.scalar->type() == DType::Int64 && size(*e, a.scalar->toLong());
  }
  if (auto* list = arg.get_if<std::vector<ir::Expr>>())
    return a.kind == CallArg::Kind::Ints && list->size() == a.size &&
           std::equal(list->begin(), list->end(), a.ints, [&](ir::Expr e, int64_t v) { return size(e, v); });
  auto* v = arg.get_if<ir::Value>();
  if (!v || !is_argument(*v)) return false;
  switch (a.kind) {
    case CallArg::Kind::Scalar: return number(v->index, *a.scalar);
    case CallArg::Kind::Double: return number(v->index, Scalar(a.real));
    case CallArg::Kind::Int: return number(v->index, Scalar(a.integer));
    case CallArg::Kind::Bool: return number(v->index, Scalar(a.integer != 0));
    default: return false;
  }
}

bool Matching::call(const Event& known, const Numbered& call) {
  if (known.row != &call.row || known.view != call.view) return false;
  const ir::Args& args = known.args;
  if (call.args.size() > args.size()) return false;
  const ir::Value* at = call.operands.data();
  for (size_t i = 0; i < call.args.size(); at += call.count(i++)) {
    if (call.kind(i) == CallArg::Kind::Tensor) {
      auto* v = args[i].get_if<ir::Value>();
      if (!v || !(*v == *at)) return false;
    } else if (call.is_list(i)) {
      auto* list = args[i].get_if<std::vector<ir::Value>>();
      if (!list || list->size() != call.args[i].size || !std::equal(list->begin(), list->end(), at)) return false;
    } else if (!literal(known, call.args[i], i)) {
      return false;
    }
  }
  return rest(known, call.args.size());
}

// Whether the arguments that a call leaves out are `known`'s, and its facts hold.
bool Matching::rest(const Event& known, size_t given) const {
  const auto& params = known.row->schema.params;
  for (size_t i = given; i < known.args.size(); ++i)
    if (params[i].default_value ? !(known.args[i] == *params[i].default_value) : !known.args[i].is_none()) return false;
  return known.facts.empty() || facts(known);
}

bool Matching::input(const Event& known, const TensorImpl& t) {
  const InputGuard& g = known.guard;
  if (known.row || g.dtype != t.dtype || g.weak != t.weak || g.by_value != goes_by_value(t) ||
      g.sizes.size() != t.sizes.size() || g.strides.empty() != t.contiguous)
    return false;
  for (size_t d = 0; d < g.sizes.size(); ++d)
    if (!size(g.sizes[d], t.sizes[d])) return false;
  for (size_t d = 0; d < g.strides.size(); ++d)
    if (!size(g.strides[d], t.strides[d])) return false;
  return known.facts.empty() || facts(known);
}

bool Matching::sizes(const std::vector<ir::Expr>& known, const std::vector<ir::Expr>& other, const Binding& others) {
  return std::equal(known.begin(), known.end(), other.begin(), other.end(),
                    [&](ir::Expr a, ir::Expr b) { return (a == b && a.is_constant()) || size(a, others(b)); });
}

bool Matching::event(const Event& known, const Event& other, const Binding& others) {
  if (known.row != other.row || known.args.size() != other.args.size() || !alike(known, other)) return false;
  if (!known.row &&
      !(sizes(known.guard.sizes, other.guard.sizes, others) && sizes(known.guard.strides, other.guard.strides, others)))
    return false;
  for (size_t i = 0; i < known.args.size(); ++i) {
    const ir::Arg &a = known.args[i], &b = other.args[i];
    if (auto* v = a.get_if<ir::Value>(); v && is_argument(*v)) {
      auto n = number_of(b, others);
      if (!n || !number(v->index, *n)) return false;
    } else if (auto* e = a.get_if<ir::Expr>()) {
      auto n = number_of(b, others);
      if (!n || n->type() != DType::Int64 || !size(*e, n->toLong())) return false;
    } else if (auto* list = a.get_if<std::vector<ir::Expr>>()) {
      auto* more = b.get_if<std::vector<ir::Expr>>();
      if (!more || !sizes(*list, *more, others)) return false;
    } else if (auto* w = b.get_if<ir::Value>(); w && is_argument(*w)) {
      auto n = number_of(a, binding_);
      if (!n || !others.numbers[w->index] || !same_number(*n, *others.numbers[w->index])) return false;
    } else if (!(a == b)) {
      return false;
    }
  }
  return facts(known);
}

bool alike(const Event& a, const Event& b) {
  if (a.row || b.row) return a.row == b.row && a.view == b.view;
  return a.guard.dtype == b.guard.dtype && a.guard.weak == b.guard.weak && a.guard.by_value == b.guard.by_value &&
         a.guard.sizes.size() == b.guard.sizes.size() && a.guard.strides.size() == b.guard.strides.size();
}

}  // namespace brasa::capture
