#include "compiler/compile.h"
#include "ops/primitives/interp.h"
#include "vectors.h"

namespace brasa::verify {

using ops::Array;

namespace {

std::vector<Array> evaluate(const ir::Graph& graph, ir::Facts& facts, const std::vector<Array>& inputs) {
  auto executable = compiler::compile(graph, facts);
  std::vector<std::vector<std::byte>> storages;
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& given = graph.inputs()[i].strides;
    strides.push_back(given.empty() ? ops::row_major(inputs[i].shape) : ops::constants(given));
    storages.push_back(strided_storage(inputs[i], strides[i]));
  }
  std::vector<compiler::Operand> in, results;
  for (size_t i = 0; i < inputs.size(); ++i)
    in.push_back({storages[i].data(), inputs[i].dtype, inputs[i].shape, strides[i]});

  std::vector<Array> out;
  std::vector<std::vector<int64_t>> out_strides;
  for (const ir::Output& o : graph.outputs()) {
    const ir::Type& t = ir::type_of(o.value);
    out.push_back(ops::make_array(t.dtype, ops::constants(t.shape)));
    out_strides.push_back(ops::row_major(out.back().shape));
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (graph.outputs()[i].check.empty())
      results.push_back({out[i].data.data(), out[i].dtype, out[i].shape, out_strides[i]});
  std::vector<int64_t> symbols(executable->symbol_count());
  executable->bind(in, symbols.data());
  executable->run(symbols.data(), in, results);
  return out;
}

}  // namespace

Outcome run_compiled(const Call& call) { return run_graph(call, false, true, evaluate); }

}  // namespace brasa::verify
