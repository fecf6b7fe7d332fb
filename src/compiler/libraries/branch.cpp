#include "ops/branch.h"

#include "compiler/libraries/body.h"
#include "compiler/libraries/rows.h"

namespace brasa::compiler {
namespace {

// The host reads the predicate and runs one body, from the operands' memory to the results'.
class Branch final : public BodyCall {
 public:
  Branch(const Group& group, const ops::BranchNode& n, const CompilerOptions& options, ir::Facts& facts)
      : BodyCall(Flow::Kind::Branch), inputs_(n.yes.inputs().size()), other_inputs_(n.no.inputs().size()) {
    flow_.predicate = input_of(group, n.predicate);
    for (ir::Value v : n.operands) flow_.operands.push_back({Flow::Use::Whole, input_of(group, v), {}});
    for (size_t i = 0; i < ops::result_types(n.yes).size(); ++i)
      flow_.results.push_back({Flow::Use::Whole, group.inputs.size() + i, {}});
    add_body(CompiledBody(n.yes, n.sizes, "yes", options, facts));
    add_body(CompiledBody(n.no, n.sizes, "no", options, facts));
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    bool holds = false;
    device.download(&holds, tensors[flow_.predicate], sizeof holds, stream);
    SmallVector<Operand, 16> in, out;
    in.resize(holds ? inputs_ : other_inputs_);  // behind the operands some that only show sizes
    out.resize(flow_.results.size());
    for (size_t i = 0; i < flow_.operands.size(); ++i) in[i].data = tensors[flow_.operands[i].position];
    for (size_t i = 0; i < out.size(); ++i) out[i].data = tensors[flow_.results[i].position];
    const CompiledBody& body = flow_.bodies[holds ? 0 : 1];
    SmallVector<int64_t, 16> inner = body.symbols(symbols);
    body->run(inner.data(), {in.data(), in.size()}, {out.data(), out.size()});
  }

 private:
  size_t inputs_, other_inputs_;
};

}  // namespace

const Implementation kBranch = {.library = "loops",
                                .name = "branch",
                                .primitive = "prim::cond",
                                .prepare = prepare_bodies<Branch, ops::BranchNode>};

}  // namespace brasa::compiler
