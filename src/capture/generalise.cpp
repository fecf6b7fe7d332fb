#include "capture/generalise.h"

#include <algorithm>

#include "capture/matching.h"
#include "ir/special.h"
#include "ops/builder.h"
#include "support/error.h"

namespace brasa::capture {

using ir::Expr;

// ---- Sizes and integers.

std::optional<Expr> Generaliser::translated(Expr known) const {
  bool all = true;
  Expr e = ir::substitute(known, [&](Expr s) -> std::optional<Expr> {
    if (s->id < from_model_.size() && from_model_[s->id]) return from_model_[s->id];
    all = false;
    return std::nullopt;
  });
  return all ? std::optional(e) : std::nullopt;
}

std::optional<Expr> Generaliser::same_symbol(int64_t old, int64_t value, std::span<const uint32_t> left_out) const {
  for (uint32_t k = 0; k < now_.symbols.size(); ++k)
    if (old_.symbols[k] == old && now_.symbols[k] == value &&
        std::find(left_out.begin(), left_out.end(), k) == left_out.end())
      return Expr::size(k);
  return std::nullopt;
}

// In the model's call, which may not have come to all of its symbols.
bool Generaliser::was(const Expr& e, int64_t old) const {
  bool known = std::none_of(e->symbols->begin(), e->symbols->end(),
                            [&](const Expr& s) { return old_.symbols[s->id] == Binding::kUnbound; });
  return known && old_(e) == old;
}

// The sizes of values that were `old` in the model's call and are `value` in this one, different expressions: what a program cuts or enlarges
// goes by such a size. At most two.
std::vector<Expr> Generaliser::made_sizes(int64_t old, int64_t value) const {
  std::vector<Expr> out;
  for (size_t n = trace_.types.size(); n-- > 0 && out.size() < 2;)
    for (const Expr& e : trace_.types[n].shape)
      if (!e.is_constant() && now_(e) == value && was(e, old) && (out.empty() || !(out[0] == e))) out.push_back(e);
  return out;
}

// So many times a size of the call's operands, as what enlarges them asks for.
std::optional<Expr> Generaliser::enlarged(int64_t old, int64_t value) const {
  std::optional<Expr> out;
  each_operand(*event_, [&](Number n) {
    for (const Expr& e : trace_.types.at(n).shape)
      for (int64_t times : {2, 3, 4})
        if (!out && !e.is_constant() && now_(e) * times == value && old % times == 0 && was(e, old / times))
          out = e * Expr(times);
  });
  return out;
}

// The sizes that a call's integer may be, which was `old` in the model's call and is `value` in this one.
std::vector<Expr> Generaliser::fitting(int64_t old, int64_t value) const {
  std::optional<Expr> same = same_symbol(old, value), large = enlarged(old, value);
  std::vector<Expr> out = same ? std::vector{*same} : made_sizes(old, value);
  if (large && std::find(out.begin(), out.end(), *large) == out.end()) out.push_back(*large);
  return out;
}

// An expression of the symbols that was `old` in the model's call and is `value` in this one.
std::optional<Expr> Generaliser::solved(int64_t old, int64_t value) const {
  if (auto s = same_symbol(old, value)) return s;
  size_t n = now_.symbols.size();
  auto was = [&](uint32_t k) { return old_.symbols[k]; };
  auto is = [&](uint32_t k) { return now_.symbols[k]; };
  auto varies = [&](uint32_t k) { return was(k) != is(k); };
  for (uint32_t k = 0; k < n; ++k) {
    if (!varies(k) || was(k) == 0 || is(k) == 0) continue;
    if (old % was(k) == 0 && value % is(k) == 0 && old / was(k) == value / is(k) && old != 0)
      return Expr::size(k) * Expr(old / was(k));
  }
  constexpr int64_t kLargestDivisor = 16;  // larger ones fit by chance
  for (uint32_t k = 0; k < n; ++k) {
    if (!varies(k) || old < 1) continue;
    int64_t q = was(k) / old;
    if (q > 1 && q <= kLargestDivisor && is(k) / q == value) return ir::floordiv(Expr::size(k), Expr(q));
  }
  for (uint32_t k = 0; k < n; ++k)
    for (uint32_t j = 0; j < k; ++j) {
      int64_t a = was(k) * was(j), b = is(k) * is(j);
      if (a != b && a > 0 && b > 0 && old > 0 && old % a == 0 && value % b == 0 && old / a == value / b)
        return Expr::size(k) * Expr::size(j) * Expr(old / a);
    }
  for (uint32_t k = 0; k < n; ++k) {
    if (!varies(k)) continue;
    if (value - is(k) == old - was(k)) return Expr::size(k) + Expr(value - is(k));
    if (value + is(k) == old + was(k)) return Expr(value + is(k)) - Expr::size(k);
  }
  return std::nullopt;
}

Expr Generaliser::new_symbol(int64_t old, int64_t value) {
  auto id = static_cast<uint32_t>(now_.symbols.size());
  now_.symbols.push_back(value);
  old_.symbols.push_back(old);
  return Expr::size(id);
}

// Of an input that is met for the first time.
Expr Generaliser::new_size(int64_t value, size_t dim, const InputHint& hint) {
  if (dynamic_ == false || value < 2 || value > eager::kLargestSymbol) return Expr(value);
  // A symbol of its own: that others have the same size says nothing of later calls.
  if (dim < 64 && hint.dynamic_dims >> dim & 1) {
    Expr own = new_symbol(value, value);
    trace_.own.push_back(own->id);
    return own;
  }
  if (dynamic_ != true || hint.fixed) return Expr(value);
  if (auto s = same_symbol(value, value, trace_.own)) return *s;
  return new_symbol(value, value);
}

Expr Generaliser::size(Expr known, int64_t value) {
  if (dynamic_ == false) return Expr(value);
  int64_t old = model_->sample(known);
  if (known.is_constant()) {
    if (old == value) return Expr(value);
    // What a size of 0 or 1 broadcasts to or leaves out is another program more often than not.
    if (value < 2 || value > eager::kLargestSymbol) return Expr(value);
  } else if (auto e = translated(known); e && now_(*e) == value) {
    return *e;
  }
  if (auto s = same_symbol(old, value)) return *s;
  return new_symbol(old, value);
}

// `own`: it may become a symbol of its own.
Expr Generaliser::integer(std::optional<Expr> known, int64_t value, bool own) {
  if (dynamic_ == false) return Expr(value);
  if (!known) {
    // Most likely the size that has this value, if there is only one.
    std::optional<Expr> guess;
    for (uint32_t k = 0; k < now_.symbols.size() && value > 1; ++k) {
      if (now_.symbols[k] != value) continue;
      if (guess) return Expr(value);
      guess = Expr::size(k);
    }
    return guess.value_or(Expr(value));
  }
  int64_t old = model_->sample(*known);
  if (known->is_constant()) {
    if (old == value) return Expr(value);
  } else if (auto e = translated(*known); e && now_(*e) == value) {
    return *e;
  }
  // Small ones agree by chance, as those by which two dimensions are padded.
  constexpr int64_t kSmall = 1;
  if (own && old >= 0 && value >= 0 && std::max(old, value) <= kSmall) return argument_symbol(old, value);
  if (own && known->is_constant())
    if (std::vector<Expr> sizes = fitting(old, value); !sizes.empty())
      return sizes.size() == 1 ? sizes[0] : argument_symbol(old, value);  // which of several it is nobody knows
  // Where an expression was right for two calls and not for this one, another may do no better.
  if (auto e = known->is_constant() || !own ? solved(old, value) : same_symbol(old, value)) return *e;
  if (!own) return Expr(value);
  if (is_negated(old) && is_negated(value)) {
    auto s = same_symbol(-old, -value);
    return -(s ? *s : argument_symbol(-old, -value));
  }
  return old < 0 || value < 0 || value > eager::kLargestSymbol ? Expr(value) : argument_symbol(old, value);
}

// A symbol of its own for an integer that a call is given.
Expr Generaliser::argument_symbol(int64_t old, int64_t value) {
  Expr s = new_symbol(old, value);
  trace_.arguments.push_back({DType::Int64, s});
  now_.numbers.emplace_back();
  old_.numbers.emplace_back();
  return s;
}

// ---- Other numbers.

ir::Arg Generaliser::number(const ir::Arg* known, const ir::Arg& literal, const ir::Param& p) {
  auto value = number_of(literal, now_);
  if (!known || !value || dynamic_ == false) return literal;
  auto old = number_of(*known, model_->sample);
  if (!old || old->type() != value->type()) return literal;
  auto is_special = [&](const Scalar& n) { return !n.isComplex() && ir::is_special(p.special, n.toDouble()); };
  if (is_special(*value) || is_special(*old)) return literal;
  bool same = same_number(*old, *value);
  if (same && !known->is<ir::Value>() && !(known->is<Expr>() && !known->get<Expr>().is_constant())) return literal;
  if (value->type() == DType::Int64) {
    std::optional<Expr> expression = known->is<Expr>() ? std::optional(known->get<Expr>()) : std::nullopt;
    if (Expr e = integer(expression ? *expression : Expr(old->toLong()), value->toLong(), false); !e.is_constant())
      return ir::Arg(e);
  }
  for (uint32_t k = 0; k < now_.numbers.size(); ++k)
    if (now_.numbers[k] && old_.numbers[k] && same_number(*now_.numbers[k], *value) &&
        same_number(*old_.numbers[k], *old))
      return ir::Arg(argument(k));
  trace_.arguments.push_back({value->type(), std::nullopt});
  now_.numbers.emplace_back(*value);
  old_.numbers.emplace_back(*old);
  return ir::Arg(argument(static_cast<uint32_t>(now_.numbers.size()) - 1));
}

// ---- Events.

namespace {

bool same_operands(const Event& a, const Event& b) {
  auto operand = [](const ir::Arg& arg) {
    auto* v = arg.get_if<ir::Value>();
    return v && !is_argument(*v) ? v : nullptr;
  };
  if (a.args.size() != b.args.size()) return false;
  for (size_t i = 0; i < a.args.size(); ++i) {
    const ir::Value *x = operand(a.args[i]), *y = operand(b.args[i]);
    if (!x != !y || (x && !(*x == *y))) return false;
    auto *p = a.args[i].get_if<std::vector<ir::Value>>(), *q = b.args[i].get_if<std::vector<ir::Value>>();
    if (!p != !q || (p && *p != *q)) return false;
  }
  return true;
}

bool is_general(const Event& e) {
  auto general = [](Expr x) { return !x.is_constant(); };
  auto any = [&](const std::vector<Expr>& list) { return std::any_of(list.begin(), list.end(), general); };
  if (any(e.guard.sizes) || any(e.guard.strides)) return true;
  return std::any_of(e.args.begin(), e.args.end(), [&](const ir::Arg& a) {
    if (auto* v = a.get_if<ir::Value>()) return is_argument(*v);
    if (auto* x = a.get_if<Expr>()) return general(*x);
    auto* list = a.get_if<std::vector<Expr>>();
    return list && any(*list);
  });
}

}  // namespace

void Generaliser::learn(Expr own, Expr known) {
  if (is_negated(own) && is_negated(known)) return learn(own->args[0], known->args[0]);
  if (known->kind != ir::ExprKind::Size) return;
  if (from_model_.size() <= known->id) from_model_.resize(known->id + 1);
  if (!from_model_[known->id]) from_model_[known->id] = own;
}

void Generaliser::learn(const Event& own, const Event& known) {
  auto lists = [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) learn(a[i], b[i]);
  };
  lists(own.guard.sizes, known.guard.sizes);
  lists(own.guard.strides, known.guard.strides);
  for (size_t i = 0; i < own.args.size() && i < known.args.size(); ++i) {
    auto *a = own.args[i].get_if<Expr>(), *b = known.args[i].get_if<Expr>();
    if (a && b) learn(*a, *b);
    auto *p = own.args[i].get_if<std::vector<Expr>>(), *q = known.args[i].get_if<std::vector<Expr>>();
    if (p && q) lists(*p, *q);
  }
}

