#include "compiler/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "compiler/compiled.h"
#include "compiler/cuda/check.h"
#include "compiler/cuda/executable.h"
#include "compiler/emulate.h"
#include "compiler/fuse.h"
#include "compiler/indexing.h"
#include "compiler/loops/layout.h"
#include "compiler/lower.h"
#include "compiler/machine.h"
#include "compiler/plan.h"
#include "compiler/prepare.h"
#include "compiler/simplify.h"
#include "ir/legality.h"
#include "ir/text.h"
#include "ops/decompose.h"
#include "runtime/cpu/features.h"
#include "runtime/thread_pool.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Graph;
using ir::Value;

namespace {

bool listed(const char* variable, std::string_view word) {
  const char* text = std::getenv(variable);
  if (!text) return false;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    if (rest.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

PassRunner::PassRunner(Report& report) : report_(report), log_(listed("BRASA_LOGS", "graph")) {
  if (const char* names = std::getenv("BRASA_DISABLE_PASSES")) disabled_ = names;
}

void PassRunner::time(std::string_view name, const std::function<void()>& step) {
  auto start = std::chrono::steady_clock::now();
  step();
  report_.seconds.emplace_back(name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void PassRunner::run(std::string_view name, std::unique_ptr<Graph>& graph, bool needed, const Pass& pass) {
  if (!needed && listed("BRASA_DISABLE_PASSES", name)) return;
  std::string before = log_ ? ir::print(*graph) : "";
  time(name, [&] { graph = pass(*graph); });
#ifndef NDEBUG
  ir::check_legal(*graph);
#endif
  if (!log_) return;
  std::string after = ir::print(*graph);
  std::fprintf(stderr, "--- %s%s\n%s", std::string(name).c_str(), before == after ? " (unchanged)" : "",
               before == after ? "" : after.c_str());
}

namespace {

// A group's kernels, made once for all groups that are the same.
struct GroupKernels {
  std::vector<Lowered> lowered;
  std::vector<size_t> kernels;  // positions among all distinct kernels
  Schedule schedule;
};

std::string key_of(const Group& g) {
  std::string key = str(name(g.kind), g.domain, "\n", ir::print(*g.graph));
  for (const auto& strides : g.output_strides) key += str(strides);
  return key;
}

int64_t bytes_of(const ir::Type& t) {
  Expr n = t.numel();
  return n.is_constant() ? n.constant() * size_of(t.dtype) : 0;
}

std::string describe(const Group& g, const Schedule& s) {
  std::unordered_map<std::string, int> counts;
  std::vector<std::string> order;
  for (const ir::Node* n : g.graph->nodes()) {
    Prim p = prim_of(n);
    if (p == Prim::Input || is_leaf(p) || is_view(p)) continue;
    std::string op = n->op->name().substr(6);
    if (counts[op]++ == 0) order.push_back(op);
  }
  std::string out = str(name(g.kind), " ", g.domain, ":");
  for (const std::string& op : order) out += counts[op] > 1 ? str(" ", counts[op], "x", op) : str(" ", op);
  if (order.empty()) out += " copy";
  std::string how = str(s);
  if (!how.empty()) out += str("  {", how, "}");
  return out;
}

// One kernel a primitive, each reading and writing memory: what there would be without fusion.
void count_before(const Graph& g, Report& report) {
  for (const ir::Node* n : live_nodes(g)) {
    Prim p = prim_of(n);
    if (p == Prim::Input || is_leaf(p) || is_view(p)) continue;
    ++report.kernels_before;
    n->for_each_input([&](Value v) { report.bytes_before += bytes_of(type_of(v)); });
    for (const ir::Type& t : n->types) report.bytes_before += bytes_of(t);
  }
}

// A graph as loops, kernel by kernel, before there is code.
struct LoweredGraph {
  std::unique_ptr<Graph> graph;  // of primitives; the plan names its values
  Plan plan;
  std::unordered_map<std::string, GroupKernels> made;
  std::vector<const GroupKernels*> of_step;  // of the plan
  std::vector<std::string> texts;            // of each distinct kernel
  std::vector<const Graph*> loops;
};

// The steps of a plan with their memory, kernels loaded.
class Assembler {
 public:
  /// `emulated`: what CudaCheck compares a GPU's kernels with, or none.
  Assembler(const LoweredGraph& lowered, const std::vector<LoadedKernel>& loaded,
            const std::vector<LoadedKernel>& emulated, const Machine& machine)
      : plan_(lowered.plan), kernels_(lowered.of_step), loaded_(loaded), emulated_(emulated), machine_(machine) {}

  std::shared_ptr<Executable> run(const Graph& graph, Report report, const std::string& device) {
    std::vector<size_t> last_step;  // of each group
    for (size_t g = 0; g < plan_.steps.size(); ++g) {
      size_t first = steps_.size();
      add_group(g);
      for (size_t s = first; s < steps_.size(); ++s) steps_[s].group = g;
      last_step.push_back(steps_.size() - 1);  // of nothing: all ones, which is before the first
    }
    std::vector<Compiled::Check> checks;
    for (const Plan::Check& c : plan_.checks)
      checks.push_back(
          {c.after == static_cast<size_t>(-1) ? c.after : last_step[c.after], buffer(c.place, 1), c.message});
    if (device == "cuda")
      return std::make_shared<CompiledCuda>(
          graph, buffers_, std::move(steps_), std::move(checks), plan_.arena_bytes, std::move(report),
          runtime::cuda::Device::get(),
          emulated_.empty() ? nullptr : std::make_unique<CudaCheck>(std::move(to_check_)));
    std::vector<Batch> together = batches(checks);
    return std::make_shared<Compiled>(graph, buffers_, std::move(steps_), std::move(together), std::move(checks),
                                      plan_.arena_bytes, std::move(report));
  }

 private:
  struct Use {
    Place place;
    std::optional<int64_t> bytes;  // where constant
    bool written;
  };

  int buffer(const Place& p, int64_t) {
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].kind == p.kind && buffers_[i].index == p.index && buffers_[i].offset == p.offset)
        return static_cast<int>(i);
    buffers_.push_back(p);
    return static_cast<int>(buffers_.size()) - 1;
  }

  void add_group(size_t g) {
    const Group& group = plan_.steps[g];
    const std::vector<Place>& places = plan_.places[g];
    std::vector<Use> uses;
    for (size_t i = 0; i < places.size(); ++i) {
      bool out = i >= group.inputs.size();
      const ir::Type& t = type_of(out ? group.outputs[i - group.inputs.size()] : group.inputs[i]);
      std::optional<int64_t> bytes;
      if (t.numel().is_constant()) bytes = bytes_of(t);
      uses.push_back({places[i], bytes, out});
    }
    if (group.kind == GroupKind::Sort) {
      const ir::Node* n = group.outputs[0].node;
      Step s;
      s.is_sort = true;
      for (size_t i = 0; i < 3; ++i) s.buffers.push_back(buffer(places[i], 0));
      s.first_written = 1;
      const ir::Shape& shape = n->types[0].shape;
      int64_t dim = shape.empty() ? 0 : n->arg<Expr>(1).constant();
      auto part = [&](size_t begin, size_t end) {
        return SizeProgram(product(std::span(shape).subspan(begin, end - begin)));
      };
      s.dtype = n->types[0].dtype;
      s.outer = part(0, dim);
      s.length = shape.empty() ? SizeProgram(1) : SizeProgram(shape[dim]);
      s.inner = shape.empty() ? SizeProgram(1) : part(dim + 1, shape.size());
      s.descending = n->arg<bool>(2);
      note_check(s, {}, group, 0);
      steps_.push_back(std::move(s));
      uses_.push_back(uses);
      small_.push_back(false);
      return;
    }
    for (size_t k = 0; k < kernels_[g]->lowered.size(); ++k) {
      const Lowered& l = kernels_[g]->lowered[k];
      KernelLayout layout = layout_of(*l.loops);
      Step s;
      s.kernel = loaded_[kernels_[g]->kernels[k]];
      for (int b : l.buffers) s.buffers.push_back(buffer(places[b], 0));
      s.first_written = group.inputs.size();
      for (Expr e : layout.sizes) s.sizes.push_back(e->id);
      s.count = SizeProgram(layout.count);
      s.scratch = SizeProgram(layout.scratch_bytes);
      s.threads = layout.threads;
      // Starting another thread costs a few thousand instructions.
      constexpr double kTask = 30000;
      s.grain = static_cast<int64_t>(std::clamp(kTask / std::max(l.work, 1.0), 1.0, 1e9));
      bool small = layout.count.is_constant() && layout.scratch_bytes.is(0) &&
                   static_cast<double>(layout.count.constant()) * l.work < 16 * kTask * machine_.threads;
      if (!emulated_.empty()) note_check(s, emulated_[kernels_[g]->kernels[k]], group, layout.scratch_bytes);
      steps_.push_back(std::move(s));
      uses_.push_back(uses);
      small_.push_back(small);
    }
  }

  void note_check(const Step& s, const LoadedKernel& kernel, const Group& group, Expr scratch) {
    CudaCheck::Kernel k{kernel, SizeProgram(scratch), {}, {}};
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      const ir::Type& t = type_of(group.outputs[i]);
      k.dtypes.push_back(t.dtype);
      k.elements.emplace_back(i < group.output_strides.size() ? span_of(t, group.output_strides[i]) : t.numel());
    }
    BRASA_ASSERT(s.first_written + k.dtypes.size() == s.buffers.size(), "a kernel's buffers are not its group's");
    to_check_.push_back(std::move(k));
  }

  static bool overlap(const Use& a, const Use& b) {
    if (!a.written && !b.written) return false;
    if (a.place.kind != b.place.kind || a.place.index != b.place.index) return false;
    if (a.place.kind != Place::Arena) return true;
    if (!a.place.offset.is_constant() || !b.place.offset.is_constant()) return true;
    int64_t pa = a.place.offset.constant(), pb = b.place.offset.constant();
    return (!b.bytes || pa < pb + *b.bytes) && (!a.bytes || pb < pa + *a.bytes);
  }

  bool independent(size_t a, size_t b) const {
    for (const Use& x : uses_[a])
      for (const Use& y : uses_[b])
        if (overlap(x, y)) return false;
    return true;
  }

  // A step with a check ends its batch: what comes after it must not run where the check fails.
  std::vector<Batch> batches(const std::vector<Compiled::Check>& checks) const {
    std::vector<bool> checked(steps_.size());
    for (const Compiled::Check& c : checks)
      if (c.after < steps_.size()) checked[c.after] = true;
    std::vector<Batch> out;
    for (size_t s = 0; s < steps_.size();) {
      size_t end = s + 1;
      if (small_[s])
        while (end < steps_.size() && small_[end] && end - s < 256 && !checked[end - 1]) {
          bool free = true;
          for (size_t a = s; a < end && free; ++a) free = independent(a, end);
          if (!free) break;
          ++end;
        }
      out.push_back({s, end});
      s = end;
    }
    return out;
  }

  const Plan& plan_;
  const std::vector<const GroupKernels*>& kernels_;
  const std::vector<LoadedKernel>&loaded_, &emulated_;
  const Machine& machine_;
  std::vector<CudaCheck::Kernel> to_check_;  // by step
  std::vector<Place> buffers_;
  std::vector<Step> steps_;
  std::vector<std::vector<Use>> uses_;
  std::vector<bool> small_;
};

}  // namespace

namespace {

Machine machine_for(const CompileOptions& options) {
  BRASA_CHECK(options.device == "cpu" || options.device == "cuda", "there is no device '", options.device,
              "': it is cpu or cuda");
  std::string target = options.target;
  if (target.empty())
    target = options.device == "cuda" ? runtime::cuda::Device::get().target() : runtime::cpu::host_target();
  Machine machine = machine_of(target, options.threads ? options.threads : runtime::thread_count());
  BRASA_CHECK(machine.gpu || options.device == "cpu", "device 'cuda' does not run code for ", target);
  return machine;
}

LoweredGraph lower_graph(const Graph& graph, ir::Facts& facts, const CompileOptions& options, const Machine& machine,
                         PassRunner& passes, Report& report) {
  LoweredGraph out;
  std::unique_ptr<Graph>& g = out.graph;

  // Operators to primitives, simpler ones, and the forms that have a lowering.
  passes.time("decompose", [&] { g = ops::decompose(graph, facts); });
  passes.run("simplify", g, false, [&](const Graph& in) { return simplify(in); });
  report.primitives = ir::print(*g);
  count_before(*g, report);
  Prepared prepared;
  passes.run("prepare", g, true, [&](const Graph& in) {
    prepared = prepare(in, facts, machine);
    return std::move(prepared.graph);
  });

  // What is computed together, in which order, and where it lies.
  FusedGraph fused;
  passes.time("fuse", [&] { fused = fuse(*g, prepared.in_memory); });
  passes.time("plan", [&] { out.plan = plan(*g, std::move(fused), options.output_strides); });

  // Loops of each distinct group.
  bool emulate = machine.gpu && options.device == "cpu";
  passes.time("lower", [&] {
    for (const Group& group : out.plan.steps) {
      auto [it, added] = out.made.try_emplace(key_of(group));
      GroupKernels& k = it->second;
      bool empty =
          std::all_of(group.outputs.begin(), group.outputs.end(), [](Value v) { return type_of(v).numel().is(0); });
      if (added && group.kind != GroupKind::Sort && !empty) {
        k.schedule = schedule(group, machine);
        k.lowered = lower(group, k.schedule, machine);
        for (Lowered& l : k.lowered) {
          if (emulate) l.loops = emulated(*l.loops);
          k.kernels.push_back(out.texts.size());
          out.texts.push_back(ir::print(*l.loops));
          out.loops.push_back(l.loops.get());
        }
      }
      out.of_step.push_back(&k);
      for (Value v : group.inputs) report.bytes_after += bytes_of(type_of(v));
      for (Value v : group.outputs) report.bytes_after += bytes_of(type_of(v));
      report.kernels.push_back(describe(group, k.schedule));
    }
  });
  report.kernels_after = static_cast<int>(out.plan.steps.size());
  return out;
}

}  // namespace

std::vector<std::string> kernel_texts(const Graph& graph, ir::Facts& facts, const CompileOptions& options) {
  Report report;
  PassRunner passes(report);
  return lower_graph(graph, facts, options, machine_for(options), passes, report).texts;
}

std::shared_ptr<Executable> run_pipeline(const Graph& graph, ir::Facts& facts, const CompileOptions& options) {
  Report report;
  PassRunner passes(report);
  Machine machine = machine_for(options);
  LoweredGraph lowered = lower_graph(graph, facts, options, machine, passes, report);

  // Code of each distinct kernel.
  bool on_gpu = options.device == "cuda";
  std::string strict = options.numbers == Numbers::Strict ? ";strict" : "";
  std::string target = on_gpu || !machine.gpu ? machine.target : runtime::cpu::host_target();
  std::vector<LoadedKernel> loaded, compared;
  passes.time("code", [&] {
    loaded = load_kernels(lowered.texts, target + strict);
    if (const char* check = std::getenv("BRASA_CUDA_CHECK"); on_gpu && check && *check && *check != '0') {
      std::vector<std::string> texts;
      for (const Graph* loops : lowered.loops) texts.push_back(ir::print(*emulated(*loops)));
      compared = load_kernels(texts, runtime::cpu::host_target() + strict);
    }
  });
  if (listed("BRASA_LOGS", "fusion"))
    for (const std::string& line : report.kernels) std::fprintf(stderr, "%s\n", line.c_str());
  if (listed("BRASA_LOGS", "loops"))
    for (const std::string& text : lowered.texts) std::fprintf(stderr, "%s", text.c_str());
  return Assembler(lowered, loaded, compared, machine).run(graph, std::move(report), options.device);
}

std::shared_ptr<Executable> compile(const Graph& graph, ir::Facts& facts, const CompileOptions& options) {
  if (options.backend == "interpreter") return interpret(graph);
  BRASA_CHECK(options.backend == "inductor", "there is no compiler '", options.backend,
              "': it is inductor or interpreter");
  return run_pipeline(graph, facts, options);
}

}  // namespace brasa::compiler
