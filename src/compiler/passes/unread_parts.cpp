#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/loops/ops.h"
#include "compiler/passes/ranges.h"
#include "compiler/passes/transform.h"

// Where only a part of a tensor is read, as the first token's features, the rest is not computed, nor what only that was made of: slices move to
// operands. And where a tensor is zero but for a part, as the gradient of a slice is, what is made of it is computed for that part alone and padded
// later: gradients of what nobody read need no products.
//
// Zero times anything is zero there. So a NaN or an infinity in elements that nothing reads does not reach gradients, as it does where they are multiplied.
// A mask of the user's own hides neither: zeros count where the graph has the slice that they are the gradient of, at the same place of a tensor as large.
namespace brasa::compiler {

namespace prim = ops::prim;
using ops::ScalarOp;
using ops::shape_of;

namespace {

using MaybePart = std::optional<Part>;  // absent: the whole tensor

// Whether so much less is computed that other sizes, which may be odd, do not matter.
bool is_small(const Part& part, const Shape& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    auto size = part[d].size.maybe_constant(), extent = shape[d].maybe_constant();
    if (size && (extent ? 2 * *size <= *extent : *size == 1)) return true;
  }
  return false;
}

// --- which parts ---

// A range along a dimension of another tensor that has as many elements, by an equal size or by a fact.
Range along(const Range& r, Expr extent, Expr other) { return r.is_whole(extent) ? Range{0, other, 1} : r; }

bool divides_well(Value v) {
  double by = number_of(v).value_or(0);
  return by != 0 && std::isfinite(by);
}

class UnreadParts {
 public:
  explicit UnreadParts(const ir::Graph& graph) : live_(live_nodes(graph)) {
    for (const Node* n : live_)
      if (prim_of(n) == Prim::Slice)
        if (MaybePart p = sliced_part(n)) slices_.emplace_back(shape_of(n->arg<Value>(0)), std::move(*p));
    if (slices_.empty()) return;  // as of most graphs: all is read
    for (const Node* n : live_)
      if (MaybePart p = nonzero_of(n)) nonzero_[n] = std::move(*p);
    for (const ir::Output& o : graph.outputs()) ask(o.value, std::nullopt);
    for (size_t i = live_.size(); i-- > 0;) choose(live_[i]);
    for (const Node* n : live_) take_back(n);
  }
  // Whether anything is computed for less than all elements.
  bool any() const { return any_; }
  // Whether a node is made anew, for the part of its result that is computed; absent: all of it.
  bool changes(const Node* n) const { return parts_.count(n) > 0; }
  MaybePart part_of(const Node* n) const {
    auto it = parts_.find(n);
    return it == parts_.end() ? std::nullopt : it->second;
  }
  bool is_zero_elsewhere(const Node* n) const { return nonzero_.count(n) > 0; }
  // What a slice reads; absent: so much that its operand is computed as a whole.
  static MaybePart sliced_part(const Node* n) {
    Part p;
    const auto &start = n->arg<std::vector<Expr>>(1), &step = n->arg<std::vector<Expr>>(3);
    for (size_t d = 0; d < start.size(); ++d) p.push_back({start[d], n->types[0].shape[d], step[d]});
    return is_small(p, shape_of(n->arg<Value>(0))) ? MaybePart(std::move(p)) : std::nullopt;
  }
  // Which part of its i-th operand a node reads for a part of its result; not possible where its kind reads others, too.
  struct Operand {
    bool possible = true;
    MaybePart part;
  };
  Operand operand_part(const Node* n, size_t i, const Part& part) const {
    Value v = n->arg<Value>(i);
    const Shape& shape = n->types[0].shape;
    auto of = [&](Part p) { return Operand{true, is_whole(p, shape_of(v)) ? std::nullopt : MaybePart(std::move(p))}; };
    auto from = [&](size_t d, Expr extent) { return along(part[d], shape[d], extent); };
    switch (prim_of(n)) {
      case Prim::Pointwise: {
        Part p;
        for (size_t d = 0; d < part.size(); ++d) p.push_back(from(d, shape_of(v)[d]));
        return of(std::move(p));
      }
      case Prim::Transpose: {
        Part p(part.size());
        std::vector<int64_t> dims = int_args(n, 1);
        for (size_t d = 0; d < dims.size(); ++d) p[static_cast<size_t>(dims[d])] = part[d];
        return of(std::move(p));
      }
      case Prim::Broadcast: {
        Part p;
        std::vector<int64_t> dims = int_args(n, 2);
        for (size_t d = 0; d < dims.size(); ++d) {
          auto to = static_cast<size_t>(dims[d]);
          Expr extent = shape_of(v)[d];
          p.push_back(extent.is(1) ? Range{0, extent, 1} : from(to, extent));
        }
        return of(std::move(p));
      }
      case Prim::Reshape: {
        MaybePart p = reshaped(part, shape, shape_of(v));
        if (!p) return {false, {}};
        return of(std::move(*p));
      }
      case Prim::Reduce: {
        Part p = summed_part(n, v);
        std::vector<int64_t> kept = other_dims(int_args(n, 1), type_of(v).rank());
        for (size_t d = 0; d < kept.size(); ++d) {
          Range& r = p[static_cast<size_t>(kept[d])];
          r = from(d, shape_of(v)[static_cast<size_t>(kept[d])]);
        }
        return of(std::move(p));
      }
      case Prim::Dot: return of(product_part(n, i, part));
      default: return {false, {}};
    }
  }

