#include "capture/stepwise.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "compiler/compile.h"
#include "compiler/run/memory.h"
#include "ir/text.h"
#include "runtime/device.h"
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

// Whether a value in the host's memory has a NaN.
bool has_nan(const Operand& o) {
  if (!is_floating(o.dtype) && !is_complex(o.dtype)) return false;
  return visit_dtype(o.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    bool found = false;
    auto visit = [&](auto&& self, size_t d, const T* p) -> void {
      if (d == o.sizes.size()) {
        T v;
        std::memcpy(&v, p, sizeof v);
        if constexpr (std::is_convertible_v<T, double>)
          found = found || std::isnan(static_cast<double>(v));
        else
          found = found || std::isnan(std::abs(static_cast<std::complex<double>>(v)));
        return;
      }
      for (int64_t i = 0; i < o.sizes[d] && !found; ++i) self(self, d + 1, p + i * o.strides[d]);
    };
    visit(visit, 0, static_cast<const T*>(o.data));
    return found;
  });
}

class Stepwise final : public Executable {
 public:
  Stepwise(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device, bool trace_nan)
      : Executable(graph), device_(device), trace_nan_(trace_nan) {
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
      step.executable = one_node(*n, graph, facts, device);
      n->for_each_input([&](ir::Value v) { step.reads.push_back(slots.at(v)); });
      for (uint32_t r = 0; r < n->types.size(); ++r) {
        slot(n->out(r), {n->types[r].dtype, n->types[r].shape, ir::contiguous_strides(n->types[r].shape)});
        step.writes.push_back(slots.at(n->out(r)));
      }
      if (trace_nan) step.text = ir::print(*n);
      steps_.push_back(std::move(step));
    }
    for (const ir::Output& o : graph.outputs()) {
      outputs_.push_back({slots.at(o.value), o.into, o.check, nullptr});
      if (!o.check.empty()) continue;
      const ir::Type& t = ir::type_of(o.value);
      int from = graph.input_index(o.value);
      // Another result may be written to it first.
      if (from >= 0 && from != o.into) {
        layouts_.push_back({t.dtype, t.shape, ir::contiguous_strides(t.shape)});
        int kept = static_cast<int>(layouts_.size()) - 1;
        steps_.push_back({copy_of(t, from, -1, graph, facts, device), {from, kept}, {}, ""});
        outputs_.back().slot = kept;
        from = -1;
      }
      outputs_.back().copy = copy_of(t, from, o.into, graph, facts, device);
    }
  }

  void run(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const override {
    std::vector<Operand> operands(inputs.begin(), inputs.end());
    std::deque<Placed> places;
    std::vector<compiler::Memory> memory;
    for (size_t i = inputs_; i < layouts_.size(); ++i) {
      places.push_back({layouts_[i].dtype, {}, {}});
      for (ir::Expr e : layouts_[i].sizes) places.back().sizes.push_back(evaluate(e, symbols));
      for (ir::Expr e : layouts_[i].strides) places.back().strides.push_back(evaluate(e, symbols));
      memory.emplace_back(device_, places.back().bytes(), runtime::current_stream(device_));
      operands.push_back(places.back().at(memory.back().data));
    }
    for (const Step& s : steps_) {
      std::vector<Operand> in, out;
      for (int r : s.reads) in.push_back(operands[r]);
      for (int w : s.writes) out.push_back(operands[w]);
      // The node's graph has the symbols of the whole.
      s.executable->run(symbols, in, out);
      if (trace_nan_) check_nan(s, in, out);
    }
    // Where a check fails nothing has been written.
    for (const Out& o : outputs_) {
      if (o.check.empty()) continue;
      bool holds = false;
      device_.download(&holds, operands[o.slot].data, sizeof holds, runtime::current_stream(device_));
      if (!holds) fail_check(o.check, symbols);
    }
    size_t fresh = 0;
    for (const Out& o : outputs_) {
      if (!o.check.empty()) continue;
      const Operand pair[] = {operands[o.slot], o.into >= 0 ? inputs[o.into] : outputs[fresh++]};
      o.copy->run(symbols, pair, {});
    }
  }

 private:
  struct Step {
    std::shared_ptr<Executable> executable;
    std::vector<int> reads, writes;
    std::string text;  // where NaN is traced
  };

  // brasa::Error where a step makes a NaN of none.
  void check_nan(const Step& step, std::span<const Operand> in, std::span<const Operand> out) const {
    auto any = [&](std::span<const Operand> operands) {
      return std::any_of(operands.begin(), operands.end(), [&](const Operand& o) { return here_has_nan(o); });
    };
    if (any(out) && !any(in)) fail(str("NaN comes first from ", step.text));
  }
  bool here_has_nan(const Operand& o) const {
    if (device_.on_host()) return has_nan(o);
    // Contiguous values of the device; an input that lies otherwise is taken for one without.
    int64_t n = 1;
    for (size_t d = o.sizes.size(); d-- > 0; n *= o.sizes[d])
      if (o.sizes[d] != 1 && o.strides[d] != n) return false;
    std::vector<std::byte> copy(static_cast<size_t>(n * size_of(o.dtype)));
    device_.download(copy.data(), o.data, copy.size(), runtime::current_stream(device_));
    return has_nan({copy.data(), o.dtype, o.sizes, o.strides});
  }
  struct Out {
    int slot, into;
    std::string check;
    std::shared_ptr<Executable> copy;  // to where the result goes
  };

  // An input that lies as input `i` of the whole graph; -1: as a value that was computed.
  static ir::Value add_operand(ir::Graph& one, ir::Type type, const ir::Graph& graph, int i) {
    if (i < 0) return one.add_input(std::move(type));
    return one.add_input(std::move(type), "", graph.inputs()[i].strides, graph.inputs()[i].by_value);
  }

  static std::shared_ptr<Executable> one_node(const ir::Node& n, const ir::Graph& graph, ir::Facts& facts,
                                              runtime::Device& device) {
    ir::Graph one(graph.level());
    ir::ValueMap map;
    compiler::CompilerOptions options;
    options.device = &device;
    n.for_each_input([&](ir::Value v) {
      // An operand that stands twice is two inputs, so that reads and inputs correspond.
      map.set(v, add_operand(one, ir::type_of(v), graph, graph.input_index(v)));
    });
    ir::Args args;
    for (const ir::Arg& a : n.args) args.push_back(map(a));
    ir::Node* copy = one.add(n.op, std::move(args), n.types);
    for (uint32_t r = 0; r < n.types.size(); ++r) one.add_output(copy->out(r));
    return compiler::compile(one, facts, options);
  }

  // Of an input, or what was computed, to another one, or fresh memory.
  static std::shared_ptr<Executable> copy_of(ir::Type type, int from, int to, const ir::Graph& graph, ir::Facts& facts,
                                             runtime::Device& device) {
    ir::Graph one(graph.level());
    type.weak = false;
    ir::Value value = add_operand(one, type, graph, from);
    add_operand(one, type, graph, to);
    one.add_output(value, 1);
    compiler::CompilerOptions options;
    options.device = &device;
    return compiler::compile(one, facts, options);
  }

  std::vector<Layout> layouts_;  // by slot: the inputs, then each node's results
  size_t inputs_ = 0;
  std::vector<Step> steps_;
  std::vector<Out> outputs_;
  runtime::Device& device_;
  bool trace_nan_;
};

}  // namespace

std::shared_ptr<Executable> run_stepwise(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device,
                                         bool trace_nan) {
  return std::make_shared<Stepwise>(graph, facts, device, trace_nan);
}

}  // namespace brasa::capture
