#include <algorithm>

#include "compiler/lowering/lowering.h"
#include "ops/combiner.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Node;
using ir::Value;

namespace {

class Loops {
 public:
  Loops(const Group& g, const Schedule& s) : g_(g), s_(s), l_(g), passes_(passes_of(*g.graph)) {}

  Lowered run() {
    s_.threads ? declare_gpu() : declare();
    set_index();
    l_.expressions().set_hook([this](Value v, const Index& index, Value mask) { return special(v, index, mask); });
    const auto& outputs = g_.graph->outputs();
    // Earlier passes first, so that a later one finds what they stored.
    std::vector<size_t> order(outputs.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return passes_[outputs[a].value.node->id] < passes_[outputs[b].value.node->id];
    });
    for (size_t i : order) {
      Value v = outputs[i].value;
      Index index = member_index(v.node, g_.domain, dims_);
      bool row = is_reduce(v.node);
      if (row) index = row_index(g_.domain, dims_, type_of(v).shape);
      l_.expressions().set_pass(passes_[v.node->id]);
      Value mask = type_of(v).numel() == g_.domain.numel() && !row ? mask_ : kept_mask_;
      Value value = row ? special(v, index, {}) : l_.expressions().at(v, index, mask);
      l_.b().store(l_.output_buffer(i), l_.output_place(i, index), value, mask);
    }
    return l_.finish(s_);
  }

 private:
  static bool is_reduce(const Node* n) { return is_reduction(prim_of(n)); }

  // Parallel loops and parallel pieces; serial rows of a piece; then the vector loop outside or inside the reduced ones.
  void declare() {
    LoopBuilder& b = l_.b();
    at_.resize(s_.axes.size());
    std::vector<Expr> piece(s_.axes.size());
    for (size_t i = 0; i < s_.axes.size(); ++i) {
      const Axis& a = s_.axes[i];
      if (a.piece) {
        Expr count = pieces_of(a.extent, a.piece).count;
        piece[i] = count.is(1) ? Expr(0) : b.loop("parallel", count);
      } else if (a.kind == Axis::Parallel) {
        at_[i] = b.loop("parallel", a.extent);
      }
    }
    auto inner = [&](size_t i, const char* kind, int width, int unroll) {
      const Axis& a = s_.axes[i];
      Expr start = piece[i] * Expr(a.piece);
      Expr extent = start.is(0) ? a.extent : pieces_of(a.extent, a.piece).inside(piece[i]);
      Expr r = b.loop(kind, extent, width, unroll);
      at_[i] = start.is(0) ? r : b.bounded(start + r, a.extent);
      return r;
    };
    for (size_t i = 0; i < s_.axes.size(); ++i)
      if (s_.axes[i].kind == Axis::Parallel && s_.axes[i].piece) inner(i, "serial", 1, 1);
    auto vector = [&] {
      for (size_t i = 0; i < s_.axes.size(); ++i)
        if (s_.axes[i].kind == Axis::Vector) {
          Expr r = inner(i, "vector", s_.width, s_.unroll);
          if (s_.axes[i].reduced) closed_.push_back(r);
        }
    };
    if (s_.vector_outside) vector();
    for (size_t i = 0; i < s_.axes.size(); ++i)
      if (s_.axes[i].kind == Axis::Serial) {
        Expr r = inner(i, "serial", 1, s_.serial_unroll);
        if (s_.axes[i].reduced) closed_.push_back(r);
      }
    if (!s_.vector_outside) vector();
  }

  // Blocks for what is parallel; the threads of a block along the vector axis, with masks at its end.
  void declare_gpu() {
    LoopBuilder& b = l_.b();
    at_.resize(s_.axes.size());
    std::vector<Expr> piece(s_.axes.size());
    for (size_t i = 0; i < s_.axes.size(); ++i) {
      const Axis& a = s_.axes[i];
      if (a.kind == Axis::Parallel) at_[i] = b.loop("block", a.extent);
      if (a.kind == Axis::Vector && !a.reduced) piece[i] = b.loop("block", ceildiv(a.extent, s_.threads));
    }
    for (size_t i = 0; i < s_.axes.size(); ++i) {
      const Axis& a = s_.axes[i];
      if (a.kind == Axis::Vector && !a.reduced) {
        Expr place = piece[i] * Expr(s_.threads) + b.loop("thread", s_.threads);
        kept_mask_ = l_.expressions().both(kept_mask_, l_.expressions().within(place, 0, a.extent));
        at_[i] = b.bounded(place, a.extent);
      }
    }
    mask_ = kept_mask_;
    for (size_t i = 0; i < s_.axes.size(); ++i) {
      const Axis& a = s_.axes[i];
      if (a.kind == Axis::Serial) {
        at_[i] = b.loop("serial", a.extent);
        closed_.push_back(at_[i]);
      }
      if (a.kind == Axis::Vector && a.reduced) {
        Expr step = b.loop("serial", ceildiv(a.extent, s_.threads)), thread = b.loop("thread", s_.threads);
        Expr place = step * Expr(s_.threads) + thread;
        closed_.insert(closed_.end(), {step, thread});
        mask_ = l_.expressions().both(mask_, l_.expressions().within(place, 0, a.extent));
        at_[i] = b.bounded(place, a.extent);
      }
    }
  }

