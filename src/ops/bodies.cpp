#include "ops/bodies.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/copy.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// Rows that say themselves what their derivative is stay whole in a body.
bool stays(const Row& row) { return row.vjp || row.jvp || row.no_gradient; }

}  // namespace

std::unique_ptr<ir::Graph> body_of(const std::vector<Type>& inputs, const BodyFunction& f) {
  ir::Graph body(ir::Level::Operators);
  std::vector<Value> in;
  for (const Type& t : inputs) in.push_back(body.add_input(t));
  Builder builder(body, Builder::current().facts(), stays);
  std::vector<Value> results = f(in);
  std::vector<ir::Output> checks = std::exchange(body.outputs(), {});
  for (Value v : results) body.add_output(v);
  for (ir::Output& o : checks) body.add_check(o.value, std::move(o.check));
  return ir::copy(body);
}

Closed closed(std::vector<std::unique_ptr<ir::Graph>> bodies) {
  Closed out;
  for (const auto& body : bodies)
    for (const Node* n : body->nodes()) ir::each_size(*n, [&](Expr e) { ir::collect_symbols(e, out.sizes); });
  std::unordered_map<Expr, Expr> own;
  for (Expr s : out.sizes) own.emplace(s, Expr::size(static_cast<uint32_t>(own.size()), s->value, s->multiple));
  for (const auto& body : bodies) {
    std::unique_ptr<ir::Graph> graph = ir::with_sizes(
        *body, [&](Expr e) { return ir::substitute(e, [&](Expr s) { return std::optional<Expr>(own.at(s)); }); });
    std::vector<Expr> shown;
    for (const ir::Input& in : graph->inputs())
      for (Expr e : type_of(in.value).shape) shown.push_back(e);
    for (Expr s : out.sizes)
      if (Expr e = own.at(s); std::find(shown.begin(), shown.end(), e) == shown.end())
        graph->add_input({DType::Bool, {e}, false}, "size", {Expr(0)}, true);
    out.bodies.emplace_back(std::shared_ptr<const ir::Graph>(std::move(graph)));
  }
  return out;
}

Expr outside(Expr size, const std::vector<Expr>& sizes) {
  return ir::substitute(size, [&](Expr s) { return std::optional<Expr>(sizes.at(s->id)); });
}

Type outside(const Type& t, const std::vector<Expr>& sizes) {
  Type out{t.dtype, {}, false};
  for (Expr e : t.shape) out.shape.push_back(outside(e, sizes));
  return out;
}

std::unique_ptr<ir::Graph> outside(const ir::Graph& body, const std::vector<Expr>& sizes) {
  return ir::with_sizes(body, [&](Expr e) { return outside(e, sizes); });
}

void check_body(std::string_view op, const ir::Graph& body, size_t operands, const std::vector<Expr>& sizes) {
  BRASA_CHECK(operands <= body.inputs().size(), op, ": the body takes ", body.inputs().size(), " operands, got ",
              operands);
  for (const ir::Output& o : body.outputs()) BRASA_CHECK(o.into < 0, op, ": a body writes no inputs");
  for (const Node* n : body.nodes()) {
    for (const Type& t : n->types) BRASA_CHECK(!is_complex(t.dtype), op, ": bodies of complex numbers are not there");
    ir::each_size(*n, [&](Expr e) {
      std::vector<Expr> symbols;
      ir::collect_symbols(e, symbols);
      for (Expr s : symbols)
        BRASA_CHECK(s->kind == ir::ExprKind::Size && s->id < sizes.size(), op, ": nothing says what ", s,
                    " is in the body");
    });
  }
}

void check_body(std::string_view op, const ir::Graph& body, std::span<const Value> operands,
                const std::vector<Expr>& sizes) {
  check_body(op, body, operands.size(), sizes);
  for (size_t i = 0; i < operands.size(); ++i) {
    Type want = outside(type_of(body.inputs()[i].value), sizes);
    const Type& got = type_of(operands[i]);
    BRASA_CHECK(got.dtype == want.dtype && may_equal(got.shape, want.shape), op, ": operand ", i, " is ", got,
                ", expected ", want);
  }
}

std::vector<Type> result_types(const ir::Graph& body) {
  std::vector<Type> out;
  for (const ir::Output& o : body.outputs())
    if (o.check.empty()) out.push_back(type_of(o.value));
  return out;
}

std::vector<Array> evaluate_body(const ir::Graph& body, std::vector<Array> operands) {
  for (size_t i = operands.size(); i < body.inputs().size(); ++i)  // sizes that only their own inputs show
    operands.push_back(make_array(DType::Bool, constants(shape_of(body.inputs()[i].value))));
  return evaluate(body, operands);
}

void add_again(Node& n, ir::ValueMap& map) {
  Builder& builder = Builder::current();
  if (row_of(n).is_primitive()) {
    ir::copy_node(builder.graph(), n, map);
    return;
  }
  std::vector<Value> results = builder.call(row_of(n), ir::mapped(n.args, map));
  for (uint32_t r = 0; r < results.size(); ++r)
    if (results[r]) map.set(n.out(r), results[r]);
}

std::vector<Value> inlined(const ir::Graph& graph, std::span<const Value> inputs) {
  Builder& builder = Builder::current();
  ir::ValueMap map;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = shape_of(graph.inputs()[i].value);
    map.set(graph.inputs()[i].value, shape_of(inputs[i]) == shape ? inputs[i] : prim::reshape(inputs[i], shape));
  }
  for (Node* n : ir::live_nodes(graph)) {
    if (n->op == ir::input_op()) continue;
    std::vector<Value> results = builder.call(row_of(*n), ir::mapped(n->args, map));
    for (uint32_t r = 0; r < results.size(); ++r)
      if (results[r]) map.set(n->out(r), results[r]);
  }
  std::vector<Value> out;
  for (const ir::Output& o : graph.outputs())
    if (o.check.empty())
      out.push_back(map(o.value));
    else
      builder.graph().add_check(map(o.value), o.check);
  return out;
}

}  // namespace brasa::ops
