#include "export/captured.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include <brasa/autograd.h>

#include "capture/session.h"
#include "ir/copy.h"
#include "runtime/device.h"
#include "support/error.h"
#include "tensor/autocast.h"

namespace brasa::exporting {

namespace {

// What the one run of the recorded graph was given.
struct Taken {
  std::unique_ptr<ir::Graph> graph;
  ir::Facts facts;
  std::vector<Captured::Source> sources;
  std::vector<const void*> outputs;
  const void* by = nullptr;  // whose graph it is
};

size_t span_of(const compiler::Operand& o) {
  int64_t last = 0;
  for (size_t d = 0; d < o.sizes.size(); ++d) {
    if (o.sizes[d] == 0) return 0;
    last += (o.sizes[d] - 1) * o.strides[d];
  }
  return static_cast<size_t>((last + 1) * size_of(o.dtype));
}

// Stands for the compiled graph of the recording: computes nothing, and keeps what it was given.
class Taker final : public compiler::Executable {
 public:
  Taker(const ir::Graph& graph, size_t symbols, const std::vector<const void*>& addresses, Taken& taken)
      : Executable(graph), graph_(ir::copy(graph)), symbols_(symbols), addresses_(addresses), taken_(taken) {}

  void run(const int64_t* symbols, std::span<const compiler::Operand> inputs,
           std::span<const compiler::Operand> outputs) const override {
    taken_.graph = ir::copy(*graph_);
    taken_.by = this;
    taken_.facts = ir::Facts({symbols, symbols + symbols_});
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::Input& in = taken_.graph->inputs()[i];
      Captured::Source s;
      for (size_t k = 0; k < addresses_.size(); ++k)
        if (addresses_[k] == inputs[i].data) s.input = static_cast<int>(k);
      if (s.input < 0) {
        s.unknown = in.by_value && ir::type_of(in.value).rank() > 0;
        s.address = inputs[i].data;
        if (!s.unknown) s.bytes.assign(static_cast<const char*>(inputs[i].data), span_of(inputs[i]));
      }
      for (const ir::Output& o : taken_.graph->outputs()) s.written |= o.into == static_cast<int>(i);
      taken_.sources.push_back(std::move(s));
    }
    check_apart(inputs);
    for (const compiler::Operand& o : outputs) taken_.outputs.push_back(o.data);
  }

 private:
  // Each operand becomes memory of its own.
  void check_apart(std::span<const compiler::Operand> inputs) const {
    auto begin = [&](size_t i) { return static_cast<const char*>(inputs[i].data); };
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t k = 0; k < inputs.size() && taken_.sources[i].written; ++k)
        BRASA_CHECK(
            k == i || begin(k) >= begin(i) + span_of(inputs[i]) || begin(i) >= begin(k) + span_of(inputs[k]),
            "export: the function changes a tensor and reads its memory through another one (a view of it, say)");
  }

  std::unique_ptr<ir::Graph> graph_;
  size_t symbols_;
  const std::vector<const void*>& addresses_;  // of the function's inputs
  Taken& taken_;
};

}  // namespace

std::vector<Captured::Fixed> Captured::fixed() const {
  std::vector<Fixed> out;
  for (size_t i = 0; i < sources.size(); ++i) {
    ir::Expr elements = ir::type_of(graph->inputs()[i].value).numel();
    if (one_graph && (!sources[i].unknown || elements.is_constant())) continue;
    for (size_t k = 0; k < sizes.size(); ++k)
      for (size_t d = 0; d < sizes[k].size(); ++d)
        out.push_back({static_cast<int64_t>(k), static_cast<int64_t>(d), sizes[k][d]});
    return out;
  }
  std::unordered_set<ir::Expr> constants;  // sizes and strides of what is no input
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i].input < 0) {
      const ir::Shape& shape = ir::type_of(graph->inputs()[i].value).shape;
      constants.insert(shape.begin(), shape.end());
      const std::vector<ir::Expr>& strides = graph->inputs()[i].strides;
      constants.insert(strides.begin(), strides.end());
    }
  for (size_t i = 0; i < sources.size(); ++i) {
    const ir::Shape& shape = ir::type_of(graph->inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size() && sources[i].input >= 0; ++d)
      if (shape[d].is_constant() || constants.count(shape[d]) || facts.hint(shape[d]) == 1)
        out.push_back({sources[i].input, static_cast<int64_t>(d), facts.hint(shape[d])});
  }
  return out;
}

std::vector<Captured::Equal> Captured::equal() const {
  std::vector<Equal> out;
  std::map<uint32_t, std::pair<int64_t, int64_t>> first;
  for (size_t i = 0; i < sources.size(); ++i) {
    const ir::Shape& shape = ir::type_of(graph->inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size() && sources[i].input >= 0; ++d) {
      if (shape[d]->kind != ir::ExprKind::Size) continue;
      std::pair<int64_t, int64_t> here{sources[i].input, static_cast<int64_t>(d)};
      auto [at, fresh] = first.try_emplace(shape[d]->id, here);
      if (!fresh && at->second != here) out.push_back({at->second.first, at->second.second, here.first, here.second});
    }
  }
  return out;
}

