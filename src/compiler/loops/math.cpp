#include "compiler/loops/math.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/loops/compared.h"
#include "compiler/loops/math_builder.h"
#include "compiler/loops/ops.h"
#include "ir/copy.h"
#include "ops/table.h"

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

DType wide_dtype(DType t) { return is_reduced_floating(t) ? DType::Float32 : t; }

// What a node computes once its operands are as wide as that needs them.
MathFunction function_of(const ir::Node* n, ScalarOp op) {
  return {op, unary_function(op) && computes_in_double(op) ? DType::Float64 : wide_dtype(operand_dtype(n))};
}

X spelled_out(MathFunction f, std::span<const X> x) {
  if (auto* unary = unary_function(f.op)) return unary(x[0]);
  return binary_function(f.op, f.dtype)(x[0], x[1]);
}
X called(MathFunction f, std::span<const X> x) {
  return x.size() == 1 ? math::op(f.op, x[0]) : math::op(f.op, x[0], x[1]);
}

bool expands(const ir::Node* n, ScalarOp op) { return op != ScalarOp::None && is_function({op, operand_dtype(n)}); }

// Functions that would make a kernel longer by more nodes than that, spelled out each time.
std::set<MathFunction> often(const ir::Graph& graph, MathInstructions has) {
  constexpr size_t kMostNodes = 400;  // shorter ones are called for more than they save
  std::map<MathFunction, size_t> counts;
  for (const ir::Node* n : graph.nodes())
    if (ScalarOp op = scalar_op_of(n->op); expands(n, op)) ++counts[function_of(n, op)];
  std::set<MathFunction> out;
  for (auto [f, count] : counts)
    if (count > 1 && (count - 1) * function_body(f, has).graph->nodes().size() > kMostNodes) out.insert(f);
  return out;
}

// The function whose sum with 1 is made at once, and the sum. Strictly it has to have the same bits, and where not only reduced floats are made of
// it about those of the function in other kernels.
struct BesideOne {
  ScalarOp function;
  X (*sum)(X);
  bool strict, coarse;
  bool (*takes)(DType);
};
constexpr BesideOne kBesideOne[] = {
    {ScalarOp::Erf, math::one_plus_erf, false, false, [](DType t) { return t == DType::Float32; }},
    {ScalarOp::Tanh, math::one_plus_tanh, false, true, [](DType t) { return t == DType::Float32; }},
    {ScalarOp::Exp, math::one_plus_exp, true, false,
     [](DType t) { return t == DType::Float32 || t == DType::Float64; }}};

// Of a sum of 1 and such a function's result.
struct Sum {
  const BesideOne* row = nullptr;
  const ir::Node* function = nullptr;
  explicit operator bool() const { return row; }
};
Sum beside_one(const ir::Node* n, bool strict, bool coarse) {
  if (scalar_op_of(n->op) != ScalarOp::Add) return {};
  for (size_t i : {0, 1}) {
    const ir::Node *a = n->arg<ir::Value>(i).node, *b = n->arg<ir::Value>(1 - i).node;
    const auto* one = is_constant(b) ? b->args[0].get_if<double>() : nullptr;
    if (!one || *one != 1) continue;
    for (const BesideOne& row : kBesideOne)
      if (row.function == scalar_op_of(a->op) && row.takes(n->types[0].dtype) && (row.strict || !strict) &&
          (coarse || !row.coarse))
        return {&row, a};
  }
  return {};
}

// The function t in 1 - t², which is (1 + t)(2 - (1 + t)). Null for other nodes, and where 1 + t is not made at once.
const ir::Node* in_rest_of_square(const ir::Node* n, bool strict, bool coarse) {
  if (scalar_op_of(n->op) != ScalarOp::Sub || strict || !coarse) return nullptr;
  const ir::Node *one = n->arg<ir::Value>(0).node, *square = n->arg<ir::Value>(1).node;
  const auto* number = is_constant(one) ? one->args[0].get_if<double>() : nullptr;
  if (!number || *number != 1 || scalar_op_of(square->op) != ScalarOp::Mul) return nullptr;
  const ir::Node* t = square->arg<ir::Value>(0).node;
  bool takes = scalar_op_of(t->op) == ScalarOp::Tanh && n->types[0].dtype == DType::Float32;
  return takes && square->arg<ir::Value>(1).node == t ? t : nullptr;
}

// Functions that are nowhere but in such sums, which is how a GELU and a sigmoid have them, or in such squares, as in a GELU's derivative; and the
// squares.
std::set<const ir::Node*> only_beside_one(const ir::Graph& graph, bool strict, const std::vector<bool>& coarse) {
  std::set<const ir::Node*> found, others;
  std::unordered_map<const ir::Node*, int> reads;
  for (const ir::Node* n : graph.nodes()) n->for_each_input([&](ir::Value v) { ++reads[v.node]; });
  for (const ir::Node* n : graph.nodes())
    if (in_rest_of_square(n, strict, coarse[n->id]) && --reads[n->arg<ir::Value>(1).node] == 0)
      found.insert(n->arg<ir::Value>(1).node);
  for (const ir::Node* n : graph.nodes()) {
    const ir::Node* function = beside_one(n, strict, coarse[n->id]).function;
    if (found.count(n)) function = n->arg<ir::Value>(0).node;
    if (function) found.insert(function);
    n->for_each_input([&](ir::Value v) {
      bool in_rest = found.count(v.node) && in_rest_of_square(n, strict, coarse[n->id]);
      if (v.node != function && !in_rest) others.insert(v.node);
    });
  }
  // A square whose function is computed by itself is, too.
  std::erase_if(found, [&](const ir::Node* n) {
    return others.count(n) || (scalar_op_of(n->op) == ScalarOp::Mul && others.count(n->arg<ir::Value>(0).node));
  });
  return found;
}

