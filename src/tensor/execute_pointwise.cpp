#include <algorithm>

#include "compiler/compile.h"
#include "ops/builder.h"
#include "support/epoch.h"
#include "support/error.h"
#include "tensor/execute_call.h"
#include "tensor/geometry.h"

// Computations that work element by element: one loop over merged dimensions.
namespace brasa::eager {
namespace {

using compiler::Operand;
using program::Variant;

constexpr uint32_t kMaxRank = Computation::kMaxRank;

// What a call runs over: one loop over merged dimensions. It points into itself and into the inputs.
struct Pointwise {
  Pointwise() {}
  Pointwise(const Pointwise&) = delete;

  std::span<const int64_t> shape;         // the broadcast shape
  std::span<const int64_t> sizes, dense;  // of the loop, and their row-major strides
  bool in_order = true;                   // its dimensions are nested as those of the shape
  // Where operands are row-major and of one shape, `count` is the loop's only size; else the rest says more.
  int64_t count = 0;
  Sizes broadcast, dense_strides;
  Loop loop;
  SmallVector<int, 8> operand;  // of input i: its number among the loop's operands, -1 without elements

  // Of the elements of input i in the loop.
  std::span<const int64_t> strides_of(size_t i) const {
    return operand.empty() ? std::span<const int64_t>(kUnit) : loop.strides_of(static_cast<size_t>(operand[i]));
  }
};

bool reads_elements(const InputTensor& in) { return in.rank > 0 && in.data; }

bool same(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (a[d] != b[d]) return false;
  return true;
}

// The inputs that have dimensions are row-major and of one shape, as in by far the most calls: one of them, or null.
const InputTensor* alike(std::span<const InputTensor> inputs) {
  const InputTensor* first = nullptr;
  for (const InputTensor& in : inputs) {
    if (in.rank == 0) continue;
    if (!in.data || !in.contiguous || (first && !same(in.size_span(), first->size_span()))) return nullptr;
    if (!first) first = &in;
  }
  return first;
}

// False if the shapes do not broadcast.
bool plan(std::span<const InputTensor> inputs, Pointwise& p) {
  if (const InputTensor* in = alike(inputs)) {
    p.shape = in->size_span();
    p.count = product(p.shape);
    p.sizes = {&p.count, 1};
    p.dense = kUnit;
    return true;
  }
  for (const InputTensor& in : inputs)
    if (in.rank > 0 && !broadcast_into(p.broadcast, in.size_span())) return false;
  SmallVector<OperandLayout, 8> operands;
  for (const InputTensor& in : inputs) {
    p.operand.push_back(reads_elements(in) ? static_cast<int>(operands.size()) : -1);
    if (reads_elements(in)) operands.push_back({in.size_span(), in.stride_span()});
  }
  p.loop = make_loop(p.broadcast, operands);
  p.in_order = std::is_sorted(p.loop.order.begin(), p.loop.order.end());
  p.shape = p.broadcast;
  if (p.shape.empty()) return true;
  p.sizes = p.loop.sizes;
  p.dense_strides = row_major_strides(p.sizes);
  p.dense = p.dense_strides;
  return true;
}

// Whether every node works element by element on values of this one shape.
bool is_pointwise(const ir::Graph& graph, std::span<const ir::Value> results, const ir::Shape& shape) {
  if (has_checks(graph)) return false;
  for (ir::Node* n : ir::live_nodes(graph)) {
    ops::Kind k = ops::kind_of(*n);
    if (k == ops::Kind::Input || k == ops::Kind::Pointwise || k == ops::Kind::Full) continue;
    if (k == ops::Kind::Broadcast && ir::type_of(n->arg<ir::Value>(0)).shape.empty()) continue;
    return false;
  }
  return std::all_of(results.begin(), results.end(), [&](ir::Value v) { return !v || ir::type_of(v).shape == shape; });
}

// Adds the computation to a graph whose inputs of rank > 0 have one shape.
std::vector<ir::Value> build_on_shape(const Computation& computation, ir::Graph& graph, ir::Facts& facts,
                                      std::span<const ir::Value> values) {
  ops::Builder builder(graph, facts);
  std::vector<ir::Value> results = computation.build(values);
  for (ir::Value v : results)
    if (v) graph.add_output(v);
  return results;
}

bool is_pointwise_at(const Computation& computation, std::span<const InputTensor> inputs, uint32_t rank) {
  ir::Graph graph(ir::Level::Primitives);
  InputSymbols make;
  ir::Shape shape;
  for (uint32_t d = 0; d < rank; ++d) shape.push_back(make.symbol(5 + 2 * d));
  std::vector<ir::Value> values;
  for (const InputTensor& in : inputs)
    values.push_back(graph.add_input({in.dtype, in.rank ? shape : ir::Shape{}, in.weak}));
  ir::Facts facts(make.hints());
  try {
    std::vector<ir::Value> results = build_on_shape(computation, graph, facts, values);
    return facts.facts().empty() && is_pointwise(graph, results, shape);
  } catch (const Error&) {
    return false;  // operands of one shape are wrong for it
  }
}

// The variant for merged dimensions; none if the computation is not point-wise for these dtypes.
std::optional<Variant> build(const Call& call, const Pointwise& p) {
  auto graph = std::make_unique<ir::Graph>(ir::Level::Primitives);
  InputSymbols make;
  ir::Shape merged;
  for (int64_t s : p.sizes) merged.push_back(make.symbol(s));
  std::vector<ir::Value> values;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const InputTensor& in = call.inputs[i];
    std::vector<ir::Expr> strides;
    if (reads_elements(in) && !is_row_major(p.sizes, p.strides_of(i))) strides = make.strides(p.strides_of(i));
    values.push_back(graph->add_input({in.dtype, in.rank ? merged : ir::Shape{}, in.weak}, "", std::move(strides),
                                      in.by_value(call.device)));
  }
  ir::Facts facts(make.hints());
  std::vector<ir::Value> results = build_on_shape(call.computation, *graph, facts, values);
  if (!is_pointwise(*graph, results, merged)) return std::nullopt;
  graph->outputs().clear();
  return compiled(call, std::move(graph), facts, results);
}

// Whether an operand has not all of the loop's dimensions.
bool broadcasts(std::span<const InputTensor> inputs, const Pointwise& p) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const InputTensor& in) { return in.rank > 0 && !same(p.shape, in.size_span()); });
}

