#include "tensor/execute.h"

#include <algorithm>

#include "ops/builder.h"
#include "ops/interpreter.h"
#include "program/variants.h"
#include "support/epoch.h"
#include "support/error.h"
#include "support/hash.h"
#include "tensor/backend.h"
#include "tensor/geometry.h"

namespace brasa::eager {
namespace {

using compiler::Operand;
using program::Variant;

uint64_t hash_of(const Words& words) {
  uint64_t h = 0;
  for (uint64_t w : words) h = mix(h, w);
  return h;
}

// Of each stride: 0, 1 or any. Two bits a dimension.
uint64_t stride_classes(std::span<const int64_t> strides) {
  uint64_t c = 0;
  for (int64_t s : strides) c = c << 2 | (s == 0 ? 0 : s == 1 ? 1 : 2);
  return c;
}
constexpr uint32_t kMaxRank = Program::kMaxRank;

uint64_t signature_word(const Input& in, uint32_t rank, bool contiguous, std::span<const int64_t> strides,
                        const runtime::Device& device) {
  uint64_t w = static_cast<uint64_t>(in.dtype) | uint64_t{rank} << 8 | uint64_t{in.weak} << 16 |
               uint64_t{contiguous} << 17 | uint64_t{in.by_value(device)} << 18;
  return contiguous ? w : w | stride_classes(strides) << 20;
}

uint64_t device_word(const runtime::Device& device) {
  brasa::Device id = device.id();
  return uint64_t{static_cast<uint8_t>(id.type())} << 16 | uint64_t{static_cast<uint8_t>(id.index())} << 24;
}

thread_local runtime::Device* t_place = nullptr;

// Where the operands live, and so the results.
runtime::Device& common_device(const Program& program, std::span<const Input> inputs, const TensorImpl* into,
                               runtime::Device* place) {
  runtime::Device *found = nullptr, *number = nullptr;
  for (const Input& in : inputs) {
    if (!in.device || in.device == found) continue;
    if (in.rank == 0 && in.device->on_host())
      number = in.device;
    else if (!found)
      found = in.device;
    else
      fail(str(program.name(), ": Expected all tensors to be on the same device, but found at least two devices, ",
               found->str(), " and ", in.device->str(), "!"));
  }
  runtime::Device* out = found ? found : number ? number : place ? place : nullptr;
  if (!out) out = t_place ? t_place : &runtime::device_of(get_default_device());
  if (into && &into->device() != out) [[unlikely]]
    fail(str(program.name(), ": Expected all tensors to be on the same device, but found at least two devices, ",
             into->device().str(), " and ", out->str(), "!"));
  return *out;
}

// A random key on its way to a device: the host knows its size.
bool fixed_sizes(const Input& in, const runtime::Device& device) { return in.rank > 0 && in.by_value(device); }

// A graph's inputs while it is built: symbols in order, with this call's sizes as hints.
class Inputs {
 public:
  explicit Inputs(std::vector<int64_t>& hints) : hints_(hints) {}
  ir::Expr symbol(int64_t hint) {
    hints_.push_back(hint);
    return ir::Expr::size(static_cast<uint32_t>(hints_.size() - 1));
  }
  std::vector<ir::Expr> strides(std::span<const int64_t> strides) {
    std::vector<ir::Expr> out;
    for (int64_t s : strides) out.push_back(s == 0 || s == 1 ? ir::Expr(s) : symbol(s));
    return out;
  }

