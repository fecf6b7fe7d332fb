#include "tensor/execute.h"

#include <algorithm>

#include "compiler/compile.h"
#include "ops/builder.h"
#include "runtime/float32_products.h"
#include "support/epoch.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/execute_call.h"
#include "tensor/geometry.h"
#include "tensor/result_order.h"
#include "tensor/traced.h"

namespace brasa::eager {
namespace {

using compiler::Operand;
using program::Result;
using program::Variant;

constexpr uint32_t kMaxRank = Computation::kMaxRank, kGeneric = 255, kReads = 254;

thread_local runtime::Device* t_scoped = nullptr;

// Where the operands live, and so the results.
runtime::Device& common_device(const Computation& computation, std::span<const InputTensor> inputs,
                               const TensorImpl* into, runtime::Device* place) {
  runtime::Device *found = nullptr, *number = nullptr;
  for (const InputTensor& in : inputs) {
    if (!in.device || in.device == found) continue;
    if (in.rank == 0 && in.device->on_host())
      number = in.device;
    else if (!found)
      found = in.device;
    else
      fail(str(computation.name(), ": Expected all tensors to be on the same device, but found at least two devices, ",
               found->str(), " and ", in.device->str(), "!"));
  }
  runtime::Device* out = found ? found : number ? number : place ? place : nullptr;
  if (!out) out = t_scoped ? t_scoped : &runtime::device_of(get_default_device());
  if (into && &into->device() != out) [[unlikely]]
    fail(str(computation.name(), ": Expected all tensors to be on the same device, but found at least two devices, ",
             into->device().str(), " and ", out->str(), "!"));
  return *out;
}

// A random key on its way to a device: the host knows its size.
bool fixed_sizes(const InputTensor& in, const runtime::Device& device) { return in.rank > 0 && in.by_value(device); }

// Each of two bits a dimension: 0, 1 or any.
uint64_t stride_classes(std::span<const int64_t> strides) {
  uint64_t c = 0;
  for (int64_t s : strides) c = c << 2 | (s == 0 ? 0 : s == 1 ? 1 : 2);
  return c;
}

}  // namespace

uint64_t call_word(uint32_t way, const Call& call) {
  brasa::Device id = call.device.id();
  bool rounds = !call.device.on_host() && runtime::float32_products_in_tf32();
  return way | (call.into ? 1 << 8 : 0) | uint64_t{rounds} << 9 | uint64_t{static_cast<uint8_t>(id.type())} << 16 |
         uint64_t{static_cast<uint8_t>(id.index())} << 24;
}

uint64_t input_word(const InputTensor& in, uint32_t rank, bool contiguous, std::span<const int64_t> strides,
                    const runtime::Device& device) {
  uint64_t w = static_cast<uint64_t>(in.dtype) | uint64_t{rank} << 8 | uint64_t{in.weak} << 16 |
               uint64_t{contiguous} << 17 | uint64_t{in.by_value(device)} << 18;
  return contiguous ? w : w | stride_classes(strides) << 20;
}

Variant compiled(const Call& call, std::unique_ptr<ir::Graph> graph, ir::Facts& facts,
                 const std::vector<ir::Value>& values) {
  std::vector<ir::Output> checks = std::exchange(graph->outputs(), {});  // what compositions added
  bool may_alias = call.computation.may_alias();
  std::vector<Result> results;
  for (ir::Value v : values) {
    std::vector<ir::Output>& outputs = graph->outputs();
    auto same = std::find_if(outputs.begin(), outputs.end(), [&](const ir::Output& o) { return o.value == v; });
    if (!v) {
      results.push_back({});
    } else if (int i = graph->input_index(v); i >= 0 && may_alias && !call.into) {
      results.push_back({Result::From::Input, static_cast<uint32_t>(i)});
    } else if (same != outputs.end() && may_alias) {
      results.push_back({Result::From::Output, static_cast<uint32_t>(same - outputs.begin())});
    } else {
      results.push_back({Result::From::Output, static_cast<uint32_t>(outputs.size())});
      graph->add_output(v, call.into ? 0 : -1);
    }
  }
  bool computes = !graph->outputs().empty();
  for (ir::Output& o : checks) graph->outputs().push_back(std::move(o));
  graph->name = call.computation.name();
  Variant variant;
  if (computes) variant.executable = executable_of(*graph, facts, call.device);
  variant.program = program::Program(std::move(graph), call.device, std::move(results));
  variant.program.conditions = program::Conditions(facts.facts());
  return variant;
}

const void* parameter_of(std::span<const InputTensor> inputs) {
  for (const InputTensor& in : inputs) {
    const autograd::AutogradMeta* meta = in.tensor && in.rank > 0 ? impl_of(*in.tensor)->autograd.get() : nullptr;
    if (meta && meta->requires_grad && !meta->grad_fn) return in.data;
  }
  return nullptr;
}

void explain_failure(const Call& call) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts;
  std::vector<ir::Value> values;
  for (const InputTensor& in : call.inputs) {
    std::span<const int64_t> sizes = in.size_span();
    values.push_back(graph.add_input({in.dtype, {sizes.begin(), sizes.end()}, in.weak}));
  }
  ops::Builder builder(graph, facts);
  call.computation.build(values);
}

