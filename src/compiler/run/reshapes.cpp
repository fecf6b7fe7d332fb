#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/run/plan.h"

namespace brasa::compiler {

namespace {

bool reshapes(const Group& g) {
  if (g.kind != GroupKind::Loops || g.inputs.size() != 1 || g.outputs.size() != 1) return false;
  Value v = g.graph->outputs()[0].value, x = g.graph->inputs()[0].value;
  while (prim_of(v) == Prim::Reshape) v = v.node->arg<Value>(0);
  return v == x && g.output_strides[0].empty() && g.graph->inputs()[0].strides.empty();
}

// Where a scatter or a library has this result, row by row; null in other groups.
Value* result_in_rows(Group& g, Value v) {
  if (g.kind != GroupKind::Scatter && g.kind != GroupKind::Library) return nullptr;
  auto at = std::find(g.outputs.begin(), g.outputs.end(), v);
  return g.output_strides[at - g.outputs.begin()].empty() ? &*at : nullptr;
}

}  // namespace

void drop_reshapes(const ir::Graph& graph, std::vector<Group>& groups) {
  std::unordered_map<Value, size_t> producer;  // among those that are left
  std::unordered_map<Value, int> uses, results;
  for (const Group& g : groups)
    for (Value v : g.inputs) ++uses[v];
  for (const ir::Output& o : graph.outputs()) {
    ++uses[o.value];
    results[o.value] += o.into < 0 && o.check.empty() ? 1 : 2;
  }
  std::vector<Group> left;
  for (Group& g : groups) {
    bool alone = reshapes(g) && results[g.outputs[0]] == 1 && uses[g.inputs[0]] == 1;
    auto made = alone ? producer.find(g.inputs[0]) : producer.end();
    Value* result = made == producer.end() ? nullptr : result_in_rows(left[made->second], g.inputs[0]);
    if (result) {
      *result = g.outputs[0];
      continue;
    }
    for (Value v : g.outputs) producer[v] = left.size();
    left.push_back(std::move(g));
  }
  groups = std::move(left);
}

}  // namespace brasa::compiler