bool Captured::takes(const std::vector<Tensor>& inputs) const {
  for (const Fixed& f : fixed())
    if (inputs[f.input].size(f.dim) != f.size) return false;
  for (const Equal& e : equal())
    if (inputs[e.input].size(e.dim) != inputs[e.other_input].size(e.other_dim)) return false;
  return true;
}

std::vector<int64_t> Captured::symbols(const std::vector<Tensor>& inputs) const {
  std::vector<int64_t> out;
  for (size_t i = 0; i < sources.size(); ++i) {
    const ir::Shape& shape = ir::type_of(graph->inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d]->kind != ir::ExprKind::Size) continue;
      out.resize(std::max<size_t>(out.size(), shape[d]->id + 1));
      out[shape[d]->id] =
          sources[i].input < 0 ? facts.hint(shape[d]) : inputs[sources[i].input].size(static_cast<int64_t>(d));
    }
  }
  return out;
}

namespace {

// One call of the function while `state` records: its results.
std::vector<Tensor> record(const Function& f, const std::vector<Tensor>& inputs, brasa::detail::CompiledState& state) {
  capture::Session session(state);
  Recorder::Scope scope(&session);
  std::vector<Tensor> results;
  {
    eager::CastCache casts;
    results = f(inputs);
    // Each result is memory of its own, row-major, also where it is an input, a view, or another result.
    for (Tensor& t : results) {
      BRASA_CHECK(t.defined(), "export: a result of the function is undefined");
      t = t.clone(MemoryFormat::Contiguous);
    }
  }
  session.finish();
  return results;
}

}  // namespace

Captured capture(const Function& f, const std::vector<std::vector<Tensor>>& examples) {
  std::vector<Tensor> inputs, results;
  std::vector<const void*> addresses;
  Taken taken;
  bool one_graph = true;
  brasa::detail::CompiledState state;
  state.options.fullgraph = true;
  state.options.dynamic = true;
  state.backend = [&](const ir::Graph& graph, ir::Facts& facts, const CompileOptions&,
                      runtime::Device& device) -> std::shared_ptr<compiler::Executable> {
    BRASA_CHECK(&device == &runtime::host(), "export: the function computes on ", device.str(),
                "; programs that run alone are made for the CPU");
    uint32_t symbols = 0;
    while (facts.has_hint(ir::Expr::size(symbols))) ++symbols;
    return std::make_shared<Taker>(graph, symbols, addresses, taken);
  };
  NoGradGuard no_grad;
  for (const std::vector<Tensor>& example : examples) {
    // Each is memory of its own, by which the recording finds it again.
    inputs.clear();
    addresses.clear();
    for (size_t i = 0; i < example.size(); ++i) {
      BRASA_CHECK(example[i].defined() && example[i].device() == Device(kCPU), "export: input ", i,
                  " must be a tensor of the CPU");
      BRASA_CHECK(example[i].numel() > 0, "export: input ", i, " has no elements; give one that has, ",
                  "and let its sizes vary from 0");
      inputs.push_back(example[i].detach().clone(MemoryFormat::Contiguous));
      addresses.push_back(inputs.back().data_ptr());
    }
    std::vector<Captured::Source> before = std::exchange(taken.sources, {});
    const void* by = taken.by;
    taken.outputs.clear();
    results.clear();
    results = record(f, inputs, state);
    BRASA_CHECK(taken.graph && taken.outputs.size() >= results.size(), "export: the function records no graph");
    // By a number, or a branch, that depends on sizes.
    if (&example == &examples[0] || &example == &examples[1]) continue;
    one_graph = one_graph && taken.by == by;
    for (size_t i = 0; i < taken.sources.size() && one_graph; ++i)
      one_graph = taken.sources[i].unknown || taken.sources[i].bytes == before[i].bytes;
  }

  Captured out{std::move(taken.graph), std::move(taken.facts), std::move(taken.sources), {}, one_graph, {}};
  if (const capture::Trace* trace = state.start.latest)
    for (const capture::Event& e : trace->events)
      for (const ir::Fact& f : e.facts) out.facts.equal(f.left, f.right);
  for (const Tensor& t : inputs) out.sizes.push_back(t.sizes().vec());
  for (const Tensor& t : results) {
    auto at = std::find(taken.outputs.begin(), taken.outputs.end(), t.data_ptr());
    BRASA_CHECK(at != taken.outputs.end(), "export: a result of the function is none of its graph");
    out.outputs.push_back(static_cast<int>(at - taken.outputs.begin()));
    *at = nullptr;
  }
  BRASA_CHECK(out.outputs.size() == taken.outputs.size(), "export: the function keeps ",
              taken.outputs.size() - results.size(), " tensors that it computes (gradients, say) besides its ",
              results.size(), " results");
  return out;
}

}  // namespace brasa::exporting
