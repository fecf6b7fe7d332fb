#include "export/captured.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include <brasa/autograd.h>
#include <brasa/brasa.h>

#include "capture/session.h"
#include "export/integers.h"
#include "export/random_state.h"
#include "ir/copy.h"
#include "ops/decompose.h"
#include "runtime/device.h"
#include "support/error.h"
#include "support/source_line.h"
#include "tensor/autocast.h"
#include "tensor/known_sizes.h"
#include "tensor/unwritten.h"

namespace brasa::exporting {

namespace {

size_t span_of(const Tensor& t) {
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.size(d) == 0) return 0;
    last += (t.size(d) - 1) * t.stride(d);
  }
  return static_cast<size_t>((last + 1) * t.element_size());
}

}  // namespace

std::string_view Captured::Source::bytes() const {
  if (!tensor.defined()) return number;
  return {static_cast<const char*>(tensor.data_ptr()), span_of(tensor)};
}

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
  for (size_t k = 0; k < counts.size(); ++k)
    if (size_t input = sizes.size() - counts.size() + k; !counts[k].varied && symbol_of(k))
      out.push_back({static_cast<int64_t>(input), 0, sizes[input][0]});
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

std::vector<bool> inputs_read(const ir::Graph& graph, ir::Facts facts) {
  std::unique_ptr<ir::Graph> primitives = ops::decompose(graph, facts);
  std::vector<bool> out(graph.inputs().size());
  for (const ir::Node* n : ir::live_nodes(*primitives))
    if (n->op == ir::input_op()) out[primitives->input_index({const_cast<ir::Node*>(n), 0})] = true;
  return out;
}

bool Captured::takes(const std::vector<Tensor>& inputs) const {
  auto known = [&](int64_t input) { return input < static_cast<int64_t>(inputs.size()); };
  for (const Fixed& f : fixed())
    if (known(f.input) && inputs[f.input].size(f.dim) != f.size) return false;
  for (const Equal& e : equal())
    if (known(e.input) && known(e.other_input) &&
        inputs[e.input].size(e.dim) != inputs[e.other_input].size(e.other_dim))
      return false;
  return true;
}

std::vector<int64_t> Captured::symbols(const std::vector<Tensor>& inputs) const {
  std::vector<int64_t> out;
  for (size_t i = 0; i < sources.size(); ++i) {
    const ir::Shape& shape = ir::type_of(graph->inputs()[i].value).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d]->kind != ir::ExprKind::Size) continue;
      out.resize(std::max<size_t>(out.size(), shape[d]->id + 1));
      if (sources[i].input >= static_cast<int>(inputs.size())) continue;
      out[shape[d]->id] =
          sources[i].input < 0 ? facts.hint(shape[d]) : inputs[sources[i].input].size(static_cast<int64_t>(d));
    }
  }
  return out;
}

namespace {

using Sources = std::vector<Captured::Source>;

// What the one run of a recorded graph was given.
struct Taken {
  std::unique_ptr<ir::Graph> graph;
  ir::Facts facts;
  std::vector<std::string> numbers;  // by input of the graph; empty for tensors
  std::vector<const void*> outputs;
  const void* by = nullptr;  // whose graph it is
};

// Stands for the compiled graph of the recording: computes nothing, and keeps what it was given.
class Taker final : public compiler::Executable {
 public:
  Taker(const ir::Graph& graph, size_t symbols, Taken& taken)
      : Executable(graph), graph_(ir::copy(graph)), symbols_(symbols), taken_(taken) {}

  void run(const int64_t* symbols, std::span<const compiler::Operand> inputs,
           std::span<const compiler::Operand> outputs) const override {
    taken_.graph = ir::copy(*graph_);
    taken_.by = this;
    taken_.facts = ir::Facts({symbols, symbols + symbols_});
    taken_.numbers.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].sizes.empty())
        taken_.numbers[i].assign(static_cast<const char*>(inputs[i].data),
                                 static_cast<size_t>(size_of(inputs[i].dtype)));
    for (const compiler::Operand& o : outputs) taken_.outputs.push_back(o.data);
  }

 private:
  std::unique_ptr<ir::Graph> graph_;
  size_t symbols_;
  Taken& taken_;
};

