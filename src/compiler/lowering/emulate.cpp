#include "compiler/lowering/emulate.h"

#include <bit>
#include <unordered_set>

#include "compiler/loops/builder.h"
#include "compiler/loops/linearize.h"
#include "ir/copy.h"

namespace brasa::compiler {

namespace {

// Threads that keep sums of their own in a loop outside of which the CPU would run them: their accumulators need names.
std::unordered_set<ir::Expr> keep_sums(const ir::Graph& loops) {
  std::unordered_set<ir::Expr> out;
  Nest nest = linearize(loops);
  const LoopAnalysis& a = *nest.analysis;
  for (const ir::Node* n : loops.nodes()) {
    Ranges shut = a.closed(n) & a.kind(ForKind::Serial), open = a.of(n) & a.kind(ForKind::Thread);
    if (loop_kind(n->op) != LoopOp::Reduce || !shut) continue;
    for (size_t i = std::countr_zero(shut); i < a.loops().size(); ++i)
      if (open >> i & 1) out.insert(a.loops()[i].range);
  }
  return out;
}

}  // namespace

std::unique_ptr<ir::Graph> emulated(const ir::Graph& loops) {
  auto out = std::make_unique<ir::Graph>(ir::Level::Loops);
  std::unordered_set<ir::Expr> unrolled = keep_sums(loops);
  out->name = loops.name;
  ir::ValueMap map;
  ir::copy_inputs(*out, loops, map);
  for (ir::Node* n : loops.nodes()) {
    if (n->op == ir::input_op()) continue;
    ir::Args args = ir::mapped(n->args, map);
    auto kind = loop_kind(n->op);
    if (kind == LoopOp::For) {
      const auto& name = n->arg<std::string>(1);
      if (name == "block") args[1] = std::string("parallel");
      if (name == "thread") args[1] = std::string(unrolled.count(n->arg<ir::Expr>(0)) ? "unroll" : "serial");
    } else if (kind == LoopOp::Stage) {
      args[2] = std::string("local");
    }
    ir::Node* copy = out->add(n->op, std::move(args), n->types);
    for (uint32_t i = 0; i < n->types.size(); ++i) map.set({n, i}, copy->out(i));
  }
  return out;
}

std::unique_ptr<ir::Graph> called(const ir::Graph& loops, size_t calls) {
  auto out = std::make_unique<ir::Graph>(ir::Level::Loops);
  out->name = loops.name;
  ir::ValueMap map;
  ir::copy_inputs(*out, loops, map);
  for (ir::Node* n : loops.nodes())
    if (n->op != ir::input_op()) ir::copy_node(*out, *n, map);
  LoopBuilder b(*out);
  b.avoid_symbols_of(loops);
  b.loop("call", static_cast<int64_t>(calls));
  return out;
}

}  // namespace brasa::compiler