 private:
  // Of dimensions that are summed over: where nothing but zeros are left out.
  Part summed_part(const Node* n, Value v) const {
    auto zeros = nonzero_.find(v.node);
    bool adds = n->arg<std::string>(2) == "add";
    return adds && zeros != nonzero_.end() ? zeros->second : whole_of(shape_of(v));
  }
  Part product_part(const Node* n, size_t i, const Part& part) const {
    Value v = n->arg<Value>(i);
    Part p = whole_of(shape_of(v));
    std::vector<int64_t> batch = int_args(n, 4 + i), summed = int_args(n, 2 + i), taken = batch;
    size_t at = 0;
    auto take = [&](int64_t d) {
      Range& r = p[static_cast<size_t>(d)];
      r = along(part[at], n->types[0].shape[at], r.size);
      ++at;
    };
    for (int64_t d : batch) take(d);
    taken.insert(taken.end(), summed.begin(), summed.end());
    std::vector<int64_t> free = other_dims(taken, type_of(v).rank());
    if (i == 1) at = part.size() - free.size();
    for (int64_t d : free) take(d);
    for (size_t k = 0; k < summed.size(); ++k)
      if (std::optional<Range> r = summed_range(n, k)) p[static_cast<size_t>(summed[k])] = *r;
    return p;
  }
  // Along the k-th pair of dimensions that a product sums over, where one operand is zero but for a part.
  std::optional<Range> summed_range(const Node* n, size_t k) const {
    for (size_t i : {0, 1}) {
      Value v = n->arg<Value>(i);
      auto d = static_cast<size_t>(int_args(n, 2 + i)[k]);
      auto zeros = nonzero_.find(v.node);
      if (zeros != nonzero_.end() && !zeros->second[d].is_whole(shape_of(v)[d])) return zeros->second[d];
    }
    return std::nullopt;
  }
  // Whether a part of what it sums is all that it needs, for all of its result.
  bool sums_less(const Node* n) const {
    Part all = whole_of(n->types[0].shape);
    Prim p = prim_of(n);
    if (p == Prim::Reduce) return operand_part(n, 0, all).part.has_value();
    return p == Prim::Dot && (operand_part(n, 0, all).part || operand_part(n, 1, all).part);
  }