// Each operand becomes memory of its own.
void check_apart(const Sources& sources) {
  for (size_t i = 0; i < sources.size(); ++i)
    for (size_t k = 0; k < sources.size() && sources[i].written; ++k) {
      std::string_view a = sources[i].bytes(), b = sources[k].bytes();
      BRASA_CHECK(k == i || a.data() >= b.data() + b.size() || b.data() >= a.data() + a.size(),
                  "export: the function changes a tensor and reads its memory through another one (a view of it, say)");
    }
}

bool same_number(const Captured::Source& a, const Captured::Source& b) {
  if (a.unknown || a.input >= 0) return true;
  std::string_view x = a.bytes(), y = b.bytes();
  return x.data() == y.data() || x == y;
}

// Whether the function made the tensor, and nothing has kept it.
bool is_temporary(const Tensor& t) {
  return t.defined() && t.use_count() == 1 && impl_of(t)->storage->use_count() == 1;
}

// Inputs are known while a function is recorded, and differ when the program runs; so do integers that sizes depend on.
class InputsUnknown final : public capture::Session {
 public:
  InputsUnknown(brasa::detail::CompiledState& state, const std::vector<Tensor>& inputs, Counts& counts)
      : Session(state), given_(inputs), counts_(counts) {}
  void host_reads(const Tensor& t, const char* what) override {
    std::optional<size_t> input = input_of(t);
    BRASA_CHECK(!input, "export: ", what, " reads the value of input ", *input,
                ", which is not known before the program runs", at_users_line());
  }
  std::optional<int64_t> item(const Tensor& t) override {
    if (impl_of(t)->storage->recorder() != this && !input_of(t)) return std::nullopt;
    BRASA_CHECK(
        is_integral(t.scalar_type(), false), "export: item() reads a number of ", name(t.scalar_type()),
        ", which is not known before the program runs", at_users_line(),
        ". Operators take it as the tensor that it is, and cond() branches on one; integers may be read as sizes");
    return counts_.read(*this, t, str("the number of item()", at_users_line()), true).at(0).example;
  }
  std::optional<std::vector<Integer>> integers(const Tensor& t, const std::string& reader) override {
    const auto& caller = KnownSizes::current()->caller;
    return counts_.read(*this, t, caller ? str(reader, " in ", caller()) : reader);
  }
  bool may_end() const override { return false; }
  void materialise(const char* reason) override {
    fail(str("export: ", reason, " needs a value that is not known before the program runs", at_users_line()));
  }

 private:
  std::optional<size_t> input_of(const Tensor& t) const {
    for (size_t i = 0; i < given_.size(); ++i)
      if (impl_of(t)->storage.get() == impl_of(given_[i])->storage.get()) return i;
    return std::nullopt;
  }

  const std::vector<Tensor>& given_;
  Counts& counts_;
};

// Calls a function on tensors that record.
class Recording {
 public:
  /// `varying`: the inputs whose sizes differ between the examples.
  Recording(const Function& f, std::vector<size_t> varying, Surroundings& surroundings, std::vector<CountKind> kinds)
      : f_(f), varying_(std::move(varying)), surroundings_(surroundings), counts_(std::move(kinds)) {
    state_.options.fullgraph = true;
    state_.options.dynamic = true;
    state_.backend = [&](const ir::Graph& graph, ir::Facts& facts, const CompileOptions&, runtime::Device& device,
                         const capture::Lasting&) -> std::shared_ptr<compiler::Executable> {
      BRASA_CHECK(&device == &runtime::host(), "export: the function computes on ", device.str(),
                  "; programs that run alone are made for the CPU");
      uint32_t symbols = 0;
      while (facts.has_hint(ir::Expr::size(symbols))) ++symbols;
      return std::make_shared<Taker>(graph, symbols, taken_);
    };
  }

