#include "compiler/fusion/places.h"

#include <unordered_set>

#include "compiler/lowering/expressions.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

Index probe(const Shape& shape) {
  Index out;
  for (Expr size : shape) out.push_back(Expr::range(kProbeRange + static_cast<uint32_t>(out.size()), size));
  return out;
}

std::vector<Link> chain_of(Value operand, const std::function<bool(Value)>& ends, bool widened) {
  std::vector<Link> out{{operand, probe(type_of(operand).shape)}};
  for (;;) {
    auto [v, at] = out.back();
    if (ends && ends(v)) return out;
    if (is_view(prim_of(v)))
      out.push_back({v.node->arg<Value>(0), view_index(v.node, at)});
    else if (widened && widens(v.node))
      out.push_back({v.node->arg<Value>(0), at});
    else
      return out;
  }
}

Index iteration(const Domain& domain) {
  Index out = probe(domain.dims);
  for (size_t d = 0; d < out.size(); ++d)
    if (domain.dims[d].is(1)) out[d] = 0;
  return out;
}

Index row_index(const Domain& domain, const Index& index, const Shape& shape) {
  Shape rows = kept(domain, domain.dims);
  return shape == rows ? kept(domain, index) : reshaped(kept(domain, index), rows, shape);
}

Index member_index(const Node* root, const Domain& domain, const Index& index) {
  bool reduces = is_reduction(prim_of(root));
  const Shape& shape = reduces ? type_of(root->arg<Value>(0)).shape : root->types[0].shape;
  if (shape == domain.dims) return index;
  if (reduces || product(shape) == domain.numel()) return reshaped(index, domain.dims, shape);
  return row_index(domain, index, shape);
}

namespace {

class Walker {
 public:
  explicit Walker(const Group& g) : g_(g) { out_.ranges = iteration(g.domain); }

  Places run() {
    for (size_t i = 0; i < g_.graph->outputs().size(); ++i) {
      Value v = g_.graph->outputs()[i].value;
      Index index = member_index(v.node, g_.domain, out_.ranges);
      if (!is_reduction(prim_of(v))) {
        out_.written.push_back(place_of(index, type_of(v).shape, g_.output_strides[i]));
        out_.exprs.push_back(out_.written.back());
      }
      walk(v, index);
    }
    for (const Node* n : g_.graph->nodes())
      if (is_reduction(prim_of(n)) || prim_of(n) == Prim::Scan)
        n->for_each_input([&](Value v) { walk(v, member_index(n, g_.domain, out_.ranges)); });
    return std::move(out_);
  }

 private:
  void walk(Value v, const Index& index) {
    if (!seen_.insert({v, index}).second) return;
    const Node* n = v.node;
    switch (prim_of(n)) {
      case Prim::Input:
        out_.accesses.push_back({static_cast<size_t>(g_.graph->input_index(v)), place_in(*g_.graph, v, index)});
        out_.exprs.push_back(out_.accesses.back().place);
        return;
      case Prim::Iota: out_.exprs.push_back(index[n->arg<Expr>(1).constant()]); return;
      case Prim::Full:
      case Prim::SizeValue:
      case Prim::Dot:
      case Prim::Reduce:
      case Prim::ArgReduce:
      case Prim::Scan: return;
      default: break;
    }
    with_room([&] {
      Pick pick = [&](Value indices, Index at, Expr size) {
        for (; is_view(prim_of(indices)); indices = indices.node->arg<Value>(0)) at = view_index(indices.node, at);
        // Indices that count along a dimension name a place of the iteration's own.
        if (prim_of(indices) == Prim::Iota) return at[indices.node->arg<Expr>(1).constant()];
        walk(indices, at);
        out_.picks.push_back({Expr::value(next_++, size), at});
        return out_.picks.back().index;
      };
      for (const Read& r : reads(n, index, pick)) {
        for (const Bound& b : r.where) out_.exprs.push_back(b.e);
        walk(r.operand, r.index);
      }
    });
  }

  const Group& g_;
  Places out_;
  std::unordered_set<Element, ElementHash> seen_;
  uint32_t next_ = 0;
};

}  // namespace

Places places_of(const Group& group) { return Walker(group).run(); }

}  // namespace brasa::compiler
