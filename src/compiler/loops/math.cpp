#include "compiler/loops/math.h"

#include "compiler/loops/math_builder.h"
#include "compiler/loops/ops.h"
#include "ir/copy.h"

namespace brasa::compiler {

using math::X;

namespace {

using ops::ScalarOp;

// Null where the operation is an instruction, or made of a few by the code generator.
X (*unary_function(ScalarOp op))(X) {
  switch (op) {
#define BRASA_MATH_CASE(Operator, function) \
  case ScalarOp::Operator: return math::function;
    BRASA_MATH_FUNCTIONS(BRASA_MATH_CASE)
    BRASA_MATH_DOUBLE_FUNCTIONS(BRASA_MATH_CASE)
#undef BRASA_MATH_CASE
    default: return nullptr;
  }
}
X (*binary_function(ScalarOp op, DType t))(X, X) {
  switch (op) {
    case ScalarOp::Pow: return is_floating(t) ? math::pow : math::int_pow;
    case ScalarOp::Atan2: return math::atan2;
    case ScalarOp::Rem: return is_floating(t) ? math::rem : nullptr;
    case ScalarOp::Nextafter: return math::next_after;
    default: return nullptr;
  }
}

DType operand_dtype(const ir::Node* n) { return ir::type_of(n->arg<ir::Value>(0)).dtype; }

X expand(const ir::Node* n, ScalarOp op, const ir::ValueMap& map) {
  auto operand = [&](size_t i) { return X{map(n->arg<ir::Value>(i))}; };
  DType t = operand_dtype(n);
  auto wide = [&](size_t i) { return is_reduced_floating(t) ? math::convert(operand(i), DType::Float32) : operand(i); };
  if (auto* f = unary_function(op)) {
    X x = wide(0);
    DType inside = computes_in_double(op) ? DType::Float64 : x.type();
    return math::convert(math::convert(f(math::convert(x, inside)), x.type()), t);
  }
  return math::convert(binary_function(op, t)(wide(0), wide(1)), t);
}

bool expands(const ir::Node* n, ScalarOp op) {
  if (op == ScalarOp::None) return false;
  return unary_function(op) || binary_function(op, operand_dtype(n));
}

}  // namespace

bool computes_in_double(ScalarOp op) {
  switch (op) {
#define BRASA_MATH_CASE(Operator, function) case ScalarOp::Operator:
    BRASA_MATH_DOUBLE_FUNCTIONS(BRASA_MATH_CASE)
#undef BRASA_MATH_CASE
    case ScalarOp::Rem: return true;
    default: return false;
  }
}

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
    } else if (ScalarOp op = scalar_op_of(n->op); expands(n, op)) {
      map.set(n->out(), expand(n, op, map).v);
    } else {
      ir::copy_node(out, *n, map);
    }
  }
  return result;
}

}  // namespace brasa::compiler