  /// Whether it was the same as the call before: one graph, with the same numbers. `again`: the integers that it reads are the same, too.
  bool call(const std::vector<Tensor>& example, bool again = false);
  const Counts& counts() const { return counts_; }
  /// `one_graph`: see Captured.
  Captured captured(bool one_graph);

 private:
  bool record();
  std::optional<std::vector<Tensor>> results(capture::Session& session);
  Sources sources(const capture::BoundInputs& bound) const;
  void sort_outputs(const std::vector<Tensor>& results, const capture::BoundInputs& bound);
  void leave_out_temporaries();
  bool same_numbers(const Sources& before) const;

  const Function& f_;
  std::vector<size_t> varying_;
  Surroundings& surroundings_;
  Counts counts_;
  brasa::detail::CompiledState state_;
  Taken taken_;
  std::vector<Tensor> inputs_;
  Sources sources_;
  std::vector<std::pair<ir::Expr, std::string>> requirements_;
  std::vector<uint32_t> slots_;   // of results, in the order in which they were recorded
  std::vector<int> results_;      // which outputs they are, and behind them those that integers are read of
  std::map<int, int> gradients_;  // and the sources that they go into; -1: nobody reads them
};

bool Recording::call(const std::vector<Tensor>& example, bool again) {
  counts_.begin_call(again);
  Sources before = std::exchange(sources_, {});
  const void* by = std::exchange(taken_.by, nullptr);
  // Each is memory of its own, by which the recording finds it again.
  inputs_.clear();
  for (size_t i = 0; i < example.size(); ++i) {
    BRASA_CHECK(example[i].defined() && example[i].device() == Device(kCPU), "export: input ", i,
                " must be a tensor of the CPU");
    BRASA_CHECK(example[i].numel() > 0, "export: input ", i, " has no elements; give one that has, ",
                "and let its sizes vary from 0");
    inputs_.push_back(example[i].detach().clone(MemoryFormat::Contiguous));
    inputs_.back().requires_grad_(example[i].requires_grad());
  }
  constexpr int kMostTries = 32;
  for (int tries = 0; !record(); ++tries) {
    BRASA_CHECK(tries < kMostTries, "export: no integers are found for which the function's assertions hold");
    counts_.begin_call(true);
  }
  check_apart(sources_);
  leave_out_temporaries();
  return taken_.by == by && same_numbers(before);
}

// False where the function has to be called with other integers.
bool Recording::record() {
  surroundings_.begin_call();
  taken_.outputs.clear();
  taken_.numbers.clear();
  InputsUnknown session(state_, inputs_, counts_);
  std::optional<std::vector<Tensor>> given = results(session);
  if (!given) return false;
  std::vector<Tensor>& out = *given;
  slots_.clear();
  for (const Tensor& t : out) slots_.push_back(impl_of(t)->storage->recorder_slot());
  session.finish();
  BRASA_CHECK(taken_.by && taken_.outputs.size() >= out.size(), "export: the function records no graph");
  sources_ = sources(session.inputs());
  sort_outputs(out, session.inputs());
  return true;
}

// Nobody reads what is written into a tensor of the call's own.
void Recording::leave_out_temporaries() {
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i].written || sources_[i].input >= 0 || !is_temporary(sources_[i].tensor)) continue;
    sources_[i].written = false;
    std::erase_if(taken_.graph->outputs(), [&](const ir::Output& o) { return o.into == static_cast<int>(i); });
  }
}

bool Recording::same_numbers(const Sources& before) const {
  std::vector<bool> read;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (same_number(sources_[i], before[i])) continue;
    if (read.empty()) read = inputs_read(*taken_.graph, taken_.facts);
    if (read[i]) return false;
  }
  return true;
}

