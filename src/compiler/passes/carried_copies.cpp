#include <algorithm>
#include <map>
#include <utility>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

namespace prim = ops::prim;

namespace {

// Fewer bytes of narrow copies in all save no more than their kernels' launches, and a kept run of a small graph has a first part that runs
// early where it has nothing that is prepared.
constexpr int64_t kFewest = 4 << 20;

// By input: what the graph writes there, where it is whole and lies as the input does.
std::vector<Value> written_values(const ir::Graph& graph) {
  std::vector<Value> out(graph.inputs().size());
  for (const ir::Output& o : graph.outputs())
    if (o.into >= 0 && graph.inputs()[o.into].strides.empty() && !ir::is_input(o.value)) out[o.into] = o.value;
  return out;
}

}  // namespace

void carry_narrow_copies(Primitives& p, const PassContext& context) {
  if (!context.machine.gpu || context.rewritten.empty()) return;
  std::vector<Value> written = written_values(*p.graph);
  // The input of which a node makes a narrow copy that the next run can be given, or -1.
  auto source = [&](const Node* n) {
    if (!converts(n) || !is_reduced_floating(n->types[0].dtype)) return -1;
    int i = p.graph->input_index(n->arg<Value>(0));
    bool fits = i >= 0 && context.rewritten[i] && written[i] && type_of(n->arg<Value>(0)).numel().is_constant();
    return fits ? i : -1;
  };
  int64_t bytes = 0;
  for (const Node* n : ir::live_nodes(*p.graph))
    if (source(n) >= 0) bytes += n->types[0].numel().constant() * size_of(n->types[0].dtype);
  if (bytes < kFewest || bytes > context.prepared_room) return;
  std::vector<CarriedCopy> carried;
  transform(
      p, context.facts, [&](const Node* n) { return source(n) >= 0; },
      [&](const Node* n, ir::Args&, Primitives& out) -> std::vector<Value> {
        carried.push_back({static_cast<uint32_t>(source(n)), static_cast<uint32_t>(out.graph->inputs().size())});
        return {out.graph->add_input(n->types[0])};
      });
  ops::Builder builder(*p.graph, context.facts);
  written = written_values(*p.graph);
  for (const CarriedCopy& c : carried)
    p.graph->add_output(prim::convert(written[c.of], type_of(p.graph->inputs()[c.input].value).dtype),
                        static_cast<int>(c.input));
  p.carried = std::move(carried);
}

}  // namespace brasa::compiler
