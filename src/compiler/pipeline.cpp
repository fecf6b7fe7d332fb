#include "compiler/pipeline.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <unordered_set>

#include "compiler/fusion/fuse.h"
#include "compiler/kernels/codegen_client.h"
#include "compiler/kernels/disk_cache.h"
#include "compiler/kernels/measured_ways.h"
#include "compiler/kernels/tuner.h"
#include "compiler/loops/layout.h"
#include "compiler/lowering/emulate.h"
#include "compiler/passes/attention_caches.h"
#include "compiler/passes/large_sizes.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/report.h"
#include "compiler/run/equal_products.h"
#include "compiler/run/graph_cache.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "ops/decompose.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"
#include "support/error.h"
#include "transforms/complex.h"

namespace brasa::compiler {

using ir::Graph;

namespace {

constexpr GraphPass kAlgebra[] = {
    {"complex", false,
     [](Primitives& p, const PassContext& c) {
       p.graph = transforms::split_complex(*p.graph, c.facts, c.size_classes);
     }},
    {"simplify", true, simplify},
    {"unread_parts", true, drop_unread_parts},
};

constexpr GraphPass kForms[] = {
    {"whole_accesses", true, ask_for_whole_accesses},
    {"short_rows", true, ask_for_short_rows},
    {"attention_caches", true, read_attention_caches},
    {"specialise", false, specialise},
    {"unread_results", true, drop_unread_results},
    {"inline_bodies", false, inline_bodies},
    {"written_parts", true, choose_written_parts},
    {"channels_last", true, keep_channels_last},
    {"single_places", true, sum_single_places},
    {"convolutions", false, lower_convolutions},
    {"turn_products", true, turn_products},
    {"split_products", true, split_products},
    {"contractions", false, shape_contractions},
    {"borders", true, write_borders},
    {"concat_rows", true, join_concatenated_rows},
    {"strided_reads", true, gather_strided_reads},
    {"narrow_products", true, narrow_products},
    {"align_products", true, align_products},
    {"accumulators", false, widen_accumulators},
    {"compared", false, keep_compared},
    {"lasting_values", true, keep_lasting_values},
    {"shared_sums", true, share_sums},
    {"squared_differences", true, expand_squared_differences},
    {"split_reductions", true, split_reductions},
    {"library_operands", false, place_library_operands},
    {"carried_copies", true, carry_narrow_copies},
    {"copy_inputs", false, copy_inputs},
    {"large_sizes", true, define_large_sizes},
    {"library_groups", true, group_library_calls},
    {"columns_apart", true, keep_columns_apart},
};

// What programs do without this library: control flow, on CPUs what their runtime knows (sorts), on GPUs what they open.
std::vector<std::string_view> portable_libraries(const CompilerOptions& options, const Machine& machine) {
  std::vector<std::string_view> out(options.libraries.begin(), options.libraries.end());
  out.push_back("loops");
  if (!machine.gpu) out.push_back("alone");
  return out;
}

runtime::Device& device_for(const CompilerOptions& options) {
  return options.device ? *options.device : runtime::host();
}

Machine machine_for(const CompilerOptions& options) {
  int threads = options.threads ? options.threads : get_num_threads();
  if (!options.target.empty()) {
    Machine machine = machine_of(options.target, threads);
    machine.aligned = options.aligned;
    if (options.portable) machine.libraries = Libraries(portable_libraries(options, machine));
    machine.one_order = options.numbers == Numbers::Strict;
    return machine;
  }
  const runtime::Properties& device = device_for(options).properties();
  Machine machine = machine_of(device.target, threads);
  machine.gpu = device.loops == runtime::Loops::Gpu;
  machine.aligned = options.aligned;
  machine.one_order = options.numbers == Numbers::Strict;
  if (machine_of(device.code, 1).gpu) machine.processors = device.processors;
  machine.libraries = libraries_of(device);
  return machine;
}

ops::TargetScope::Takes taken_by(const Libraries& libraries) {
  if (PassRunner::switched_off("whole_operators")) return [](const ops::Row&, const ir::Args&) { return false; };
  return [libraries](const ops::Row& row, const ir::Args& args) { return libraries.takes(row, args); };
}

std::string key_of(const Group& g) {
  std::string key = str(name(g.kind), g.domain, "\n", ir::print(*g.graph));
  for (const auto& strides : g.output_strides) key += str(strides);
  for (size_t i = 0; i < g.by_value.size(); ++i)
    if (g.by_value[i]) key += str(" value ", i);
  for (size_t i = 0; i < g.unwritten.size(); ++i)
    if (g.unwritten[i]) key += str(" unwritten ", i);
  for (int i : g.overwritten) key += str(" over ", i);
  return key;
}

// As a target's description ends.
const char* suffix(Numbers numbers) {
  return numbers == Numbers::Strict ? ";strict" : numbers == Numbers::Fast ? ";fast" : "";
}

bool computes_nothing(const Group& g) {
  return std::all_of(g.outputs.begin(), g.outputs.end(), [](Value v) { return type_of(v).numel().is(0); });
}

// How many steps from each on are one launch: of the same kernel, touching nothing of each other's. 0: of one that began before.
std::vector<size_t> calls_of(const LoweredGraph& g, bool together) {
  std::vector<size_t> out(g.plan.steps.size(), 1);
  std::vector<bool> checked(out.size());
  for (const Plan::Check& c : g.plan.checks)
    if (c.after < checked.size()) checked[c.after] = true;
  for (size_t s = 0; s < out.size() && together; s += out[s]) {
    const std::vector<Lowered>& kernels = g.of_step[s]->lowered;
    auto fits = [&](size_t next) {
      bool free = g.of_step[next] == g.of_step[s] && !checked[next - 1] && next != g.plan.prepared;
      for (size_t a = s; a < next && free; ++a) free = independent(g.plan, a, next);
      return free;
    };
    size_t end = s + calls_in_one(g.plan, s, fits);
    if (g.plan.steps[s].kind == GroupKind::Loops && kernels.size() == 1) {
      size_t most = runtime::kMostSlots / layout_of(*kernels[0].loops).slots();
      while (end < out.size() && end - s < most && fits(end)) ++end;
    }
    std::fill(out.begin() + static_cast<ptrdiff_t>(s) + 1, out.begin() + static_cast<ptrdiff_t>(end), 0);
    out[s] = end - s;
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts, const char* end) {
  std::string out;
  for (const std::string& p : parts) out += p + end;
  return out;
}

// What a graph may keep of parameters between runs, beside them.
constexpr int64_t kMostOnHost = 128 << 20, kMostOnGpu = 512 << 20;

// What the host has goes to other devices' kernels by value.
void mark_values(Plan& plan, const Graph& graph, const runtime::Device& device) {
  if (device.on_host()) return;
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (size_t i = 0; i < plan.steps[s].inputs.size(); ++i) {
      const Place& p = plan.places[s][i];
      plan.steps[s].by_value.push_back(p.kind == Place::Input && graph.inputs()[p.index].by_value);
    }
}

// Which inputs a kernel overwrites with its outputs; the plan lets it where each element meets itself alone.
void mark_overwritten(Plan& plan) {
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    Group& g = plan.steps[s];
    const std::vector<Place>& places = plan.places[s];
    auto same = [](const Place& a, const Place& b) {
      return a.kind == Place::Input && b.kind == Place::Input && a.index == b.index;
    };
    std::vector<int> over(g.outputs.size(), -1);
    for (size_t k = 0; k < over.size(); ++k)
      for (size_t i = 0; i < g.inputs.size(); ++i)
        if (same(places[i], places[g.inputs.size() + k])) over[k] = static_cast<int>(i);
    bool any = std::any_of(over.begin(), over.end(), [](int i) { return i >= 0; });
    if (any && g.kind == GroupKind::Loops) g.overwritten = std::move(over);
  }
}

// What kernels may read before those before them have ended, as none of these writes it: a run of kept launches begins when all that came
// before it is done, for which its first kernel of loops waits.
void mark_unwritten(Plan& plan) {
  std::unordered_set<int> written;
  bool begun = false;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    Group& g = plan.steps[s];
    begun = begun || (g.kind == GroupKind::Loops && s >= plan.prepared);
    auto input = [&](size_t i) { return plan.places[s][i].kind == Place::Input; };
    for (size_t i = 0; i < g.inputs.size() && (begun || g.kind == GroupKind::Loops); ++i)
      g.unwritten.push_back(input(i) && !written.count(plan.places[s][i].index) && !g.takes_value(i));
    for (size_t i = g.inputs.size(); i < plan.places[s].size(); ++i)
      if (input(i)) written.insert(plan.places[s][i].index);
  }
}

// What is made of them is kept: packed operands of the host, a GPU's narrow copies of weights.
std::vector<bool> lasting_inputs(const Graph& graph, const CompilerOptions& options, const Machine& machine) {
  if ((machine.gpu && options.portable) || PassRunner::switched_off("prepare")) return {};
  std::vector<bool> out = options.lasting;
  if (!out.empty()) out.resize(graph.inputs().size());
  return out;
}

// Takes those that the graph writes from these.
std::vector<bool> take_rewritten(std::vector<bool>& lasting, const Graph& graph) {
  std::vector<bool> out(lasting.size());
  for (const ir::Output& o : graph.outputs())
    if (o.into >= 0 && !lasting.empty() && lasting[o.into]) {
      out[o.into] = true;
      lasting[o.into] = false;
    }
  return out;
}

// Whether failed checks are told by a kernel, for when somebody waits.
bool notes_checks(const runtime::Device& device, const CompiledGraph::Parts& parts) {
  return !device.on_host() && !parts.checks.empty();
}

bool relies_on_alignment(const LoweredGraph& lowered) {
  return std::any_of(lowered.of_step.begin(), lowered.of_step.end(),
                     [](const GroupKernels* k) { return k->schedule.width > 1; });
}

// `emulate`: a GPU's loops, for the CPU.
LoweredGraph lower_graph(const Graph& graph, ir::Facts& facts, const CompilerOptions& options, const Machine& machine,
                         bool emulate, PassRunner& passes, Report& report) {
  LoweredGraph out;
  Primitives p;
  std::vector<bool> lasting = lasting_inputs(graph, options, machine);
  std::vector<bool> rewritten = take_rewritten(lasting, graph);
  int64_t room = machine.gpu ? kMostOnGpu : kMostOnHost;
  PassContext context{facts, machine, options.size_classes, lasting, options.portable, std::move(rewritten), room};
  bool together = machine.gpu && !options.portable && !PassRunner::switched_off("share_launches");

  // Operators to primitives, simpler ones, and the forms that have a lowering.
  passes.run("decompose", p, [&] {
    ops::TargetScope scope(taken_by(machine.libraries));
    p.graph = ops::decompose(graph, facts, nullptr, ops::Whole::AsTarget);
  });
  for (const GraphPass& pass : algebra_passes()) passes.run(pass, p, context);
  report.primitives = ir::print(*p.graph);
  count_before(*p.graph, report);
  for (const GraphPass& pass : form_passes()) passes.run(pass, p, context);

  // What is computed together, in which order, and where it lies.
  FusedGraph fused;
  passes.run(
      "fuse", "groups", [&] { fused = fuse(*p.graph, p.in_memory, machine, p.groups, p.apart); },
      [&] { return str(fused); });
  passes.run(
      "plan", "plan",
      [&] {
        std::optional<LargeSizes> large;
        if (p.defined) large.emplace(*p.defined);
        bool joins = options.join_products && !PassRunner::switched_off("share_products");
        Together alike = !together ? Together::None : joins ? Together::Products : Together::WhereSmall;
        out.plan = plan(*p.graph, std::move(fused), alike, {std::move(lasting), room, std::move(p.carried)},
                        [&](const Expr& e) { return large ? (*large)(e) : e; });
        mark_values(out.plan, graph, device_for(options));
        if (machine.gpu) mark_overwritten(out.plan);
        if (machine.gpu && options.keep_launches && !PassRunner::switched_off("unwritten")) mark_unwritten(out.plan);
        if (!machine.gpu && !options.portable && !PassRunner::switched_off("windows")) read_windows(out.plan);
      },
      [&] { return str(out.plan); });

  // How each distinct group runs.
  passes.run(
      "schedule", "fusion",
      [&] {
        std::optional<Tuner> tuner;
        if (options.measure && options.target.empty() && device_for(options).on_host())
          tuner.emplace(device_for(options), machine, suffix(options.numbers),
                        ExampleSizes(facts, p.defined ? &*p.defined : nullptr), options.tune_seconds,
                        out.plan.steps.size());
        for (const Group& group : out.plan.steps) {
          auto [it, added] = out.made.try_emplace(key_of(group));
          if (added && !computes_nothing(group)) {
            it->second.schedule = schedule(group, machine);
            if (tuner) it->second.schedule = tuner->best(group, it->first, std::move(it->second.schedule));
          }
          out.of_step.push_back(&it->second);
          report.kernels.push_back(describe(group, it->second.schedule));
          if (&group < out.plan.steps.data() + out.plan.prepared) report.kernels.back() += "  made once";
          count_after(group, report);
        }
        report_memory(out.plan, report);
      },
      [&] { return joined(report.kernels, "\n"); });

  // Its loops.
  passes.run(
      "lower", "loops",
      [&] {
        for (size_t s = 0; s < out.plan.steps.size(); ++s) {
          GroupKernels& k = *out.of_step[s];
          if (!k.lowered.empty() || computes_nothing(out.plan.steps[s])) continue;
          k.lowered = lower(out.plan.steps[s], k.schedule);
          for (Lowered& l : k.lowered)
            if (emulate) l.loops = emulated(*l.loops);
        }
        out.calls = calls_of(out, together);
        for (size_t s = 0; s < out.plan.steps.size(); ++s) {
          auto [kernels, fresh] = out.of_step[s]->kernels.try_emplace(out.calls[s]);
          if (!fresh || out.calls[s] == 0) continue;
          for (const Lowered& l : out.of_step[s]->lowered) {
            kernels->second.push_back(out.texts.size());
            bool several = out.calls[s] > 1 && !emulate;
            out.texts.push_back(ir::print(several ? *called(*l.loops, out.calls[s]) : *l.loops));
          }
        }
      },
      [&] { return joined(out.texts, ""); });
  out.graph = std::move(p.graph);
  if (p.defined) out.defined = std::move(*p.defined);
  return out;
}

// Of each distinct kernel, in all of its calls in a run of the graph.
std::vector<KernelCost> costs_of(const LoweredGraph& lowered, const ir::Facts& facts) {
  std::vector<std::optional<int64_t>> defined;
  auto size = [&](Expr symbol) -> std::optional<int64_t> {
    if (size_t k = symbol->id - lowered.defined.first; symbol->id >= lowered.defined.first && k < defined.size())
      return defined[k];
    return facts.has_hint(symbol) ? std::optional(facts.hint(symbol)) : std::nullopt;
  };
  for (const Expr& e : lowered.defined.are) {
    bool known =
        std::all_of(e->symbols->begin(), e->symbols->end(), [&](const Expr& s) { return size(s).has_value(); });
    defined.push_back(known
                          ? std::optional(ir::evaluate(
                                e, [&](const ir::ExprNode& s) { return *size(Expr::size(s.id, s.value, s.multiple)); }))
                          : std::nullopt);
  }
  std::vector<KernelCost> out(lowered.texts.size());
  std::unordered_map<const Graph*, KernelCost> known;
  size_t launched_with = 1;
  for (size_t g = 0; g < lowered.plan.steps.size(); ++g) {
    if (lowered.calls[g]) launched_with = lowered.calls[g];
    if (lowered.plan.steps[g].kind == GroupKind::Library) continue;
    const GroupKernels& kernels = *lowered.of_step[g];
    const std::vector<size_t>& places = kernels.kernels.at(launched_with);
    for (size_t k = 0; k < places.size(); ++k) {
      const Graph& loops = *kernels.lowered[k].loops;
      auto [it, fresh] = known.try_emplace(&loops);
      if (fresh) it->second = cost_of(loops, size);
      out[places[k]].code = it->second.code;
      out[places[k]].run += it->second.run;
    }
  }
  return out;
}

}  // namespace

