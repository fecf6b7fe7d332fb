#include "compiler/passes/transform.h"

#include <algorithm>
#include <iterator>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "ops/combiner.h"
#include "support/error.h"

namespace brasa::compiler {

namespace prim = ops::prim;

void append_to(std::string& out, const Primitives& p) {
  out += ir::print(*p.graph);
  auto line = [&](std::string_view what, const std::unordered_set<Value>& values) {
    std::vector<uint32_t> ids;
    for (Value v : values) ids.push_back(v.node->id);
    std::sort(ids.begin(), ids.end());
    if (!ids.empty()) out += str(what, ":");
    for (uint32_t id : ids) out += str(" %", id);
    if (!ids.empty()) out += "\n";
  };
  line("in memory", p.in_memory);
  line("apart", p.apart);
  for (const ir::Node* n : p.graph->nodes())
    if (auto it = p.groups.find(n); it != p.groups.end()) {
      out += str("one call of ", it->second.by->name, ":");
      for (const ir::Node* inside : it->second.covered.inside) out += str(" %", inside->id);
      out += str(" %", n->id, "\n");
    }
  for (const CarriedCopy& c : p.carried) out += str("input ", c.input, " is a copy of input ", c.of, "\n");
  if (p.defined)
    for (size_t i = 0; i < p.defined->are.size(); ++i)
      out += str("s", p.defined->first + i, " = ", p.defined->are[i], "\n");
}

namespace {

// Code moves what a loop does not change out of it, stores too, which one that never runs must not make. Results without elements, and what is summed
// or multiplied of nothing, are numbers. `args` are the node's in the new graph. None: the node has something to compute.
std::vector<Value> without_loops(const Node* n, const ir::Args& args, const std::function<Expr(Expr)>& known) {
  auto shape = [&](const ir::Type& t) {
    Shape out = t.shape;
    for (Expr& e : out) e = known(e);
    return out;
  };
  auto empty = [&](const ir::Type& t) { return is_empty(shape(t)); };
  auto empty_operand = [&](size_t i) { return is_empty(ops::shape_of(args[i].get<Value>())); };
  auto zeros = [&](const ir::Type& t) { return prim::full(0, shape(t), t.dtype); };
  std::vector<Value> out;
  Prim kind = prim_of(n);
  bool product = kind == Prim::Dot || kind == Prim::Convolution;
  if (std::all_of(n->types.begin(), n->types.end(), empty) || (product && (empty_operand(0) || empty_operand(1))))
    std::transform(n->types.begin(), n->types.end(), std::back_inserter(out), zeros);
  else if (kind == Prim::Reduce && empty_operand(0))
    out = {reduced(args[0].get<Value>(), int_args(n, 1), args[2].get<std::string>())};
  return out;
}

}  // namespace

void transform(Primitives& p, ir::Facts& facts, const std::function<bool(const Node*)>& wanted, const Change& change) {
  std::vector<Node*> live = live_nodes(*p.graph);
  if (wanted && std::none_of(live.begin(), live.end(), wanted)) return;
  Primitives out;
  out.graph = std::make_unique<ir::Graph>(ir::Level::Primitives);
  out.graph->name = p.graph->name;
  ops::Builder builder(*out.graph, facts);
  ir::ValueMap map;
  // What is known before it begins is put in: what a type rule or `change` asks on the way must not tell apart the operands of one node.
  auto known = [before = facts](Expr e) { return before.known(e); };
  for (const ir::Input& in : p.graph->inputs()) {
    std::vector<Expr> strides;
    for (Expr e : in.strides) strides.push_back(known(e));
    ir::Type t = type_of(in.value);
    for (Expr& e : t.shape) e = known(e);
    map.set(in.value, out.graph->add_input({t.dtype, t.shape, false}, in.name, std::move(strides), in.by_value));
  }
  for (Node* n : live) {
    if (n->op == ir::input_op()) continue;
    ir::Args args = ir::with_sizes(ir::mapped(n->args, map), known);
    std::vector<Value> results = without_loops(n, args, known);
    if (results.empty() && (!wanted || wanted(n))) results = change(n, args, out);
    bool changed = !results.empty();
    if (!changed) results = ops::Builder::current().call(ops::row_of(*n), std::move(args));
    for (uint32_t i = 0; i < results.size(); ++i) {
      map.set({n, i}, results[i]);
      if (!p.in_memory.count({n, i})) continue;
      // What a pass made ends in views, which would be a copy of it.
      in_memory(changed ? below_views(results[i]) : results[i], out);
    }
  }
  for (const ir::Output& o : p.graph->outputs()) out.graph->outputs().push_back({map(o.value), o.into, o.check});
  out.carried = std::move(p.carried);
  p = std::move(out);
}

Value in_memory(Value v, Primitives& out) {
  if (!ir::is_input(v)) out.in_memory.insert(v);
  return v;
}

Value copied(Value v, Primitives& out) { return in_memory(ops::call("prim::reshape", {v, ops::shape_of(v)}), out); }

Value again(const Node* view, Value operand) {
  ir::Args args = view->args;
  args[0] = operand;
  return ops::Builder::current().call(ops::row_of(*view), std::move(args))[0];
}

Value below_views(Value v) {
  while (is_view(prim_of(v))) v = v.node->arg<Value>(0);
  return v;
}

std::optional<double> number_of(Value v) {
  v = below_views(v);
  if (prim_of(v) != Prim::Full) return std::nullopt;
  const ir::Arg& a = v.node->args[0];
  if (a.is<double>()) return a.get<double>();
  if (a.is<bool>()) return a.get<bool>();
  if (!a.is<Expr>() || !a.get<Expr>().is_constant()) return std::nullopt;
  return static_cast<double>(a.get<Expr>().constant());
}

Value before_widening(Value v, DType narrow) {
  if (converts(v.node)) {
    Value x = v.node->arg<Value>(0);
    return type_of(x).dtype == narrow ? x : Value{};
  }
  if (!is_view(prim_of(v))) return {};
  Value x = before_widening(v.node->arg<Value>(0), narrow);
  return x ? again(v.node, x) : Value{};
}

Value first_of(Value x, const Shape& size) {
  return prim::slice(x, std::vector<Expr>(size.size(), 0), size, std::vector<Expr>(size.size(), 1));
}

bool is_constant_along(Value v, const std::vector<int64_t>& dims) {
  Index all = probe(ops::shape_of(v)), read = chain_of(v, nullptr, false).back().at;
  return std::none_of(dims.begin(), dims.end(), [&](int64_t d) {
    return std::any_of(read.begin(), read.end(), [&](Expr e) { return contains_symbol(e, all[d]); });
  });
}

Value first_along(Value v, const std::vector<int64_t>& dims, const Shape& kept) {
  Shape size = ops::shape_of(v);
  for (int64_t d : dims) size[d] = 1;
  return prim::reshape(first_of(v, size), kept);
}

Value zeros_behind(Value x, const std::vector<Expr>& counts) {
  std::vector<Expr> none(counts.size(), 0);
  return prim::pad(x, ops::scalar(0, ops::dtype_of(x)), none, counts, none);
}

Shape pick(const Shape& shape, const std::vector<int64_t>& dims) {
  Shape out;
  for (int64_t d : dims) out.push_back(shape[d]);
  return out;
}

bool is_empty(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](Expr e) { return e.is(0); });
}

Value reduced(Value x, const std::vector<int64_t>& dims, const std::string& combiner) {
  Shape s = ops::shape_of(x), result = pick(s, other_dims(dims, ops::rank_of(x)));
  if (is_empty(s)) return ops::broadcast_to(identity(combiner, ops::dtype_of(x)), result);
  if (std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return s[d].is(1); })) return prim::reshape(x, result);
  return prim::reduce(x, dims, combiner);
}

Value identity(const std::string& combiner, DType t) { return ops::scalar(ops::identity(combiner, t), t); }

}  // namespace brasa::compiler
