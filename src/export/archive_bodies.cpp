#include <algorithm>
#include <set>

#include "export/archive_graph.h"
#include "ops/branch.h"
#include "ops/decompose.h"
#include "ops/loop.h"
#include "ops/while.h"
#include "support/error.h"

// Branches and loops as PyTorch's operators that take graphs. A graph there has names and sizes of its own: it gets the symbols that it
// needs as numbers behind the tensors.
namespace brasa::exporting {

bool ArchiveGraph::add_control_flow(const ir::Node& n) {
  const std::string& name = n.op->schema.name;
  if (name == "prim::cond")
    add_cond(n);
  else if (name == "prim::scan_loop")
    add_scan(n);
  else if (name == "prim::while_loop")
    add_while(n);
  else
    return false;
  return true;
}

// The first `tensors` operands are tensors in a body, whatever they are outside.
ArchiveGraph::Given ArchiveGraph::given(std::span<const ir::Value> operands, size_t tensors,
                                        const std::vector<ir::Expr>& sizes) const {
  Given out{operands, {}, {}, {}};
  for (size_t i = 0; i < operands.size(); ++i) out.passed.push_back(i < tensors || !numbers_.contains(operands[i]));
  for (ir::Expr e : sizes) ir::collect_symbols(sizes_(e), out.symbols);
  return out;
}

// The names of the operands from here to there. PyTorch takes no tensor twice.
Json ArchiveGraph::list_of(Given& given, size_t first, size_t last) {
  Json out = Json::array();
  for (size_t i = first; i < last; ++i) {
    if (!given.passed[i]) continue;
    std::string name = name_of(given.operands[i]);
    if (!given.names.insert(name).second) name = copied(name, ir::type_of(given.operands[i]));
    out.push_back({{"name", name}});
  }
  return out;
}

std::string ArchiveGraph::copied(const std::string& name, const ir::Type& type) {
  return nodes.add("clone.default", {{"self", ArchiveNodes::tensor(name)}}, {type}).front();
}

Json ArchiveGraph::others_of(Given& given, size_t first) {
  Json out = list_of(given, first, given.operands.size());
  for (ir::Expr s : given.symbols) out.push_back({{"name", nodes.integer(s)["as_sym_int"]["as_name"]}});
  return {{"as_tensors", out}};
}

Json ArchiveGraph::body(const char* name, const ir::Graph& graph, const Given& given, size_t again, bool single) {
  std::unique_ptr<ir::Graph> parts = ops::decompose(graph, facts_, in_pytorch);
  ArchiveGraph inner(sizes_, user_inputs_, facts_);
  Json inputs = Json::array(), outputs = Json::array();
  std::set<std::string> taken;
  for (size_t i = 0; i < given.operands.size(); ++i) {
    ir::Value v = parts->inputs()[i].value;
    if (!given.passed[i]) {
      inner.set_number(v, numbers_.at(given.operands[i]));
      continue;
    }
    std::string in = *taken.insert(inner.nodes.fresh_name(str("arg", i))).first;
    inner.nodes.define(in, ir::type_of(v));
    inner.set_name(v, in);
    inputs.push_back(ArchiveNodes::tensor(in));
  }
  for (ir::Expr s : given.symbols) inputs.push_back({{"as_sym_int", {{"as_name", inner.nodes.given_size(s)}}}});
  for (const ir::Node* n : ir::live_nodes(*parts))
    if (n->op != ir::input_op()) inner.add(*n);
  std::vector<ir::Value> results;
  for (const ir::Output& o : parts->outputs())
    if (o.check.empty()) results.push_back(o.value);
  results.insert(results.end(), results.begin(), results.begin() + static_cast<std::ptrdiff_t>(again));
  // Nor does it take a graph that gives an argument, or one tensor twice.
  for (ir::Value v : results) {
    std::string out = inner.name_of(v);
    if (!taken.insert(out).second) out = inner.copied(out, ir::type_of(v));
    outputs.push_back(ArchiveNodes::tensor(out));
  }
  return {{"as_graph", {{"name", nodes.fresh_name(name)}, {"graph", inner.nodes.graph(inputs, outputs, single)}}}};
}

void ArchiveGraph::add_cond(const ir::Node& n) {
  ops::BranchNode branch(n);
  Given in = given(branch.operands, 0, branch.sizes);
  Json yes = body("true_graph", *ops::outside(branch.yes, branch.sizes), in),
       no = body("false_graph", *ops::outside(branch.no, branch.sizes), in);
  std::vector<std::string> names = nodes.add_of_graphs(
      "cond", {ArchiveNodes::tensor(name_of(branch.predicate)), yes, no, others_of(in, 0)}, n.types);
  for (uint32_t k = 0; k < names.size(); ++k) names_[{const_cast<ir::Node*>(&n), k}] = names[k];
}

void ArchiveGraph::add_while(const ir::Node& n) {
  ops::WhileNode loop(n);
  Given in = given(loop.operands, loop.carried, loop.sizes);
  Json go_on = body("cond_graph", *ops::outside(loop.go_on, loop.sizes), in, 0, true),
       step = body("body_graph", *ops::outside(loop.step, loop.sizes), in);
  Json carried{{"as_tensors", list_of(in, 0, loop.carried)}};
  std::vector<std::string> names =
      nodes.add_of_graphs("while_loop", {go_on, step, carried, others_of(in, loop.carried)}, n.types);
  for (uint32_t k = 0; k < names.size(); ++k) names_[{const_cast<ir::Node*>(&n), k}] = names[k];
}

// PyTorch's loop gives the last states and what the steps give, so each step gives its states once more, of which the traces are made. It goes
// forward only: along what is turned round.
void ArchiveGraph::add_scan(const ir::Node& n) {
  ops::LoopNode loop(n);
  BRASA_CHECK(loop.along > 0, "export: a loop along nothing has no form in PyTorch's operators");
  bool turn = loop.reverse && loop.carried > 0;
  auto turned = [&](const std::string& name, const ir::Type& type) {
    if (!turn) return name;
    return nodes.add("flip.default", {{"self", ArchiveNodes::tensor(name)}, {"dims", {{"as_ints", {0}}}}}, {type})
        .front();
  };
  Given in = given(loop.operands, loop.carried + loop.along, loop.sizes);
  Json step = body("step_graph", *loop.body_outside(), in, loop.carried);
  Json init{{"as_tensors", list_of(in, 0, loop.carried)}}, along = Json::array();
  for (Json& x : list_of(in, loop.carried, loop.carried + loop.along)) {
    ir::Value v = loop.operands[loop.carried + along.size()];
    along.push_back({{"name", turned(x["name"], ir::type_of(v))}});
  }
  std::vector<Json> arguments = {step, init, {{"as_tensors", along}}, others_of(in, loop.carried + loop.along)};
  if (loop.carried == 0) arguments.erase(arguments.begin() + 1);

  std::vector<ir::Type> last, all(n.types.begin() + static_cast<std::ptrdiff_t>(loop.carried), n.types.end());
  for (ir::Value v : loop.operands.first(loop.carried)) {
    last.push_back(ir::type_of(v));
    all.push_back(ir::type_of(v));
    all.back().shape.insert(all.back().shape.begin(), loop.steps);
  }
  std::vector<ir::Type> types = last;
  types.insert(types.end(), all.begin(), all.end());
  std::vector<std::string> names = nodes.add_of_graphs(loop.carried > 0 ? "scan" : "map_impl", arguments, types);
  for (size_t k = loop.carried; k < names.size(); ++k) names[k] = turned(names[k], types[k]);

  auto out = [&](size_t k) { return ir::Value{const_cast<ir::Node*>(&n), static_cast<uint32_t>(k)}; };
  for (size_t k = 0; k < loop.given; ++k) names_[out(loop.carried + k)] = names[loop.carried + k];
  for (size_t i = 0; i < loop.carried; ++i) {
    ir::Type one = last[i];
    one.shape.insert(one.shape.begin(), 1);
    Json first{
        {"name", nodes
                     .add("unsqueeze.default",
                          {{"self", ArchiveNodes::tensor(name_of(loop.operands[i]))}, {"dim", {{"as_int", 0}}}}, {one})
                     .front()}},
        then{{"name", names[loop.carried + loop.given + i]}};
    Json parts = loop.reverse ? Json::array({then, first}) : Json::array({first, then});
    names_[out(i)] = nodes.add("cat.default", {{"tensors", {{"as_tensors", parts}}}}, {n.types[i]}).front();
  }
}

}  // namespace brasa::exporting