std::optional<std::vector<Tensor>> Recording::results(capture::Session& session) {
  capture::Names& names = session.know_sizes();
  Recorder::Scope scope(&session);
  KnownSizes::Scope sizes(&names);
  ZerosUnwritten zeros;
  eager::CastCache casts;
  try {
    // Their sizes are symbols before the function makes a tensor by one (a recurrent layer's first state). Nobody reads the copies.
    for (size_t i : varying_) static_cast<void>(inputs_[i].clone());
    std::vector<Tensor> out = f_(inputs_);
    // Each result is memory of its own, row-major, also where it is an input, a view, or another result.
    for (Tensor& t : out) {
      BRASA_CHECK(t.defined(), "export: a result of the function is undefined");
      t = t.detach().clone(MemoryFormat::Contiguous);
    }
    for (const Count& c : counts_.all()) out.push_back(c.from);
    requirements_.clear();
    for (const auto& r : names.requirements()) requirements_.emplace_back(names.in_trace(r.not_negative), r.message);
    if (!counts_.retry(names, session)) return out;
    session.abandon();
    return std::nullopt;
  } catch (const Error&) {
    // An error may come of integers that an assertion excludes.
    bool retry = false;
    try {
      retry = counts_.retry(names, session);
    } catch (const Error&) {
    }
    retry = retry || counts_.retry_with_less();
    session.abandon();
    if (!retry) throw;
    return std::nullopt;
  } catch (...) {
    session.abandon();
    throw;
  }
}

Sources Recording::sources(const capture::BoundInputs& bound) const {
  Sources out;
  for (size_t i = 0; i < taken_.graph->inputs().size(); ++i) {
    const ir::Input& in = taken_.graph->inputs()[i];
    Captured::Source s;
    if (i < bound.size()) {
      s.tensor = bound[i].tensor;
      for (size_t k = 0; k < inputs_.size(); ++k)
        if (inputs_[k].data_ptr() == s.tensor.data_ptr()) s.input = static_cast<int>(k);
      for (size_t k = 0; k < counts_.all().size(); ++k)
        if (counts_.all()[k].stand_in.is_same(s.tensor)) s.input = static_cast<int>(inputs_.size() + k);
    } else {
      s.number = taken_.numbers[i];
    }
    s.unknown = s.input < 0 && in.by_value && ir::type_of(in.value).rank() > 0;
    for (const ir::Output& o : taken_.graph->outputs()) s.written |= o.into == static_cast<int>(i);
    out.push_back(std::move(s));
  }
  return out;
}

// Which outputs are the function's results, and which ones gradients.
void Recording::sort_outputs(const std::vector<Tensor>& results, const capture::BoundInputs& bound) {
  auto output_at = [&](const Tensor& t, size_t skipped = 0) {
    auto at = std::find(taken_.outputs.begin(), taken_.outputs.end(), t.data_ptr());
    for (; at != taken_.outputs.end() && skipped > 0; --skipped)
      at = std::find(at + 1, taken_.outputs.end(), t.data_ptr());
    return at == taken_.outputs.end() ? -1 : static_cast<int>(at - taken_.outputs.begin());
  };
  // Those without elements have no address; a run gives them in the order in which they were recorded.
  auto empty_before = [&](size_t result) {
    size_t count = 0;
    for (size_t i = 0; i < results.size() && results[result].numel() == 0; ++i)
      count += results[i].numel() == 0 && slots_[i] < slots_[result];
    return count;
  };
  // Where the gradient of the call before is read, this one takes its place.
  auto source_of = [&](const Tensor& t) {
    for (size_t i = 0; t.defined() && i < sources_.size(); ++i)
      if (sources_[i].tensor.defined() && sources_[i].tensor.data_ptr() == t.data_ptr()) return static_cast<int>(i);
    return -1;
  };
  results_.clear();
  gradients_.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    results_.push_back(output_at(results[i], empty_before(i)));
    BRASA_CHECK(results_.back() >= 0, "export: a result of the function is none of its graph");
  }
  for (const capture::BoundInputs::Bound& in : bound) {
    if (!in.tensor.requires_grad() || !in.tensor.is_leaf() || !in.tensor.grad().defined()) continue;
    int at = output_at(in.tensor.grad());
    if (at < 0) continue;
    int into = source_of(surroundings_.zeros_of(in.tensor));
    if (into >= 0) sources_[into].written = true;
    BRASA_CHECK(into < 0 || in.tensor.grad().is_contiguous(), "export: a gradient that adds up is not contiguous");
    gradients_[at] = into;
    surroundings_.left_gradient(in.tensor);
  }
  size_t known = results_.size() + gradients_.size();
  BRASA_CHECK(known == taken_.outputs.size(), "export: the function keeps ", taken_.outputs.size() - known,
              " tensors that it computes besides its ", results_.size(),
              " results and gradients; where only its first call does (momentum with dampening), call it once before");
}

