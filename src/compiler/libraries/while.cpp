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
      : BodyCall(Flow::Kind::While), go_on_inputs_(n.go_on.inputs().size()), step_inputs_(n.step.inputs().size()) {
    for (size_t i = 0; i < n.operands.size(); ++i) {
      SizeProgram bytes = bytes_outside(n.step.inputs()[i].value, n.sizes);
      bool state = i < n.carried;
      flow_.operands.push_back({state ? Flow::Use::State : Flow::Use::Whole, input_of(group, n.operands[i]), bytes});
      if (state) flow_.results.push_back({Flow::Use::State, group.inputs.size() + i, bytes});
    }
    add_body(CompiledBody(n.go_on, n.sizes, "go_on", options, facts));
    add_body(CompiledBody(n.step, n.sizes, "step", options, facts));
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    const CompiledBody &go_on = flow_.bodies[0], &step = flow_.bodies[1];
    const std::vector<Flow::Tensor>& states = flow_.results;
    SmallVector<Operand, 16> in, next;
    in.resize(std::max(go_on_inputs_, step_inputs_));  // behind the operands some that only show sizes
    next.resize(states.size());
    for (size_t i = 0; i < flow_.operands.size(); ++i) in[i].data = tensors[flow_.operands[i].position];
    std::vector<Memory> second;
    for (const Flow::Tensor& t : states) second.emplace_back(device, static_cast<size_t>(t.bytes(symbols)), stream);
    Memory truth(device, sizeof(bool), stream);
    SmallVector<int64_t, 16> of_condition = go_on.symbols(symbols), of_step = step.symbols(symbols);
    bool in_results = false;
    while (true) {
      bool goes_on = false;
      Operand result;
      result.data = truth.data;
      go_on->run(of_condition.data(), {in.data(), go_on_inputs_}, {&result, 1});
      device.download(&goes_on, truth.data, sizeof goes_on, stream);
      if (!goes_on) break;
      in_results = !in_results;
      for (size_t i = 0; i < next.size(); ++i) next[i].data = in_results ? tensors[states[i].position] : second[i].data;
      step->run(of_step.data(), {in.data(), step_inputs_}, {next.data(), next.size()});
      for (size_t i = 0; i < next.size(); ++i) in[i] = next[i];
    }
    for (size_t i = 0; i < next.size() && !in_results; ++i)
      if (auto bytes = static_cast<size_t>(states[i].bytes(symbols)))
        device.copy(tensors[states[i].position], in[i].data, bytes, stream);
  }

 private:
  size_t go_on_inputs_, step_inputs_;
};

}  // namespace

const Implementation kWhile = {.library = "loops",
                               .name = "while loop",
                               .primitive = "prim::while_loop",
                               .prepare = prepare_bodies<While, ops::WhileNode>};

}  // namespace brasa::compiler