namespace {

// A graph in which every operand has its own sizes.
struct Built {
  std::unique_ptr<ir::Graph> graph;
  ir::Facts facts;
  std::vector<ir::Value> results;
};

// `whole`: which rows stay as they are; without it all is primitives.
Built build(const Call& call, bool strided, bool (*whole)(const ops::Row&) = nullptr) {
  InputSymbols make;
  std::vector<ir::Type> types;
  std::vector<std::vector<ir::Expr>> strides;
  for (const InputTensor& in : call.inputs) {
    types.push_back({in.dtype, {}, in.weak});
    for (int64_t s : in.size_span())
      types.back().shape.push_back(fixed_sizes(in, call.device) ? ir::Expr(s) : make.symbol(s));
    strides.push_back(in.contiguous || !strided ? std::vector<ir::Expr>{} : make.strides(in.stride_span()));
  }
  Built out{
      std::make_unique<ir::Graph>(whole ? ir::Level::Operators : ir::Level::Primitives), ir::Facts(make.hints()), {}};
  call.computation.derive_types(types, out.facts);
  std::vector<ir::Value> values;
  for (size_t i = 0; i < types.size(); ++i)
    values.push_back(
        out.graph->add_input(std::move(types[i]), "", std::move(strides[i]), call.inputs[i].by_value(call.device)));
  ops::TargetScope target(compiler::computed_whole(call.device));
  ops::Builder builder(*out.graph, out.facts, whole);
  out.results = call.computation.build(values);
  if (call.into) {
    // Sizes that are equal only in this call become a guard.
    const ir::Shape &to = ir::type_of(values[0]).shape, &from = ir::type_of(out.results[0]).shape;
    bool same = to.size() == from.size();
    for (size_t d = 0; same && d < to.size(); ++d) same = out.facts.equal(to[d], from[d]);
    BRASA_CHECK(same, call.computation.name(), ": the result has shape ", from, ", which does not fit into shape ", to);
  }
  return out;
}

Variant build_generic(const Call& call) {
  try {
    Built b = build(call, true);
    return compiled(call, std::move(b.graph), b.facts, b.results);
  } catch (const Error&) {
    explain_failure(call);
    throw;
  }
}

void run_generic(const Call& call, Results& results, Prepare prepare) {
  const Computation& computation = call.computation;
  Words words;
  words.push_back(call_word(kGeneric, call));
  SmallVector<Operand, 8> operands;
  for (const InputTensor& in : call.inputs) {
    BRASA_CHECK(in.rank <= kMaxRank, computation.name(), ": more than ", kMaxRank, " dimensions are not supported");
    words.push_back(input_word(in, in.rank, in.contiguous, in.stride_span(), call.device));
    operands.push_back({in.data, in.dtype, in.size_span(), in.stride_span()});
  }
  program::SymbolValues symbols;
  Epoch::Reading reading;
  const Variant* variant = variant_for(
      computation, words, operands, symbols, [&] { return build_generic(call); }, parameter_of(call.inputs));

  bool any = call.into && call.into->numel > 0;
  SmallVector<Operand, 4> outputs = make_results(call, *variant, results, [&](const ir::Type& t) {
    Sizes sizes;
    for (ir::Expr e : t.shape) {
      sizes.push_back(compiler::Executable::evaluate(e, symbols.data()));
      if (sizes.back() < 0) [[unlikely]]
        explain_failure(call);
      BRASA_CHECK(sizes.back() >= 0, computation.name(), ": a result's dimension would be ", sizes.back());
    }
    Tensor result = make_tensor(sizes, t.dtype, call.device);
    any = any || impl_of(result)->numel > 0;
    return result;
  });
  if (prepare.call) {
    bool some = results.size() && results[0].defined() && variant->program.reads.at(prepare.read);
    prepare.call(prepare.context, some ? results[0].numel() : 0);
  }
  // What the values of operands must be holds where there are no results too.
  any = any || has_checks(*variant->program.graph);
  if (any && variant->executable) variant->executable->run(symbols.data(), operands, outputs);
}

bool any_in_order(std::span<const InputTensor> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const InputTensor& in) {
    return in.rank >= 4 && suggests_channels_last(in.size_span(), in.stride_span());
  });
}
// Of what can have its channels last, where something of the call has; weights of one place lie in either order.
Sizes order_of(const InputTensor& in) {
  if (in.rank < 4 || (!lies_channels_last(in.size_span(), in.stride_span()) &&
                      !suggests_channels_last(in.size_span(), in.stride_span())))
    return {};
  Sizes order = {0};
  for (int64_t d = 2; d < in.rank; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}
Orders orders_of(const Computation& computation, std::span<const InputTensor> inputs) {
  Orders orders;
  for (const InputTensor& in : inputs) orders.inputs.push_back(order_of(in));
  orders.results = computation.orders_of_results(orders.inputs);
  return orders;
}

// Of operands that lie in orders of their own, and so are row-major for the graph, or parts of what is.
void run_in_order(const Call& call, Results& results, Prepare prepare) {
  const Orders orders = orders_of(call.computation, call.inputs);
  std::vector<InputTensor> inputs(call.inputs.begin(), call.inputs.end());
  std::vector<Sizes> sizes(inputs.size()), strides(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (orders.inputs[i].empty()) continue;
    for (int64_t d : orders.inputs[i]) {
      sizes[i].push_back(inputs[i].sizes[d]);
      strides[i].push_back(inputs[i].strides[d]);
    }
    inputs[i].contiguous = is_row_major(sizes[i], strides[i]);
    if (inputs[i].contiguous) strides[i] = row_major_strides(sizes[i]);
    inputs[i].sizes = sizes[i].data();
    inputs[i].strides = strides[i].data();
  }
  run_generic({call.computation.in_order(orders), inputs, nullptr, call.device}, results, prepare);
  auto is_input = [&](const Tensor& t) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](const InputTensor& in) { return in.tensor && t.is_same(*in.tensor); });
  };
  for (size_t r = results.size(); r-- > 0;) {
    Sizes order = order_of_result(orders, r);
    if (order.empty() || !results[r].defined() || results[r].dim() != std::ssize(order) || is_input(results[r]))
      continue;
    bool named_before = false;  // results that are one tensor
    for (size_t k = 0; k < r; ++k) named_before = named_before || results[k].is_same(results[r]);
    if (!named_before) name_in_order(results[r], order);
  }
}

}  // namespace

