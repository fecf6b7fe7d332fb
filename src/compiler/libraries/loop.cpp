#include "ops/loop.h"

#include "compiler/libraries/body.h"
#include "compiler/libraries/rows.h"

namespace brasa::compiler {
namespace {

// The body runs once a step, on what lies in the traces and beside them: nothing is copied.
class Loop final : public BodyCall {
 public:
  Loop(const Group& group, const ops::LoopNode& n, const CompilerOptions& options, ir::Facts& facts)
      : body_(n.body, n.sizes, "step", options, facts), steps_(n.steps), reverse_(n.reverse) {
    auto bytes = [&](const ir::Type& t) {
      return SizeProgram(ops::outside(t, n.sizes).numel() * Expr(size_of(t.dtype)));
    };
    for (size_t i = 0; i < n.operands.size(); ++i) {
      Use use = i < n.carried ? Use::State : i < n.carried + n.along ? Use::Item : Use::Whole;
      operands_.push_back({use, place_of(group, n.operands[i]), bytes(type_of(n.body.inputs()[i].value))});
    }
    add_report(*body_);
    unread_ = n.body.inputs().size() - operands_.size();
    for (const ir::Type& t : ops::result_types(n.body)) {
      size_t result = results_.size();
      results_.push_back({result < n.carried ? Use::State : Use::Item, group.inputs.size() + result, bytes(t)});
    }
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    SmallVector<int64_t, 16> inner = body_.symbols(symbols);
    SmallVector<Operand, 16> in, out;
    SmallVector<Moving, 16> moving_in, moving_out;
    for (size_t i = 0; i < operands_.size(); ++i) moving_in.push_back(moving(operands_[i], tensors, symbols));
    for (const Tensor& t : results_) moving_out.push_back(moving(t, tensors, symbols));
    int64_t steps = steps_(symbols), first = reverse_ ? steps : 0;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].use != Use::State) continue;
      auto bytes = static_cast<size_t>(moving_out[i].bytes);
      if (bytes) device.copy(moving_out[i].data + first * moving_out[i].bytes, moving_in[i].data, bytes, stream);
      moving_in[i] = moving_out[i];
    }
    in.resize(operands_.size() + unread_);
    out.resize(results_.size());
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = reverse_ ? steps - 1 - k : k;
      for (size_t i = 0; i < moving_in.size(); ++i)
        in[i].data = at(moving_in[i], t + (operands_[i].use == Use::State && reverse_));
      for (size_t i = 0; i < moving_out.size(); ++i)
        out[i].data = at(moving_out[i], t + (results_[i].use == Use::State && !reverse_));
      body_->run(inner.data(), {in.data(), in.size()}, {out.data(), out.size()});
    }
  }

 private:
  enum class Use : uint8_t { State, Item, Whole };
  struct Tensor {
    Use use;
    size_t position;    // among the group's inputs and outputs
    SizeProgram bytes;  // of one step
  };
  struct Moving {
    std::byte* data;
    int64_t bytes;
  };
  static Moving moving(const Tensor& t, void* const* tensors, const int64_t* symbols) {
    return {static_cast<std::byte*>(tensors[t.position]), t.use == Use::Whole ? 0 : t.bytes(symbols)};
  }
  static void* at(const Moving& m, int64_t step) { return m.data + step * m.bytes; }

  CompiledBody body_;
  SizeProgram steps_;
  bool reverse_;
  std::vector<Tensor> operands_, results_;  // of the body
  size_t unread_;                           // operands that only show sizes
};

}  // namespace

const Implementation kLoop = {
    .library = "loops", .name = "loop", .primitive = "prim::scan_loop", .prepare = prepare_bodies<Loop, ops::LoopNode>};

}  // namespace brasa::compiler
