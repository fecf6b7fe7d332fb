#include "compiler/lowering/expressions.h"

#include <limits>

#include "compiler/loops/ops.h"
#include "support/error.h"
#include "support/fresh_stack.h"
#include "support/hash.h"

namespace brasa::compiler {

Expr place_of(const Index& index, const Shape& shape, const std::vector<Expr>& strides) {
  if (strides.empty()) return linearise(index, shape);
  Expr place(0);
  for (size_t d = 0; d < index.size(); ++d) place = place + index[d] * strides[d];
  return place;
}

Expr place_in(const ir::Graph& graph, Value v, const Index& index) {
  return place_of(index, type_of(v).shape, ir::strides_of(graph, v));
}

size_t Expressions::Hash::operator()(const Key& k) const {
  uint64_t h = mix(std::hash<Value>()(k.value), std::hash<Value>()(k.mask));
  for (Expr e : k.index) h = mix(h, reinterpret_cast<uint64_t>(e.node()));
  return mix(h, static_cast<uint64_t>(k.pass));
}

Expressions::Expressions(const ir::Graph& group, LoopBuilder& builder, std::vector<Value> buffers,
                         std::vector<std::vector<Value>> numbers)
    : group_(group), b_(builder), buffers_(std::move(buffers)), numbers_(std::move(numbers)) {}

Value Expressions::pick_number(const std::vector<Value>& numbers, Expr place) {
  if (place.is_constant()) return numbers.at(static_cast<size_t>(place.constant()));
  Value out = numbers[0];
  for (size_t k = 1; k < numbers.size(); ++k)
    out = b_.op("select", {b_.op("eq", {b_.index(place), b_.index(static_cast<int64_t>(k))}), numbers[k], out});
  return out;
}

Value Expressions::at(Value v, const Index& index, Value mask) {
  Prim p = prim_of(v);
  if (is_leaf(p)) return leaf(v.node, index);
  if (p == Prim::Input) {
    if (Value kept = hook_ ? hook_(v, index, mask) : Value{}) return kept;
    int i = group_.input_index(v);
    Expr place = place_in(group_, v, index);
    return buffers_[i] ? b_.load(buffers_[i], place, mask) : pick_number(numbers_[i], place);
  }
  Key key{v, mask, index, pass_};
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  // Each way to an element has its mask, and there may be exponentially many ways. From the second on, one mask serves all of them.
  if (mask && !masked_.insert({v, {}, index, pass_}).second) {
    Value there = inside(v, index);
    if (there != mask) return at(v, index, there);
  }
  Value out = hook_ ? hook_(v, index, mask) : Value{};
  if (!out) out = with_room([&] { return compute(v, index, mask); });
  memo_[key] = out;
  return out;
}

Value Expressions::compute(Value v, const Index& index, Value mask) {
  const Node* n = v.node;
  Prim p = prim_of(n);
  if (is_view(p)) return at(n->arg<Value>(0), view_index(n, index), mask);
  switch (p) {
    case Prim::Pointwise: {
      if (n->types[0].dtype == DType::Int64)
        if (auto e = as_index(v, index)) return b_.index(*e);
      ir::Args args;
      for (const ir::Arg& a : n->args) args.push_back(a.is<Value>() ? ir::Arg(at(a.get<Value>(), index, mask)) : a);
      return b_.graph().add(n->op, std::move(args), {{n->types[0].dtype, {}, false}})->out();
    }
    case Prim::Pad: return pad(n, index, mask);
    case Prim::Concat: return concat(n, index, mask);
    case Prim::Gather: return gather(n, index, mask);
    default: fail_internal(str("no expression for ", n->op->name(), " in this place"));
  }
}

Value Expressions::leaf(const Node* n, const Index& index) {
  DType t = n->types[0].dtype;
  switch (prim_of(n)) {
    case Prim::Full: {
      // A number that is computed from sizes.
      if (auto* e = n->arg(0).get_if<Expr>(); e && !e->is_constant()) return b_.convert(b_.index(*e), t);
      return b_.graph().add(n->op, {n->arg(0), Shape{}, t}, {{t, {}, false}})->out();
    }
    case Prim::Iota: return b_.convert(b_.index(index[n->arg<Expr>(1).constant()]), t);
    default: return b_.index(n->arg<Expr>(0));
  }
}

Value Expressions::both(Value a, Value b) {
  if (!a) return b;
  if (!b || a == b) return a;
  return b_.op(ops::ScalarOp::BitAnd, {a, b});
}

Value Expressions::within(Expr e, Expr low, Expr high) {
  Value out;
  if (!(provably_less(e, low) == std::optional(false))) out = b_.op(ops::ScalarOp::Ge, {b_.index(e), b_.index(low)});
  if (!(provably_less(e, high) == std::optional(true)))
    out = both(out, b_.op(ops::ScalarOp::Lt, {b_.index(e), b_.index(high)}));
  return out;
}

Value Expressions::inside(Value v, const Index& index) {
  Value out;
  for (size_t d = 0; d < index.size(); ++d) out = both(out, within(b_.without_mask(index[d]), 0, type_of(v).shape[d]));
  return out;
}

std::optional<Expr> Expressions::as_index(Value v, const Index& index) {
  const Node* n = v.node;
  if (n->types[v.index].dtype != DType::Int64) return std::nullopt;
  Prim p = prim_of(n);
  if (is_view(p)) return with_room([&] { return as_index(n->arg<Value>(0), view_index(n, index)); });
  if (p == Prim::Iota) return index[n->arg<Expr>(1).constant()];
  if (p == Prim::SizeValue) return n->arg<Expr>(0);
  if (p == Prim::Full) {
    if (auto* e = n->arg(0).get_if<Expr>()) return *e;
    return std::nullopt;
  }
  ops::Symbolic symbolic = p == Prim::Input ? nullptr : ops::row_of(*n).symbolic;
  if (!symbolic) return std::nullopt;
  auto operand = [&](size_t i) { return with_room([&] { return as_index(n->arg<Value>(i), index); }); };
  auto a = operand(0);
  if (!a) return std::nullopt;
  auto b = operand(1);
  if (!b) return std::nullopt;
  return symbolic(*a, *b);
}

Value Expressions::holds(const std::vector<Bound>& where) {
  Value out;
  for (const Bound& b : where)
    out = both(out, b.zero ? b_.op(ops::ScalarOp::Eq, {b_.index(b.e), b_.index(0)}) : within(b.e, b.low, b.high));
  return out;
}

Value Expressions::pad(const Node* n, const Index& index, Value mask) {
  std::vector<Read> r = reads(n, index, nullptr);
  Value inside = holds(r[0].where);
  Value value = at(r[0].operand, r[0].index, both(mask, inside));
  return inside ? b_.op(ops::ScalarOp::Select, {inside, value, at(r[1].operand, {}, mask)}) : value;
}

// As borders do that mirror or repeat what they lie around: the place is chosen once for a row, where otherwise each vector would be read as
// often as there are parts, of which one has it; of borders in three dimensions 27 times.
Value Expressions::part_of_one(const Node* n, const Index& index, Value mask) {
  int64_t dim = n->arg<Expr>(1).constant();
  if (b_.varies_by_lane(index[dim])) return {};
  std::vector<Read> parts = reads(n, index, nullptr);
  std::erase_if(parts, [&](const Read& r) { return type_of(r.operand).shape[dim].is(0); });
  std::vector<Expr> ends;
  for (Read& r : parts) {
    ends.push_back(index[dim] - r.index[dim] + type_of(r.operand).shape[dim]);
    while (is_view(prim_of(r.operand))) {
      r.index = view_index(r.operand.node, r.index);
      r.operand = r.operand.node->arg<Value>(0);
    }
  }
  if (parts.size() < 2) return {};
  Index at = parts[0].index;
  std::optional<size_t> along;
  for (const Read& r : parts) {
    if (r.operand != parts[0].operand) return {};
    for (size_t d = 0; d < at.size(); ++d) {
      if (r.index[d] == at[d]) continue;
      if (along && along != d) return {};
      along = d;
    }
  }
  if (!along) return {};
  Value place;
  for (size_t i = parts.size(); i-- > 0;) {
    Expr here = parts[i].index[*along];
    if (b_.varies_by_lane(here)) return {};
    Value before_end = place ? within(index[dim], 0, ends[i]) : Value{};
    place = before_end ? b_.op(ops::ScalarOp::Select, {before_end, b_.index(here), place}) : b_.index(here);
  }
  at[*along] = bound_place(place, type_of(parts[0].operand).shape[*along]);
  return this->at(parts[0].operand, at, mask);
}

Value Expressions::concat(const Node* n, const Index& index, Value mask) {
  if (Value one = part_of_one(n, index, mask)) return one;
  std::vector<Read> r = reads(n, index, nullptr);
  int64_t dim = n->arg<Expr>(1).constant();
  Value out;
  for (size_t i = r.size(); i-- > 0;) {
    Expr size = type_of(r[i].operand).shape[dim];
    if (size.is(0)) continue;
    Value piece = at(r[i].operand, r[i].index, both(mask, holds(r[i].where)));
    Expr end = index[dim] - r[i].index[dim] + size;
    Value before_end = out ? within(index[dim], 0, end) : Value{};
    out = before_end ? b_.op(ops::ScalarOp::Select, {before_end, piece, out}) : piece;
  }
  return out ? out : at(r[0].operand, index, mask);
}

Expr Expressions::picked(Value indices, const Index& index, Expr size, Value mask) {
  if (auto e = as_index(indices, index)) {
    bool low = (*e)->min >= 0, high = provably_less(*e, size) == std::optional(true);
    Expr out = *e;
    if (!high) out = min(out, size - 1);
    if (!low) out = max(out, 0);
    return out;
  }
  // Lanes that the mask leaves out may read what is there: an index that does not vary along a vector stays one number.
  bool there = true;
  for (size_t d = 0; d < index.size(); ++d) {
    Expr at = b_.without_mask(index[d]);
    there = there && provably_less(at, 0) == std::optional(false) &&
            provably_less(at, type_of(indices).shape[d]) == std::optional(true);
  }
  return bound_place(at(indices, index, there ? Value{} : mask), size);
}

// Places that are short numbers stay such until they are bounded: processors gather more of them at once.
Expr Expressions::bound_place(Value place, Expr size) {
  using ops::ScalarOp;
  Value last = b_.index(size - 1);
  const ir::Node* n = place.node;
  if (scalar_op_of(n->op) == ScalarOp::Convert && type_of(n->arg<Value>(0)).dtype == DType::Int32) {
    last = b_.op(ScalarOp::Min, {last, b_.index(std::numeric_limits<int32_t>::max())});
    place = b_.op(ScalarOp::Min, {n->arg<Value>(0), b_.convert(last, DType::Int32)});
    place = b_.convert(b_.op(ScalarOp::Max, {place, b_.convert(b_.index(0), DType::Int32)}), DType::Int64);
  } else {
    place = b_.op(ScalarOp::Max, {b_.op(ScalarOp::Min, {place, last}), b_.index(0)});
  }
  auto [it, added] = bound_.try_emplace(place);
  if (added) it->second = b_.bind(place, size);
  return it->second;
}

Value Expressions::gather(const Node* n, const Index& index, Value mask) {
  Pick pick = [&](Value indices, const Index& front, Expr size) { return picked(indices, front, size, mask); };
  Read r = reads(n, index, pick)[0];
  return at(r.operand, r.index, both(mask, holds(r.where)));
}

}  // namespace brasa::compiler
