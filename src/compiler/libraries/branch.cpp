#include "ops/branch.h"

#include "compiler/fusion/fuse.h"
#include "compiler/libraries/body.h"
#include "compiler/libraries/rows.h"
#include "compiler/pipeline.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

// The host reads the predicate and runs one body, from the operands' memory to the results'.
class Branch final : public DeviceCall {
 public:
  Branch(const Group& group, const ops::BranchNode& n, const CompilerOptions& options, ir::Facts& facts)
      : yes_(n.yes, n.sizes, "yes", options, facts),
        no_(n.no, n.sizes, "no", options, facts),
        first_result_(group.inputs.size()),
        results_(ops::result_types(n.yes).size()) {
    auto place = [&](ir::Value v) {
      int at = group.graph->input_index(v);
      BRASA_ASSERT(at >= 0, "a branch's operand is not in memory");
      return static_cast<size_t>(at);
    };
    predicate_ = place(n.predicate);
    for (ir::Value v : n.operands) operands_.push_back(place(v));
    report_ = *report_of(*yes_);
    const Report& other = *report_of(*no_);
    report_.kernels.insert(report_.kernels.end(), other.kernels.begin(), other.kernels.end());
    report_.kernels_after += other.kernels_after;
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

  const Report* report() const override { return &report_; }

 protected:
  double products(const int64_t*) const override { return 0; }

 private:
  CompiledBody yes_, no_;
  size_t predicate_ = 0, first_result_, results_, inputs_ = 0, other_inputs_ = 0;
  std::vector<size_t> operands_;  // places of the bodies' inputs
  Report report_;
};

}  // namespace

const Implementation kBranch = {
    .library = "loops",
    .name = "branch",
    .primitive = "prim::cond",
    .prepare = [](const Group& g, const CompilerOptions& options, ir::Facts& facts) -> std::unique_ptr<DeviceCall> {
      return std::make_unique<Branch>(g, ops::BranchNode(*g.graph->outputs()[0].value.node), options, facts);
    }};

}  // namespace brasa::compiler