ops::TargetScope::Takes computed_whole(const runtime::Device& device) {
  return taken_by(libraries_of(device.properties()));
}

std::span<const GraphPass> algebra_passes() { return kAlgebra; }
std::span<const GraphPass> form_passes() { return kForms; }

std::vector<std::string> kernel_texts(const Graph& graph, ir::Facts& facts, const CompilerOptions& options) {
  Report report;
  PassRunner passes(report);
  return lower_graph(graph, facts, options, machine_for(options), false, passes, report).texts;
}

Portable compile_portable(const Graph& graph, ir::Facts& facts, const CompilerOptions& options) {
  Report report;
  PassRunner passes(report);
  CompilerOptions portable = options;
  portable.portable = true;
  std::string code = options.target.substr(options.target.find('@') + 1);
  Machine machine = machine_for(portable);
  bool emulate = machine.gpu && !machine_of(code, 1).gpu;
  LoweredGraph lowered = lower_graph(graph, facts, portable, machine, emulate, passes, report);
  Portable out;
  if (machine.gpu && !lowered.plan.checks.empty()) {
    out.note = static_cast<int>(lowered.texts.size());
    lowered.texts.push_back(ir::print(*note_loops(1)));
  }
  passes.run("code", "", [&] {
    std::vector<std::string> texts;
    for (size_t i = 0; i < lowered.texts.size(); ++i) texts.push_back(named(lowered.texts[i], str("k", i)));
    if (!texts.empty()) out.images = compile_kernels_in_parallel(texts, code + suffix(options.numbers));
  });
  out.kernels.resize(lowered.texts.size());
  for (size_t i = 0; i < out.images.size(); ++i)
    for (const runtime::KernelEntry& e : out.images[i].entries) {
      size_t k = 0;
      std::from_chars(e.name.data() + 1, e.name.data() + e.name.size(), k);
      out.kernels.at(k) = {i, e.offset};
    }
  out.parts = assemble(graph, lowered, portable, facts);
  out.parts.report = std::move(report);
  return out;
}

