#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/run/plan.h"
#include "ir/copy.h"

// Kernels that differ only in where an operand begins are one: steps of a loop that is written out read parts of what holds all steps.
namespace brasa::compiler {
namespace {

using ir::Node;

// By input of a group: the slice that alone reads it, where that begins at constant places that are not the tensor's first one; else null.
std::vector<const Node*> windows_of(const Group& g) {
  std::vector<const Node*> found(g.inputs.size());
  std::vector<int> readers(g.inputs.size());
  auto read = [&](Value v, const Node* by) {
    int i = ir::is_input(v) ? g.graph->input_index(v) : -1;
    if (i < 0) return;
    ++readers[i];
    found[i] = by;
  };
  for (const Node* n : ir::live_nodes(*g.graph))
    if (n->op != ir::input_op()) n->for_each_input([&](Value v) { read(v, n); });
  for (const ir::Output& o : g.graph->outputs()) read(o.value, nullptr);
  auto moves = [](const Node* n) {
    if (!n || prim_of(n) != Prim::Slice) return false;
    const auto& start = n->arg<std::vector<Expr>>(1);
    return std::all_of(start.begin(), start.end(), [](Expr e) { return e.is_constant(); }) &&
           std::any_of(start.begin(), start.end(), [](Expr e) { return !e.is(0); });
  };
  for (size_t i = 0; i < found.size(); ++i)
    if (readers[i] != 1 || g.takes_value(i) || !moves(found[i])) found[i] = nullptr;
  return found;
}

// Those of row-major memory are left out.
std::vector<Expr> normal(std::vector<Expr> strides, const ir::Shape& shape) {
  std::vector<Expr> row_major = ir::contiguous_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (!shape[d].is(1) && !(strides[d] == row_major[d])) return strides;
  return {};
}

}  // namespace

void read_windows(Plan& plan) {
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    Group& g = plan.steps[s];
    if (g.kind != GroupKind::Loops && g.kind != GroupKind::Contraction) continue;
    std::vector<const Node*> windows = windows_of(g);
    if (std::none_of(windows.begin(), windows.end(), [](const Node* n) { return n != nullptr; })) continue;
    auto graph = std::make_unique<ir::Graph>(ir::Level::Primitives);
    ir::ValueMap map;
    for (size_t i = 0; i < windows.size(); ++i) {
      const ir::Input& in = g.graph->inputs()[i];
      const ir::Type& whole = type_of(in.value);
      if (!windows[i]) {
        map.set(in.value, graph->add_input(whole, in.name, in.strides, in.by_value));
        continue;
      }
      const auto &start = windows[i]->arg<std::vector<Expr>>(1), &step = windows[i]->arg<std::vector<Expr>>(3);
      std::vector<Expr> strides = in.strides.empty() ? ir::contiguous_strides(whole.shape) : in.strides;
      Expr elements = 0;
      for (size_t d = 0; d < strides.size(); ++d) {
        elements = elements + start[d] * strides[d];
        strides[d] = strides[d] * step[d];
      }
      const ir::Type& part = windows[i]->types[0];
      map.set(Value{const_cast<Node*>(windows[i]), 0}, graph->add_input(part, in.name, normal(strides, part.shape)));
      Place& place = plan.places[s][i];
      place.offset = place.offset + elements * Expr(size_of(whole.dtype));
    }
    for (const Node* n : ir::live_nodes(*g.graph))
      if (n->op != ir::input_op() && std::find(windows.begin(), windows.end(), n) == windows.end())
        ir::copy_node(*graph, *n, map);
    for (const ir::Output& o : g.graph->outputs()) graph->outputs().push_back({map(o.value), o.into, o.check});
    g.graph = std::move(graph);
  }
}

}  // namespace brasa::compiler
