#include "compiler/loops/math.h"

#include <string_view>
#include <unordered_map>

#include "compiler/loops/math_builder.h"
#include "compiler/loops/ops.h"
#include "ir/copy.h"

namespace brasa::compiler {

using math::X;

namespace {

using Unary = X (*)(X);
using Binary = X (*)(X, X);

const std::unordered_map<std::string_view, Unary>& unary_functions() {
  static const auto* table = new std::unordered_map<std::string_view, Unary>{
      {"prim::exp", math::exp},        {"prim::exp2", math::exp2},     {"prim::expm1", math::expm1},
      {"prim::log", math::log},        {"prim::log2", math::log2},     {"prim::log10", math::log10},
      {"prim::log1p", math::log1p},    {"prim::sin", math::sin},       {"prim::cos", math::cos},
      {"prim::tan", math::tan},        {"prim::asin", math::asin},     {"prim::acos", math::acos},
      {"prim::atan", math::atan},      {"prim::sinh", math::sinh},     {"prim::cosh", math::cosh},
      {"prim::tanh", math::tanh},      {"prim::asinh", math::asinh},   {"prim::acosh", math::acosh},
      {"prim::atanh", math::atanh},    {"prim::rsqrt", math::rsqrt},   {"prim::erf", math::erf},
      {"prim::erfc", math::erfc},      {"prim::erfinv", math::erfinv}, {"prim::lgamma", math::lgamma},
      {"prim::digamma", math::digamma}};
  return *table;
}

// Null where the operation is an instruction, or for integers made of a few by the code generator.
Binary binary_function(std::string_view name, DType t) {
  bool floating = is_floating(t);
  if (name == "prim::pow") return floating ? math::pow : math::int_pow;
  if (name == "prim::atan2") return math::atan2;
  if (name == "prim::rem" && floating) return math::rem;
  if (name == "prim::nextafter") return math::next_after;
  return nullptr;
}

X expand(const ir::Node* n, const ir::ValueMap& map) {
  auto operand = [&](size_t i) { return X{map(n->arg<ir::Value>(i))}; };
  const std::string& name = n->op->name();
  if (name == "prim::philox") return math::philox(operand(0), operand(1), operand(2));
  DType t = ir::type_of(n->arg<ir::Value>(0)).dtype;
  auto wide = [&](size_t i) { return is_reduced_floating(t) ? math::convert(operand(i), DType::Float32) : operand(i); };
  if (auto it = unary_functions().find(name); it != unary_functions().end())
    return math::convert(it->second(wide(0)), t);
  return math::convert(binary_function(name, t)(wide(0), wide(1)), t);
}

bool expands(const ir::Node* n) {
  const std::string& name = n->op->name();
  if (name == "prim::philox" || unary_functions().count(name)) return true;
  return n->args.size() == 2 && n->args[0].is<ir::Value>() &&
         binary_function(name, ir::type_of(n->arg<ir::Value>(0)).dtype);
}

}  // namespace

ExpandedMath expand_math(const ir::Graph& graph) {
  ExpandedMath result;
  result.graph = std::make_unique<ir::Graph>(graph.level());
  ir::Graph& out = *result.graph;
  out.name = graph.name;
  LoopBuilder builder(out);
  builder.avoid_symbols_of(graph);
  math::Context context(builder, result.exact);
  ir::ValueMap map;
  for (ir::Node* n : graph.nodes()) {
    if (int i = graph.input_index(n->out()); i >= 0) {
      map.set(n->out(), out.add_input(n->types[0], graph.inputs()[i].name));
    } else if (expands(n)) {
      map.set(n->out(), expand(n, map).v);
    } else {
      ir::copy_node(out, *n, map);
    }
  }
  return result;
}

}  // namespace brasa::compiler
