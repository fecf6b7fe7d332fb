#include <algorithm>
#include <cstring>

#include "compiler/run/executable.h"
#include "compiler/run/host_copies.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "ops/interpreter.h"
#include "support/error.h"
#include "transforms/derived.h"

namespace brasa::compiler {
namespace {

// The graph's text is kept, and evaluated afresh for the sizes of each run.
class Interpreted final : public Executable {
 public:
  Interpreted(const ir::Graph& graph, runtime::Device& device)
      : Executable(graph), graph_(ir::parse(ir::print(graph), transforms::find_row)), device_(device) {}

  void run(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const override {
    if (device_.on_host()) return run_here(symbols, inputs, outputs);
    HostCopies copies(device_);
    std::vector<Operand> in(inputs.begin(), inputs.end()), out(outputs.begin(), outputs.end());
    std::vector<bool> written(in.size());
    for (const ir::Output& o : graph_->outputs())
      if (o.into >= 0) written[o.into] = true;
    auto here = [&](size_t i) { return graph_->inputs()[i].by_value; };
    for (size_t i = 0; i < in.size(); ++i)
      if (!here(i)) copies.add(in[i], written[i]);
    for (const Operand& o : out) copies.add(o, true);
    copies.fetch();
    size_t n = 0;
    for (size_t i = 0; i < in.size(); ++i)
      if (!here(i)) in[i].data = copies.data(n++);
    for (Operand& o : out) o.data = copies.data(n++);
    run_here(symbols, in, out);
    copies.store();
  }

 private:
  void run_here(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const {
    std::vector<ops::Array> arrays;
    for (const Operand& in : inputs) arrays.push_back(read(in));
    auto sized = ir::with_sizes(*graph_, [&](ir::Expr e) { return ir::Expr(evaluate(e, symbols)); });
    std::vector<ops::Array> results = ops::evaluate(*sized, arrays);
    size_t fresh = 0;
    // Checks that composed operators brought along come after the graph's own outputs.
    for (size_t i = 0; i < graph_->outputs().size(); ++i) {
      const ir::Output& o = graph_->outputs()[i];
      if (o.check.empty()) write(results[i], o.into >= 0 ? inputs[o.into] : outputs[fresh++]);
    }
  }

  template <class F>
  static void each_element(const Operand& op, F f) {
    int64_t size = brasa::size_of(op.dtype), i = 0;
    std::vector<int64_t> at(op.sizes.size());
    for (int64_t s : op.sizes)
      if (s == 0) return;
    for (;;) {
      int64_t offset = 0;
      for (size_t d = 0; d < at.size(); ++d) offset += at[d] * op.strides[d];
      f(static_cast<std::byte*>(op.data) + offset * size, size * i++);
      size_t d = at.size();
      for (; d > 0; --d) {
        if (++at[d - 1] < op.sizes[d - 1]) break;
        at[d - 1] = 0;
      }
      if (d == 0) return;
    }
  }
  static ops::Array read(const Operand& in) {
    ops::Array a{in.dtype, {in.sizes.begin(), in.sizes.end()}, {}};
    if (!in.data) return a;  // nobody reads it; a number's magnitude is its size
    a.data.resize(a.numel() * brasa::size_of(in.dtype));
    each_element(in, [&](const std::byte* from, int64_t at) {
      std::memcpy(a.data.data() + at, from, brasa::size_of(in.dtype));
    });
    return a;
  }
  static void write(const ops::Array& a, const Operand& out) {
    BRASA_ASSERT(a.dtype == out.dtype &&
                 std::equal(a.shape.begin(), a.shape.end(), out.sizes.begin(), out.sizes.end()));
    each_element(out,
                 [&](std::byte* to, int64_t at) { std::memcpy(to, a.data.data() + at, brasa::size_of(out.dtype)); });
  }
  std::unique_ptr<ir::Graph> graph_;
  runtime::Device& device_;
};

}  // namespace

std::shared_ptr<Executable> interpret(const ir::Graph& graph, runtime::Device* device) {
  return std::make_shared<Interpreted>(graph, device ? *device : runtime::host());
}

}  // namespace brasa::compiler
