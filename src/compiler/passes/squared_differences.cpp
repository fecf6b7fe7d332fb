#include <algorithm>
#include <unordered_set>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/loops/ops.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"

// Σ (x - b)², where b is the same along what is summed and is made of another sum of x: a variance. The second sum would read x from memory
// again after the first one. With d = x - s, for any s,
//     Σ (x - b)² = Σ d² - (b - s) · (2 Σ d - n (b - s)),
// and no digits that matter are lost where s is an element of x.
namespace brasa::compiler {

namespace prim = ops::prim;
using ops::ScalarOp;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

// What lies in a cache is read twice as fast as once.
constexpr int64_t kLarge = 1 << 20;

bool is(Value v, ScalarOp op) { return scalar_op_of(v.node->op) == op; }

// Whether a sum of x over these dimensions is part of what v is made of, close by.
bool needs_sum(Value v, Value x, const Dims& dims) {
  constexpr size_t kClose = 24;
  std::unordered_set<const Node*> seen{v.node};
  std::vector<const Node*> open{v.node};
  while (!open.empty() && seen.size() < kClose) {
    const Node* n = open.back();
    open.pop_back();
    if (prim_of(n) == Prim::Reduce && n->arg<Value>(0) == x && int_args(n, 1) == dims) return true;
    n->for_each_input([&](Value i) {
      if (seen.insert(i.node).second) open.push_back(i.node);
    });
  }
  return false;
}

// Known, or asked as a fact where facts can be.
bool is_large(Expr elements, const PassContext& context) {
  bool known = ir::min(elements, Expr(kLarge)).is_constant();
  return (known || context.size_classes) && at_least(elements, kLarge, context);
}

Value squared_differences(const Node* n, Value square, const PassContext& context) {
  if (!is(square, ScalarOp::Mul) || square.node->arg<Value>(0) != square.node->arg<Value>(1)) return {};
  Value difference = square.node->arg<Value>(0);
  if (!is(difference, ScalarOp::Sub)) return {};
  Value x = difference.node->arg<Value>(0), b = difference.node->arg<Value>(1);
  Dims dims = int_args(n, 1), others = other_dims(dims, ops::rank_of(x));
  const Shape& shape = shape_of(x);
  Expr elements = type_of(x).numel(), count = ir::product(pick(shape, dims));
  bool columns = !others.empty() && others.back() == ops::rank_of(x) - 1 && !shape.back().is(1);
  if (!columns || !is_constant_along(b, dims) || !needs_sum(b, x, dims) || !is_large(elements, context)) return {};
  Shape kept = pick(shape, others);
  Value s = first_along(x, dims, kept), d = prim::binary("sub", x, prim::broadcast(s, shape, others));
  Value sum = prim::reduce(d, dims, "add"), squares = prim::reduce(prim::binary("mul", d, d), dims, "add");
  DType t = ops::dtype_of(x);
  auto number = [&](double v) { return prim::full(ops::Number(v), kept, t); };
  // One node a statement: compilers order arguments as they like, and a graph has one order of nodes.
  Value off = prim::binary("sub", first_along(b, dims, kept), s);
  Value two = number(2), none = number(0);
  Value all = count.is_constant() ? number(static_cast<double>(count.constant()))
                                  : prim::broadcast(ops::count(x, dims, t), kept, {});
  Value sums = prim::binary("mul", sum, two), moved = prim::binary("mul", off, all);
  Value twice = prim::binary("sub", sums, moved), change = prim::binary("mul", off, twice);
  return prim::binary("max", prim::binary("sub", squares, change), none);
}

}  // namespace

void expand_squared_differences(Primitives& p, const PassContext& context) {
  if (!context.machine.gpu || context.machine.one_order) return;
  auto sums_floats = [](const Node* n) {
    return prim_of(n) == Prim::Reduce && n->arg<std::string>(2) == "add" && is_floating(n->types[0].dtype);
  };
  transform(p, context.facts, sums_floats, [&](const Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    Value out = squared_differences(n, args[0].get<Value>(), context);
    return out ? std::vector{out} : std::vector<Value>{};
  });
}

}  // namespace brasa::compiler
