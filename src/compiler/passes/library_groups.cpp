#include <algorithm>

#include "compiler/libraries/library.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

void group_library_calls(Primitives& p, const PassContext& context) {
  std::vector<Node*> live = live_nodes(*p.graph);
  std::unordered_map<const Node*, int> uses = ir::count_uses(*p.graph);
  std::unordered_set<const Node*> taken;
  // Whether nobody else reads what is computed inside but the results.
  auto closed = [&](const Node* last, const Covered& covered) {
    const std::vector<const Node*>&inside = covered.inside, &results = covered.results;
    std::unordered_map<const Node*, int> reads;
    auto note = [&](const Node* n) { n->for_each_input([&](Value v) { ++reads[v.node]; }); };
    note(last);
    for (const Node* n : inside) note(n);
    return std::all_of(inside.begin(), inside.end(), [&](const Node* n) {
      if (taken.count(n)) return false;
      if (std::find(results.begin(), results.end(), n) != results.end()) return true;
      return reads[n] == uses[n] && !p.in_memory.count({const_cast<Node*>(n), 0});
    });
  };
  for (size_t k = live.size(); k-- > 0;) {
    const Node* n = live[k];
    if (taken.count(n)) continue;
    for (const Implementation* i : context.machine.libraries.of_groups(n->op)) {
      auto covered = i->covers(*p.graph, *n);
      if (!covered || !closed(n, *covered)) continue;
      taken.insert(covered->inside.begin(), covered->inside.end());
      for (Value v : covered->operands)
        if (!ir::is_input(v)) p.in_memory.insert(v);
      p.groups.emplace(n, LibraryGroup{i, std::move(*covered)});
      break;
    }
  }
}

}  // namespace brasa::compiler