namespace {

// What is built to be looked at alone. The caller is in an Epoch::Reading.
const program::Variant& looked_at(const Computation& computation, std::span<const InputTensor> inputs) {
  // What a device computes whole reads other operands than its composition does.
  auto there =
      std::find_if(inputs.begin(), inputs.end(), [](const InputTensor& in) { return in.device && in.rank > 0; });
  Call call{computation, inputs, nullptr, there == inputs.end() ? runtime::host() : *there->device};
  Words words;
  words.push_back(call_word(kReads, call));
  SmallVector<Operand, 8> operands;
  for (const InputTensor& in : inputs) {
    words.push_back(input_word(in, in.rank, true, {}, call.device));
    operands.push_back({nullptr, in.dtype, in.size_span(), in.stride_span()});
  }
  program::SymbolValues symbols;
  return *variant_for(computation, words, operands, symbols, [&] {
    Built b = build(call, false);
    std::vector<bool> gives;
    for (ir::Value v : b.results) {
      gives.push_back(static_cast<bool>(v));
      if (v) b.graph->add_output(v);
    }
    Variant variant{program::Program(std::move(b.graph), call.device), nullptr, nullptr, std::move(gives)};
    variant.program.conditions = program::Conditions(b.facts.facts());
    return variant;
  });
}

}  // namespace