 private:
  std::vector<int64_t>& hints_;
};

// Turns the built values into a variant's outputs.
std::unique_ptr<Variant> finish(const Program& program, ir::Graph& graph, ir::Facts& facts,
                                std::vector<ir::Value> values, bool into, std::span<const Input> inputs,
                                runtime::Device& device) {
  auto variant = std::make_unique<Variant>();
  std::vector<ir::Output> checks = graph.outputs();  // what compositions added
  graph.outputs().clear();
  std::vector<ir::Value> outputs;
  for (ir::Value v : values) {
    int place;
    if (!v) {
      place = Variant::kAbsent;
    } else if (int i = graph.input_index(v); i >= 0 && program.may_alias() && !into) {
      place = Variant::kAlias + i;
    } else if (auto it = std::find(outputs.begin(), outputs.end(), v); it != outputs.end() && program.may_alias()) {
      place = static_cast<int>(it - outputs.begin());
    } else {
      place = static_cast<int>(outputs.size());
      outputs.push_back(v);
    }
    variant->places.push_back(place);
  }
  for (ir::Value v : outputs) graph.add_output(v, into ? 0 : -1);
  for (const ir::Output& o : checks) graph.outputs().push_back(o);
  variant->outputs = outputs.size();
  graph.name = program.name();
  std::vector<bool> by_value;
  for (const Input& in : inputs) by_value.push_back(in.by_value(device));
  if (!outputs.empty()) variant->executable = executable_of(graph, facts, device, std::move(by_value));
  variant->conditions = program::Conditions(facts.facts());
  return variant;
}

// The variant for this signature, made if there is none. `build` gives null where it can't be made.
template <class Build>
Variant* variant_for(const Program& program, const Words& words, const int64_t* symbols, Build build) {
  program::VariantCache& cache = program::VariantCache::get();
  uint64_t hash = mix(hash_of(words), reinterpret_cast<uint64_t>(&program));
  if (Variant* v = cache.find(&program, words, hash, symbols)) [[likely]]
    return v;
  std::lock_guard lock(program.mutex());
  if (Variant* v = cache.find(&program, words, hash, symbols)) return v;
  std::unique_ptr<Variant> made = build();
  return made ? cache.insert(&program, words, hash, std::move(made)) : nullptr;
}

// ---- Point-wise programs: one loop over merged dimensions.

struct Pointwise {
  Sizes shape;  // the broadcast shape
  Loop loop;
  SmallVector<int, 8> operand;  // of input i: its number among the loop's operands, -1 for rank 0
};

bool reads_elements(const Input& in) { return in.rank > 0 && in.data; }

// False if the shapes do not broadcast, or nothing is written.
bool plan(std::span<const Input> inputs, const TensorImpl* into, Pointwise& p) {
  if (into && into->numel == 0) return false;
  for (const Input& in : inputs)
    if (in.rank > 0 && !broadcast_into(p.shape, in.size_span())) return false;
  SmallVector<OperandLayout, 8> operands;
  for (const Input& in : inputs) {
    p.operand.push_back(reads_elements(in) ? static_cast<int>(operands.size()) : -1);
    if (reads_elements(in)) operands.push_back({in.size_span(), in.stride_span()});
  }
  p.loop = make_loop(p.shape, operands);
  return true;
}

// Whether every node works element by element on values of this one shape.
bool is_pointwise(const ir::Graph& graph, std::span<const ir::Value> results, const ir::Shape& shape) {
  for (const ir::Output& o : graph.outputs())
    if (!o.check.empty()) return false;
  for (ir::Node* n : ir::live_nodes(graph)) {
    ops::Kind k = ops::kind_of(*n);
    if (k == ops::Kind::Input || k == ops::Kind::Pointwise || k == ops::Kind::Full) continue;
    if (k == ops::Kind::Broadcast && ir::type_of(n->arg<ir::Value>(0)).shape.empty()) continue;
    return false;
  }
  return std::all_of(results.begin(), results.end(), [&](ir::Value v) { return !v || ir::type_of(v).shape == shape; });
}

// Adds the program to a graph whose inputs of rank > 0 have one shape.
std::vector<ir::Value> build_on_shape(const Program& program, ir::Graph& graph, ir::Facts& facts,
                                      std::span<const ir::Value> values) {
  ops::Builder builder(graph, facts);
  std::vector<ir::Value> results = program.build(values);
  for (ir::Value v : results)
    if (v) graph.add_output(v);
  return results;
}

bool is_pointwise_at(const Program& program, std::span<const Input> inputs, uint32_t rank) {
  ir::Graph graph(ir::Level::Primitives);
  std::vector<int64_t> hints;
  Inputs make(hints);
  ir::Shape shape;
  for (uint32_t d = 0; d < rank; ++d) shape.push_back(make.symbol(5 + 2 * d));
  std::vector<ir::Value> values;
  for (const Input& in : inputs) values.push_back(graph.add_input({in.dtype, in.rank ? shape : ir::Shape{}, in.weak}));
  ir::Facts facts(hints);
  try {
    std::vector<ir::Value> results = build_on_shape(program, graph, facts, values);
    return facts.facts().empty() && is_pointwise(graph, results, shape);
  } catch (const Error&) {
    return false;  // operands of one shape are wrong for it
  }
}

// Whether the program works element by element on operands of this rank, whatever their sizes, and on merged dimensions too.
bool learn_mode(const Program& program, std::span<const Input> inputs, uint32_t rank) {
  return program.one_shape() && is_pointwise_at(program, inputs, rank) &&
         (rank <= 1 || is_pointwise_at(program, inputs, 1));
}

// The graph for merged dimensions; null if the program is not point-wise for these dtypes.
std::unique_ptr<Variant> build_pointwise(const Program& program, std::span<const Input> inputs, const Pointwise& p,
                                         bool into, runtime::Device& device) {
  ir::Graph graph(ir::Level::Primitives);
  std::vector<int64_t> hints;
  Inputs make(hints);
  ir::Shape merged;
  if (!p.shape.empty())
    for (int64_t s : p.loop.sizes) merged.push_back(make.symbol(s));
  std::vector<ir::Value> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& in = inputs[i];
    ir::Type t{in.dtype, in.rank ? merged : ir::Shape{}, in.weak};
    std::vector<ir::Expr> strides;
    if (p.operand[i] >= 0 && !is_row_major(p.loop.sizes, p.loop.strides_of(p.operand[i])))
      strides = make.strides(p.loop.strides_of(p.operand[i]));
    values.push_back(graph.add_input(std::move(t), "", std::move(strides)));
  }
  ir::Facts facts(hints);
  std::vector<ir::Value> results = build_on_shape(program, graph, facts, values);
  if (!is_pointwise(graph, results, merged)) return nullptr;
  graph.outputs().clear();
  return finish(program, graph, facts, std::move(results), into, inputs, device);
}

// Symbols in the order in which build_pointwise makes them.
void bind_pointwise(std::span<const Input> inputs, const Pointwise& p, SmallVector<int64_t, 32>& symbols) {
  if (!p.shape.empty())
    for (int64_t s : p.loop.sizes) symbols.push_back(s);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (p.operand[i] < 0) continue;
    std::span<const int64_t> strides = p.loop.strides_of(p.operand[i]);
    if (is_row_major(p.loop.sizes, strides)) continue;
    for (int64_t s : strides)
      if (s != 0 && s != 1) symbols.push_back(s);
  }
}

