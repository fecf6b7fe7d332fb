#include "compiler/run/assemble.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "compiler/loops/builder.h"
#include "compiler/loops/layout.h"
#include "compiler/run/equal_products.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Graph;

namespace {

// The steps of a plan with their memory, kernels loaded.
class Assembler {
 public:
  Assembler(const LoweredGraph& lowered, const CompilerOptions& options, ir::Facts& facts)
      : plan_(lowered.plan), kernels_(lowered.of_step), calls_(lowered.calls), options_(options), facts_(facts) {}

  CompiledGraph::Parts run() {
    std::vector<size_t> last_step;  // of each group
    for (size_t g = 0; g < plan_.steps.size(); ++g) {
      add_group(g);
      last_step.push_back(steps_.size() - 1);  // of nothing: all ones, which is before the first
    }
    std::vector<CompiledGraph::Check> checks;
    for (const Plan::Check& c : plan_.checks)
      checks.push_back({c.after == static_cast<size_t>(-1) ? c.after : last_step[c.after], buffer(c.place), c.message});
    CompiledGraph::Parts parts;
    parts.batches = batches(checks);
    parts.buffers = buffers_;
    parts.steps = std::move(steps_);
    parts.checks = std::move(checks);
    parts.arena_bytes = plan_.arena_bytes;
    add_prepared(parts);
    return parts;
  }

 private:
  int buffer(const Place& p) {
    auto [it, added] = known_.try_emplace({p.kind, p.index, p.offset.node()}, static_cast<int>(buffers_.size()));
    if (added) buffers_.push_back(p);
    return it->second;
  }

  void add_group(size_t g) {
    const Group& group = plan_.steps[g];
    const std::vector<Place>& places = plan_.places[g];
    Expr bytes = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      bool out = i >= group.inputs.size();
      const ir::Type& t = type_of(out ? group.outputs[i - group.inputs.size()] : group.inputs[i]);
      bytes = bytes + t.numel() * Expr(size_of(t.dtype));
    }
    if (group.kind == GroupKind::Library) {
      if (calls_[g] == 0) return;
      Step s;
      s.group = g;
      s.repeats = static_cast<int64_t>(calls_[g]);
      if (s.repeats > 1) s.apart = apart(plan_, g, g + 1);
      s.bytes = SizeProgram(bytes * Expr(s.repeats));
      call_library(s, group, options_, facts_);
      if (s.library)
        for (size_t i : s.library->operands()) s.buffers.push_back(buffer(places[i]));
      else
        for (size_t i = 0; i < group.inputs.size(); ++i) s.buffers.push_back(buffer(places[i]));
      s.first_written = s.buffers.size();
      for (size_t i = group.inputs.size(); i < places.size(); ++i) s.buffers.push_back(buffer(places[i]));
      steps_.push_back(std::move(s));
      small_.push_back(false);
      return;
    }
    Work work = group.work();
    if (calls_[g]) launched_with_ = calls_[g];
    for (size_t k = starts_in_place(group, places) ? 1 : 0; k < kernels_[g]->lowered.size(); ++k) {
      const Lowered& l = kernels_[g]->lowered[k];
      KernelLayout layout = layout_of(*l.loops);
      Step s;
      s.code = kernels_[g]->kernels.at(launched_with_)[k];
      s.group = g;
      s.bytes = SizeProgram(bytes);
      s.elements = SizeProgram(work.elements);
      s.results = SizeProgram(work.results);
      s.steps = SizeProgram(work.steps);
      for (int b : l.buffers) s.buffers.push_back(buffer(places[b]));
      s.first_written = s.buffers.size() - group.outputs.size();
      for (const Lowered::Number& n : l.numbers) {
        auto bytes = static_cast<size_t>(size_of(type_of(group.inputs[n.input]).dtype));
        s.numbers.push_back({places[n.input].index, static_cast<size_t>(n.element) * bytes, bytes});
      }
      for (Expr e : layout.sizes) s.sizes.push_back(e->id);
      s.count = SizeProgram(layout.count);
      s.scratch = SizeProgram(layout.scratch_bytes);
      s.threads = layout.threads;
      s.grain = l.grain;
      bool small = layout.count.is_constant() && layout.scratch_bytes.is(0) && layout.count.constant() < l.beside;
      steps_.push_back(std::move(s));
      small_.push_back(small);
    }
  }

  // Whether a scatter's first kernel, which gives the result the value of its operand, would copy memory to itself.
  static bool starts_in_place(const Group& group, const std::vector<Place>& places) {
    if (group.kind != GroupKind::Scatter) return false;
    Value x = group.graph->outputs()[0].value.node->arg<Value>(0);
    int i = group.graph->input_index(x);
    if (i < 0) return false;
    if (!(places[i] == places[group.inputs.size()])) return false;
    auto strides = [&](const std::vector<Expr>& given) {
      return given.empty() ? ir::contiguous_strides(type_of(x).shape) : given;
    };
    return strides(ir::strides_of(*group.graph, x)) == strides(group.output_strides[0]);
  }