Captured Recording::captured(bool one_graph) {
  Captured out;
  out.one_graph = one_graph;
  out.graph = std::move(taken_.graph);
  out.facts = std::move(taken_.facts);
  out.sources = std::move(sources_);
  for (const capture::Event& e : state_.start.latest->events)
    for (const ir::Fact& f : e.facts) out.facts.equal(f.left, f.right);
  for (const Tensor& t : inputs_) out.sizes.push_back(t.sizes().vec());
  for (const Count& c : counts_.all()) out.sizes.push_back(c.stand_in.sizes().vec());
  int fresh = 0, left = 0;
  std::vector<ir::Output> kept;
  std::vector<int> moved;
  for (ir::Output& o : out.graph->outputs()) {
    bool is_fresh = o.check.empty() && o.into < 0;
    auto gradient = is_fresh ? gradients_.find(fresh) : gradients_.end();
    if (is_fresh) moved.push_back(fresh++ - left);
    if (gradient != gradients_.end()) {
      ++left;
      o.into = gradient->second;
      if (o.into < 0) continue;
    }
    kept.push_back(std::move(o));
  }
  out.graph->outputs() = std::move(kept);
  for (int r : results_) out.outputs.push_back(moved.at(r));
  std::vector<bool> read = inputs_read(*out.graph, out.facts);
  // Keys that nothing is drawn by (dropout that is off) make no state.
  bool random = false;
  for (size_t i = 0; i < read.size(); ++i) random = random || (out.sources[i].unknown && read[i]);
  if (random) {
    keep_random_state(out, *state_.start.latest, surroundings_);
    read = inputs_read(*out.graph, out.facts);
  }
  for (size_t i = 0; i < read.size(); ++i)
    if (out.sources[i].input < 0 && !out.sources[i].written && !read[i]) out.sources[i].tensor.reset();
  size_t results = out.outputs.size() - counts_.all().size();
  std::vector<int> counted(out.outputs.begin() + static_cast<int64_t>(results), out.outputs.end());
  out.outputs.resize(results);
  take_integers(out, counts_.all(), counted, requirements_);
  for (size_t k = 0; k < out.counts.size(); ++k) out.counts[k].varied = counts_.varied(k);
  return out;
}

}  // namespace

Captured capture(const Function& f, const std::vector<std::vector<Tensor>>& examples, Surroundings& surroundings,
                 const std::vector<CountKind>& kinds, bool of_one_graph) {
  std::vector<size_t> varying;
  for (size_t i = 0; i < examples[0].size() && examples.size() > 1; ++i)
    if (examples[0][i].sizes() != examples[1][i].sizes()) varying.push_back(i);
  Recording recording(f, std::move(varying), surroundings, kinds);
  bool one_graph = true;
  size_t calls = 0;
  auto record = [&](const std::vector<Tensor>& example) {
    bool same = recording.call(example);
    // By a number, or a branch, that depends on sizes.
    if (++calls > 2) one_graph = one_graph && same;
  };
  for (const std::vector<Tensor>& example : examples) record(example);
  // As with sizes that vary, what follows from integers is seen in calls where these differ.
  while (calls < recording.counts().calls_wanted()) record(examples.back());
  // What a first call makes (an optimizer's state) is there in the later ones.
  BRASA_CHECK(
      recording.call(examples.back(), true) || recording.call(examples.back(), true),
      "export: the function records something else each time it is called: a number or a branch changes that is "
      "no tensor (a count of steps, a learning rate's schedule)");
  return recording.captured(one_graph && (of_one_graph || !recording.counts().by_host()));
}

}  // namespace brasa::exporting