// Whether the operands that are read have the loop's shape without the others. The graph over one shape does not see what an operand
// that it does not read does to the result's shape: nothing, or all (resize_as).
bool shaped_by_what_it_reads(const std::vector<bool>& reads, std::span<const InputTensor> inputs, const Pointwise& p) {
  if (p.operand.empty() || std::find(reads.begin(), reads.end(), false) == reads.end() || !broadcasts(inputs, p))
    return true;
  Sizes shape;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].rank == 0) continue;
    if (reads[i])
      broadcast_into(shape, inputs[i].size_span());
    else if (inputs[i].data && !same(p.shape, inputs[i].size_span()))
      return false;
  }
  return same(shape, p.shape);
}

// A derivative reads what the graph over its operands' own shapes reads, and no other values are kept for it. Over one shape it may read others:
// where nothing is summed up, a derivative of its own is another expression.
bool has_what_it_reads(const std::vector<bool>& reads, std::span<const InputTensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (reads[i] && !inputs[i].data) return false;
  return true;
}

// Results that are made of different operands have shapes of their own where these broadcast. A derivative's have the loop's: they are summed
// up behind it. A graph that sums may do so before it multiplies or rounds: where numbers are strict, all derivatives are computed as there.
bool have_one_shape(const Call& call, const ir::Graph& graph, const Pointwise& p) {
  if (call.computation.sums_up()) return !broadcasts(call.inputs, p);
  auto strict = [] { return compiler::default_numbers() == compiler::Numbers::Strict; };
  if ((graph.outputs().size() < 2 && !strict()) || !broadcasts(call.inputs, p)) return true;
  if (dynamic_cast<const Backward*>(&call.computation)) return !strict();
  return std::all_of(graph.outputs().begin(), graph.outputs().end(), [&](const ir::Output& o) {
    std::vector<bool> read(graph.nodes().size());
    read[o.value.node->id] = true;
    ir::add_operands(graph, read);
    Sizes shape;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (read[graph.inputs()[i].value.node->id] && call.inputs[i].rank > 0)
        broadcast_into(shape, call.inputs[i].size_span());
    return same(shape, p.shape);
  });
}

