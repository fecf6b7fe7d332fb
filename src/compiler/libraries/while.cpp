#include "ops/while.h"

#include "compiler/fusion/fuse.h"
#include "compiler/libraries/body.h"
#include "compiler/libraries/rows.h"
#include "compiler/pipeline.h"
#include "runtime/device.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

// Memory of a device for the time of a run.
class Scratch {
 public:
  Scratch(runtime::Device& device, runtime::Stream stream, size_t bytes)
      : device_(device), stream_(stream), bytes_(bytes), data_(device.allocate(bytes, stream)) {}
  Scratch(Scratch&& other) noexcept
      : device_(other.device_),
        stream_(other.stream_),
        bytes_(other.bytes_),
        data_(std::exchange(other.data_, nullptr)) {}
  ~Scratch() {
    if (data_) device_.deallocate(data_, bytes_, stream_);
  }
  void* data() const { return data_; }

 private:
  runtime::Device& device_;
  runtime::Stream stream_;
  size_t bytes_;
  void* data_;
};

// The host reads each condition. Steps write in turn to the results' memory and to a second one.
class While final : public DeviceCall {
 public:
  While(const Group& group, const ops::WhileNode& n, const CompilerOptions& options, ir::Facts& facts)
      : go_on_(n.go_on, n.sizes, "go_on", options, facts),
        step_(n.step, n.sizes, "step", options, facts),
        inputs_(group.inputs.size()) {
    for (ir::Value v : n.operands) {
      int at = group.graph->input_index(v);
      BRASA_ASSERT(at >= 0, "a loop's operand is not in memory");
      operands_.push_back(static_cast<size_t>(at));
    }
    for (size_t i = 0; i < n.carried; ++i) {
      ir::Type t = ops::outside(type_of(n.step.inputs()[i].value), n.sizes);
      bytes_.emplace_back(t.numel() * ir::Expr(size_of(t.dtype)));
    }
    go_on_inputs_ = n.go_on.inputs().size();
    step_inputs_ = n.step.inputs().size();
    report_ = *report_of(*go_on_);
    const Report& step = *report_of(*step_);
    report_.kernels.insert(report_.kernels.end(), step.kernels.begin(), step.kernels.end());
    report_.kernels_after += step.kernels_after;
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    SmallVector<Operand, 16> in, next;
    in.resize(std::max(go_on_inputs_, step_inputs_));  // behind the operands some that only show sizes
    next.resize(bytes_.size());
    for (size_t i = 0; i < operands_.size(); ++i) in[i].data = tensors[operands_[i]];
    std::vector<Scratch> second;
    for (const SizeProgram& bytes : bytes_) second.emplace_back(device, stream, static_cast<size_t>(bytes(symbols)));
    Scratch truth(device, stream, sizeof(bool));
    SmallVector<int64_t, 16> of_condition = go_on_.symbols(symbols), of_step = step_.symbols(symbols);
    bool in_results = false;
    while (true) {
      bool goes_on = false;
      Operand result;
      result.data = truth.data();
      go_on_->run(of_condition.data(), {in.data(), go_on_inputs_}, {&result, 1});
      device.download(&goes_on, truth.data(), sizeof goes_on, stream);
      if (!goes_on) break;
      in_results = !in_results;
      for (size_t i = 0; i < next.size(); ++i) next[i].data = in_results ? tensors[inputs_ + i] : second[i].data();
      step_->run(of_step.data(), {in.data(), step_inputs_}, {next.data(), next.size()});
      for (size_t i = 0; i < next.size(); ++i) in[i] = next[i];
    }
    for (size_t i = 0; i < next.size() && !in_results; ++i)
      if (auto bytes = static_cast<size_t>(bytes_[i](symbols)))
        device.copy(tensors[inputs_ + i], in[i].data, bytes, stream);
  }

  const Report* report() const override { return &report_; }

 protected:
  double products(const int64_t*) const override { return 0; }

 private:
  CompiledBody go_on_, step_;
  size_t inputs_, go_on_inputs_ = 0, step_inputs_ = 0;
  std::vector<size_t> operands_;    // places of the bodies' inputs
  std::vector<SizeProgram> bytes_;  // of each state
  Report report_;
};

}  // namespace

const Implementation kWhile = {
    .library = "loops",
    .name = "while loop",
    .primitive = "prim::while_loop",
    .prepare = [](const Group& g, const CompilerOptions& options, ir::Facts& facts) -> std::unique_ptr<DeviceCall> {
      return std::make_unique<While>(g, ops::WhileNode(*g.graph->outputs()[0].value.node), options, facts);
    }};

}  // namespace brasa::compiler
