#include "capture/stepwise.h"

#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "compiler/compile.h"
#include "ir/text.h"
#include "runtime/cpu/allocator.h"
#include "support/error.h"
#include "support/small_vector.h"

namespace brasa::capture {
namespace {

using compiler::Executable;
using compiler::Operand;

// Where a value lies, for the sizes of a run.
struct Layout {
  DType dtype;
  std::vector<ir::Expr> sizes, strides;
};

struct Placed {
  DType dtype;
  Sizes sizes, strides;
  size_t bytes() const {
    int64_t n = size_of(dtype);
    for (int64_t s : sizes) n *= s;
    return static_cast<size_t>(n);
  }
  Operand at(void* data) const { return {data, dtype, sizes, strides}; }
};

struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
  explicit Memory(size_t n) : data(runtime::cpu::allocate(n)), bytes(n) {}
  Memory(Memory&& o) noexcept : data(std::exchange(o.data, nullptr)), bytes(o.bytes) {}
  ~Memory() { runtime::cpu::deallocate(data, bytes); }
};

class Stepwise final : public Executable {
 public:
  Stepwise(const ir::Graph& graph, ir::Facts& facts) : Executable(graph), text_(ir::print(graph)) {
    std::unordered_map<ir::Value, int> slots;
    auto slot = [&](ir::Value v, Layout layout) {
      layouts_.push_back(std::move(layout));
      slots[v] = static_cast<int>(layouts_.size()) - 1;
    };
    for (const ir::Input& in : graph.inputs()) {
      const ir::Type& t = ir::type_of(in.value);
      slot(in.value, {t.dtype, t.shape, in.strides});
    }
    inputs_ = layouts_.size();
    for (ir::Node* n : live_nodes(graph)) {
      if (n->op == ir::input_op()) continue;
      Step step;
      step.executable = one_node(*n, graph, facts);
      n->for_each_input([&](ir::Value v) { step.reads.push_back(slots.at(v)); });
      for (uint32_t r = 0; r < n->types.size(); ++r) {
        slot(n->out(r), {n->types[r].dtype, n->types[r].shape, ir::contiguous_strides(n->types[r].shape)});
        step.writes.push_back(slots.at(n->out(r)));
      }
      steps_.push_back(std::move(step));
    }
    for (const ir::Output& o : graph.outputs()) outputs_.push_back({slots.at(o.value), o.into, o.check});
  }

  void run(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const override {
    std::vector<Operand> operands(inputs.begin(), inputs.end());
    std::deque<Placed> places;
    std::vector<Memory> memory;
    for (size_t i = inputs_; i < layouts_.size(); ++i) {
      places.push_back({layouts_[i].dtype, {}, {}});
      for (ir::Expr e : layouts_[i].sizes) places.back().sizes.push_back(evaluate(e, symbols));
      for (ir::Expr e : layouts_[i].strides) places.back().strides.push_back(evaluate(e, symbols));
      memory.emplace_back(places.back().bytes());
      operands.push_back(places.back().at(memory.back().data));
    }
    for (const Step& s : steps_) {
      std::vector<Operand> in, out;
      for (int r : s.reads) in.push_back(operands[r]);
      for (int w : s.writes) out.push_back(operands[w]);
      // The node's graph has the symbols of the whole.
      s.executable->run(symbols, in, out);
    }
    size_t fresh = 0;
    for (const Out& o : outputs_) {
      if (!o.check.empty()) {
        if (!*static_cast<const bool*>(operands[o.slot].data)) fail_check(o.check, symbols);
        continue;
      }
      const Operand& to = o.into >= 0 ? inputs[o.into] : outputs[fresh++];
      copy(operands[o.slot], to);
    }
  }
  std::string text() const override { return text_; }

 private:
  struct Step {
    std::shared_ptr<Executable> executable;
    std::vector<int> reads, writes;
  };
  struct Out {
    int slot, into;
    std::string check;
  };

  static std::shared_ptr<Executable> one_node(const ir::Node& n, const ir::Graph& graph, ir::Facts& facts) {
    ir::Graph one(graph.level());
    ir::ValueMap map;
    n.for_each_input([&](ir::Value v) {
      int input = graph.input_index(v);
      // An operand that stands twice is two inputs, so that reads and inputs correspond.
      map.set(v,
              one.add_input(ir::type_of(v), "", input >= 0 ? graph.inputs()[input].strides : std::vector<ir::Expr>{}));
    });
    ir::Args args;
    for (const ir::Arg& a : n.args) args.push_back(map(a));
    ir::Node* copy = one.add(n.op, std::move(args), n.types);
    for (uint32_t r = 0; r < n.types.size(); ++r) one.add_output(copy->out(r));
    return compiler::compile(one, facts, {});
  }

  static void copy(const Operand& from, const Operand& to) {
    size_t element = static_cast<size_t>(size_of(from.dtype));
    Sizes at(from.sizes.size());
    for (int64_t s : from.sizes)
      if (s == 0) return;
    for (;;) {
      int64_t a = 0, b = 0;
      for (size_t d = 0; d < at.size(); ++d) {
        a += at[d] * from.strides[d];
        b += at[d] * to.strides[d];
      }
      std::memcpy(static_cast<std::byte*>(to.data) + b * static_cast<int64_t>(element),
                  static_cast<const std::byte*>(from.data) + a * static_cast<int64_t>(element), element);
      size_t d = at.size();
      for (; d > 0; --d) {
        if (++at[d - 1] < from.sizes[d - 1]) break;
        at[d - 1] = 0;
      }
      if (d == 0) return;
    }
  }

  std::string text_;
  std::vector<Layout> layouts_;  // by slot: the inputs, then each node's results
  size_t inputs_ = 0;
  std::vector<Step> steps_;
  std::vector<Out> outputs_;
};

}  // namespace

std::shared_ptr<Executable> run_stepwise(const ir::Graph& graph, ir::Facts& facts) {
  return std::make_shared<Stepwise>(graph, facts);
}

}  // namespace brasa::capture
