#include "compiler/fusion/indexing.h"
#include "compiler/lowering/lower.h"
#include "compiler/schedules/axes.h"

// Schedules for a GPU: one thread an element, or one block a row with its threads along the row.
namespace brasa::compiler {

namespace {

// Threads of a block: where each has an element; where each runs through reduced ones; of a product's tile.
constexpr int kThreads = 256, kReducing = 32, kProduct = 64;
constexpr int kProductRows = 8;

Schedule loops(const Group& g) {
  Schedule s;
  s.axes = merged_axes(g).axes;
  if (s.axes.empty()) return s;
  Axis& last = s.axes.back();
  s.vector_outside = g.domain.has_reduced() && !last.reduced;
  for (Axis& a : s.axes)
    if (a.reduced) a.kind = Axis::Serial;
  last.kind = Axis::Vector;
  s.threads = s.vector_outside ? kReducing : kThreads;
  if (!last.reduced) last.piece = s.threads;
  return s;
}

// Along its dimension one after the other, a block each of the others.
Schedule scan(const Group& g) {
  Schedule s;
  s.axes = merged_axes(g).axes;
  if (s.axes.empty()) return s;
  auto dim = static_cast<size_t>(g.graph->outputs()[0].value.node->arg<ir::Expr>(1).constant());
  for (Axis& a : s.axes) a.kind = a.first == dim ? Axis::Serial : Axis::Parallel;
  s.threads = 1;
  return s;
}

// Updates of one place follow each other; what the indices leave free is parallel.
Schedule scatter(const Group& g, const Machine& m) {
  Schedule s;
  s.before.push_back(schedule(initial_value(g), m));
  s.threads = 1;
  s.axes = free_axes(g, 4);
  return s;
}

Schedule contraction() {
  Schedule s;
  s.rows = kProductRows;
  s.threads = kProduct;
  return s;
}

}  // namespace

Schedule schedule_gpu(const Group& group, const Machine& machine) {
  switch (group.kind) {
    case GroupKind::Contraction: return contraction();
    case GroupKind::Scatter: return scatter(group, machine);
    case GroupKind::Scan: return scan(group);
    case GroupKind::Library: return {};
    default: return loops(group);
  }
}

}  // namespace brasa::compiler
