#include <algorithm>
#include <map>
#include <set>

#include "compiler/fusion/indexing.h"
#include "compiler/loops/ops.h"
#include "compiler/passes/transform.h"

// Σ a · w, where w is the same along what is summed, is w · Σ a. Of several sums that differ in such factors alone one is left: a batch norm's
// gradient has the sums of its cotangents, and of these times the weight.
namespace brasa::compiler {

namespace prim = ops::prim;
using Dims = std::vector<int64_t>;

namespace {

// Products of more are products of this many.
constexpr size_t kMostFactors = 8;

bool sums_floats(const Node* n) {
  return prim_of(n) == Prim::Reduce && n->arg<std::string>(2) == "add" && is_floating(n->types[0].dtype);
}

void add_factors(Value v, std::vector<Value>& out) {
  bool product = prim_of(v) == Prim::Pointwise && scalar_op_of(v.node->op) == ops::ScalarOp::Mul;
  if (!product || out.size() + 2 > kMostFactors) return out.push_back(v);
  for (size_t i : {size_t{0}, size_t{1}}) add_factors(v.node->arg<Value>(i), out);
}

// What is summed: along which dimensions, and the factors, those apart that are the same along these.
struct Summed {
  Dims dims;
  std::vector<Value> varying, constant;

  Summed(Value x, const Dims& summed) : dims(summed) {
    std::vector<Value> factors;
    add_factors(x, factors);
    for (Value f : factors) (is_constant_along(f, dims) ? constant : varying).push_back(f);
  }
  // The same for the same sum.
  using Key = std::pair<Dims, std::vector<std::pair<uint32_t, uint32_t>>>;
  Key key() const {
    Key out{dims, {}};
    for (Value v : varying) out.second.emplace_back(v.node->id, v.index);
    std::sort(out.second.begin(), out.second.end());
    return out;
  }
  // Or what may have no elements, whose sum a factor may not change.
  bool of_nothing() const { return varying.empty() || !ir::min(type_of(varying[0]).numel(), Expr(1)).is(1); }
  Value product() const {
    Value out = varying[0];
    for (size_t i = 1; i < varying.size(); ++i) out = prim::binary("mul", out, varying[i]);
    return out;
  }
};

}  // namespace

void share_sums(Primitives& p, const PassContext& context) {
  // On a CPU a sum more costs less than its memory does.
  if (!context.machine.gpu || context.machine.one_order) return;
  auto sum_of = [](const Node* n) { return Summed(n->arg<Value>(0), int_args(n, 1)); };
  std::map<Summed::Key, int> count;
  std::set<Summed::Key> shared;
  std::vector<Summed> scaled;
  for (const Node* n : live_nodes(*p.graph)) {
    if (!sums_floats(n)) continue;
    Summed s = sum_of(n);
    ++count[s.key()];
    if (!s.constant.empty() && !s.of_nothing()) scaled.push_back(std::move(s));
  }
  for (const Summed& s : scaled)
    if (count[s.key()] > 1) shared.insert(s.key());
  if (shared.empty()) return;
  std::map<Summed::Key, Value> made;
  transform(p, context.facts, sums_floats, [&](const Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    Summed before = sum_of(n);
    if (!shared.count(before.key())) return {};
    Summed now(args[0].get<Value>(), before.dims);
    Value& sum = made[before.key()];
    if (!sum) sum = prim::reduce(now.constant.empty() ? args[0].get<Value>() : now.product(), before.dims, "add");
    Value out = sum;
    for (Value w : now.constant) {
      Value one = first_along(w, before.dims, ops::shape_of(sum));
      out = prim::binary("mul", out, one);
    }
    return {out};
  });
}

}  // namespace brasa::compiler