// Builds with this call's sizes as constants, for a message that shows them; returns if no error comes up.
void explain_failure(const Program& program, std::span<const Input> inputs) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  std::vector<ir::Value> values;
  for (const Input& in : inputs) {
    ir::Type t{in.dtype, {}, in.weak};
    for (int64_t s : in.size_span()) t.shape.emplace_back(s);
    values.push_back(graph.add_input(std::move(t)));
  }
  ops::Builder builder(graph, facts);
  program.build(values);
}

// Whether an operand has not all of the loop's dimensions.
bool broadcasts(std::span<const Input> inputs, const Pointwise& p) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const Input& in) {
    return in.rank > 0 && !std::equal(p.shape.begin(), p.shape.end(), in.size_span().begin(), in.size_span().end());
  });
}

bool run_pointwise(const Program& program, std::span<const Input> inputs, const TensorImpl* into, Results& results,
                   Program::Mode& mode, runtime::Device& device) {
  Pointwise p;
  if (!plan(inputs, into, p)) return false;
  if (into && !std::equal(p.shape.begin(), p.shape.end(), into->sizes.begin(), into->sizes.end()))
    fail(str(program.name(), ": output with shape ", into->sizes, " doesn't match the broadcast shape ", p.shape));
  size_t rank = p.shape.empty() ? 0 : p.loop.rank();
  if (rank > kMaxRank) return false;
  Words words;
  words.push_back(rank | (into ? 1 << 8 : 0) | device_word(device));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (p.operand[i] < 0) {
      words.push_back(signature_word(inputs[i], inputs[i].rank ? 255 : 0, true, {}, device));
    } else {
      std::span<const int64_t> strides = p.loop.strides_of(p.operand[i]);
      words.push_back(
          signature_word(inputs[i], static_cast<uint32_t>(rank), is_row_major(p.loop.sizes, strides), strides, device));
    }
  }
  SmallVector<int64_t, 32> symbols;
  bind_pointwise(inputs, p, symbols);
  Epoch::Reading reading;
  const Variant* variant = variant_for(program, words, symbols.data(), [&] {
    // The graph over one shape does not see that some operators want equal shapes.
    if (broadcasts(inputs, p)) explain_failure(program, inputs);
    return build_pointwise(program, inputs, p, into != nullptr, device);
  });
  if (!variant) {
    mode = Program::Mode::Generic;
    return false;
  }

  results.resize(variant->places.size());
  int64_t numel = product(p.shape);
  SmallVector<Operand, 4> outputs;
  for (size_t i = 0; i < variant->places.size(); ++i) {
    int place = variant->places[i];
    if (place == Variant::kAbsent) continue;
    if (place >= Variant::kAlias) {
      results[i] = *inputs[place - Variant::kAlias].tensor;
    } else if (into) {
      results[i] = *inputs[0].tensor;
    } else if (static_cast<size_t>(place) < outputs.size()) {
      for (size_t j = 0; j < i; ++j)
        if (variant->places[j] == place) results[i] = results[j];
    } else {
      DType dtype = variant->executable->output_types()[place].dtype;
      results[i] = std::is_sorted(p.loop.order.begin(), p.loop.order.end())
                       ? make_tensor(p.shape, dtype, device)
                       : make_tensor(p.shape, strides_in_order(p.shape, p.loop.order), dtype, device);
      outputs.push_back({impl_of(results[i])->storage->data(), dtype, {p.loop.sizes.data(), rank}, {}});
    }
  }
  if (numel == 0 || !variant->executable) return true;

  Sizes dense = row_major_strides({p.loop.sizes.data(), rank});
  for (Operand& o : outputs) o.strides = dense;
  SmallVector<Operand, 8> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& in = inputs[i];
    if (p.operand[i] >= 0)
      operands.push_back({in.data, in.dtype, {p.loop.sizes.data(), rank}, p.loop.strides_of(p.operand[i])});
    else if (in.rank)
      operands.push_back({nullptr, in.dtype, {p.loop.sizes.data(), rank}, dense});
    else
      operands.push_back({in.data, in.dtype, {}, {}});
  }
  variant->executable->run(symbols.data(), operands, outputs);
  return true;
}

