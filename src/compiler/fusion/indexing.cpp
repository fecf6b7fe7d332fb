#include "compiler/fusion/indexing.h"

#include <algorithm>

#include "support/error.h"
#include "support/hash.h"

namespace brasa::compiler {

Prim prim_of(const Node* n) {
  Prim p = ops::kind_of(*n);
  BRASA_ASSERT(p != Prim::None, n->op->name(), " is no primitive");
  return p;
}

bool converts(const Node* n) {
  return prim_of(n) == Prim::Pointwise && ops::row_of(*n).scalar == ops::ScalarOp::Convert;
}

bool widens(const Node* n) {
  return converts(n) && n->types[0].dtype == DType::Float32 &&
         is_reduced_floating(ir::type_of(n->arg<ir::Value>(0)).dtype);
}

Index view_index(const Node* n, const Index& index) { return ops::row_of(*n).index_rule(*n, index); }

size_t ElementHash::operator()(const Element& e) const {
  uint64_t h = std::hash<ir::Value>()(e.value);
  for (Expr i : e.index) h = mix(h, reinterpret_cast<uint64_t>(i.node()));
  return h;
}

namespace {

void bound(std::vector<Bound>& where, Expr e, Expr low, Expr high) {
  bool holds = provably_less(e, low) == std::optional(false) && provably_less(e, high) == std::optional(true);
  if (!holds) where.push_back({e, low, high});
}

std::vector<Read> pad_reads(const Node* n, const Index& index) {
  const auto &low = n->arg<std::vector<Expr>>(2), &high = n->arg<std::vector<Expr>>(3),
             &gaps = n->arg<std::vector<Expr>>(4);
  ir::Value x = n->arg<ir::Value>(0);
  Read read{x, Index(index.size()), {}};
  for (size_t d = 0; d < index.size(); ++d) {
    Expr i = index[d] - low[d], step = gaps[d] + 1, size = type_of(x).shape[d];
    read.index[d] = floordiv(i, step);
    if (low[d].is(0) && high[d].is(0) && step.is(1)) continue;
    bound(read.where, i, 0, step.is(1) ? size : (size - 1) * step + 1);
    if (Expr rest = mod(i, step); !rest.is(0)) read.where.push_back({rest, 0, 1, true});
  }
  return {read, {n->arg<ir::Value>(1), {}, {}}};
}

std::vector<Read> concat_reads(const Node* n, const Index& index) {
  std::vector<Read> out;
  int64_t dim = n->arg<Expr>(1).constant();
  Expr start(0);
  for (ir::Value x : n->arg<std::vector<ir::Value>>(0)) {
    Read read{x, index, {}};
    read.index[dim] = index[dim] - start;
    bound(read.where, read.index[dim], 0, type_of(x).shape[dim]);
    start = start + type_of(x).shape[dim];
    out.push_back(std::move(read));
  }
  return out;
}

std::vector<Read> gather_reads(const Node* n, const Index& index, const Pick& pick) {
  ir::Value x = n->arg<ir::Value>(0);
  const ir::Shape& shape = type_of(x).shape;
  const auto& indices = n->arg<std::vector<ir::Value>>(1);
  std::vector<int64_t> dims = int_args(n, 2);
  int64_t k = type_of(indices[0]).rank();
  Index front(index.begin(), index.begin() + k);
  Read read{x, Index(shape.size()), {}};
  for (size_t i = 0; i < indices.size(); ++i) {
    read.index[dims[i]] = pick(indices[i], front, shape[dims[i]]);
    bound(read.where, 0, 0, shape[dims[i]]);  // nothing to read in an empty dimension
  }
  for (int64_t d : other_dims(dims, type_of(x).rank())) read.index[d] = index[k++];
  return {read};
}

}  // namespace

std::vector<Read> reads(const Node* n, const Index& index, const Pick& pick) {
  Prim p = prim_of(n);
  if (is_view(p)) return {{n->arg<ir::Value>(0), view_index(n, index), {}}};
  switch (p) {
    case Prim::Pointwise: {
      std::vector<Read> out;
      n->for_each_input([&](ir::Value v) { out.push_back({v, index, {}}); });
      return out;
    }
    case Prim::Pad: return pad_reads(n, index);
    case Prim::Concat: return concat_reads(n, index);
    case Prim::Gather: return gather_reads(n, index, pick);
    default: fail_internal(str(n->op->name(), " inside an expression"));
  }
}

std::vector<int64_t> reduced_dims(const Node* n) {
  if (prim_of(n) == Prim::ArgReduce) return {n->arg<Expr>(1).constant()};
  return int_args(n, 1);
}

size_t scanned_dim(const Node* n) { return static_cast<size_t>(n->arg<Expr>(1).constant()); }

std::vector<int> passes_of(const ir::Graph& group) {
  std::vector<int> pass(group.nodes().size());
  for (const Node* n : group.nodes())
    n->for_each_input(
        [&](ir::Value v) { pass[n->id] = std::max(pass[n->id], pass[v.node->id] + is_reduction(prim_of(v))); });
  return pass;
}

std::vector<uint64_t> passes_that_need(const ir::Graph& group) {
  const auto& nodes = group.nodes();
  std::vector<int> pass = passes_of(group);
  std::vector<uint64_t> needed(nodes.size());
  auto reduces = [](const Node* n) { return is_reduction(prim_of(n)); };
  for (const ir::Output& o : group.outputs())
    if (!reduces(o.value.node)) needed[o.value.node->id] |= uint64_t{1} << pass[o.value.node->id];
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node* n = nodes[i];
    uint64_t bits = reduces(n) ? uint64_t{1} << pass[n->id] : needed[n->id];
    n->for_each_input([&](ir::Value v) {
      if (!reduces(v.node)) needed[v.node->id] |= bits;
    });
  }
  return needed;
}

std::vector<int64_t> int_args(const Node* n, size_t arg) {
  std::vector<int64_t> out;
  for (Expr e : n->arg<std::vector<Expr>>(arg)) out.push_back(e.constant());
  return out;
}

std::vector<int64_t> other_dims(const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) out.push_back(d);
  return out;
}

std::optional<Expr> coefficient(Expr e, Expr symbol) {
  if (e == symbol) return Expr(1);
  switch (e->kind) {
    case ir::ExprKind::Add: {
      Expr sum(0);
      for (Expr a : e->args) {
        auto c = coefficient(a, symbol);
        if (!c) return std::nullopt;
        sum = sum + *c;
      }
      return sum;
    }
    case ir::ExprKind::Mul: {
      int count = 0;
      Expr rest(e->value);
      for (Expr a : e->args) {
        if (a == symbol)
          ++count;
        else if (contains_symbol(a, symbol))
          return std::nullopt;
        else
          rest = rest * a;
      }
      if (count == 0) return Expr(0);
      return count == 1 ? std::optional(rest) : std::nullopt;
    }
    default:
      if (contains_symbol(e, symbol)) return std::nullopt;
      return Expr(0);
  }
}

}  // namespace brasa::compiler