  void add_prepared(CompiledGraph::Parts& parts) const {
    if (!plan_.prepared) return;
    parts.prepared_bytes = plan_.prepared_bytes;
    auto prepares_in = [&](size_t step) { return step < parts.steps.size() && prepares(parts.steps[step]); };
    while (parts.prepared < parts.batches.size() && prepares_in(parts.batches[parts.prepared].begin)) ++parts.prepared;
    std::set<uint32_t> inputs, symbols;
    auto add_symbols = [&](Expr e) {
      std::vector<Expr> found;
      ir::collect_symbols(e, found);
      for (Expr s : found) symbols.insert(s->id);
    };
    for (size_t g = 0; g < plan_.prepared; ++g) {
      for (const auto* values : {&plan_.steps[g].inputs, &plan_.steps[g].outputs})
        for (Value v : *values)
          for (Expr e : type_of(v).shape) add_symbols(e);
      for (const Place& p : plan_.places[g]) {
        if (p.kind == Place::Input) inputs.insert(static_cast<uint32_t>(p.index));
        add_symbols(p.offset);
      }
    }
    for (size_t s = 0; prepares_in(s); ++s) symbols.insert(parts.steps[s].sizes.begin(), parts.steps[s].sizes.end());
    parts.prepared_of = {{inputs.begin(), inputs.end()}, {symbols.begin(), symbols.end()}};
  }
  bool prepares(const Step& s) const { return s.group < plan_.prepared; }

  // A step with a check ends its batch: what comes after it must not run where the check fails.
  std::vector<Batch> batches(const std::vector<CompiledGraph::Check>& checks) const {
    std::vector<bool> checked(steps_.size());
    for (const CompiledGraph::Check& c : checks)
      if (c.after < steps_.size()) checked[c.after] = true;
    std::vector<Batch> out;
    for (size_t s = 0; s < steps_.size();) {
      size_t end = s + (steps_[s].call ? 1 : std::max<size_t>(calls_[steps_[s].group], 1));
      if (small_[s])
        while (end < steps_.size() && small_[end] && end - s < 256 && !checked[end - 1] &&
               prepares(steps_[end]) == prepares(steps_[s])) {
          bool free = true;
          for (size_t a = s; a < end && free; ++a) free = independent(plan_, steps_[a].group, steps_[end].group);
          if (!free) break;
          ++end;
        }
      out.push_back({s, end});
      s = end;
    }
    return out;
  }

  const Plan& plan_;
  const std::vector<GroupKernels*>& kernels_;
  const std::vector<size_t>& calls_;
  const CompilerOptions& options_;
  ir::Facts& facts_;
  std::vector<Place> buffers_;
  std::map<std::tuple<Place::Kind, int, const ir::ExprNode*>, int> known_;  // their places in buffers_
  std::vector<Step> steps_;
  size_t launched_with_ = 1;  // calls of the last launch
  std::vector<bool> small_;
};

}  // namespace

CompiledGraph::Parts assemble(const Graph& graph, const LoweredGraph& lowered, const CompilerOptions& options,
                              ir::Facts& facts) {
  CompiledGraph::Parts parts = Assembler(lowered, options, facts).run();
  for (const ir::Input& in : graph.inputs()) parts.by_value.push_back(in.by_value);
  parts.first_defined = lowered.defined.first;
  for (const Expr& e : lowered.defined.are) parts.defined.emplace_back(e);
  return parts;
}

void call_library(Step& s, const Group& group, const CompilerOptions& options, ir::Facts& facts) {
  if (!group.library->prepare) {
    s.library = std::make_shared<LibraryStep>(group);
    return;
  }
  std::unique_ptr<DeviceCall> call = group.library->prepare(group, options, facts);
  if (s.repeats != 1) {
    BRASA_CHECK(s.repeats > 1 && group.library->repeats && s.apart.size() == group.inputs.size() + group.outputs.size(),
                "a call of ", group.library->name, " is not one that computes several");
    call->repeat(s.repeats, s.apart);
  }
  s.call = std::move(call);
}

void put_kernels(std::vector<Step>& steps, const std::vector<LoadedKernel>& loaded) {
  for (Step& s : steps)
    if (!s.call && !s.library) s.kernel = loaded[s.code];
}

std::unique_ptr<Graph> note_loops(size_t checks) {
  auto graph = std::make_unique<Graph>(ir::Level::Loops);
  LoopBuilder b(*graph);
  std::vector<Value> good;
  for (size_t i = 0; i < checks; ++i) good.push_back(b.buffer(DType::Bool, 1));
  Value word = b.buffer(DType::Int64, 1), number = b.number(DType::Int64);
  Value failed = b.op("eq", {b.load(word, 0), b.constant(int64_t{0}, DType::Int64)}), all = b.load(good[0], 0);
  for (size_t i = 1; i < checks; ++i) {
    Value before = all;
    all = b.op("bit_and", {all, b.load(good[i], 0)});
    number = b.op("add", {number, b.convert(before, DType::Int64)});
  }
  b.store(word, 0, number, b.op("bit_and", {failed, b.op("bit_not", {all})}));
  return graph;
}

}  // namespace brasa::compiler