// ---- All other programs: every operand with its own sizes.

std::unique_ptr<Variant> build_generic(const Program& program, std::span<const Input> inputs, bool into,
                                       runtime::Device& device) {
  ir::Graph graph(ir::Level::Primitives);
  std::vector<int64_t> hints;
  Inputs make(hints);
  std::vector<ir::Type> types;
  std::vector<std::vector<ir::Expr>> strides;
  for (const Input& in : inputs) {
    types.push_back({in.dtype, {}, in.weak});
    for (int64_t s : in.size_span())
      types.back().shape.push_back(fixed_sizes(in, device) ? ir::Expr(s) : make.symbol(s));
    strides.push_back(in.contiguous ? std::vector<ir::Expr>{} : make.strides(in.stride_span()));
  }
  ir::Facts facts(hints);
  program.derive_types(types, facts);
  std::vector<ir::Value> values;
  for (size_t i = 0; i < types.size(); ++i)
    values.push_back(graph.add_input(std::move(types[i]), "", std::move(strides[i])));
  std::vector<ir::Value> results;
  {
    ops::Builder builder(graph, facts);
    results = program.build(values);
    if (into) {
      // Sizes that are equal only in this call become a guard.
      const ir::Shape &to = ir::type_of(values[0]).shape, &from = ir::type_of(results[0]).shape;
      bool same = to.size() == from.size();
      for (size_t d = 0; same && d < to.size(); ++d) same = facts.equal(to[d], from[d]);
      BRASA_CHECK(same, program.name(), ": the result has shape ", from, ", which does not fit into shape ", to);
    }
  }
  return finish(program, graph, facts, std::move(results), into, inputs, device);
}

void bind_generic(std::span<const Input> inputs, SmallVector<int64_t, 32>& symbols, const runtime::Device& device) {
  for (const Input& in : inputs) {
    if (fixed_sizes(in, device)) continue;
    for (int64_t s : in.size_span()) symbols.push_back(s);
    if (in.contiguous) continue;
    for (int64_t s : in.stride_span())
      if (s != 0 && s != 1) symbols.push_back(s);
  }
}

