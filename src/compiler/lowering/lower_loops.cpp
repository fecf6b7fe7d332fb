#include <algorithm>
#include <optional>

#include "compiler/fusion/changed_place.h"
#include "compiler/fusion/filled_parts.h"
#include "compiler/loops/ops.h"
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
    // Earlier passes first, so that a later one finds what they stored. Chains of sums share loops with what they are made of: what follows from
    // a sum alone is stored behind that pass, not behind elements of the next one.
    auto place = [&](size_t i) {
      const Node* n = outputs[i].value.node;
      bool elements = s_.chains > 0 && type_of(outputs[i].value).numel() == g_.domain.numel() && !is_reduce(n);
      return std::pair(passes_[n->id], elements);
    };
    std::vector<size_t> order(outputs.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
    for (size_t i : order) {
      Value v = outputs[i].value;
      Index index = member_index(v.node, g_.domain, dims_);
      bool reduces = is_reduce(v.node), column = sums_columns(v.node, g_.domain);
      if (reduces) index = row_index(domain_of_sums(v.node), dims_, type_of(v).shape);
      l_.expressions().set_pass(pass_of(v.node));
      bool element = !reduces && (!g_.domain.folds() || type_of(v).numel() == g_.domain.numel());
      Value value = reduces   ? special(v, index, {})
                    : s_.tile ? tiles_[i]
                              : l_.expressions().at(v, index, element ? read_mask_ : once_mask_);
      Value mask = element ? l_.expressions().both(kept_mask_, row_mask_) : column ? row_mask_ : kept_mask_;
      if (!s_.tile && !g_.overwritten.empty() && g_.overwritten[i] >= 0) {
        Change c = change(value, l_.input_buffer(static_cast<size_t>(g_.overwritten[i])), l_.output_place(i, index));
        if (!c.value) continue;
        value = c.value;
        mask = l_.expressions().both(mask, c.where);
      }
      l_.b().store(l_.output_buffer(i), l_.output_place(i, index), value, mask);
    }
    return l_.finish(s_);
  }

 private:
  static bool is_reduce(const Node* n) { return is_reduction(prim_of(n)); }
  Domain domain_of_sums(const Node* n) const { return sums_columns(n, g_.domain) ? columns_of(g_.domain) : g_.domain; }
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
        at_[i] = b.loop(a.spelled_out ? "unroll" : "parallel", a.extent);
      }
    }
    auto inner = [&](size_t i, const char* kind, int width, int unroll) {
      const Axis& a = s_.axes[i];
      Expr start = piece[i] * Expr(a.piece);
      Expr extent = start.is(0) ? a.extent : pieces_of(a.extent, a.piece).inside(piece[i]);
      if (a.spelled_out) {
        Expr several = ceildiv(extent, a.spelled_out), first = several.is(1) ? Expr(0) : b.loop(kind, several);
        Expr begin = start + first * Expr(a.spelled_out);
        if (a.again) begin = max(min(begin, a.extent - a.spelled_out), 0);
        Expr r = b.loop("unroll", a.spelled_out), place = begin + r;
        at_[i] = provably_divisible(a.extent, a.spelled_out) ? b.bounded(place, a.extent)
                                                             : with_ends(place, a.extent, a.reduced);
        return r;
      }
      if (std::optional<Part> part = part_of(i)) {
        Expr r = b.loop(kind, max(min(a.extent, part->all - part->begin), 0), width, unroll);
        at_[i] = b.bounded(part->begin + r, part->all) - part->begin;
        return r;
      }
      Expr r = b.loop(kind, extent, width, unroll);
      at_[i] = start.is(0) ? r : b.bounded(start + r, a.extent);
      return r;
    };
    for (size_t i = 0; i < s_.axes.size(); ++i)
      if (s_.axes[i].kind == Axis::Parallel && s_.axes[i].piece) inner(i, "serial", 1, 1);
    auto folded = [&](Axis::Kind kind, const char* name, int width, int unroll) {
      for (size_t i = 0; i < s_.axes.size(); ++i) {
        if (s_.axes[i].kind != kind) continue;
        if (s_.chains > 0 && s_.axes[i].reduced)
          in_chains(i, name, width, unroll);
        else
          fold(s_.axes[i], inner(i, name, width, unroll));
      }
    };
    auto vector = [&] { folded(Axis::Vector, "vector", s_.width, s_.unroll); };
    if (s_.vector_outside) vector();
    folded(Axis::Serial, "serial", 1, s_.serial_unroll);
    if (!s_.vector_outside) vector();
  }

  // Of sums in parts, where the loop's part begins among all elements: it ends where they do, so that no vector of it needs a mask but the last.
  struct Part {
    Expr begin, all;
  };
  std::optional<Part> part_of(size_t i) const {
    const Axis &a = s_.axes[i], *parts = i > 0 ? &s_.axes[i - 1] : nullptr;
    if (!a.reduced || a.count != 1 || a.piece || a.first == 0 || g_.domain.scanned) return std::nullopt;
    Expr at(0);
    if (!g_.domain.dims[a.first - 1].is(1)) {
      if (!parts || parts->first + 1 != a.first || parts->count != 1 || parts->kind != Axis::Parallel)
        return std::nullopt;
      at = at_[i - 1];
    }
    std::optional<Expr> all = filled_parts(g_, a.first);
    return all ? std::optional(Part{at * a.extent, *all}) : std::nullopt;
  }

  // A loop over the chains of a reduced axis, and one over the elements of each. Lanes are a whole number of vectors; of other chains those
  // are left out that have no element.
  void in_chains(size_t i, const char* kind, int width, int unroll) {
    LoopBuilder& b = l_.b();
    Expr extent = s_.axes[i].extent, count = s_.chains_of(s_.axes[i]);
    bool lanes = s_.axes[i].kind == Axis::Vector;
    Chains& c = chains_.emplace_back();
    c.some = min(extent, count);
    c.chain = b.loop(kind, lanes ? count : c.some, width, unroll);
    c.lanes = lanes;
    at_[i] = c.chain;
    if (!(count == extent)) {
      c.step = b.loop("serial", ceildiv(extent, s_.chains), 1, lanes ? 1 : unroll);
      Expr place = *c.step * Expr(s_.chains) + c.chain;
      c.within = b.bounded(place, extent);
      at_[i] = provably_divisible(extent, s_.chains) ? c.within : with_ends(place, extent, true);
      closed_.push_back(*c.step);
    }
    closed_.push_back(c.chain);
  }

  // A place that steps may take beyond this end: what is read and written there is left out, and no place is promised to be within. Beyond the
  // end of an axis that is kept neither elements nor what a row has once are there.
  Expr with_ends(Expr place, Expr extent, bool reduced) {
    Expressions& e = l_.expressions();
    Value within = e.within(place, 0, extent);
    Value& of_axis = reduced ? row_mask_ : kept_mask_;
    of_axis = e.both(of_axis, within);
    read_mask_ = e.both(read_mask_, within);
    if (!reduced) once_mask_ = e.both(once_mask_, within);
    return place;
  }

  // The place for steps of chains that the mask does not leave out.
  Expr before_ends(Expr place) const {
    return ir::substitute(place, [this](Expr symbol) -> std::optional<Expr> {
      for (const Chains& c : chains_)
        if (c.step && symbol == c.chain) return c.within - *c.step * Expr(s_.chains);
      return std::nullopt;
    });
  }

  void fold(const Axis& a, Expr range) {
    if (a.reduced) closed_.push_back(range);
    if (g_.domain.scanned == a.first) scanned_ = range;
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
    for (size_t i = 0; i < s_.axes.size(); ++i) {
      const Axis& a = s_.axes[i];
      if (a.kind == Axis::Single) {
        std::optional<ChangedPlace> changed = changed_place(g_);
        BRASA_ASSERT(changed && changed->dim == a.first, "no place along an axis that is all that changes");
        at_[i] = l_.expressions().picked(changed->at, changed->index, a.extent, {});
      } else if (!g_.domain.folds(a.first) && !a.summed) {
        kept.push_back(i);
        elements = elements * pieces(a);
      }
    }
    if (s_.tile)
      tiles(kept);
    else if (!g_.domain.folds())
      each_element(kept, elements, s_.threads);
    else if (s_.vector_outside)
      columns(kept, elements);
    else if (s_.row_threads)
      rows_in_registers(kept, elements);
    else
      long_rows(kept);
  }

  // A thread has all of a piece, one after the other; pieces are whole.
  static Expr pieces(const Axis& a) { return a.piece ? floordiv(a.extent, a.piece) : a.extent; }

  void each_element(const std::vector<size_t>& kept, Expr elements, int64_t threads) {
    LoopBuilder& b = l_.b();
    Expr chunks = floordiv(elements, s_.width);
    Expr block = b.loop("block", ceildiv(chunks, threads)), thread = b.loop("thread", threads, 2);
    Expr chunk = inside(block * Expr(threads) + thread, chunks, kept_mask_);
    if (s_.width == 1) return spread(chunk, kept);
    // Neighbours lie in one row, and so share the other indices.
    ir::Shape extents;
    for (size_t i : kept) extents.push_back(pieces(s_.axes[i]));
    extents.back() = floordiv(extents.back(), s_.width);
    Index index = delinearise(chunk, extents);
    index.back() = index.back() * Expr(s_.width) + lane();
    for (size_t i = 0; i < kept.size(); ++i) {
      const Axis& a = s_.axes[kept[i]];
      auto piece = [&] {
        return a.spelled_out ? b.loop("unroll", a.piece) : b.loop("serial", a.piece, 1, static_cast<int>(a.piece));
      };
      at_[kept[i]] = a.piece ? index[i] * Expr(a.piece) + piece() : index[i];
    }
  }

  // A block's square: values are computed by threads beside each other along one axis, and written by threads beside each other along the
  // last one. Each row of the square begins one place later, so that what neighbours read of it lies in different banks.
  void tiles(const std::vector<size_t>& kept) {
    LoopBuilder& b = l_.b();
    int64_t edge = s_.tile, at_once = s_.threads / edge;
    size_t along = s_.axes.size() - 1, across = static_cast<size_t>(s_.across);
    for (size_t i : kept)
      if (i != along && i != across) at_[i] = b.loop("block", s_.axes[i].extent);
    auto first_of = [&](size_t axis) { return b.loop("block", ceildiv(s_.axes[axis].extent, edge)) * Expr(edge); };
    Expr first_across = first_of(across), first_along = first_of(along);
    Expr step = b.loop("unroll", edge / at_once), outer = b.loop("thread", at_once), inner = b.loop("thread", edge);
    Expr row = step * Expr(at_once) + outer;
    closed_ = {step, outer, inner};
    auto place = [&](size_t axis, Expr at) {
      Value mask = l_.expressions().within(at, 0, s_.axes[axis].extent);
      read_mask_ = l_.expressions().both(read_mask_, mask);
      at_[axis] = b.bounded(at, s_.axes[axis].extent, mask);
    };
    place(across, first_across + mod(inner + row, Expr(edge)));
    place(along, first_along + row);
    set_index();
    for (const ir::Output& o : g_.graph->outputs()) {
      Value value = l_.expressions().at(o.value, member_index(o.value.node, g_.domain, dims_), read_mask_);
      tiles_.push_back(
          b.load(b.stage(value, closed_, "shared"), inner * Expr(edge) + mod(row - inner + edge, Expr(edge))));
    }
    read_mask_ = {};
    place(across, first_across + row);
    place(along, first_along + inner);
    kept_mask_ = read_mask_;
  }

  // A thread adds up elements of its columns one after the other; those that share a column add up their sums.
  void columns(const std::vector<size_t>& kept, Expr elements) {
    LoopBuilder& b = l_.b();
    int64_t shared = std::max(s_.row_threads, 1);
    each_element(kept, elements, s_.threads / shared);
    std::vector<size_t> reduced;
    Expr length(1);
    for (size_t i = 0; i < s_.axes.size(); ++i)
      if (g_.domain.folds(s_.axes[i].first)) {
        reduced.push_back(i);
        length = length * s_.axes[i].extent;
      }
    if (shared == 1) {
      for (size_t i : reduced) fold(s_.axes[i], at_[i] = b.loop("serial", s_.axes[i].extent, 1, s_.serial_unroll));
      return;
    }
    Expr step = b.loop("serial", ceildiv(length, shared), 1, s_.serial_unroll), thread = b.loop("thread", shared);
    closed_ = {step, thread};
    spread(inside(step * Expr(shared) + thread, length, row_mask_), reduced);
  }

  // Neighbouring threads share a row, each `unroll` times `width` elements of it, which stay in its registers from pass to pass. Where
  // columns are summed, a block goes down a part of them, and adds up what its threads have of them in the end.
  void rows_in_registers(const std::vector<size_t>& kept, Expr rows) {
    LoopBuilder& b = l_.b();
    int64_t side_by_side = s_.threads / s_.row_threads;
    auto summed = std::find_if(s_.axes.begin(), s_.axes.end(), [](const Axis& a) { return a.summed; });
    Expr beside(0);
    auto row_of = [&](std::string_view loop, Expr count) {
      Expr first = b.loop(loop, ceildiv(count, side_by_side));
      if (side_by_side > 1) beside = b.loop("thread", side_by_side);
      if (summed != s_.axes.end()) stacked_.push_back(first);
      return first * Expr(side_by_side) + beside;
    };
    Expr row;
    if (summed == s_.axes.end()) {
      row = row_of("block", rows);
    } else {
      row = b.loop("block", rows);
      Expr in_part = row_of("serial", summed->extent);
      if (side_by_side > 1) stacked_.push_back(beside);
      at_[static_cast<size_t>(summed - s_.axes.begin())] = inside(in_part, summed->extent, kept_mask_);
    }
    // A loop of one step is none: what is read at its places would not be known to lie in the row.
    Expr thread = s_.row_threads > 1 ? b.loop("thread", s_.row_threads) : Expr(0);
    Expr step = s_.unroll > 1 ? b.loop("unroll", s_.unroll) : Expr(0);
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
      Expr step = b.loop("serial", ceildiv(chunks, s_.threads), 1, s_.serial_unroll);
      Expr thread = b.loop("thread", s_.threads);
      Expr chunk = step * Expr(s_.threads) + thread, within_chunk = lane();
      closed_.insert(closed_.end(), {step, thread});
      if (s_.width > 1) closed_.push_back(within_chunk);
      // A row may be empty: its elements are read under the mask.
      read_mask_ = row_mask_ = l_.expressions().within(chunk, 0, chunks);
      at_[i] = b.bounded(chunk, chunks, row_mask_) * Expr(s_.width) + within_chunk;
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
      Expr place = linearise(index, shape), own = linearise(row_index(domain_of_sums(v.node), dims_, shape), shape);
      BRASA_ASSERT(before_ends(place) == before_ends(own), "a row reads another row's reduction: ", place,
                   ", its own is ", own);
      return reduce(v.node);
    }
    if (prim_of(v) == Prim::Scan) {
      BRASA_ASSERT(linearise(index, type_of(v).shape) == linearise(dims_, g_.domain.dims),
                   "an iteration reads what another one ran up to");
      return scan(v.node);
    }
    auto it = std::find(s_.staged.begin(), s_.staged.end(), v.node->id);
    if (it == s_.staged.end()) return {};
    // Of a row that is kept whole, another iteration's element is read where it always was.
    if (ir::is_input(v) && !(linearise(index, type_of(v).shape) == linearise(dims_, g_.domain.dims))) return {};
    int first = pass_of(v.node), now = l_.expressions().pass();
    if (now == first) return {};
    auto [known, added] = stages_.try_emplace(v.node, Stage{index, mask, {}});
    Stage& stage = known->second;
    if (added) {
      l_.expressions().set_pass(first);
      stage.values = l_.b().stage(l_.expressions().at(v, index, mask), closed_, s_.threads ? "shared" : "local");
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
    bool column = sums_columns(n, g_.domain);
    const std::vector<Expr>& closed = column ? stacked_ : closed_;
    if (Value mask = column ? kept_mask_ : row_mask_)
      item = l_.b().op(ops::ScalarOp::Select, {mask, item, identity(combiner, type_of(item).dtype)});
    if (arg) {
      Expr place = index[n->arg<Expr>(1).constant()];
      // Beside numbers of 4 bytes as many places are in a vector, where they fit.
      bool is_short = provably_less(place, INT32_MAX) == std::optional(true);
      Value i = l_.b().convert(l_.b().index(place), is_short ? DType::Int32 : DType::Int64);
      if (!closed.empty()) i = l_.b().arg_reduce(item, i, closed, "arg" + combiner)[1];
      out = l_.b().convert(i, DType::Int64);
    } else if (s_.chains > 0 && is_floating(type_of(item).dtype)) {
      out = chained(item, combiner);
    } else {
      out = closed.empty() ? item : l_.b().reduce(item, closed, combiner);
    }
    return out;
  }

  // The innermost axis first; the sums of its chains one after the other, those in lanes by way of memory.
  Value chained(Value item, const std::string& combiner) {
    LoopBuilder& b = l_.b();
    for (size_t i = chains_.size(); i-- > 0;) {
      Chains& c = chains_[i];
      if (c.step) item = b.reduce(item, {*c.step}, combiner);
      Expr each = c.chain;
      if (c.lanes) {
        if (!c.joined) c.joined = b.loop("serial", c.some, 1, s_.chains);
        each = *c.joined;
        item = b.load(b.stage(item, {c.chain}), each);
      }
      item = b.reduce(item, {each}, combiner);
    }
    return item;
  }

  // What a value is where it is not what memory holds at this place already: by then nothing of it need be read or written there.
  struct Change {
    Value value, where;  // absent: it is all there; true everywhere
  };
  Change change(Value v, Value buffer, Expr place) {
    const Node* n = v.node;
    if (loop_kind(n->op) == LoopOp::Load && n->arg<Value>(0) == buffer && n->arg<Expr>(1) == place) return {};
    if (scalar_op_of(n->op) != ops::ScalarOp::Select) return {v, {}};
    Value condition = n->arg<Value>(0);
    Change a = change(n->arg<Value>(1), buffer, place), b = change(n->arg<Value>(2), buffer, place);
    if (a.value && b.value && !a.where && !b.where) return {v, {}};
    if (!a.value && !b.value) return {};
    auto op = [&](ops::ScalarOp o, std::initializer_list<Value> operands) { return l_.b().op(o, operands); };
    Value otherwise = b.value ? op(ops::ScalarOp::BitNot, {condition}) : Value{};
    if (!a.value) return {b.value, l_.expressions().both(otherwise, b.where)};
    if (!b.value) return {a.value, l_.expressions().both(condition, a.where)};
    Value first = l_.expressions().both(condition, a.where), second = l_.expressions().both(otherwise, b.where);
    return {op(ops::ScalarOp::Select, {condition, a.value, b.value}), op(ops::ScalarOp::BitOr, {first, second})};
  }

  Value scan(const Node* n) {
    Value& out = scans_[n];
    if (out) return out;
    Value item = l_.expressions().at(n->arg<Value>(0), dims_);
    if (!scanned_) return out = item;
    Value factor = n->arg(3).is_none() ? Value{} : l_.expressions().at(n->arg<Value>(3), dims_);
    return out = l_.b().scan(item, *scanned_, n->arg<std::string>(2), factor);
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
  // Of a reduced axis, where the order matters: its chains, in lanes or not, the elements of each and their place in the axis, how many chains
  // have any, and a loop that joins those of lanes.
  struct Chains {
    Expr chain, some, within;
    std::optional<Expr> step, joined;
    bool lanes = false;
  };
  std::vector<Chains> chains_;  // outer axes first
  std::vector<Expr> stacked_;   // the summed ones
  std::vector<Value> tiles_;    // by output: its element, from shared memory
  std::optional<Expr> scanned_;
  // Threads of a GPU, or steps, that have a place among what is kept, and in their row; those that may read it, and what a row has once.
  Value kept_mask_, row_mask_, read_mask_, once_mask_;
  // What a stage holds: the elements at `index`, where `mask` was true.
  struct Stage {
    Index index;
    Value mask, values;
  };
  std::unordered_map<const Node*, Stage> stages_;
  std::unordered_map<const Node*, Value> reduced_, scans_;
};

}  // namespace

void lower_loops(const Group& group, const Schedule& schedule, std::vector<Lowered>& out) {
  out.push_back(Loops(group, schedule).run());
}

}  // namespace brasa::compiler
