#include "compiler/lowering/emulate.h"

#include "compiler/loops/builder.h"
#include "compiler/loops/ops.h"
#include "ir/copy.h"

namespace brasa::compiler {

std::unique_ptr<ir::Graph> emulated(const ir::Graph& loops) {
  auto out = std::make_unique<ir::Graph>(ir::Level::Loops);
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
      if (name == "thread") args[1] = std::string("serial");
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
