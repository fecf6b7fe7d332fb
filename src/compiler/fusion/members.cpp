#include "compiler/fusion/members.h"

#include <algorithm>

#include "support/fresh_stack.h"

namespace brasa::compiler {

Member Members::of(const Node* root, const Domain& d) const {
  if (sums_columns(root, d)) return Member::Columns;
  if (is_reduction(prim_of(root)))
    return same_blocks(reduced_domain(root), d, machine_.orders_sums()) ? Member::Reduce : Member::None;
  if (prim_of(root) == Prim::Scan)
    return root->types[0].shape == d.dims && d.scanned == scanned_dim(root) ? Member::Full : Member::None;
  Expr numel = root->types[0].numel();
  if (numel == d.numel()) return Member::Full;
  if (numel == d.rows()) return Member::Row;
  return Member::None;
}

void Members::walk(Value v, const Index& index, const Access& access, Seen& seen, bool top) {
  if (!seen.insert({v, index}).second) return;
  const Node* n = v.node;
  Prim p = prim_of(n);
  if (!top && (in_memory_[n->id] || p == Prim::Input)) return access(v, index);
  if (is_leaf(p)) return;
  with_room([&] {
    Pick pick = [&](Value indices, const Index& at, Expr size) {
      walk(indices, at, access, seen, false);
      return Expr::value(kProbeRange + next_value_++, size);
    };
    for (const Read& r : reads(n, index, pick)) walk(r.operand, r.index, access, seen, false);
  });
}

bool Members::aligned(const std::vector<Node*>& made, const std::vector<Node*>& readers, const Domain& d) {
  Index index = iteration(d);
  Expr full = linearise(index, d.dims), row = linearise(kept(d, index), kept(d, d.dims));
  bool ok = true;
  Seen seen;
  for (Node* root : readers) {
    Member m = of(root, d);
    Access access = [&](Value v, const Index& at) {
      if (!ok || std::find(made.begin(), made.end(), v.node) == made.end()) return;
      Expr linear = linearise(at, type_of(v).shape);
      Member maker = of(v.node, d);
      ok = maker == Member::Full ? m != Member::Row && linear == full : maker != Member::Columns && linear == row;
    };
    bool folds = m == Member::Reduce || m == Member::Columns || prim_of(root) == Prim::Scan;
    auto walk_from = [&](Value v) { walk(v, member_index(root, d, index), access, seen, !folds); };
    if (folds)
      root->for_each_input(walk_from);
    else
      walk_from(root->out());
    if (!ok) return false;
  }
  return true;
}

bool Members::read_evenly(const std::vector<Node*>& readers, const Domain& d) {
  constexpr int64_t kShort = 4;
  std::vector<std::optional<Expr>> all = steps(readers, nullptr, d);
  return std::all_of(all.begin(), all.end(), [&](const std::optional<Expr>& step) {
    return step && (machine_.gpu || (step->is_constant() && std::abs(step->constant()) <= kShort));
  });
}

std::vector<std::optional<Expr>> Members::steps(const std::vector<Node*>& readers, const Node* value, const Domain& d) {
  Index index = iteration(d);
  std::vector<std::optional<Expr>> out;
  Seen seen;
  Access access = [&](Value v, const Index& at) {
    if (!value || v.node == value) out.push_back(coefficient(linearise(at, type_of(v).shape), index.back()));
  };
  for (Node* root : readers) walk(root->out(), member_index(root, d, index), access, seen, true);
  return out;
}

}  // namespace brasa::compiler
