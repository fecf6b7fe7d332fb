#include "compiler/places.h"

#include <unordered_set>

#include "compiler/expressions.h"
#include "support/error.h"
#include "support/hash.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Node;
using ir::Shape;
using ir::Value;

Index member_index(const Node* root, const Domain& domain, const Index& index) {
  Prim p = prim_of(root);
  bool reduces = p == Prim::Reduce || p == Prim::ArgReduce;
  const Shape& shape = reduces ? type_of(root->arg<Value>(0)).shape : root->types[0].shape;
  if (shape == domain.dims) return index;
  if (reduces || product(shape) == domain.numel()) return reshaped(index, domain.dims, shape);
  Index kept;
  Shape kept_shape;
  for (size_t d = 0; d < index.size(); ++d)
    if (!domain.reduced[d]) {
      kept.push_back(index[d]);
      kept_shape.push_back(domain.dims[d]);
    }
  return shape == kept_shape ? kept : reshaped(kept, kept_shape, shape);
}

namespace {

struct Key {
  Value value;
  Index index;
  friend bool operator==(const Key& a, const Key& b) { return a.value == b.value && a.index == b.index; }
};
struct Hash {
  size_t operator()(const Key& k) const {
    uint64_t h = std::hash<Value>()(k.value);
    for (Expr e : k.index) h = mix(h, reinterpret_cast<uint64_t>(e.node()));
    return h;
  }
};

class Walker {
 public:
  explicit Walker(const Group& g) : g_(g) {
    const Domain& d = g.domain;
    for (size_t i = 0; i < d.dims.size(); ++i)
      out_.ranges.push_back(d.dims[i].is(1) ? Expr(0) : Expr::range(kProbeRange + static_cast<uint32_t>(i), d.dims[i]));
  }

  Places run() {
    for (size_t i = 0; i < g_.graph->outputs().size(); ++i) {
      Value v = g_.graph->outputs()[i].value;
      Index index = member_index(v.node, g_.domain, out_.ranges);
      if (prim_of(v) != Prim::Reduce && prim_of(v) != Prim::ArgReduce)
        out_.exprs.push_back(place_of(index, type_of(v).shape, g_.output_strides[i]));
      walk(v, index);
    }
    for (const Node* n : g_.graph->nodes())
      if (prim_of(n) == Prim::Reduce || prim_of(n) == Prim::ArgReduce)
        walk(n->arg<Value>(0), member_index(n, g_.domain, out_.ranges));
    return std::move(out_);
  }

 private:
  void walk(Value v, const Index& index) {
    if (!seen_.insert({v, index}).second) return;
    const Node* n = v.node;
    switch (Prim p = prim_of(n); p) {
      case Prim::Input:
        out_.exprs.push_back(place_of(index, type_of(v).shape, g_.graph->inputs()[g_.graph->input_index(v)].strides));
        return;
      case Prim::Iota: out_.exprs.push_back(index[n->arg<Expr>(1).constant()]); return;
      case Prim::Full:
      case Prim::SizeValue:
      case Prim::Reduce:
      case Prim::ArgReduce: return;
      case Prim::Pad: {
        const auto &low = n->arg<std::vector<Expr>>(2), &gaps = n->arg<std::vector<Expr>>(4);
        Index at(index.size());
        for (size_t d = 0; d < at.size(); ++d) {
          at[d] = floordiv(index[d] - low[d], gaps[d] + 1);
          // A comparison with a bound needs the index itself.
          if (!low[d].is(0) || !gaps[d].is(0) || !(type_of(n->arg<Value>(0)).shape[d] == n->types[0].shape[d]))
            out_.exprs.push_back(index[d]);
        }
        walk(n->arg<Value>(0), at);
        return;
      }
      case Prim::Concat: {
        int64_t dim = n->arg<Expr>(1).constant();
        out_.exprs.push_back(index[dim]);
        for (Value x : n->arg<std::vector<Value>>(0)) walk(x, index);
        return;
      }
      case Prim::Gather: {
        Value x = n->arg<Value>(0);
        const auto& indices = n->arg<std::vector<Value>>(1);
        std::vector<int64_t> dims = int_args(n, 2);
        auto rank = static_cast<int64_t>(type_of(indices[0]).shape.size());
        Index at(type_of(x).shape.size());
        for (Value i : indices) walk(i, Index(index.begin(), index.begin() + rank));
        for (size_t i = 0; i < dims.size(); ++i) at[dims[i]] = Expr::value(next_++, type_of(x).shape[dims[i]]);
        int64_t k = rank;
        for (int64_t d : other_dims(dims, type_of(x).rank())) at[d] = index[k++];
        walk(x, at);
        return;
      }
      default:
        if (is_view(p)) return walk(n->arg<Value>(0), view_index(n, index));
        n->for_each_input([&](Value o) { walk(o, index); });
    }
  }

  const Group& g_;
  Places out_;
  std::unordered_set<Key, Hash> seen_;
  uint32_t next_ = 0;
};

}  // namespace

Places places_of(const Group& group) { return Walker(group).run(); }

}  // namespace brasa::compiler
