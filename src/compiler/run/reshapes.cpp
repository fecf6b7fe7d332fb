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

// A function of the host's that reads its operands row by row, of whatever sizes they are in memory.
bool reads_rows(const Group& g) {
  return g.kind == GroupKind::Library && g.library->run && !g.library->place && !g.library->covers;
}

// Values that nothing but such functions reads, by which of them is the same memory: what they are reshaped from.
std::unordered_map<Value, Value> read_as_they_are(const std::vector<Group>& groups,
                                                  const std::unordered_map<Value, int>& results) {
  std::unordered_set<Value> others;
  for (const Group& g : groups) {
    for (size_t i = 0; i < g.inputs.size(); ++i)
      if (!reads_rows(g) || !g.graph->inputs()[i].strides.empty()) others.insert(g.inputs[i]);
  }
  std::unordered_map<Value, Value> out;
  for (const Group& g : groups)
    if (reshapes(g) && !results.count(g.outputs[0]) && !others.count(g.outputs[0])) out[g.outputs[0]] = g.inputs[0];
  return out;
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
  std::unordered_map<Value, Value> same = read_as_they_are(groups, results);
  for (Group& g : groups)
    for (Value& v : g.inputs)
      if (auto it = same.find(v); it != same.end()) {
        // A function's operands are told apart by their values.
        if (std::count(g.inputs.begin(), g.inputs.end(), it->second) > 0)
          same.erase(it);
        else if (reads_rows(g))
          v = it->second;
      }
  std::vector<Group> left;
  for (Group& g : groups) {
    if (reshapes(g) && same.count(g.outputs[0])) continue;
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
