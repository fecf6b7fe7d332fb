#include "compiler/lowering/lowering.h"
#include "ir/copy.h"
#include "ops/combiner.h"
#include "support/error.h"

namespace brasa::compiler {

Group initial_value(const Group& group) {
  const Node* scatter = group.graph->outputs()[0].value.node;
  Group g;
  g.domain = domain_of(scatter->types[0].shape);
  ir::ValueMap map;
  ir::copy_inputs(*g.graph, *group.graph, map);
  Value x = scatter->arg<Value>(0);
  std::vector<bool> needed(group.graph->nodes().size());
  needed[x.node->id] = true;
  ir::add_operands(*group.graph, needed);
  for (Node* n : group.graph->nodes())
    if (needed[n->id] && n->op != ir::input_op()) ir::copy_node(*g.graph, *n, map);
  g.graph->add_output(map(x));
  g.inputs = group.inputs;
  g.outputs = group.outputs;
  g.output_strides = group.output_strides;
  g.by_value = group.by_value;
  return g;
}

void lower_scatter(const Group& group, const Schedule& schedule, std::vector<Lowered>& out) {
  const Node* n = group.graph->outputs()[0].value.node;
  lower_loops(initial_value(group), schedule.before.at(0), out);

  Lowering l(group);
  LoopBuilder& b = l.b();
  const auto& indices = n->arg<std::vector<Value>>(1);
  std::vector<int64_t> dims = int_args(n, 3);
  const ir::Shape& shape = n->types[0].shape;
  Index free;             // by axis
  Value in_update, mask;  // threads that have an element of an update, and of these those that write it
  Expr part = schedule.parts > 1 ? b.loop("block", schedule.parts) : Expr(0);
  for (const Axis& a : schedule.axes) {
    if (a.spelled_out) {
      free.push_back(Expr(0));  // inside
      continue;
    }
    const char* parallel = schedule.threads ? "block" : "parallel";
    Expr pieces = a.piece ? ceildiv(a.extent, a.piece) : a.extent;
    if (a.piece && schedule.threads) pieces = floordiv(pieces, schedule.threads);
    if (schedule.atomic && &a == &schedule.axes.back()) pieces = ceildiv(pieces, schedule.threads);
    free.push_back(b.loop(parallel, pieces));
  }
  // Where nothing can be updated there is no iteration.
  Expr places(1);
  for (int64_t d : dims) places = places * shape[d];
  Index front;
  auto updates = [&](const char* loop) {
    for (Expr size : type_of(indices[0]).shape)
      front.push_back(b.loop(loop, front.empty() && !schedule.threads ? min(size, size * places) : size));
  };
  if (schedule.atomic) updates("block");
  if (schedule.threads) {
    Expr thread = b.loop("thread", schedule.threads);
    if (!free.empty() && schedule.threads > 1) free.back() = free.back() * Expr(schedule.threads) + thread;
  }
  if (schedule.atomic) {
    Expr extent = schedule.axes.back().extent;
    mask = in_update = l.expressions().within(free.back(), 0, extent);
    free.back() = b.bounded(free.back(), extent, in_update);
  } else {
    updates("serial");
  }
  for (size_t i = 0; i < free.size(); ++i) {
    const Axis& a = schedule.axes[i];
    if (a.spelled_out) free[i] = b.loop("unroll", a.extent);
    if (!a.piece) continue;
    Expr inside = pieces_of(a.extent, a.piece).inside(free[i]);
    const char* loop = schedule.threads || a.kind != Axis::Vector ? "serial" : "vector";
    free[i] = free[i] * Expr(a.piece) + b.loop(loop, inside, schedule.width, 1);
  }
  Index place(shape.size()), update = front;
  for (size_t i = 0; i < dims.size(); ++i) {
    place[dims[i]] = l.expressions().picked(indices[i], front, shape[dims[i]], {});
    if (schedule.threads) mask = l.expressions().both(mask, l.expressions().within(0, 0, shape[dims[i]]));
  }
  // A repeated index does not follow from the loops, and yet each iteration is one update.
  place[dims[0]] = b.in_each(place[dims[0]], front, shape[dims[0]]);
  if (schedule.parts > 1)
    mask = l.expressions().both(mask, l.expressions().within(mod(place[dims[0]], schedule.parts), part, part + 1));
  for (size_t i = 0; i < free.size(); ++i) place[schedule.axes[i].first] = free[i];
  update.insert(update.end(), free.begin(), free.end());
  Value value = l.expressions().at(n->arg<Value>(2), update, in_update);
  const auto& how = n->arg<std::string>(4);
  Expr at = l.output_place(0, place);
  if (schedule.atomic) {
    b.store(l.output_buffer(0), at, value, mask, how);
    return out.push_back(l.finish(schedule));
  }
  if (!how.empty()) value = b.op(ops::scalar_op(ops::combiner_of(how)), {b.load(l.output_buffer(0), at, mask), value});
  b.store(l.output_buffer(0), at, value, mask);
  out.push_back(l.finish(schedule));
}

}  // namespace brasa::compiler