// Numbers of which only reduced floats are made: by arithmetic, which does not compare them, and then rounded.
std::vector<bool> only_rounded(const ir::Graph& graph) {
  std::vector<bool> read(graph.nodes().size()), out(graph.nodes().size(), true);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const ir::Node* n = graph.nodes()[i];
    bool number = scalar_op_of(n->op) != ScalarOp::None && n->types[0].dtype == DType::Float32;
    bool rounds = scalar_op_of(n->op) == ScalarOp::Convert && is_reduced_floating(n->types[0].dtype);
    out[n->id] = out[n->id] && read[n->id] && number;
    n->for_each_input([&](ir::Value v) {
      read[v.node->id] = true;
      if (!rounds && !out[n->id]) out[v.node->id] = false;
    });
  }
  return out;
}

}  // namespace

bool is_function(MathFunction f) { return unary_function(f.op) || binary_function(f.op, f.dtype); }

bool computes_in_double(ScalarOp op) {
  switch (op) {
#define BRASA_MATH_CASE(Operator, function) case ScalarOp::Operator:
    BRASA_MATH_DOUBLE_FUNCTIONS(BRASA_MATH_CASE)
#undef BRASA_MATH_CASE
    case ScalarOp::Rem: return true;
    default: return false;
  }
}

ExpandedMath expand_math(const ir::Graph& graph, MathInstructions has, bool strict) {
  std::vector<bool> coarse = has.gpu && !strict ? only_rounded(graph) : std::vector<bool>(graph.nodes().size());
  std::set<const ir::Node*> in_sums = only_beside_one(graph, strict, coarse);
  std::map<const ir::Node*, X> sums;  // with 1
  std::set<MathFunction> kept = has.gpu ? std::set<MathFunction>() : often(graph, has);
  ExpandedMath result;
  result.graph = std::make_unique<ir::Graph>(graph.level());
  ir::Graph& out = *result.graph;
  out.name = graph.name;
  LoopBuilder builder(out);
  builder.avoid_symbols_of(graph);
  math::Context context(builder, result, has, strict);
  ir::ValueMap map;
  std::unordered_set<const ir::Node*> rounded = compared(graph);
  auto with_one = [&](const ir::Node* function, X (*sum)(X)) {
    auto [at, first] = sums.emplace(function, X{});
    if (first) at->second = sum({map(function->arg<ir::Value>(0))});
    return at->second;
  };
  for (ir::Node* n : graph.nodes()) {
    if (in_sums.count(n)) continue;
    Sum sum = beside_one(n, strict, coarse[n->id]);
    const ir::Node* in_square = in_rest_of_square(n, strict, coarse[n->id]);
    context.coarse = coarse[n->id];
    if (int i = graph.input_index(n->out()); i >= 0) {
      map.set(n->out(), out.add_input(n->types[0], graph.inputs()[i].name));
    } else if (sum && in_sums.count(sum.function)) {
      map.set(n->out(), with_one(sum.function, sum.row->sum).v);
    } else if (in_square && in_sums.count(in_square)) {
      X beside = with_one(in_square, math::one_plus_tanh);
      map.set(n->out(), (beside * (2 - beside)).v);
    } else if (ScalarOp op = scalar_op_of(n->op); expands(n, op)) {
      DType t = operand_dtype(n), wide = wide_dtype(t);
      MathFunction f = function_of(n, op);
      std::vector<X> operands;
      n->for_each_input(
          [&](ir::Value v) { operands.push_back(math::convert(math::convert(X{map(v)}, wide), f.dtype)); });
      X y = kept.count(f) ? called(f, operands) : spelled_out(f, operands);
      if (rounded.count(n)) result.exact.insert(y.v.node);
      map.set(n->out(), math::convert(math::convert(y, wide), t).v);
    } else {
      ir::copy_node(out, *n, map);
    }
    if (rounded.count(n)) result.exact.insert(map(n->out()).node);
  }
  return result;
}

ExpandedMath function_body(MathFunction f, MathInstructions has) {
  ExpandedMath result;
  result.graph = std::make_unique<ir::Graph>(ir::Level::Loops);
  LoopBuilder builder(*result.graph);
  math::Context context(builder, result, has);
  ir::Value out = builder.buffer(f.dtype, 1);
  std::vector<X> numbers;
  for (int i = unary_function(f.op) ? 1 : 2; i > 0; --i) numbers.push_back({builder.number(f.dtype)});
  builder.store(out, 0, spelled_out(f, numbers).v);
  return result;
}

}  // namespace brasa::compiler
