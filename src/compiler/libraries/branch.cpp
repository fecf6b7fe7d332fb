#include "ops/branch.h"

#include "compiler/libraries/body.h"
#include "compiler/libraries/rows.h"

namespace brasa::compiler {
namespace {

// The host reads the predicate and runs one body, from the operands' memory to the results'.
class Branch final : public BodyCall {
 public:
  Branch(const Group& group, const ops::BranchNode& n, const CompilerOptions& options, ir::Facts& facts)
      : yes_(n.yes, n.sizes, "yes", options, facts),
        no_(n.no, n.sizes, "no", options, facts),
        first_result_(group.inputs.size()),
        results_(ops::result_types(n.yes).size()) {
    predicate_ = place_of(group, n.predicate);
    for (ir::Value v : n.operands) operands_.push_back(place_of(group, v));
    add_report(*yes_);
    add_report(*no_);
    inputs_ = n.yes.inputs().size();
    other_inputs_ = n.no.inputs().size();
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    bool holds = false;
    device.download(&holds, tensors[predicate_], sizeof holds, stream);
    SmallVector<Operand, 16> in, out;
    in.resize(holds ? inputs_ : other_inputs_);  // behind the operands some that only show sizes
    out.resize(results_);
    for (size_t i = 0; i < operands_.size(); ++i) in[i].data = tensors[operands_[i]];
    for (size_t i = 0; i < results_; ++i) out[i].data = tensors[first_result_ + i];
    const CompiledBody& body = holds ? yes_ : no_;
    SmallVector<int64_t, 16> inner = body.symbols(symbols);
    body->run(inner.data(), {in.data(), in.size()}, {out.data(), out.size()});
  }

 private:
  CompiledBody yes_, no_;
  size_t predicate_ = 0, first_result_, results_, inputs_ = 0, other_inputs_ = 0;
  std::vector<size_t> operands_;  // places of the bodies' inputs
};

}  // namespace

const Implementation kBranch = {.library = "loops",
                                .name = "branch",
                                .primitive = "prim::cond",
                                .prepare = prepare_bodies<Branch, ops::BranchNode>};

}  // namespace brasa::compiler