std::vector<bool> reads_of(const Computation& computation, std::span<const InputTensor> inputs) {
  Epoch::Reading reading;
  return looked_at(computation, inputs).program.reads;
}

std::vector<bool> gives_of(const Computation& computation, std::span<const InputTensor> inputs) {
  Epoch::Reading reading;
  return looked_at(computation, inputs).gives;
}

std::optional<bool> makes_kept(const Computation& computation, std::span<const InputTensor> inputs) {
  try {
    return has_kept(*build({computation, inputs, nullptr, runtime::host()}, false, differentiated_whole).graph);
  } catch (const Error&) {
    return std::nullopt;
  }
}

compiler::Operand operand_of(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  return {static_cast<char*>(impl.storage->data()) + impl.offset * size_of(impl.dtype), impl.dtype, impl.sizes,
          impl.strides};
}

std::vector<Tensor> run(const Variant& variant, std::span<const Operand> inputs) {
  program::SymbolValues symbols;
  variant.program.bind(inputs, symbols);
  std::vector<Tensor> results;
  std::vector<Operand> outputs;
  for (const ir::Type& t : variant.executable->output_types()) {
    Sizes sizes;
    for (ir::Expr e : t.shape) sizes.push_back(compiler::Executable::evaluate(e, symbols.data()));
    results.push_back(make_tensor(sizes, t.dtype, *variant.program.device));
    outputs.push_back(operand_of(results.back()));
  }
  variant.executable->run(symbols.data(), inputs, outputs);
  return results;
}

DeviceScope::DeviceScope(runtime::Device* place) : Scoped(t_scoped, place ? place : t_scoped) {}
runtime::Device* scoped_device() { return t_scoped; }

namespace {

// What a computation's mode depends on.
struct Kind {
  uint32_t rank = 0, which = 0;
  bool known = true;  // false: there is no mode for these inputs

  explicit Kind(std::span<const InputTensor> inputs) {
    uint32_t flat = 0, operand = 0;
    bool integers = true;
    for (const InputTensor& in : inputs) {
      rank = std::max(rank, in.rank);
      integers = integers && is_integral(in.dtype, true);
      if (in.weak) continue;  // a number: always without dimensions
      if (in.rank == 0) flat |= 1u << std::min(operand, Computation::kMaxFlat);
      ++operand;
    }
    if (rank == 0) flat = 0;
    known = rank <= kMaxRank && flat < 1u << Computation::kMaxFlat;
    which = flat | (integers ? Computation::kIntegers : 0);
  }
};

bool is_pointwise(const Computation& computation, std::span<const InputTensor> inputs, const Kind& kind) {
  if (!kind.known) return false;
  Computation::Mode mode = computation.mode(kind.rank, kind.which);
  if (mode == Computation::Mode::Unknown) [[unlikely]] {
    bool pointwise = works_by_element(computation, inputs, kind.rank);
    computation.set_mode(kind.rank, kind.which, pointwise);
    return pointwise;
  }
  return mode == Computation::Mode::Pointwise;
}

}  // namespace

ResultLayout layout_of_results(const Computation& computation, std::span<const InputTensor> inputs) {
  return is_pointwise(computation, inputs, Kind(inputs)) ? pointwise_layout(computation, inputs) : ResultLayout();
}

std::vector<Sizes> orders_of_results(const Computation& computation, std::span<const InputTensor> inputs) {
  if (!any_in_order(inputs) || is_pointwise(computation, inputs, Kind(inputs))) return {};
  return orders_of(computation, inputs).results;
}

const Variant* execute(const Computation& computation, std::span<const InputTensor> inputs, const Tensor* into,
                       Results& results, Prepare prepare, runtime::Device* place) {
  const TensorImpl* target = into ? impl_of(*into) : nullptr;
  Call call{computation, inputs, target, common_device(computation, inputs, target, place)};
  Kind kind(inputs);
  if (!prepare.call && is_pointwise(computation, inputs, kind)) {
    bool certain = false;
    const Variant* variant = nullptr;
    if (run_pointwise(call, results, certain, variant)) return variant;
    if (certain) computation.set_mode(kind.rank, kind.which, false);
  }
  if (!into && any_in_order(inputs))
    run_in_order(call, results, prepare);
  else
    run_generic(call, results, prepare);
  return nullptr;
}

}  // namespace brasa::eager