namespace {

// Everything but code.
Assembled assemble_graph(const Graph& graph, ir::Facts& facts, const CompilerOptions& options, const Machine& machine,
                         bool emulate, const std::string& key) {
  Report report;
  PassRunner passes(report);
  runtime::Device& device = device_for(options);
  size_t known = facts.facts().size();
  LoweredGraph lowered = lower_graph(graph, facts, options, machine, emulate, passes, report);
  size_t learned = facts.facts().size();
  Assembled out;
  out.parts = assemble(graph, lowered, options, facts);
  out.texts = lowered.texts;
  if (notes_checks(device, out.parts)) out.texts.push_back(ir::print(*note_loops(out.parts.noted_together())));
  if (device.on_host()) out.costs = costs_of(lowered, facts);
  out.relies_on_alignment = relies_on_alignment(lowered);
  out.parts.report = std::move(report);
  if (!key.empty()) DiskCache::get().write(key, assembled_bytes(out, lowered.plan, facts, known, learned));
  return out;
}

// Small graphs are made as fast as they are read, and what passes are asked to show is theirs alone.
bool is_kept_on_disk(const Graph& graph) {
  constexpr size_t kLeast = 8;
  return graph.nodes().size() >= graph.inputs().size() + kLeast && !DiskCache::get().folder().empty() &&
         !PassRunner::switched_off("keep_graphs") && !PassRunner::shows_passes();
}

}  // namespace