  MaybePart nonzero(Value v) const {
    auto it = nonzero_.find(v.node);
    return it == nonzero_.end() ? std::nullopt : MaybePart(it->second);
  }
  // The part of a node's result outside of which it is zero; absent: not known.
  MaybePart nonzero_of(const Node* n) const {
    if (n->types.size() != 1) return {};
    const Shape& shape = n->types[0].shape;
    auto of = [&](MaybePart p) { return p && !is_whole(*p, shape) ? p : std::nullopt; };
    switch (prim_of(n)) {
      case Prim::Pad: {
        if (!is_zero(n->arg<Value>(1))) return {};
        const auto &low = n->arg<std::vector<Expr>>(2), &between = n->arg<std::vector<Expr>>(4);
        Part p;
        for (size_t d = 0; d < shape.size(); ++d) p.push_back({low[d], shape_of(n->arg<Value>(0))[d], between[d] + 1});
        std::pair slice{shape, p};
        bool of_slice = std::find(slices_.begin(), slices_.end(), slice) != slices_.end();
        return of_slice ? MaybePart(std::move(p)) : std::nullopt;
      }
      case Prim::Pointwise: return of(nonzero_of_elements(n));
      case Prim::Transpose: {
        MaybePart from = nonzero(n->arg<Value>(0));
        if (!from) return {};
        Part p;
        for (int64_t d : int_args(n, 1)) p.push_back((*from)[static_cast<size_t>(d)]);
        return p;
      }
      case Prim::Broadcast: {
        MaybePart from = nonzero(n->arg<Value>(0));
        if (!from) return {};
        Part p = whole_of(shape);
        std::vector<int64_t> dims = int_args(n, 2);
        for (size_t d = 0; d < dims.size(); ++d) {
          auto to = static_cast<size_t>(dims[d]);
          if (Expr extent = shape_of(n->arg<Value>(0))[d]; !extent.is(1)) p[to] = along((*from)[d], extent, shape[to]);
        }
        return of(std::move(p));
      }
      case Prim::Reshape: {
        MaybePart from = nonzero(n->arg<Value>(0));
        return of(from ? reshaped(*from, shape_of(n->arg<Value>(0)), shape) : std::nullopt);
      }
      case Prim::Reduce: {
        MaybePart from = nonzero(n->arg<Value>(0));
        if (!from || n->arg<std::string>(2) != "add") return {};
        Part p;
        for (int64_t d : other_dims(int_args(n, 1), type_of(n->arg<Value>(0)).rank()))
          p.push_back((*from)[static_cast<size_t>(d)]);
        return of(std::move(p));
      }
      case Prim::Dot: return of(nonzero_of_product(n));
      default: return {};
    }
  }
  MaybePart nonzero_of_elements(const Node* n) const {
    Value a = n->arg<Value>(0);
    auto both = [&](Value x, Value y) -> MaybePart {
      if (is_zero(x)) return nonzero(y);
      if (is_zero(y) || nonzero(x) == nonzero(y)) return nonzero(x);
      return {};
    };
    switch (scalar_op_of(n->op)) {
      case ScalarOp::Convert:
      case ScalarOp::Neg:
      case ScalarOp::Abs: return nonzero(a);
      case ScalarOp::Add:
      case ScalarOp::Sub: return both(a, n->arg<Value>(1));
      case ScalarOp::Mul: {
        MaybePart p = nonzero(a);
        return p ? p : nonzero(n->arg<Value>(1));
      }
      case ScalarOp::Div: return divides_well(n->arg<Value>(1)) ? nonzero(a) : std::nullopt;
      case ScalarOp::Select: return both(n->arg<Value>(1), n->arg<Value>(2));
      default: return {};
    }
  }
  MaybePart nonzero_of_product(const Node* n) const {
    Part p = whole_of(n->types[0].shape);
    size_t batches = int_args(n, 4).size(), at = batches;
    for (size_t i : {0, 1}) {
      MaybePart from = nonzero(n->arg<Value>(i));
      std::vector<int64_t> batch = int_args(n, 4 + i), taken = int_args(n, 2 + i);
      for (size_t b = 0; from && b < batches; ++b)
        if (p[b].is_whole(n->types[0].shape[b])) p[b] = (*from)[static_cast<size_t>(batch[b])];
      taken.insert(taken.end(), batch.begin(), batch.end());
      for (int64_t d : other_dims(taken, type_of(n->arg<Value>(i)).rank())) {
        if (from) p[at] = (*from)[static_cast<size_t>(d)];
        ++at;
      }
    }
    return p;
  }

