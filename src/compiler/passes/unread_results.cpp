#include <algorithm>
#include <optional>

#include "compiler/passes/transform.h"
#include "ir/copy.h"
#include "ir/reads.h"
#include "ops/loop.h"
#include "ops/vectors.h"

namespace brasa::compiler {
namespace {

using ir::Value;

// A loop that does not compute the results that do not stay, beside its states.
std::vector<Value> loop_without(const ir::Node* n, ir::Args& args, const std::vector<bool>& stays) {
  std::unique_ptr<ir::Graph> body = ir::copy(*args[6].get<ir::Body>());
  std::vector<ir::Output> outputs;
  size_t result = 0;
  for (ir::Output& o : body->outputs())
    if (!o.check.empty() || stays[result++]) outputs.push_back(std::move(o));
  body->outputs() = std::move(outputs);
  args[6] = ir::Body(std::shared_ptr<const ir::Graph>(ir::copy(*body)));
  std::vector<Value> made = ops::Builder::current().call(ops::row_of(*n), std::move(args)), out;
  size_t next = 0;
  for (bool s : stays) out.push_back(s ? made[next++] : Value{});
  return out;
}

// Arguments with which a factorisation is asked for values alone; nothing where it always gives all.
std::optional<ir::Args> values_alone(const ir::Node* n) {
  if (!ops::with_vectors(*n).value_or(false)) return std::nullopt;
  ir::Args args = n->args;
  args.back() = false;
  return args;
}

}  // namespace

void drop_unread_results(Primitives& p, const PassContext& context) {
  const std::unordered_set<Value> read = ir::read_values(*p.graph);
  auto is_read = [&](const ir::Node* n, uint32_t r) { return read.count(const_cast<ir::Node*>(n)->out(r)) > 0; };
  auto is_loop = [](const ir::Node* n) { return n->op == &ops::at("prim::scan_loop"); };
  // By result of a loop: whether it stays.
  auto kept = [&](const ir::Node* n) {
    std::vector<bool> out;
    for (uint32_t r = 0; r < n->types.size(); ++r) out.push_back(r < ops::LoopNode(*n).carried || is_read(n, r));
    return out;
  };
  auto wanted = [&](const ir::Node* n) {
    if (is_loop(n)) {
      std::vector<bool> all = kept(n);
      return std::find(all.begin(), all.end(), false) != all.end();
    }
    std::optional<ir::Args> args = values_alone(n);
    if (!args || !context.machine.libraries.takes(ops::row_of(*n), *args)) return false;
    std::vector<ir::Type> types = ops::row_of(*n).type(*args);
    for (uint32_t r = 0; r < types.size(); ++r)
      if (types[r] != n->types[r] && is_read(n, r)) return false;
    return true;
  };
  transform(p, context.facts, wanted, [&](const ir::Node* n, ir::Args& args, Primitives&) {
    if (is_loop(n)) return loop_without(n, args, kept(n));
    args.back() = false;
    return ops::Builder::current().call(ops::row_of(*n), std::move(args));
  });
}

}  // namespace brasa::compiler
