#include <algorithm>
#include <unordered_set>

#include "compiler/passes/transform.h"
#include "ir/copy.h"
#include "ops/loop.h"

namespace brasa::compiler {

void drop_unread_results(Primitives& p, const PassContext& context) {
  std::unordered_set<ir::Value> read;
  for (const ir::Node* n : ir::live_nodes(*p.graph)) n->for_each_input([&](ir::Value v) { read.insert(v); });
  for (const ir::Output& o : p.graph->outputs()) read.insert(o.value);
  // By result: whether it stays.
  auto kept = [&](const ir::Node* n) {
    std::vector<bool> out;
    for (uint32_t r = 0; r < n->types.size(); ++r)
      out.push_back(r < ops::LoopNode(*n).carried || read.count(const_cast<ir::Node*>(n)->out(r)));
    return out;
  };
  auto wanted = [&](const ir::Node* n) {
    if (n->op != &ops::at("prim::scan_loop")) return false;
    std::vector<bool> all = kept(n);
    return std::find(all.begin(), all.end(), false) != all.end();
  };
  transform(p, context.facts, wanted, [&](const ir::Node* n, ir::Args& args, Primitives&) {
    std::vector<bool> stays = kept(n);
    std::unique_ptr<ir::Graph> body = ir::copy(*args[6].get<ir::Body>());
    std::vector<ir::Output> outputs;
    size_t result = 0;
    for (ir::Output& o : body->outputs())
      if (!o.check.empty() || stays[result++]) outputs.push_back(std::move(o));
    body->outputs() = std::move(outputs);
    args[6] = ir::Body(std::shared_ptr<const ir::Graph>(ir::copy(*body)));
    std::vector<ir::Value> made = ops::Builder::current().call(ops::row_of(*n), std::move(args)), out;
    size_t next = 0;
    for (bool s : stays) out.push_back(s ? made[next++] : ir::Value{});
    return out;
  });
}

}  // namespace brasa::compiler
