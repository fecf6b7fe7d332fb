#include "compiler/fusion/padded_rows.h"

#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/values_in_memory.h"

namespace brasa::compiler {

namespace {

using Strides = std::unordered_map<const Node*, std::vector<Expr>>;

// Nothing where rows begin at such multiples, or are short.
std::vector<Expr> padded(const ir::Type& t) {
  constexpr int64_t kAligned = 16, kShort = 16;
  if (t.rank() < 2 || !t.numel().is_constant() || t.shape.back().constant() < kShort) return {};
  int64_t step = kAligned / size_of(t.dtype), length = t.shape.back().constant();
  if (step <= 1 || length % step == 0) return {};
  ir::Shape longer = t.shape;
  longer.back() = (length + step - 1) / step * step;
  return ir::contiguous_strides(longer);
}

}  // namespace

Strides padded_rows(const ir::Graph& graph, const std::vector<bool>& in_memory,
                    const std::vector<const Implementation*>& library,
                    const std::function<GroupKind(const Node*)>& kind) {
  Strides out;
  std::unordered_map<const Node*, std::vector<const Node*>> readers;
  std::vector<const Node*> wanted;
  auto reads_where_it_lies = [&](const Node* n) { return library[n->id] && library[n->id]->reads; };
  for (const Node* root : live_nodes(graph)) {
    if (!in_memory[root->id] || prim_of(root) == Prim::Input) continue;
    bool product = reads_where_it_lies(root);
    if (product) wanted.push_back(root);
    each_read_value(root, in_memory, [&](const Node* p) {
      readers[p].push_back(root);
      if (product && prim_of(p) != Prim::Input) wanted.push_back(p);
    });
  }
  for (const ir::Output& o : graph.outputs()) readers[o.value.node].push_back(nullptr);
  // Whether this root can read everything from where it is.
  auto can_read = [&](const Node* root) {
    if (!root) return false;
    if (!library[root->id]) return kind(root) == GroupKind::Loops;
    if (!library[root->id]->reads) return false;
    Strides stored;
    each_read_value(root, in_memory, [&](const Node* p) {
      auto it = out.find(p);
      stored[p] = it != out.end() ? it->second : ir::strides_of(graph, Value{const_cast<Node*>(p), 0});
    });
    return library[root->id]->reads(*root, stored);
  };
  for (const Node* v : wanted) {
    std::vector<Expr> strides = padded(v->types[0]);
    if (strides.empty() || v->types.size() > 1 || out.count(v)) continue;
    bool makes = kind(v) == GroupKind::Loops || reads_where_it_lies(v);
    out[v] = strides;
    if (!makes || !std::all_of(readers[v].begin(), readers[v].end(), can_read)) out.erase(v);
  }
  return out;
}

}  // namespace brasa::compiler
