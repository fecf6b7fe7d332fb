#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

namespace {

// A scatter of one update into what is computed is a choice between that and the update, which its readers make: nothing is copied.
Value chosen(const ir::Args& args) {
  Value x = args[0].get<Value>(), updates = args[2].get<Value>();
  const auto& indices = args[1].get<std::vector<Value>>();
  const ir::Shape& shape = type_of(x).shape;
  std::vector<int64_t> dims;
  for (Expr d : args[3].get<std::vector<Expr>>()) dims.push_back(d.constant());
  bool one = type_of(indices[0]).numel().is(1) && args[4].get<std::string>().empty();
  if (!one || ir::is_input(x) || dims.empty()) return {};
  Value here;
  for (size_t i = 0; i < dims.size(); ++i) {
    Value index = ops::prim::broadcast(ops::prim::reshape(indices[i], {}), shape, {});
    Value same = ops::eq(ops::prim::iota(shape, dims[i], DType::Int64), index);
    here = here ? ops::logical_and(here, same) : same;
  }
  std::vector<int64_t> free = other_dims(dims, type_of(x).rank());
  return ops::prim::select(here, ops::prim::broadcast(ops::prim::reshape(updates, pick(shape, free)), shape, free), x);
}

// The length of a product's sums.
Expr summed(const ir::Node* n) { return product(pick(type_of(n->arg<Value>(0)).shape, int_args(n, 2))); }

// Puts in what is known before it begins.
void put_in(Primitives& p, ir::Facts& facts, bool gpu) {
  // An operand without elements is not read: its indices are 0, and code would move such a load out of the loops that never run.
  auto unread = [&](Value v) {
    if (!v || !ir::is_input(v) || !is_empty(type_of(v).shape)) return v;
    return ops::prim::full(0, type_of(v).shape, type_of(v).dtype);
  };
  transform(p, facts, nullptr, [&](const ir::Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    if (prim_of(n) == Prim::Reduce) return {reduced(args[0].get<Value>(), int_args(n, 1), args[2].get<std::string>())};
    if (prim_of(n) == Prim::Reshape && type_of(args[0].get<Value>()).shape == args[1].get<ir::Shape>())
      return {args[0].get<Value>()};
    if (prim_of(n) == Prim::Dot && summed(n).is(0)) return {ops::prim::full(0, n->types[0].shape, n->types[0].dtype)};
    if (prim_of(n) == Prim::Scatter && gpu)
      if (Value v = chosen(args)) return {v};
    for (ir::Arg& a : args) {
      if (auto* v = a.get_if<Value>()) {
        a = ir::Arg(unread(*v));
      } else if (auto* list = a.get_if<std::vector<Value>>()) {
        std::vector<Value> items = *list;
        std::transform(items.begin(), items.end(), items.begin(), unread);
        a = ir::Arg(std::move(items));
      }
    }
    return {};
  });
}

// Products with one row or column are sums, and those without sums are zeros.
void ask_of_product(const ir::Node* n, ir::Facts& facts) {
  std::vector<int64_t> contracted[] = {int_args(n, 2), int_args(n, 3)}, batch[] = {int_args(n, 4), int_args(n, 5)};
  if (Expr length = facts.known(summed(n)); ir::is_symbol(length)) facts.equal(length, 0);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<int64_t> bound = contracted[i];
    bound.insert(bound.end(), batch[i].begin(), batch[i].end());
    Value v = n->arg<Value>(i);
    Expr kept = facts.known(product(pick(type_of(v).shape, other_dims(bound, type_of(v).rank()))));
    if (ir::is_symbol(kept)) facts.equal(kept, 1);
  }
}

}  // namespace

void specialise(Primitives& p, const PassContext& context) {
  ir::Facts& facts = context.facts;
  for (const ir::Node* n : p.graph->nodes())
    if (prim_of(n) == Prim::Convolution && !context.machine.gpu)
      ask_of_convolution(n, context);
    else if (prim_of(n) == Prim::Dot && !context.machine.gpu && context.size_classes)
      ask_of_product(n, facts);
  size_t known = 0;
  do {
    known = facts.facts().size();
    put_in(p, facts, context.machine.gpu);
  } while (facts.facts().size() != known);
}

}  // namespace brasa::compiler