void run_generic(const Program& program, std::span<const Input> inputs, const TensorImpl* into, Results& results,
                 Prepare prepare, runtime::Device& device) {
  Words words;
  words.push_back(255 | (into ? 1 << 8 : 0) | device_word(device));
  for (const Input& in : inputs) {
    BRASA_CHECK(in.rank <= kMaxRank, program.name(), ": more than ", kMaxRank, " dimensions are not supported");
    words.push_back(signature_word(in, in.rank, in.contiguous, in.stride_span(), device));
  }
  SmallVector<int64_t, 32> symbols;
  bind_generic(inputs, symbols, device);
  Epoch::Reading reading;
  const Variant* variant = variant_for(program, words, symbols.data(), [&] {
    try {
      return build_generic(program, inputs, into != nullptr, device);
    } catch (const Error&) {
      explain_failure(program, inputs);
      throw;
    }
  });

  results.resize(variant->places.size());
  SmallVector<Operand, 4> outputs;
  bool any = into != nullptr && into->numel > 0;
  int64_t first_numel = into ? into->numel : 0;
  for (size_t i = 0; i < variant->places.size(); ++i) {
    int place = variant->places[i];
    if (place == Variant::kAbsent) continue;
    if (place >= Variant::kAlias) {
      results[i] = *inputs[place - Variant::kAlias].tensor;
    } else if (into) {
      results[i] = *inputs[0].tensor;
    } else if (static_cast<size_t>(place) < outputs.size()) {
      for (size_t j = 0; j < i; ++j)
        if (variant->places[j] == place) results[i] = results[j];
    } else {
      const ir::Type& t = variant->executable->output_types()[place];
      Sizes sizes;
      for (ir::Expr e : t.shape) {
        sizes.push_back(variant->executable->evaluate(e, symbols.data()));
        if (sizes.back() < 0) [[unlikely]]
          explain_failure(program, inputs);
        BRASA_CHECK(sizes.back() >= 0, program.name(), ": a result's dimension would be ", sizes.back());
      }
      results[i] = make_tensor(sizes, t.dtype, device);
      TensorImpl* impl = impl_of(results[i]);
      any = any || impl->numel > 0;
      if (i == 0) first_numel = impl->numel;
      outputs.push_back({impl->storage->data(), t.dtype, impl->sizes, impl->strides});
    }
  }
  if (prepare.call) prepare.call(prepare.context, first_numel);
  if (!any || !variant->executable) return;
  SmallVector<Operand, 8> operands;
  for (const Input& in : inputs) operands.push_back({in.data, in.dtype, in.size_span(), in.stride_span()});
  variant->executable->run(symbols.data(), operands, outputs);
}

}  // namespace

PlaceScope::PlaceScope(runtime::Device* place) : before_(t_place) {
  if (place) t_place = place;
}
PlaceScope::~PlaceScope() { t_place = before_; }
runtime::Device* scoped_place() { return t_place; }

void execute(const Program& program, std::span<const Input> inputs, const Tensor* into, Results& results,
             Prepare prepare, runtime::Device* place) {
  const TensorImpl* target = into ? impl_of(*into) : nullptr;
  runtime::Device& device = common_device(program, inputs, target, place);
  uint32_t rank = 0, flat = 0, operand = 0;
  bool integers = true;
  for (const Input& in : inputs) {
    rank = std::max(rank, in.rank);
    integers = integers && is_integral(in.dtype, true);
    if (in.weak) continue;  // a number: always without dimensions
    if (in.rank == 0) flat |= 1u << std::min(operand, Program::kMaxFlat);
    ++operand;
  }
  if (rank == 0) flat = 0;
  if (!prepare.call && rank <= kMaxRank && flat < 1u << Program::kMaxFlat) {
    uint32_t which = flat | (integers ? Program::kIntegers : 0);
    Program::Mode mode = program.mode(rank, which);
    if (mode == Program::Mode::Unknown) [[unlikely]] {
      bool pointwise = learn_mode(program, inputs, rank);
      program.set_mode(rank, which, pointwise);
      mode = pointwise ? Program::Mode::Pointwise : Program::Mode::Generic;
    }
    if (mode == Program::Mode::Pointwise) {
      if (run_pointwise(program, inputs, target, results, mode, device)) return;
      if (mode == Program::Mode::Generic) program.set_mode(rank, which, false);
    }
  }
  run_generic(program, inputs, target, results, prepare, device);
}

}  // namespace brasa::eager