std::shared_ptr<Executable> run_pipeline(const Graph& graph, ir::Facts& facts, const CompilerOptions& options) {
  runtime::Device& device = device_for(options);
  Machine machine = machine_for(options);
  bool emulate = machine.gpu && !machine_of(device.properties().code, 1).gpu;
  std::string key = is_kept_on_disk(graph) ? graph_key(graph, facts, options, device, machine) : "";
  std::optional<Assembled> made;
  if (!key.empty()) made = find_assembled(key, graph, options, facts);
  if (!made) made = assemble_graph(graph, facts, options, machine, emulate, key);
  CompiledGraph::Parts parts = std::move(made->parts);

  // Code of each distinct kernel.
  PassRunner passes(parts.report);
  passes.run("code", "", [&] {
    std::vector<LoadedKernel> loaded = load_kernels(made->texts, device, suffix(options.numbers), made->costs);
    put_kernels(parts.steps, loaded);
    if (notes_checks(device, parts)) parts.note = loaded.back();
  });
  if (machine.gpu && machine.aligned && made->relies_on_alignment)
    parts.unaligned = [kept = std::shared_ptr<Graph>(ir::copy(graph)), facts,
                       options]() -> std::shared_ptr<Executable> {
      ir::Facts again = facts;
      CompilerOptions loose = options;
      loose.aligned = false;
      return run_pipeline(*kept, again, loose);
    };
  for (const Step& s : parts.steps)
    if (const Report* inside = s.call ? s.call->report() : nullptr) {
      for (const std::string& kernel : inside->kernels) parts.report.kernels.push_back("in a body: " + kernel);
      parts.report.kernels_after += inside->kernels_after;
    }
  parts.keep = options.keep_launches;
  parts.ahead = !PassRunner::switched_off("run_ahead");
  return std::make_shared<CompiledGraph>(graph, device, std::move(parts));
}

namespace {
std::atomic<int64_t> count_of_compilations{0}, count_of_nodes{0};
}
int64_t compilations() { return count_of_compilations.load(std::memory_order_relaxed); }
int64_t compiled_nodes() { return count_of_nodes.load(std::memory_order_relaxed); }

std::shared_ptr<Executable> compile(const Graph& graph, ir::Facts& facts, const CompilerOptions& options) {
  ++count_of_compilations;
  count_of_nodes += static_cast<int64_t>(graph.nodes().size());
  if (options.backend == "interpreter") return interpret(graph, options.device);
  BRASA_CHECK(options.backend == "inductor", "there is no compiler '", options.backend,
              "': it is inductor or interpreter");
  if (!options.measure || device_for(options).on_host()) return run_pipeline(graph, facts, options);
  CompilerOptions measuring = options;
  measuring.measured_ways = std::make_shared<MeasuredWays>(device_for(options), options.tune_seconds);
  return run_pipeline(graph, facts, measuring);
}

}  // namespace brasa::compiler
