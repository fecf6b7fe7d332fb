#include "tensor/gradient_views.h"

#include <algorithm>
#include <optional>

#include "ops/builder.h"
#include "tensor/dispatch.h"
#include "tensor/geometry.h"
#include "tensor/keyed_cache.h"

namespace brasa::eager {
namespace {

// Below, copies take no time, and kernels for what lies without gaps are there already.
constexpr int64_t kFewElements = 1 << 15;

struct View {
  size_t operand;
  std::optional<ops::Strided> at;  // nothing: the operand itself
};
// By result; of one that no gradient flows to there is none.
using Views = std::vector<std::optional<View>>;
using Cache = KeyedCache<std::optional<Views>, 1024>;

int64_t most_elements(const Backward& backward, std::span<const InputTensor> operands) {
  int64_t most = 0;
  for (size_t i = 0; i < backward.needs().size(); ++i)
    if (backward.needs()[i]) most = std::max(most, product(operands[i].size_span()));
  return most;
}

std::optional<Views> plan(const Backward& backward, std::span<const InputTensor> operands) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  std::vector<ir::Value> values;
  for (const InputTensor& in : operands) {
    std::span<const int64_t> sizes = in.size_span();
    values.push_back(graph.add_input({in.dtype, {sizes.begin(), sizes.end()}, in.weak}));
  }
  ops::Builder builder(graph, facts);
  Views out;
  for (ir::Value result : backward.build(values)) {
    out.emplace_back();
    if (!result) continue;
    std::vector<const ir::Node*> steps;
    ir::Value v = result;
    for (; !ir::is_input(v); v = v.node->arg<ir::Value>(0)) {
      if (!ops::row_of(*v.node).view_rule) {
        backward.set_computes();
        return std::nullopt;
      }
      steps.push_back(v.node);
    }
    auto operand = static_cast<size_t>(graph.input_index(v));
    const InputTensor& in = operands[operand];
    if (!in.tensor || !in.data || in.dtype != ir::type_of(result).dtype) return std::nullopt;
    std::span<const int64_t> sizes = in.size_span(), strides = in.stride_span();
    ops::Strided at{{sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, 0};
    for (size_t k = steps.size(); k-- > 0;) {
      std::optional<ops::Strided> next = ops::row_of(*steps[k]).view_rule(steps[k]->args, at);
      if (!next) return std::nullopt;
      at = std::move(*next);
    }
    out.back() = View{operand, steps.empty() ? std::nullopt : std::optional(std::move(at))};
  }
  return out;
}

// Null where the thread's objects are gone.
const std::optional<Views>* cached(const Backward& backward, std::span<const InputTensor> operands) {
  Cache* cache = Cache::get();
  if (!cache) return nullptr;
  Cache::Key key;
  key.push_back(reinterpret_cast<int64_t>(&backward));
  for (const InputTensor& in : operands) {
    key.push_back(int64_t{in.rank} << 32 | static_cast<int64_t>(in.dtype) << 8 | int64_t{in.data != nullptr});
    for (int64_t s : in.size_span()) key.push_back(s);
    for (int64_t s : in.stride_span()) key.push_back(s);
  }
  auto* known = cache->find(key);
  return known ? known : &cache->add(key, plan(backward, operands));
}

}  // namespace

bool view_gradients(const Backward& backward, std::span<const InputTensor> operands, Results& results) {
  if (backward.computes() || most_elements(backward, operands) < kFewElements) return false;
  const std::optional<Views>* known = cached(backward, operands);
  if (!known || !*known) return false;
  const Views& views = **known;
  results.resize(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i]) continue;
    const auto& [operand, at] = *views[i];
    const Tensor& from = *operands[operand].tensor;
    results[i] = from;
    if (at)
      results[i] = call_one("aten::as_strided", {from, at->sizes, at->strides, impl_of(from)->offset + at->offset});
  }
  return true;
}

}  // namespace brasa::eager
