#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/loops/ops.h"
#include "compiler/passes/transform.h"

// Σ (i = t ? v : 0) over places i, where t and v are the same at all of them: v where t is one of the places, else 0. So are the cotangents
// of a row of scores that has one label, which a sum would look for along all of it.
namespace brasa::compiler {

namespace prim = ops::prim;
using ops::ScalarOp;
using ops::shape_of;

namespace {

bool is(Value v, ScalarOp op) { return prim_of(v) == Prim::Pointwise && scalar_op_of(v.node->op) == op; }

class AtOnePlace {
 public:
  explicit AtOnePlace(int64_t dim) : dim_(dim) {}

  // The value without the dimension, which is the same all along it; absent where that does not show. At the place itself, the comparison
  // that names it is whether the place exists.
  Value operator()(Value v) {
    switch (prim_of(v)) {
      case Prim::Full: return prim::full(ops::Number(v.node->args[0]), without(shape_of(v)), ops::dtype_of(v));
      case Prim::Broadcast: return broadcast(v);
      case Prim::Pointwise: return names_place(v) ? place_exists(v) : pointwise(v);
      default: return {};
    }
  }

 private:
  Shape without(Shape s) const {
    s.erase(s.begin() + dim_);
    return s;
  }
  Value broadcast(Value v) const {
    std::vector<int64_t> dims = int_args(v.node, 2);
    Value x = v.node->arg<Value>(0);
    if (auto at = std::find(dims.begin(), dims.end(), dim_); at != dims.end()) {
      Shape shape = shape_of(x);
      auto along = shape.begin() + (at - dims.begin());
      if (!along->is(1)) return {};
      shape.erase(along);
      dims.erase(at);
      x = prim::reshape(x, shape);
    }
    for (int64_t& d : dims) d -= d > dim_;
    return prim::broadcast(x, without(shape_of(v)), dims);
  }
  Value pointwise(Value v) {
    ir::Args args = v.node->args;
    for (ir::Arg& a : args) {
      if (!a.is<Value>()) continue;
      Value operand = (*this)(a.get<Value>());
      if (!operand) return {};
      a = ir::Arg(operand);
    }
    return ops::Builder::current().call(ops::row_of(*v.node), std::move(args))[0];
  }

  bool is_place(Value v) const { return prim_of(v) == Prim::Iota && v.node->arg<Expr>(1).is(dim_); }
  bool names_place(Value v) const {
    return is(v, ScalarOp::Eq) && is_place(v.node->arg<Value>(0)) != is_place(v.node->arg<Value>(1));
  }
  Value place_exists(Value v) {
    Value a = v.node->arg<Value>(0), b = v.node->arg<Value>(1), place = is_place(a) ? a : b;
    Value t = (*this)(is_place(a) ? b : a);
    if (!t || (t_ && t != t_)) return {};
    t_ = t;
    Value low = prim::full(0, shape_of(t), ops::dtype_of(t)),
          high = prim::full(ops::Number(ir::Arg(shape_of(place)[dim_])), shape_of(t), ops::dtype_of(t));
    Value above = ops::ge(t, low), below = ops::lt(t, high);
    return ops::logical_and(above, below);
  }

  int64_t dim_;
  Value t_;  // which place it is
};

// Whether a condition holds at one place at most.
bool requires_place(Value condition, int64_t dim) {
  if (is(condition, ScalarOp::Eq)) {
    for (size_t i : {size_t{0}, size_t{1}})
      if (Value v = condition.node->arg<Value>(i); prim_of(v) == Prim::Iota && v.node->arg<Expr>(1).is(dim))
        return true;
  }
  if (!is(condition, ScalarOp::BitAnd)) return false;
  return requires_place(condition.node->arg<Value>(0), dim) || requires_place(condition.node->arg<Value>(1), dim);
}

Value sum_at_one_place(Value x, int64_t dim) {
  if (converts(x.node)) {
    Value narrow = x.node->arg<Value>(0), sum = sum_at_one_place(narrow, dim);
    return sum ? prim::convert(sum, ops::dtype_of(x)) : sum;
  }
  if (!is(x, ScalarOp::Select)) return {};
  Value condition = x.node->arg<Value>(0);
  if (number_of(x.node->arg<Value>(2)) != 0.0 || !requires_place(condition, dim)) return {};
  AtOnePlace at(dim);
  return at(x);
}

}  // namespace

void sum_single_places(Primitives& p, const PassContext& context) {
  if (context.machine.one_order) return;  // a sum of -0 and zeros is 0
  auto sums_one_dim = [](const Node* n) {
    return prim_of(n) == Prim::Reduce && n->arg<std::string>(2) == "add" && int_args(n, 1).size() == 1;
  };
  transform(p, context.facts, sums_one_dim, [](const Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    Value out = sum_at_one_place(args[0].get<Value>(), int_args(n, 1)[0]);
    return out ? std::vector{out} : std::vector<Value>{};
  });
}

}  // namespace brasa::compiler
