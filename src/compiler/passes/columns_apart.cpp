#include <unordered_set>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/values_in_memory.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"

// A kernel that goes down columns has a few lines of each row at a time. To read them memory is as fast as along rows, but not to write them:
// elements that such sums lead to read their operands once more, along rows.
namespace brasa::compiler {

namespace {

// Of fewer elements all lies in the second cache, and of fewer rows the piece that is worked on in the first.
constexpr int64_t kLarge = 1 << 20, kLong = 32;
// Shorter rows are a piece's whole.
constexpr int64_t kWide = 128;
constexpr int kMostWork = 16;

// The work of what lies on the way from memory, or from sums, to a value of so many elements.
int work_for(const ir::Node* value, Expr elements) {
  int work = 0;
  std::vector<const ir::Node*> open{value};
  std::unordered_set<const ir::Node*> seen;
  while (!open.empty() && work <= kMostWork) {
    const ir::Node* n = open.back();
    open.pop_back();
    if (!seen.insert(n).second || !(n->types[0].numel() == elements)) continue;
    if (prim_of(n) == Prim::Pointwise) work += work_of(n);
    n->for_each_input([&](Value v) { open.push_back(v.node); });
  }
  return work;
}

// Whether results have as many elements as what is summed. What takes long to compute is computed while its operands are near.
bool has_elements(const ir::Graph& graph, Expr elements) {
  bool any = false, cheap = true;
  for (const ir::Output& o : graph.outputs()) {
    if (!(type_of(o.value).numel() == elements)) continue;
    any = true;
    cheap = cheap && work_for(o.value.node, elements) <= kMostWork;
  }
  return any && cheap;
}

bool goes_down_columns(const ir::Node* n, const PassContext& context) {
  const ir::Type& summed = type_of(n->arg<Value>(0));
  std::vector<int64_t> dims = int_args(n, 1), others = other_dims(dims, summed.rank());
  if (others.empty() || others.back() + 1 != summed.rank()) return false;
  auto holds = [&](Expr size, int64_t least) {
    bool known = ir::min(size, Expr(least)).is_constant();
    return (known || (context.size_classes && context.facts.has_hint(size))) && at_least(size, least, context);
  };
  Expr row = summed.shape.back(), length = ir::product(pick(summed.shape, dims));
  return holds(summed.numel(), kLarge) && holds(length, kLong) && holds(row, kWide);
}

}  // namespace

void keep_columns_apart(Primitives& p, const PassContext& context) {
  if (context.machine.gpu) return;
  for (ir::Node* n : p.graph->nodes())
    if (prim_of(n) == Prim::Reduce && has_elements(*p.graph, type_of(n->arg<Value>(0)).numel()) &&
        goes_down_columns(n, context))
      p.apart.insert(n->out());
}

}  // namespace brasa::compiler
