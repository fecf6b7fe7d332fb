#include <algorithm>

#include "compiler/lowering/lowering.h"
#include "ops/combiner.h"
#include "support/error.h"

namespace brasa::compiler {

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
      l_.expressions().set_pass(pass_of(v.node));
      bool element = type_of(v).numel() == g_.domain.numel() && !row;
      Value value = row ? special(v, index, {}) : l_.expressions().at(v, index, element ? read_mask_ : Value{});
      Value mask = element ? l_.expressions().both(kept_mask_, row_mask_) : kept_mask_;
      l_.b().store(l_.output_buffer(i), l_.output_place(i, index), value, mask);
    }
    return l_.finish(s_);
  }

 private:
  static bool is_reduce(const Node* n) { return is_reduction(prim_of(n)); }
  // Values that stay in registers are the same in all passes.
  int pass_of(const Node* n) const { return s_.row_threads && !s_.vector_outside ? 0 : passes_[n->id]; }

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
      if (a.spelled_out) {
        Expr several = floordiv(extent, s_.width), first = several.is(1) ? Expr(0) : b.loop(kind, several);
        Expr r = b.loop("unroll", s_.width);
        at_[i] = b.bounded(start + first * Expr(s_.width) + r, a.extent);
        return r;
      }
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

  // `chunk` where it is less than `count`; else the last one, so that memory is read without a condition, and nothing is stored.
  Expr inside(Expr chunk, Expr count, Value& mask) {
    if (provably_less(chunk, count) == std::optional(true)) return chunk;
    mask = l_.expressions().both(mask, l_.expressions().within(chunk, 0, count));
    return min(chunk, count - 1);
  }
  // Neighbours that one thread takes; their loop promises aligned buffers.
  Expr lane() { return s_.width > 1 ? l_.b().loop("unroll", s_.width, s_.width) : Expr(0); }

  // The places of one index over these axes.
  void spread(Expr at, const std::vector<size_t>& axes) {
    ir::Shape extents;
    for (size_t i : axes) extents.push_back(s_.axes[i].extent);
    Index index = delinearise(at, extents);
    for (size_t i = 0; i < axes.size(); ++i) at_[axes[i]] = index[i];
  }

  void declare_gpu() {
    at_.resize(s_.axes.size());
    std::vector<size_t> kept;
    Expr elements(1);
    for (size_t i = 0; i < s_.axes.size(); ++i)
      if (!s_.axes[i].reduced) {
        kept.push_back(i);
        elements = elements * s_.axes[i].extent;
      }
    if (!g_.domain.has_reduced())
      each_element(kept, elements, s_.threads);
    else if (s_.vector_outside)
      columns(kept, elements);
    else if (s_.row_threads)
      rows_in_registers(kept, elements);
    else
      long_rows(kept);
  }

  void each_element(const std::vector<size_t>& kept, Expr elements, int64_t threads) {
    LoopBuilder& b = l_.b();
    Expr chunks = floordiv(elements, s_.width);
    Expr block = b.loop("block", ceildiv(chunks, threads)), thread = b.loop("thread", threads, 2);
    Expr chunk = inside(block * Expr(threads) + thread, chunks, kept_mask_);
    if (s_.width == 1) return spread(chunk, kept);
    // Neighbours lie in one row, and so share the other indices.
    ir::Shape extents;
    for (size_t i : kept) extents.push_back(s_.axes[i].extent);
    extents.back() = floordiv(extents.back(), s_.width);
    Index index = delinearise(chunk, extents);
    index.back() = index.back() * Expr(s_.width) + lane();
    for (size_t i = 0; i < kept.size(); ++i) at_[kept[i]] = index[i];
  }

  // A thread adds up elements of its columns one after the other; those that share a column add up their sums.
  void columns(const std::vector<size_t>& kept, Expr elements) {
    LoopBuilder& b = l_.b();
    int64_t shared = std::max(s_.row_threads, 1);
    each_element(kept, elements, s_.threads / shared);
    std::vector<size_t> reduced;
    Expr length(1);
    for (size_t i = 0; i < s_.axes.size(); ++i)
      if (s_.axes[i].reduced) {
        reduced.push_back(i);
        length = length * s_.axes[i].extent;
      }
    if (shared == 1) {
      for (size_t i : reduced) closed_.push_back(at_[i] = b.loop("serial", s_.axes[i].extent, 1, s_.serial_unroll));
      return;
    }
    Expr step = b.loop("serial", ceildiv(length, shared), 1, s_.serial_unroll), thread = b.loop("thread", shared);
    closed_ = {step, thread};
    spread(inside(step * Expr(shared) + thread, length, row_mask_), reduced);
  }

  // Neighbouring threads share a row, each `unroll` times `width` elements of it, which stay in its registers from pass to pass.
  void rows_in_registers(const std::vector<size_t>& kept, Expr rows) {
    LoopBuilder& b = l_.b();
    int64_t side_by_side = s_.threads / s_.row_threads;
    Expr row = b.loop("block", ceildiv(rows, side_by_side)) * Expr(side_by_side);
    if (side_by_side > 1) row = row + b.loop("thread", side_by_side);
    Expr thread = b.loop("thread", s_.row_threads), step = s_.unroll > 1 ? b.loop("unroll", s_.unroll) : Expr(0);
    Expr within_chunk = lane();
    spread(inside(row, rows, kept_mask_), kept);
    Expr chunk = inside(step * Expr(s_.row_threads) + thread, floordiv(s_.axes.back().extent, s_.width), row_mask_);
    at_.back() = chunk * Expr(s_.width) + within_chunk;
    for (Expr r : {step, within_chunk, thread})
      if (!r.is_constant()) closed_.push_back(r);
  }

  // The threads of a block walk along a row as often as there are passes.
  void long_rows(const std::vector<size_t>& kept) {
    LoopBuilder& b = l_.b();
    for (size_t i : kept) at_[i] = b.loop("block", s_.axes[i].extent);
    for (size_t i = 0; i < s_.axes.size(); ++i) {
      const Axis& a = s_.axes[i];
      if (!a.reduced) continue;
      if (i + 1 < s_.axes.size()) {
        closed_.push_back(at_[i] = b.loop("serial", a.extent));
        continue;
      }
      Expr chunks = floordiv(a.extent, s_.width);
      Expr step = b.loop("serial", ceildiv(chunks, s_.threads)), thread = b.loop("thread", s_.threads);
      Expr chunk = step * Expr(s_.threads) + thread, within_chunk = lane();
      closed_.insert(closed_.end(), {step, thread});
      if (s_.width > 1) closed_.push_back(within_chunk);
      // A row may be empty: its elements are read under the mask.
      read_mask_ = row_mask_ = l_.expressions().within(chunk, 0, chunks);
      at_[i] = b.bounded(chunk, chunks) * Expr(s_.width) + within_chunk;
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
    int first = pass_of(v.node), now = l_.expressions().pass();
    if (now == first) return {};
    auto [known, added] = stages_.try_emplace(v.node, Stage{index, mask, {}});
    Stage& stage = known->second;
    if (added) {
      l_.expressions().set_pass(first);
      stage.values = l_.b().stage(l_.expressions().at(v, index, mask), closed_);
      l_.expressions().set_pass(now);
    }
    // Another part of a concatenation reads other elements, or reads them where this one did not: it computes them again.
    if (stage.index != index || stage.mask != mask) return {};
    Expr place(0);
    for (Expr r : closed_) place = place * r->args[0] + r;
    return l_.b().load(stage.values, place);
  }

  Value reduce(const Node* n) {
    Value& out = reduced_[n];
    if (out) return out;
    Expressions& e = l_.expressions();
    int now = e.pass();
    e.set_pass(pass_of(n));
    Index index = member_index(n, g_.domain, dims_);
    Value item = e.at(n->arg<Value>(0), index, read_mask_);
    e.set_pass(now);
    bool arg = prim_of(n) == Prim::ArgReduce;
    std::string combiner = n->arg<std::string>(2);
    if (row_mask_) item = l_.b().op(ops::ScalarOp::Select, {row_mask_, item, identity(combiner, type_of(item).dtype)});
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
  // GPU: threads that have a place among what is kept, and in their row; and those that may read it.
  Value kept_mask_, row_mask_, read_mask_;
  // What a stage holds: the elements at `index`, where `mask` was true.
  struct Stage {
    Index index;
    Value mask, values;
  };
  std::unordered_map<const Node*, Stage> stages_;
  std::unordered_map<const Node*, Value> reduced_;
};

}  // namespace

void lower_loops(const Group& group, const Schedule& schedule, std::vector<Lowered>& out) {
  out.push_back(Loops(group, schedule).run());
}

}  // namespace brasa::compiler
