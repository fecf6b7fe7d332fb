#include "ops/loop.h"

#include <algorithm>

#include "compiler/fusion/fuse.h"
#include "compiler/libraries/rows.h"
#include "compiler/pipeline.h"
#include "compiler/run/size_program.h"
#include "ir/copy.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

using ir::Expr;

// The body with the sizes that are known outside. What else it assumes of sizes, the whole graph assumes.
std::shared_ptr<Executable> compiled_body(const ops::LoopNode& n, const CompilerOptions& options, ir::Facts& facts) {
  auto known = [&](Expr s) { return n.sizes[s->id].is_constant() ? n.sizes[s->id] : s; };
  std::unique_ptr<ir::Graph> body = ir::with_sizes(
      n.body, [&](Expr e) { return ir::substitute(e, [&](Expr s) { return std::optional<Expr>(known(s)); }); });
  body->name = "step";
  std::vector<int64_t> hints;
  if (std::all_of(n.sizes.begin(), n.sizes.end(), [&](Expr e) { return facts.has_hint(e); }))
    for (Expr e : n.sizes) hints.push_back(facts.hint(e));
  ir::Facts own(std::move(hints));
  std::shared_ptr<Executable> out = run_pipeline(*body, own, options);
  for (const ir::Fact& f : own.facts()) {
    bool holds = facts.equal(n.outside(f.left), n.outside(f.right)) == f.equal;
    BRASA_ASSERT(holds, "a loop's body was made for other sizes");
  }
  return out;
}

// The body runs once a step, on what lies in the traces and beside them: nothing is copied.
class Loop final : public DeviceCall {
 public:
  Loop(const Group& group, const CompilerOptions& options, ir::Facts& facts) {
    const ir::Node& node = *group.graph->outputs()[0].value.node;
    ops::LoopNode n(node);
    body_ = compiled_body(n, options, facts);
    steps_ = SizeProgram(n.steps);
    reverse_ = n.reverse;
    for (Expr e : n.sizes) sizes_.emplace_back(e);
    auto bytes = [&](const ir::Type& t) {
      ir::Type outside{t.dtype, {}, false};
      for (Expr e : t.shape) outside.shape.push_back(n.outside(e));
      return SizeProgram(outside.numel() * Expr(size_of(t.dtype)));
    };
    for (size_t i = 0; i < n.operands.size(); ++i) {
      int at = group.graph->input_index(n.operands[i]);
      BRASA_ASSERT(at >= 0, "a loop's operand is not in memory");
      Use use = i < n.carried ? Use::State : i < n.carried + n.along ? Use::Item : Use::Whole;
      operands_.push_back({use, static_cast<size_t>(at), bytes(type_of(n.body.inputs()[i].value))});
    }
    unread_ = n.body.inputs().size() - operands_.size();
    size_t result = 0;
    for (const ir::Output& o : n.body.outputs()) {
      if (!o.check.empty()) continue;
      results_.push_back(
          {result < n.carried ? Use::State : Use::Item, group.inputs.size() + result, bytes(type_of(o.value))});
      ++result;
    }
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    SmallVector<int64_t, 16> inner;
    for (const SizeProgram& s : sizes_) inner.push_back(s(symbols));
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

  const Report* report() const override { return report_of(*body_); }

 protected:
  double products(const int64_t*) const override { return 0; }

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

  std::shared_ptr<Executable> body_;
  std::vector<SizeProgram> sizes_;
  SizeProgram steps_;
  bool reverse_;
  std::vector<Tensor> operands_, results_;  // of the body
  size_t unread_;                           // operands that only show sizes
};

}  // namespace

const Implementation kLoop = {
    .library = "loops",
    .name = "loop",
    .primitive = "prim::scan_loop",
    .prepare = [](const Group& g, const CompilerOptions& options, ir::Facts& facts) -> std::unique_ptr<DeviceCall> {
      return std::make_unique<Loop>(g, options, facts);
    }};

}  // namespace brasa::compiler