  // --- readers first ---

  void ask(Value v, MaybePart part) {
    auto [it, is_new] = asked_.try_emplace(v.node, Asked{part, part.has_value()});
    if (is_new) return;
    it->second.any_part |= part.has_value();
    if (it->second.part != part) it->second.part = part ? around(it->second.part, *part, shape_of(v)) : std::nullopt;
  }
  // A part that has both in it, if it is small.
  static MaybePart around(const MaybePart& a, const Part& b, const Shape& shape) {
    if (!a) return {};
    Part out;
    for (size_t d = 0; d < shape.size(); ++d) {
      const Range &x = (*a)[d], &y = b[d];
      if (x == y) {
        out.push_back(x);
        continue;
      }
      auto next = ir::provably_less(x.start, y.start).value_or(false);
      const Range &first = next ? x : y, &last = next ? y : x;
      Expr end = ir::max(first.start + first.size, last.start + last.size);
      bool lines = x.step.is(1) && y.step.is(1) && (next || ir::provably_less(y.start, x.start + 1).value_or(false));
      if (!lines) return {};
      out.push_back({first.start, end - first.start, 1});
    }
    return is_small(out, shape) ? MaybePart(std::move(out)) : std::nullopt;
  }
  void choose(const Node* n) {
    Asked asked = asked_[n];
    MaybePart part = n->types.size() == 1 ? asked.part : std::nullopt;
    if (MaybePart nonzero = this->nonzero({const_cast<Node*>(n), 0}))
      if (part || asked.any_part || !moves(n)) part = std::move(nonzero);
    if (prim_of(n) == Prim::Slice) return ask(n->arg<Value>(0), sliced_part(n));
    // What is padded is all of the part.
    if (prim_of(n) == Prim::Pad && part && is_zero_elsewhere(n)) parts_[n] = std::move(part);
    if (!by_parts(n) || (!part && !sums_less(n))) return ask_whole(n);
    Part all = part ? *part : whole_of(n->types[0].shape);
    std::vector<MaybePart> operands;
    for (size_t i = 0; i < n->args.size(); ++i) {
      if (!n->args[i].is<Value>()) continue;
      Operand o = operand_part(n, i, all);
      if (!o.possible) return ask_whole(n);
      operands.push_back(std::move(o.part));
    }
    size_t next = 0;
    n->for_each_input([&](Value v) { ask(v, operands[next++]); });
    parts_[n] = std::move(part);
  }
  void ask_whole(const Node* n) {
    n->for_each_input([&](Value v) { ask(v, std::nullopt); });
  }
  // Whether there may be a part of each operand for a part of the result.
  static bool by_parts(const Node* n) {
    switch (prim_of(n)) {
      case Prim::Full:
      case Prim::Pointwise:
      case Prim::Transpose:
      case Prim::Broadcast:
      case Prim::Reshape:
      case Prim::Reduce:
      case Prim::Dot: return true;
      default: return false;
    }
  }
  // Whether it only says where elements are, or in which dtype.
  static bool moves(const Node* n) {
    Prim p = prim_of(n);
    return is_view(p) || is_leaf(p) || p == Prim::Pad || scalar_op_of(n->op) == ScalarOp::Convert;
  }

  // --- operands first ---

  // Whether it has the same elements again and again, of which a part needs no slice.
  bool spreads(const Node* n) const {
    if (prim_of(n) == Prim::Full) return true;
    return prim_of(n) == Prim::Broadcast && !operand_part(n, 0, *part_of(n)).part;
  }

