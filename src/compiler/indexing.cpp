#include "compiler/indexing.h"

#include <algorithm>
#include <unordered_map>

#include "ops/table.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Node;
using ir::Shape;

Prim prim_of(const Node* n) {
  if (n->op == ir::input_op()) return Prim::Input;
  static const auto* kinds = [] {
    auto* m = new std::unordered_map<const ir::Op*, Prim>;
    auto set = [&](const char* name, Prim p) { (*m)[ops::find(name)] = p; };
    set("prim::full", Prim::Full);
    set("prim::iota", Prim::Iota);
    set("prim::size_value", Prim::SizeValue);
    set("prim::broadcast", Prim::Broadcast);
    set("prim::reshape", Prim::Reshape);
    set("prim::transpose", Prim::Transpose);
    set("prim::slice", Prim::Slice);
    set("prim::reverse", Prim::Reverse);
    set("prim::window", Prim::Window);
    set("prim::pad", Prim::Pad);
    set("prim::concat", Prim::Concat);
    set("prim::gather", Prim::Gather);
    set("prim::scatter", Prim::Scatter);
    set("prim::reduce", Prim::Reduce);
    set("prim::arg_reduce", Prim::ArgReduce);
    set("prim::scan", Prim::Scan);
    set("prim::sort", Prim::Sort);
    set("prim::dot_general", Prim::Dot);
    set("prim::convolution", Prim::Convolution);
    return m;
  }();
  if (auto it = kinds->find(n->op); it != kinds->end()) return it->second;
  if (ops::row_of(*n).pointwise) return Prim::Pointwise;
  fail(str("the compiler has no lowering for ", n->op->name()));
}

Expr linearise(const Index& index, const Shape& shape) {
  Expr e(0);
  for (size_t d = 0; d < shape.size(); ++d) e = e * shape[d] + index[d];
  return e;
}

Index delinearise(Expr linear, const Shape& shape) {
  Index out(shape.size());
  size_t first = 0;
  while (first < shape.size() && shape[first].is(1)) ++first;
  for (size_t d = shape.size(); d-- > first;) {
    if (shape[d].is(1) || shape[d].is(0)) continue;  // of an empty dimension there is no element to find
    out[d] = d == first ? linear : mod(linear, shape[d]);
    if (d > first) linear = floordiv(linear, shape[d]);
  }
  return out;
}

Index reshaped(const Index& index, const Shape& to, const Shape& from) {
  // Blocks of dimensions with equal products map to each other; only inside a block indices have to be put together.
  Index out(from.size());
  size_t t = to.size(), f = from.size();
  while (t > 0 || f > 0) {
    if (f > 0 && from[f - 1].is(1)) {
      out[--f] = Expr(0);
      continue;
    }
    if (t > 0 && to[t - 1].is(1)) {
      --t;
      continue;
    }
    size_t t_end = t, f_end = f;
    Expr tp(1), fp(1);
    if (t > 0) tp = to[--t];
    if (f > 0) fp = from[--f];
    while (!(tp == fp)) {
      bool more_to =
          t > 0 && (f == 0 || (tp.is_constant() && fp.is_constant()
                                   ? tp.constant() < fp.constant()
                                   : tp->args.size() <= fp->args.size() && provably_less(tp, fp).value_or(true)));
      if (more_to)
        tp = to[--t] * tp;
      else if (f > 0)
        fp = from[--f] * fp;
      else
        break;
    }
    Shape to_block(to.begin() + t, to.begin() + t_end), from_block(from.begin() + f, from.begin() + f_end);
    Index part = delinearise(linearise(Index(index.begin() + t, index.begin() + t_end), to_block), from_block);
    std::copy(part.begin(), part.end(), out.begin() + f);
  }
  return out;
}

Index view_index(const Node* n, const Index& index) {
  const Shape& in = type_of(n->arg<ir::Value>(0)).shape;
  Index out(in.size());
  switch (prim_of(n)) {
    case Prim::Broadcast: {
      std::vector<int64_t> dims = int_args(n, 2);
      for (size_t i = 0; i < dims.size(); ++i) out[i] = in[i].is(1) ? Expr(0) : index[dims[i]];
      return out;
    }
    case Prim::Reshape: return reshaped(index, n->types[0].shape, in);
    case Prim::Transpose: {
      std::vector<int64_t> dims = int_args(n, 1);
      for (size_t i = 0; i < dims.size(); ++i) out[dims[i]] = index[i];
      return out;
    }
    case Prim::Slice: {
      const auto &start = n->arg<std::vector<Expr>>(1), &step = n->arg<std::vector<Expr>>(3);
      for (size_t i = 0; i < in.size(); ++i) out[i] = start[i] + index[i] * step[i];
      return out;
    }
    case Prim::Reverse: {
      out = index;
      for (int64_t d : int_args(n, 1)) out[d] = in[d] - 1 - index[d];
      return out;
    }
    case Prim::Window: {
      std::copy(index.begin(), index.end() - 1, out.begin());
      int64_t d = n->arg<Expr>(1).constant();
      out[d] = index[d] * n->arg<Expr>(3) + index.back() * n->arg<Expr>(4);
      return out;
    }
    default: fail_internal(str(n->op->name(), " is not a view"));
  }
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
