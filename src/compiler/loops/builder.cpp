#include "compiler/loops/builder.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "compiler/loops/ops.h"
#include "ops/table.h"
#include "support/error.h"
#include "support/fresh_stack.h"
#include "support/lazy.h"

namespace brasa::compiler {

using ir::Arg;
using ir::Type;

namespace {

Arg optional(Value v) { return v ? Arg(v) : Arg(); }
const Type kEffect{DType::Bool, {}, false};

}  // namespace

void LoopBuilder::avoid_symbols_of(const ir::Graph& other) {
  for (const ir::Node* n : other.nodes()) {
    auto kind = loop_kind(n->op);
    if (kind == LoopOp::For) next_range_ = std::max(next_range_, n->arg<Expr>(0)->id + 1);
    if (kind == LoopOp::Bind) next_value_ = std::max(next_value_, n->arg<Expr>(1)->id + 1);
  }
}

Value LoopBuilder::buffer(DType dtype, Expr elements, std::string name) {
  return graph_.add_input({dtype, {elements}, false}, std::move(name));
}

Value LoopBuilder::number(DType dtype) { return graph_.add_input({dtype, {}, false}); }

Expr LoopBuilder::loop(std::string_view kind, Expr extent, int width, int unroll) {
  Expr r = Expr::range(next_range_, spelled_out(extent));
  declare(r, kind, width, unroll);
  return r;
}

void LoopBuilder::declare(Expr range, std::string_view kind, int width, int unroll) {
  next_range_ = std::max(next_range_, range->id + 1);
  if (kind == "vector" || kind == "thread" || kind == "block") lanes_.insert(range);
  graph_.add(loop_op(LoopOp::For), {range, std::string(kind), width, unroll}, {kEffect});
}

namespace {

Expr with_places(Expr e, const std::unordered_map<Expr, Expr>& places) {
  if (places.empty()) return e;
  return ir::substitute(e, [&](Expr symbol) -> std::optional<Expr> {
    auto it = places.find(symbol);
    return it == places.end() ? std::nullopt : std::optional(it->second);
  });
}

}  // namespace

Expr LoopBuilder::bounded(Expr place, Expr extent, Value mask) {
  // Numbered from the end: it never becomes a loop.
  Expr symbol = Expr::range(~static_cast<uint32_t>(bounded_.size()), extent);
  if (symbol.is_constant()) return symbol;
  place = spelled_out(place);
  bounded_[symbol] = place;
  if (mask) bounded_by_mask_[symbol] = place;
  return symbol;
}

Expr LoopBuilder::spelled_out(Expr e) const { return with_places(e, bounded_); }
Expr LoopBuilder::without_mask(Expr e) const { return with_places(e, bounded_by_mask_); }

bool LoopBuilder::varies_by_lane(Expr e) const {
  e = spelled_out(e);
  return std::any_of(e->symbols->begin(), e->symbols->end(),
                     [this](Expr s) { return s->kind == ir::ExprKind::Value || lanes_.count(s) > 0; });
}

std::vector<Value> LoopBuilder::values_of(Expr e) const {
  std::vector<Value> out;
  for (Expr s : *e->symbols)
    if (s->kind == ir::ExprKind::Value) {
      auto it = binds_.find(s);
      BRASA_ASSERT(it != binds_.end(), "no loop::bind for ", s);
      out.push_back(it->second);
    }
  return out;
}

Value LoopBuilder::index(Expr e) {
  e = spelled_out(e);
  return graph_.add(loop_op(LoopOp::Index), {e, values_of(e)}, {{DType::Int64, {}, false}})->out();
}

Expr LoopBuilder::bind(Value value, Expr extent, const std::vector<Expr>& ranges) {
  Expr symbol = Expr::value(next_value_++, extent);
  binds_[symbol] = graph_.add(loop_op(LoopOp::Bind), {value, symbol, ranges}, {{DType::Int64, {}, false}})->out();
  return symbol;
}

Expr LoopBuilder::in_each(Expr place, const std::vector<Expr>& ranges, Expr extent) {
  std::unordered_set<Expr> mentioned;
  std::unordered_set<const ir::Node*> seen;
  std::function<void(Expr)> visit_expr;
  std::function<void(Value)> visit = [&](Value v) {
    if (!seen.insert(v.node).second) return;
    for (const ir::Arg& a : v.node->args) {
      if (auto* e = a.get_if<Expr>(); e && !ir::is_input(v)) visit_expr(*e);
      with_room([&] { a.for_each_value(visit); });
    }
  };
  visit_expr = [&](Expr e) {
    mentioned.insert(e->symbols->begin(), e->symbols->end());
    for (Value v : values_of(e)) visit(v);
  };
  visit_expr(place);
  bool follows = std::all_of(ranges.begin(), ranges.end(), [&](Expr r) { return mentioned.count(r) > 0; });
  return follows ? place : bind(index(place), extent, ranges);
}

Value LoopBuilder::load(Value buffer, Expr index, Value mask) {
  index = spelled_out(index);
  Type t{type_of(buffer).dtype, {}, false};
  return graph_.add(loop_op(LoopOp::Load), {buffer, index, optional(mask), values_of(index)}, {t})->out();
}

void LoopBuilder::store(Value buffer, Expr index, Value value, Value mask, std::string_view combine) {
  index = spelled_out(index);
  graph_.add(loop_op(LoopOp::Store), {buffer, index, value, optional(mask), values_of(index), std::string(combine)},
             {kEffect});
}

void LoopBuilder::prefetch(Value buffer, Expr index, const std::vector<Expr>& ranges, int level) {
  index = spelled_out(index);
  graph_.add(loop_op(LoopOp::Prefetch), {buffer, index, values_of(index), ranges, level}, {kEffect});
}

Value LoopBuilder::reduce(Value item, const std::vector<Expr>& ranges, std::string_view combiner) {
  Type t{type_of(item).dtype, {}, false};
  return graph_.add(loop_op(LoopOp::Reduce), {std::vector<Value>{item}, ranges, std::string(combiner)}, {t})->out();
}

std::vector<Value> LoopBuilder::arg_reduce(Value item, Value index, const std::vector<Expr>& ranges,
                                           std::string_view combiner) {
  Type t{type_of(item).dtype, {}, false}, i{type_of(index).dtype, {}, false};
  ir::Node* n =
      graph_.add(loop_op(LoopOp::Reduce), {std::vector<Value>{item, index}, ranges, std::string(combiner)}, {t, i});
  return {n->out(0), n->out(1)};
}

Value LoopBuilder::scan(Value item, Expr range, std::string_view combiner, Value factor) {
  Type t{type_of(item).dtype, {}, false};
  return graph_.add(loop_op(LoopOp::Scan), {item, range, std::string(combiner), optional(factor)}, {t})->out();
}

Value LoopBuilder::stage(Value value, const std::vector<Expr>& ranges, std::string_view space) {
  Expr elements(1);
  for (Expr r : ranges) elements = elements * r->args[0];
  Type t{type_of(value).dtype, {elements}, false};
  return graph_.add(loop_op(LoopOp::Stage), {value, ranges, std::string(space)}, {t})->out();
}

Value LoopBuilder::unlikely(Value condition, Value rare, Value usual) {
  return graph_.add(loop_op(LoopOp::Unlikely), {condition, rare, usual}, {type_of(usual)})->out();
}

Value LoopBuilder::pair_product(Value a, Value b, DType sum) {
  return graph_.add(loop_op(LoopOp::PairProduct), {a, b}, {{sum, {}, false}})->out();
}

Value LoopBuilder::quad_product(Value a, Value b) {
  return graph_.add(loop_op(LoopOp::QuadProduct), {a, b}, {{DType::Int32, {}, false}})->out();
}

Value LoopBuilder::scale(Value x, Value n) { return graph_.add(loop_op(LoopOp::Scale), {x, n}, {type_of(x)})->out(); }

Value LoopBuilder::tile_product(const TileProduct& p) {
  Type t{p.kind == "bf16" ? DType::Float32 : DType::Int32, {p.rows * p.columns}, false};
  return graph_
      .add(loop_op(LoopOp::TileProduct),
           {p.a, p.b, p.a_at, p.a_row, p.a_step, p.b_at, p.steps, p.rows, p.columns, p.kind}, {t})
      ->out();
}

Value LoopBuilder::table(const std::vector<int64_t>& bits, DType dtype) {
  std::vector<Expr> items(bits.begin(), bits.end());
  Type t{dtype, {Expr(static_cast<int64_t>(bits.size()))}, false};
  return graph_.add(loop_op(LoopOp::Table), {items, dtype}, {t})->out();
}

void LoopBuilder::unwritten(std::vector<Value> buffers) {
  graph_.add(loop_op(LoopOp::Unwritten), {std::move(buffers)}, {kEffect});
}

Value LoopBuilder::op(ops::ScalarOp op, std::initializer_list<Value> operands) {
  const ops::Row& row = ops::row_of(op);
  ir::Args args(operands.begin(), operands.end());
  std::vector<Type> types = row.type(args);
  return graph_.add(&row, std::move(args), std::move(types))->out();
}
Value LoopBuilder::op(std::string_view name, std::initializer_list<Value> operands) {
  return op(ops::scalar_op_of(name), operands);
}

Value LoopBuilder::constant(Arg value, DType dtype) {
  static constinit Lazy<const ops::Row&> row([]() -> auto& { return ops::at("prim::full"); });
  return graph_.add(&*row, {std::move(value), std::vector<Expr>{}, dtype}, {{dtype, {}, false}})->out();
}

Value LoopBuilder::convert(Value x, DType dtype) {
  if (type_of(x).dtype == dtype) return x;
  return graph_.add(&ops::row_of(ops::ScalarOp::Convert), {x, dtype}, {{dtype, {}, false}})->out();
}

Value LoopBuilder::bitcast(Value x, DType dtype) {
  if (type_of(x).dtype == dtype) return x;
  return graph_.add(&ops::row_of(ops::ScalarOp::Bitcast), {x, dtype}, {{dtype, {}, false}})->out();
}

}  // namespace brasa::compiler