  // Views of what is whole stay where they are.
  void take_back(const Node* n) {
    auto it = parts_.find(n);
    if (it == parts_.end()) return;
    bool stays = !moves(n) || is_zero_elsewhere(n) || spreads(n);
    n->for_each_input([&](Value v) { stays |= part_of(v.node).has_value(); });
    if (!stays)
      parts_.erase(it);
    else
      any_ |= !moves(n);
  }

  struct Asked {
    MaybePart part;
    bool any_part = false;
  };
  std::vector<Node*> live_;
  std::vector<std::pair<Shape, Part>> slices_;  // small ones: of tensors of such a shape
  std::unordered_map<const Node*, Part> nonzero_;
  std::unordered_map<const Node*, MaybePart> parts_;
  std::unordered_map<const Node*, Asked> asked_;
  bool any_ = false;
};

Value part_of(Value whole, const Part& part) {
  return prim::slice(whole, starts_of(part), sizes_of(part), steps_of(part));
}

// Makes the nodes of a new graph.
class Maker {
 public:
  Maker(const UnreadParts& parts, const ir::Facts& facts) : parts_(parts), facts_(facts) {}

  std::vector<Value> operator()(const Node* n, ir::Args& args) {
    if (prim_of(n) == Prim::Slice) {
      MaybePart read = UnreadParts::sliced_part(n);
      if (!read || !parts_.part_of(n->arg<Value>(0).node)) return {};
      return {operand(n, 0, args, read)};
    }
    if (!parts_.changes(n)) return {};
    MaybePart part = parts_.part_of(n);
    Value made;
    if (prim_of(n) == Prim::Pad) {
      made = args[0].get<Value>();
    } else {
      Part all = part ? *part : whole_of(n->types[0].shape);
      ir::Args of_part = args;
      for (size_t i = 0; i < args.size(); ++i)
        if (args[i].is<Value>()) of_part[i] = operand(n, i, args, parts_.operand_part(n, i, all).part);
      if (Prim p = prim_of(n); p == Prim::Reshape || p == Prim::Broadcast || p == Prim::Full)
        of_part[1] = known(sizes_of(all));
      made = ops::Builder::current().call(ops::row_of(*n), std::move(of_part))[0];
    }
    if (!part) return {made};
    made_[n] = made;
    if (!parts_.is_zero_elsewhere(n)) return {made};  // nobody reads more
    Part all = known(*part);
    return {prim::zeros_around(made, starts_of(all), steps_of(all), known(n->types[0].shape))};
  }

 private:
  // A part of a node's operand.
  Value operand(const Node* n, size_t i, const ir::Args& args, MaybePart part) const {
    const Node* of = n->arg<Value>(i).node;
    Value v = args[i].get<Value>();
    if (!part) return v;
    MaybePart computed = parts_.part_of(of);
    if (!computed || (computed != part && parts_.is_zero_elsewhere(of))) return part_of(v, known(*part));
    v = made_.at(of);
    if (computed == part) return v;
    for (size_t d = 0; d < part->size(); ++d) {
      Range &r = (*part)[d], all = (*computed)[d];
      r = r == all ? Range{0, all.size, 1} : Range{r.start - all.start, r.size, r.step};
    }
    return part_of(v, known(*part));
  }
  Shape known(Shape all) const {
    for (Expr& e : all) e = facts_.known(e);
    return all;
  }
  Part known(Part all) const {
    for (Range& r : all) r = {facts_.known(r.start), facts_.known(r.size), facts_.known(r.step)};
    return all;
  }

  const UnreadParts& parts_;
  const ir::Facts facts_;
  std::unordered_map<const Node*, Value> made_;
};

}  // namespace

void drop_unread_parts(Primitives& p, const PassContext& context) {
  if (context.machine.one_order) return;
  UnreadParts parts(*p.graph);
  if (!parts.any()) return;
  Maker maker(parts, context.facts);
  transform(p, context.facts, nullptr, [&](const Node* n, ir::Args& args, Primitives&) { return maker(n, args); });
  simplify(p, context);
}

}  // namespace brasa::compiler
