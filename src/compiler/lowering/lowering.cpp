#include "compiler/lowering/lowering.h"

#include "support/error.h"

namespace brasa::compiler {

Expr span_of(const ir::Type& t, const std::vector<Expr>& strides) {
  if (strides.empty()) return t.numel();
  Expr last(1);
  for (size_t d = 0; d < strides.size(); ++d) last = last + (t.shape[d] - 1) * strides[d];
  return last;
}

namespace {

std::vector<Value> declare_buffers(const Group& group, LoopBuilder& b) {
  std::vector<Value> out;
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    const ir::Input& in = group.graph->inputs()[i];
    const ir::Type& t = type_of(in.value);
    out.push_back(group.takes_value(i) ? Value{} : b.buffer(t.dtype, span_of(t, in.strides)));
  }
  for (size_t i = 0; i < group.graph->outputs().size(); ++i) {
    const ir::Type& t = type_of(group.graph->outputs()[i].value);
    out.push_back(b.buffer(t.dtype, span_of(t, group.output_strides[i])));
  }
  return out;
}

std::vector<std::vector<Value>> declare_numbers(const Group& group, LoopBuilder& b) {
  std::vector<std::vector<Value>> out(group.inputs.size());
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    if (!group.takes_value(i)) continue;
    const ir::Input& in = group.graph->inputs()[i];
    const ir::Type& t = type_of(in.value);
    for (int64_t k = span_of(t, in.strides).constant(); k > 0; --k) out[i].push_back(b.number(t.dtype));
  }
  return out;
}

}  // namespace

Lowering::Lowering(const Group& group)
    : group_(group),
      graph_(std::make_unique<ir::Graph>(ir::Level::Loops)),
      b_(*graph_),
      buffers_(declare_buffers(group, b_)),
      numbers_(declare_numbers(group, b_)),
      expressions_(*group.graph, b_, buffers_, numbers_) {}

Expr Lowering::output_place(size_t i, const Index& index) const {
  return place_of(index, type_of(group_.graph->outputs()[i].value).shape, group_.output_strides[i]);
}

Lowered Lowering::finish(const Schedule& schedule) {
  Lowered out;
  std::vector<Value> unwritten;
  for (size_t i = 0; i < group_.unwritten.size(); ++i)
    if (group_.unwritten[i]) unwritten.push_back(buffers_[i]);
  if (!unwritten.empty()) b_.unwritten(std::move(unwritten));
  out.grain = schedule.grain;
  out.beside = schedule.beside;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i]) out.buffers.push_back(static_cast<int>(i));
  for (size_t i = 0; i < numbers_.size(); ++i)
    for (size_t k = 0; k < numbers_[i].size(); ++k)
      out.numbers.push_back({static_cast<int>(i), static_cast<int64_t>(k)});
  out.loops = std::move(graph_);
  return out;
}

Pieces pieces_of(Expr extent, Expr size) { return {ceildiv(extent, size), size, extent}; }

Expr Pieces::inside(Expr piece) const {
  if (size.is_constant() && provably_divisible(extent, size.constant())) return size;
  return min(size, extent - piece * size);
}

std::vector<Lowered> lower(const Group& group, const Schedule& schedule) {
  std::vector<Lowered> out;
  switch (group.kind) {
    case GroupKind::Loops: lower_loops(group, schedule, out); break;
    case GroupKind::Contraction: lower_contraction(group, schedule, out); break;
    case GroupKind::Scatter: lower_scatter(group, schedule, out); break;
    case GroupKind::Library: break;  // see libraries/
  }
  return out;
}

}  // namespace brasa::compiler