  void set_index() {
    dims_.assign(g_.domain.dims.size(), Expr(0));
    for (size_t i = 0; i < s_.axes.size(); ++i) {
      const Axis& a = s_.axes[i];
      auto first = static_cast<int64_t>(a.first), end = static_cast<int64_t>(a.first + a.count);
      Index part = delinearise(at_[i], ir::Shape(g_.domain.dims.begin() + first, g_.domain.dims.begin() + end));
      std::copy(part.begin(), part.end(), dims_.begin() + first);
    }
  }

  Value special(Value v, const Index& index, Value mask) {
    if (is_reduce(v.node)) {
      const ir::Shape& shape = type_of(v).shape;
      BRASA_ASSERT(linearise(index, shape) == linearise(row_index(g_.domain, dims_, shape), shape),
                   "a row reads another row's reduction");
      return reduce(v.node);
    }
    auto it = std::find(s_.staged.begin(), s_.staged.end(), v.node->id);
    if (it == s_.staged.end()) return {};
    int first = passes_[v.node->id], now = l_.expressions().pass();
    if (now == first) return {};
    Value& stage = stages_[v.node];
    if (!stage) {
      l_.expressions().set_pass(first);
      stage = l_.b().stage(l_.expressions().at(v, index, mask), closed_);
      l_.expressions().set_pass(now);
    }
    Expr place(0);
    for (Expr r : closed_) place = place * r->args[0] + r;
    return l_.b().load(stage, place);
  }

  Value reduce(const Node* n) {
    Value& out = reduced_[n];
    if (out) return out;
    Expressions& e = l_.expressions();
    int now = e.pass();
    e.set_pass(passes_[n->id]);
    Index index = member_index(n, g_.domain, dims_);
    Value item = e.at(n->arg<Value>(0), index, mask_);
    e.set_pass(now);
    bool arg = prim_of(n) == Prim::ArgReduce;
    std::string combiner = n->arg<std::string>(2);
    if (mask_ && !(mask_ == kept_mask_))
      item = l_.b().op(ops::ScalarOp::Select, {mask_, item, identity(combiner, type_of(item).dtype)});
    if (arg) {
      Expr place = index[n->arg<Expr>(1).constant()];
      Value i = l_.b().index(place);
      out = closed_.empty() ? i : l_.b().arg_reduce(item, i, closed_, "arg" + combiner)[1];
    } else {
      out = closed_.empty() ? item : l_.b().reduce(item, closed_, combiner);
    }
    return out;
  }

  // What does not change a result of the combiner.
  Value identity(const std::string& combiner, DType t) {
    ops::Number n = ops::identity(combiner, t);
    if (is_floating(t)) return l_.b().constant(n.as_double(), t);
    const ir::Arg& literal = n.arg();
    return l_.b().constant(literal.is<bool>() ? int64_t{literal.get<bool>()} : literal.get<Expr>().constant(), t);
  }

  const Group& g_;
  const Schedule& s_;
  Lowering l_;
  std::vector<int> passes_;
  std::vector<Expr> at_;      // by axis
  Index dims_;                // of the domain
  std::vector<Expr> closed_;  // the reduced ranges
  Value mask_, kept_mask_;    // GPU: threads inside the domain, and inside the rows
  std::unordered_map<const Node*, Value> stages_, reduced_;
};

}  // namespace

void lower_loops(const Group& group, const Schedule& schedule, std::vector<Lowered>& out) {
  out.push_back(Loops(group, schedule).run());
}

}  // namespace brasa::compiler