bool Generaliser::set_model(const Trace& model) {
  if (dynamic_ == false || model.events.size() < trace_.events.size()) return false;
  Binding old;
  old.symbols.assign(now_.symbols.size(), Binding::kUnbound);
  old.numbers.resize(now_.numbers.size());
  Matching matching(trace_, old);
  for (size_t i = 0; i < trace_.events.size(); ++i)
    if (!matching.event(trace_.events[i], model.events[i], model.sample)) return false;
  model_ = &model;
  old_ = std::move(old);
  from_model_.clear();
  for (size_t i = 0; i < trace_.events.size(); ++i) learn(trace_.events[i], model.events[i]);
  return true;
}

Event Generaliser::generalised(const Event& event, const Event* known, const InputHint& hint) {
  Event out = event;
  for (size_t d = 0; d < event.guard.sizes.size(); ++d)
    if (Expr e = event.guard.sizes[d]; e.is_constant())
      out.guard.sizes[d] = known ? size(known->guard.sizes[d], e.constant()) : new_size(e.constant(), d, hint);
  for (size_t d = 0; d < event.guard.strides.size(); ++d) {
    int64_t stride = event.guard.strides[d].constant();
    // 0 and 1 select other code.
    if (!known || stride < 2) continue;
    Expr is = known->guard.strides[d];
    if (is.is(stride)) continue;
    if (auto e = translated(is); e && now_(*e) == stride)
      out.guard.strides[d] = *e;
    else if (auto s = solved(model_->sample(is), stride))
      out.guard.strides[d] = *s;
    else if (dynamic_ != false)
      out.guard.strides[d] = new_symbol(model_->sample(is), stride);
  }
  for (size_t i = 0; i < event.args.size(); ++i) {
    const ir::Param& p = event.row->schema.params[i];
    const ir::Arg* old = known ? &known->args[i] : nullptr;
    if (i < 64 && hint.exact >> i & 1) continue;
    if (p.use == ir::NumberUse::Input && !p.list) {
      out.args[i] = number(old, event.args[i], p);
    } else if (p.use == ir::NumberUse::Size) {
      if (auto* e = event.args[i].get_if<Expr>()) {
        auto* k = old ? old->get_if<Expr>() : nullptr;
        if (!old || k) out.args[i] = ir::Arg(integer(k ? std::optional(*k) : std::nullopt, e->constant(), true));
      } else if (auto* list = event.args[i].get_if<std::vector<Expr>>()) {
        auto* k = old ? old->get_if<std::vector<Expr>>() : nullptr;
        if (old && (!k || k->size() != list->size())) continue;
        std::vector<Expr> items;
        for (size_t d = 0; d < list->size(); ++d)
          items.push_back((*list)[d].is_constant()
                              ? integer(k ? std::optional((*k)[d]) : std::nullopt, (*list)[d].constant(), true)
                              : (*list)[d]);
        out.args[i] = ir::Arg(std::move(items));
      }
    }
  }
  out.general = is_general(out);
  return out;
}

