#include "compiler/passes/large_sizes.h"

#include <algorithm>

#include "ir/copy.h"
#include "ir/expr_walk.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

using ir::Expr;

namespace {

// Kernels compute smaller ones themselves, so that what operands' sizes have to do with each other is seen.
constexpr uint32_t kLargest = 64;

// The bodies of control flow have symbols of their own for sizes, of which passes ask what they are in the example.
bool has_body(const ir::Node& n) {
  return std::any_of(n.args.begin(), n.args.end(), [](const ir::Arg& a) { return a.is<ir::Body>(); });
}

}  // namespace

Expr LargeSizes::operator()(const Expr& e) {
  if (e->weight <= kLargest) return e;
  if (auto it = known_.find(e); it != known_.end()) return it->second;
  Expr out = with_room([&] { return ir::with_parts(e, [this](const Expr& part) { return (*this)(part); }); });
  if (out->weight > kLargest) {
    auto id = static_cast<uint32_t>(to_.first + to_.are.size());
    to_.are.push_back(out);
    out = Expr::size(id, out->min, std::max<int64_t>(std::abs(out->divisor), 1));
  }
  return known_.emplace(e, out).first->second;
}

void define_large_sizes(Primitives& p, const PassContext& context) {
  const auto& nodes = p.graph->nodes();
  if (context.portable || std::any_of(nodes.begin(), nodes.end(), [](const ir::Node* n) { return has_body(*n); }))
    return;
  bool any = false;
  p.defined.emplace();
  auto see = [&](const Expr& e) {
    any = any || e->weight > kLargest;
    for (const Expr& s : *e->symbols) p.defined->first = std::max(p.defined->first, s->id + 1);
  };
  for (const ir::Node* n : nodes) ir::each_size(*n, see);
  for (const ir::Input& in : p.graph->inputs()) std::for_each(in.strides.begin(), in.strides.end(), see);
  if (!any) return;
  LargeSizes large(*p.defined);
  ir::ValueMap map;
  p.graph = ir::with_sizes(*p.graph, [&](Expr e) { return large(e); }, map);
  std::unordered_set<Value> in_memory;
  for (Value v : p.in_memory) in_memory.insert(map(v));
  p.in_memory = std::move(in_memory);
}

}  // namespace brasa::compiler
