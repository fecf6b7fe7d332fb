#include "compiler/fusion/changed_place.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/fusion/places.h"
#include "compiler/loops/ops.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

using ops::ScalarOp;

namespace {

using Changes = std::vector<ChangedPlace>;  // what holds wherever a value differs

bool is_false(Value v) {
  return prim_of(v) == Prim::Full && v.node->args[0].is<bool>() && !v.node->args[0].get<bool>();
}
bool is(Value v, ScalarOp op) { return prim_of(v) == Prim::Pointwise && scalar_op_of(v.node->op) == op; }

class Search {
 public:
  explicit Search(const Group& g) : g_(g), ranges_(iteration(g.domain)) {}

  std::optional<ChangedPlace> run() {
    std::optional<Changes> all;
    for (size_t i = 0; i < g_.graph->outputs().size(); ++i) {
      Value v = g_.graph->outputs()[i].value;
      if (g_.overwritten[i] < 0 || type_of(v).shape != g_.domain.dims) return std::nullopt;
      old_ = g_.graph->inputs()[static_cast<size_t>(g_.overwritten[i])].value;
      known_.clear();
      all = in_both(all, changes(v, ranges_));
    }
    return all && !all->empty() ? std::optional(all->front()) : std::nullopt;
  }

 private:
  // Nothing: it differs nowhere.
  std::optional<Changes> changes(Value v, const Index& index) {
    if (v == old_ && index == ranges_) return std::nullopt;
    auto [it, fresh] = known_.try_emplace({v, index});
    if (!fresh) return it->second;
    std::optional<Changes> out = with_room([&] { return compute(v, index); });
    return known_[{v, index}] = out;
  }
  std::optional<Changes> compute(Value v, const Index& index) {
    if (is_view(prim_of(v))) return changes(v.node->arg<Value>(0), view_index(v.node, index));
    if (!is(v, ScalarOp::Select)) return Changes{};
    std::optional<Changes> chosen = changes(v.node->arg<Value>(1), index);
    if (chosen) add_condition(*chosen, v.node->arg<Value>(0), index);
    return in_both(chosen, changes(v.node->arg<Value>(2), index));
  }
  static std::optional<Changes> in_both(std::optional<Changes> a, const std::optional<Changes>& b) {
    if (!a || !b) return a ? a : b;
    std::erase_if(*a, [&](const ChangedPlace& c) { return std::find(b->begin(), b->end(), c) == b->end(); });
    return a;
  }

  // What the places are where a condition holds.
  void add_condition(Changes& out, Value v, const Index& index) {
    Prim p = prim_of(v);
    if (is_view(p)) return with_room([&] { add_condition(out, v.node->arg<Value>(0), view_index(v.node, index)); });
    if (p == Prim::Pad && is_false(v.node->arg<Value>(1))) {
      Read inside = reads(v.node, index, nullptr)[0];
      return with_room([&] { add_condition(out, inside.operand, inside.index); });
    }
    if (is(v, ScalarOp::BitAnd))
      for (size_t i : {size_t{0}, size_t{1}}) with_room([&] { add_condition(out, v.node->arg<Value>(i), index); });
    if (!is(v, ScalarOp::Eq)) return;
    for (size_t i : {size_t{0}, size_t{1}}) {
      auto dim = dimension(v.node->arg<Value>(i), index);
      auto at = dim ? one_place(v.node->arg<Value>(1 - i), index) : std::nullopt;
      if (at && type_of(at->value).dtype == DType::Int64) out.push_back({*dim, at->value, at->index});
    }
  }
  // Along which the value counts the places.
  std::optional<size_t> dimension(Value v, Index index) const {
    for (; is_view(prim_of(v)); v = v.node->arg<Value>(0)) index = view_index(v.node, index);
    if (prim_of(v) != Prim::Iota) return std::nullopt;
    Expr counted = index[v.node->arg<Expr>(1).constant()];
    auto it = std::find(ranges_.begin(), ranges_.end(), counted);
    if (it == ranges_.end() || counted.is_constant()) return std::nullopt;
    return static_cast<size_t>(it - ranges_.begin());
  }
  // What is the same in all iterations.
  std::optional<Element> one_place(Value v, Index index) const {
    auto varies = [&](Expr e) {
      return std::any_of(ranges_.begin(), ranges_.end(), [&](Expr r) { return contains_symbol(e, r); });
    };
    for (;;) {
      if (std::none_of(index.begin(), index.end(), varies)) return Element{v, index};
      if (!is_view(prim_of(v))) return std::nullopt;
      index = view_index(v.node, index);
      v = v.node->arg<Value>(0);
    }
  }

  const Group& g_;
  Index ranges_;
  Value old_;  // what the result overwrites
  std::unordered_map<Element, std::optional<Changes>, ElementHash> known_;
};

}  // namespace

std::optional<ChangedPlace> changed_place(const Group& group) {
  if (group.overwritten.empty() || group.domain.folds()) return std::nullopt;
  return Search(group).run();
}

}  // namespace brasa::compiler
