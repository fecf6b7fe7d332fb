#include "ops/while.h"

#include "compiler/libraries/body.h"
#include "compiler/libraries/rows.h"
#include "compiler/run/memory.h"
#include "runtime/device.h"

namespace brasa::compiler {
namespace {

// The host reads each condition. Steps write in turn to the results' memory and to a second one.
class While final : public BodyCall {
 public:
  While(const Group& group, const ops::WhileNode& n, const CompilerOptions& options, ir::Facts& facts)
      : go_on_(n.go_on, n.sizes, "go_on", options, facts),
        step_(n.step, n.sizes, "step", options, facts),
        inputs_(group.inputs.size()) {
    for (ir::Value v : n.operands) operands_.push_back(place_of(group, v));
    for (size_t i = 0; i < n.carried; ++i) {
      ir::Type t = ops::outside(type_of(n.step.inputs()[i].value), n.sizes);
      bytes_.emplace_back(t.numel() * ir::Expr(size_of(t.dtype)));
    }
    go_on_inputs_ = n.go_on.inputs().size();
    step_inputs_ = n.step.inputs().size();
    add_report(*go_on_);
    add_report(*step_);
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    SmallVector<Operand, 16> in, next;
    in.resize(std::max(go_on_inputs_, step_inputs_));  // behind the operands some that only show sizes
    next.resize(bytes_.size());
    for (size_t i = 0; i < operands_.size(); ++i) in[i].data = tensors[operands_[i]];
    std::vector<Memory> second;
    for (const SizeProgram& bytes : bytes_) second.emplace_back(device, static_cast<size_t>(bytes(symbols)), stream);
    Memory truth(device, sizeof(bool), stream);
    SmallVector<int64_t, 16> of_condition = go_on_.symbols(symbols), of_step = step_.symbols(symbols);
    bool in_results = false;
    while (true) {
      bool goes_on = false;
      Operand result;
      result.data = truth.data;
      go_on_->run(of_condition.data(), {in.data(), go_on_inputs_}, {&result, 1});
      device.download(&goes_on, truth.data, sizeof goes_on, stream);
      if (!goes_on) break;
      in_results = !in_results;
      for (size_t i = 0; i < next.size(); ++i) next[i].data = in_results ? tensors[inputs_ + i] : second[i].data;
      step_->run(of_step.data(), {in.data(), step_inputs_}, {next.data(), next.size()});
      for (size_t i = 0; i < next.size(); ++i) in[i] = next[i];
    }
    for (size_t i = 0; i < next.size() && !in_results; ++i)
      if (auto bytes = static_cast<size_t>(bytes_[i](symbols)))
        device.copy(tensors[inputs_ + i], in[i].data, bytes, stream);
  }

 private:
  CompiledBody go_on_, step_;
  size_t inputs_, go_on_inputs_ = 0, step_inputs_ = 0;
  std::vector<size_t> operands_;    // places of the bodies' inputs
  std::vector<SizeProgram> bytes_;  // of each state
};

}  // namespace

const Implementation kWhile = {.library = "loops",
                               .name = "while loop",
                               .primitive = "prim::while_loop",
                               .prepare = prepare_bodies<While, ops::WhileNode>};

}  // namespace brasa::compiler
