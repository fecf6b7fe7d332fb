#include "ops/loop.h"

#include <numeric>

#include "compiler/libraries/body.h"
#include "compiler/libraries/rows.h"

namespace brasa::compiler {
namespace {

// The body runs once a step, on what lies in the traces and beside them: nothing is copied.
class Loop final : public BodyCall {
 public:
  Loop(const Group& group, const ops::LoopNode& n, const CompilerOptions& options, ir::Facts& facts)
      : BodyCall(Flow::Kind::Loop) {
    std::vector<size_t> whole(n.operands.size() - n.carried - n.along);
    std::iota(whole.begin(), whole.end(), n.carried + n.along);
    add_body(CompiledBody(n.body, n.sizes, "step", options, facts, whole));
    flow_.steps = SizeProgram(n.steps);
    flow_.reverse = n.reverse;
    for (size_t i = 0; i < n.operands.size(); ++i) {
      Use use = i < n.carried ? Use::State : i < n.carried + n.along ? Use::Item : Use::Whole;
      flow_.operands.push_back({use, input_of(group, n.operands[i]), bytes_outside(n.body.inputs()[i].value, n.sizes)});
    }
    unread_ = n.body.inputs().size() - n.operands.size();
    for (const ir::Type& t : ops::result_types(n.body)) {
      size_t result = flow_.results.size();
      SizeProgram bytes(ops::outside(t, n.sizes).numel() * Expr(size_of(t.dtype)));
      flow_.results.push_back({result < n.carried ? Use::State : Use::Item, group.inputs.size() + result, bytes});
    }
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    const CompiledBody& body = flow_.bodies[0];
    SmallVector<int64_t, 16> inner = body.symbols(symbols);
    SmallVector<Operand, 16> in, out;
    in.resize(flow_.operands.size() + unread_);
    out.resize(flow_.results.size());
    SmallVector<Moving, 16> moving_in, moving_out;
    for (const Flow::Tensor& t : flow_.operands) moving_in.push_back(moving(t, tensors, symbols));
    for (const Flow::Tensor& t : flow_.results) moving_out.push_back(moving(t, tensors, symbols));
    // What the first step packs of whole tensors serves all.
    uint64_t content = body->lasting().empty() ? 0 : new_content();
    for (uint32_t i : body->lasting()) in[i].content = content;
    int64_t steps = flow_.steps(symbols), first = flow_.reverse ? steps : 0;
    for (size_t i = 0; i < flow_.operands.size(); ++i) {
      if (flow_.operands[i].use != Use::State) continue;
      auto bytes = static_cast<size_t>(moving_out[i].bytes);
      if (bytes) device.copy(moving_out[i].data + first * moving_out[i].bytes, moving_in[i].data, bytes, stream);
      moving_in[i] = moving_out[i];
    }
    for (int64_t k = 0; k < steps; ++k) {
      int64_t t = flow_.reverse ? steps - 1 - k : k;
      for (size_t i = 0; i < moving_in.size(); ++i)
        in[i].data = at(moving_in[i], t + (flow_.operands[i].use == Use::State && flow_.reverse));
      for (size_t i = 0; i < moving_out.size(); ++i)
        out[i].data = at(moving_out[i], t + (flow_.results[i].use == Use::State && !flow_.reverse));
      body->run(inner.data(), {in.data(), in.size()}, {out.data(), out.size()});
    }
  }

 private:
  using Use = Flow::Use;
  struct Moving {
    std::byte* data;
    int64_t bytes;
  };
  static Moving moving(const Flow::Tensor& t, void* const* tensors, const int64_t* symbols) {
    return {static_cast<std::byte*>(tensors[t.position]), t.use == Use::Whole ? 0 : t.bytes(symbols)};
  }
  static void* at(const Moving& m, int64_t step) { return m.data + step * m.bytes; }

  size_t unread_;  // operands that only show sizes
};

}  // namespace

const Implementation kLoop = {
    .library = "loops", .name = "loop", .primitive = "prim::scan_loop", .prepare = prepare_bodies<Loop, ops::LoopNode>};

}  // namespace brasa::compiler