ir::Facts& Generaliser::facts_here() {
  if (asked_for_ == now_.symbols) return asked_;
  asked_ = ir::Facts(now_.symbols);
  for (const ir::Fact& f : facts_) asked_.equal(f.left, f.right);
  asked_for_ = now_.symbols;
  return asked_;
}

std::vector<ir::Type> Generaliser::types_of(const Event& event, ir::Facts& facts) const {
  if (!event.row) return {{event.guard.dtype, event.guard.sizes, event.guard.weak}};
  ir::Graph side;
  std::unordered_map<uint32_t, ir::Value> values;
  auto mapped = [&](ir::Value v) {
    if (is_argument(v)) return side.add_input({trace_.arguments[v.index].dtype, {}, true});
    if (v.index == 0) return ir::Value{};
    auto [it, fresh] = values.try_emplace(v.index);
    if (fresh) it->second = side.add_input(trace_.types.at(v.index - 1));
    return it->second;
  };
  return ops::result_types(*event.row, mapped_args(event, mapped), facts);
}

namespace {

// Calls are compared with events first; only a new one can lack an operand.
void check_operands(const Event& event) {
  for (size_t i = 0; event.row && i < event.args.size(); ++i) {
    const ir::Param& p = event.row->schema.params[i];
    auto* v = event.args[i].get_if<ir::Value>();
    BRASA_CHECK(p.type != ir::ParamType::Tensor || p.optional || p.list || (v && (is_argument(*v) || v->index > 0)),
                event.row->name(), ": argument '", p.name, "' is an undefined tensor");
  }
}

}  // namespace