Words signature(const Call& call, const Pointwise& p) {
  auto rank = static_cast<uint32_t>(p.sizes.size());
  Words words;
  words.push_back(call_word(rank, call));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const InputTensor& in = call.inputs[i];
    if (!reads_elements(in)) {
      words.push_back(input_word(in, in.rank ? 255 : 0, true, {}, call.device));
      continue;
    }
    std::span<const int64_t> strides = p.strides_of(i);
    bool row_major = p.operand.empty() || is_row_major(p.sizes, strides);
    words.push_back(input_word(in, rank, row_major, strides, call.device));
  }
  // Which operands broadcast, as operators that take no such operands must refuse it each time. Dimensions of size 1, and loops without
  // iterations, look the same with and without it.
  if (!p.operand.empty())
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i].rank > 0 && !same(p.shape, call.inputs[i].size_span())) words.push_back(uint64_t{i});
  return words;
}

}  // namespace

bool run_pointwise(const Call& call, Results& results, bool& certain, const Variant*& serves_like) {
  certain = false;
  std::span<const InputTensor> inputs = call.inputs;
  Pointwise p;
  if ((call.into && call.into->numel == 0) || !plan(inputs, p)) return false;
  if (call.into && !same(p.shape, call.into->sizes))
    fail(str(call.computation.name(), ": output with shape ", call.into->sizes, " doesn't match the broadcast shape ",
             p.shape));
  if (p.sizes.size() > kMaxRank) return false;
  SmallVector<Operand, 8> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputTensor& in = inputs[i];
    if (reads_elements(in))
      operands.push_back({in.data, in.dtype, p.sizes, p.strides_of(i)});
    else if (in.rank)
      operands.push_back({nullptr, in.dtype, p.sizes, p.dense});
    else
      operands.push_back({in.data, in.dtype, {}, {}});
  }
  program::SymbolValues symbols;
  Epoch::Reading reading;
  const Variant* variant = variant_for(call.computation, signature(call, p), operands, symbols, [&] {
    // The graph over one shape does not see that some operators want equal shapes. A derivative's operands come from a call that was
    // looked at, and its cotangents may have the loop's shape where a gradient is summed up behind it.
    if (broadcasts(inputs, p) && !dynamic_cast<const Backward*>(&call.computation)) explain_failure(call);
    return build(call, p);
  });
  if (!variant) {
    certain = true;
    return false;
  }
  if (!has_what_it_reads(variant->program.reads, inputs) ||
      !shaped_by_what_it_reads(variant->program.reads, inputs, p) || !have_one_shape(call, *variant->program.graph, p))
    return false;
  SmallVector<Operand, 4> outputs = make_results(call, *variant, results, [&](const ir::Type& t) {
    return p.in_order ? make_tensor(p.shape, t.dtype, call.device)
                      : make_tensor(p.shape, strides_in_order(p.shape, p.loop.order), t.dtype, call.device);
  });
  if (product(p.sizes) == 0 || !variant->executable) return true;
  for (Operand& o : outputs) {
    o.sizes = p.sizes;
    o.strides = p.dense;
  }
  variant->executable->run(symbols.data(), operands, outputs);
  if (p.operand.empty()) serves_like = variant;
  return true;
}

ResultLayout pointwise_layout(const Computation& computation, std::span<const InputTensor> inputs) {
  Pointwise p;
  if (!plan(inputs, p) || p.in_order) return {};
  if (broadcasts(inputs, p) && !shaped_by_what_it_reads(reads_of(computation, inputs), inputs, p)) return {};
  return {Sizes(p.shape), strides_in_order(p.shape, p.loop.order)};
}

bool works_by_element(const Computation& computation, std::span<const InputTensor> inputs, uint32_t rank) {
  return computation.one_shape() && is_pointwise_at(computation, inputs, rank) &&
         (rank <= 1 || is_pointwise_at(computation, inputs, 1));
}

}  // namespace brasa::eager
