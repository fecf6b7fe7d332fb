#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/suppose.h"
#include "program/variants.h"
#include "tensor/execute.h"
#include "tensor/size_use.h"

// What the two ways of running a computation share: on merged dimensions (execute_pointwise.cpp), and on its operands as they are.
namespace brasa::eager {

/// The strides of one dimension whose elements are neighbours.
inline constexpr int64_t kUnit[] = {1};

/// One call: what is computed, of what, into what, where.
struct Call {
  const Computation& computation;
  std::span<const InputTensor> inputs;
  const TensorImpl* into;  // input 0's, which receives the only result; null: results are fresh
  runtime::Device& device;
};

/// Of each input of a graph that is built for a call: symbols for its sizes and strides, numbered in order, with this call's values as
/// hints.
class InputSymbols {
 public:
  ir::Expr symbol(int64_t hint) {
    hints_.push_back(hint);
    return ir::Expr::size(static_cast<uint32_t>(hints_.size() - 1));
  }
  std::vector<ir::Expr> strides(std::span<const int64_t> strides) {
    std::vector<ir::Expr> out;
    for (int64_t s : strides) out.push_back(s == 0 || s == 1 ? ir::Expr(s) : symbol(s));
    return out;
  }
  const std::vector<int64_t>& hints() const { return hints_; }

 private:
  std::vector<int64_t> hints_;
};

/// Of a signature: the way of running, the device, and whether that may round products of float32.
uint64_t call_word(uint32_t way, const Call& call);
/// Of a signature: what the graph's input for `in` is.
uint64_t input_word(const InputTensor& in, uint32_t rank, bool contiguous, std::span<const int64_t> strides,
                    const runtime::Device& device);

/// An eager graph, ready to run: the compiler's, or the reference interpreter's if BRASA_EAGER_BACKEND=interpreter.
std::shared_ptr<compiler::Executable> executable_of(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device);
/// Whether a run looks at values of operands, and fails for some.
inline bool has_checks(const ir::Graph& graph) {
  const auto& outputs = graph.outputs();
  return std::any_of(outputs.begin(), outputs.end(), [](const ir::Output& o) { return !o.check.empty(); });
}
/// The program that gives `values` of the graph, compiled for the call's device.
program::Variant compiled(const Call& call, std::unique_ptr<ir::Graph> graph, ir::Facts& facts,
                          const std::vector<ir::Value>& values);

/// Writes a line for who asks in BRASA_LOGS why eager operators are compiled: which sizes no variant serves, or which operands; and whether
/// what is made is for all sizes that are left.
void note_compiled(const Computation& computation, const program::VariantKey& key,
                   std::span<const compiler::Operand> operands, bool for_all);

/// A parameter of a network among the operands, as its place in memory; null where there is none.
const void* parameter_of(std::span<const InputTensor> inputs);

/// The variant for this signature and these operands, made by `build` if there is none; that gives nothing where it can't be made. `parameter`
/// tells whether it is the sizes of one layer that change.
template <class Build>
const program::Variant* variant_for(const Computation& computation, const Words& words,
                                    std::span<const compiler::Operand> operands, program::SymbolValues& symbols,
                                    Build build, const void* parameter = nullptr) {
  program::VariantCache& cache = program::VariantCache::get();
  program::VariantKey key(computation.owner(), words);
  const program::Variant* known = cache.find(key, operands, symbols);
  if (known && !static_cast<const SizeUse&>(*known->attachment).count(symbols, parameter)) [[likely]]
    return known;
  std::lock_guard lock(computation.mutex());
  if (!known)
    if (const program::Variant* v = cache.find(key, operands, symbols)) return v;
  size_t variants = 0;
  std::shared_ptr<SignatureUse> use = use_of(key, variants);
  bool for_all = !known && use->sizes_change(variants, parameter);
  use->count(parameter);
  note_compiled(computation, key, operands, for_all);
  ir::SizeClasses classes(!for_all);
  std::optional<program::Variant> made = build();
  if (!made) return known;
  made->attachment = std::make_shared<SizeUse>(std::move(use), for_all);
  made->program.bind(operands, symbols);
  return cache.insert(key, std::move(*made));
}

/// Fills the results of a call, fresh ones by `make(type)`, and gives the operands of those.
template <class Make>
SmallVector<compiler::Operand, 4> make_results(const Call& call, const program::Variant& variant, Results& results,
                                               Make make) {
  using From = program::Result::From;
  const std::vector<program::Result>& from = variant.program.results;
  results.resize(from.size());
  SmallVector<compiler::Operand, 4> outputs;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].from == From::Nothing) continue;
    if (from[i].from == From::Input) {
      results[i] = *call.inputs[from[i].index].tensor;
    } else if (call.into) {
      results[i] = *call.inputs[0].tensor;
    } else if (from[i].index < outputs.size()) {
      for (size_t j = 0; j < i; ++j)
        if (from[j] == from[i]) results[i] = results[j];
    } else {
      const ir::Type& type = variant.executable->output_types()[from[i].index];
      results[i] = make(type);
      const TensorImpl& impl = *impl_of(results[i]);
      outputs.push_back({impl.storage->data(), type.dtype, impl.sizes, impl.strides});
    }
  }
  return outputs;
}

/// Builds with the call's sizes as constants, for a message that shows them; returns if no error comes up.
void explain_failure(const Call& call);

/// Whether the computation works element by element on operands of this rank, whatever their sizes, and on merged dimensions too.
bool works_by_element(const Computation& computation, std::span<const InputTensor> inputs, uint32_t rank);
/// False, with nothing done, where the computation is not point-wise for these operands; `certain` then says whether it never is for
/// their dtypes. `serves_like` becomes what execute gives.
bool run_pointwise(const Call& call, Results& results, bool& certain, const program::Variant*& serves_like);
/// How the results of that lie.
ResultLayout pointwise_layout(const Computation& computation, std::span<const InputTensor> inputs);

}  // namespace brasa::eager