void Generaliser::add(const Event& event, const InputHint& hint) {
  check_operands(event);
  size_t at = trace_.events.size();
  const Event* known = model_ && at < model_->events.size() ? &model_->events[at] : nullptr;
  if (known && !(alike(event, *known) && same_operands(event, *known))) known = nullptr;
  if (!known) model_ = nullptr;
  old_.symbols.resize(now_.symbols.size(), Binding::kUnbound);
  old_.numbers.resize(now_.numbers.size());
  size_t symbols = now_.symbols.size(), arguments = now_.numbers.size();
  event_ = &event;
  Event made = generalised(event, known, hint);
  ir::Facts& facts = facts_here();
  size_t before = facts.facts().size();
  std::vector<ir::Type> types;
  try {
    types = types_of(made, facts);
  } catch (...) {
    // The user's error: the call is as if it had not been made.
    asked_for_.reset();
    now_.symbols.resize(symbols);
    old_.symbols.resize(symbols);
    now_.numbers.resize(arguments);
    old_.numbers.resize(arguments);
    trace_.arguments.resize(arguments);
    throw;
  }
  made.facts.assign(facts.facts().begin() + static_cast<int64_t>(before), facts.facts().end());
  facts_.insert(facts_.end(), made.facts.begin(), made.facts.end());
  made.first = static_cast<Number>(trace_.types.size());
  made.count = static_cast<uint32_t>(types.size());
  if (known) learn(made, *known);
  trace_.types.insert(trace_.types.end(), std::make_move_iterator(types.begin()), std::make_move_iterator(types.end()));
  trace_.events.push_back(std::move(made));
}

}  // namespace brasa::capture
