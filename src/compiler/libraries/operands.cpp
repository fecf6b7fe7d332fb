#include "compiler/libraries/operands.h"

#include <algorithm>

#include "compiler/lowering/expressions.h"
#include "ops/algebra.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Value;

bool is_contiguous(const Steps& steps, const ir::Shape& shape) {
  if (std::any_of(shape.begin(), shape.end(), [](Expr e) { return e.is(0); })) return true;
  std::vector<Expr> without_gaps = ir::contiguous_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (!shape[d].is(1) && !(steps.of[d] == without_gaps[d])) return false;
  return true;
}

std::optional<Steps> steps_at(Value operand, Expr place, const Index& probe, Readable readable) {
  Steps s;
  for (Expr e : probe) {
    auto step = e.is_constant() ? std::optional(Expr(0)) : coefficient(place, e);
    if (!step) return std::nullopt;
    s.of.push_back(*step);
  }
  s.offset = ir::substitute(place, [&](Expr e) -> std::optional<Expr> {
    if (std::find(probe.begin(), probe.end(), e) != probe.end()) return Expr(0);
    return std::nullopt;
  });
  if (!readable(s, type_of(operand).shape)) return std::nullopt;
  return s;
}

namespace {

// Where an input lies, or what goes to memory.
Expr place_of(const Link& link, const ir::Graph& graph) {
  const auto& [v, at] = link;
  return ir::is_input(v) ? place_in(graph, v, at) : linearise(at, type_of(v).shape);
}

}  // namespace

std::optional<Steps> steps_in_memory(Value operand, Readable readable, const ir::Graph& graph,
                                     const std::unordered_set<Value>& in_memory) {
  std::vector<Link> chain = chain_of(operand, [&](Value v) { return in_memory.count(v) > 0; });
  return steps_at(operand, place_of(chain.back(), graph), chain.front().at, readable);
}

Value placed(Value operand, bool through, Readable readable, const ir::Graph& graph,
             std::unordered_set<Value>& in_memory) {
  // What is in memory already is read from there.
  std::vector<Link> chain = chain_of(operand, [&](Value v) { return in_memory.count(v) > 0; }, through);
  const Index& from = chain.front().at;
  auto readable_at = [&](size_t i) { return steps_at(operand, place_of(chain[i], graph), from, readable).has_value(); };
  size_t at = chain.size() - 1;
  while (at > 0 && !readable_at(at)) --at;
  // What is wide is copied before it is widened.
  bool narrow_below = std::any_of(chain.begin() + static_cast<ptrdiff_t>(at), chain.end() - 1,
                                  [](const Link& l) { return widens(l.value.node); });
  if (!narrow_below && readable_at(at)) {
    if (Value v = chain[at].value; !ir::is_input(v)) in_memory.insert(v);
    return operand;
  }
  // A widened value narrows to what it was. Dimensions that are only counted as one later are copied as they are: along each of them
  // neighbours may be read at once.
  size_t counted = 0;
  while (counted < at && prim_of(chain[counted].value) == Prim::Reshape) ++counted;
  Value copied = chain[counted].value;
  DType narrow = type_of(chain.back().value).dtype, wide = type_of(operand).dtype;
  Value copy = ops::call("prim::reshape", {ops::prim::convert(copied, narrow), ops::shape_of(copied)});
  in_memory.insert(copy);
  Value widened = ops::prim::convert(copy, wide);
  return counted == 0 ? widened : ops::call("prim::reshape", {widened, ops::shape_of(operand)});
}

Value source_in(const Stored& stored, Value operand, Readable readable) {
  std::vector<Link> chain = chain_of(operand, [&](Value v) { return stored.count(v.node) > 0; });
  const auto& [v, at] = chain.back();
  auto it = stored.find(v.node);
  if (it == stored.end()) return {};
  Expr place = place_of(at, type_of(v).shape, it->second);
  return steps_at(operand, place, chain.front().at, readable) ? v : Value{};
}
bool reads_in_place(const Stored& stored, Value operand, Readable readable) {
  Value from = source_in(stored, operand, readable);
  return from && ir::type_of(from).dtype == ir::type_of(operand).dtype;
}

size_t input_of(const Group& group, Value operand) {
  int i = group.graph->input_index(operand);
  BRASA_ASSERT(i >= 0, "a library's operand is not in memory");
  return static_cast<size_t>(i);
}

Source source_of(const Group& g, Value operand, Readable readable) {
  std::vector<Link> chain = chain_of(operand);
  const auto& [source, at] = chain.back();
  size_t input = input_of(g, source);
  auto steps = steps_at(operand, place_in(*g.graph, source, at), chain.front().at, readable);
  BRASA_ASSERT(steps, "a library's operand does not lie in even steps");
  return {input, type_of(source).dtype, *steps};
}

Located::Located(size_t tensor, DType dtype, const Steps& steps)
    : tensor(tensor), dtype(dtype), offset(steps.offset), steps(steps.of.begin(), steps.of.end()) {}

}  // namespace brasa::compiler
