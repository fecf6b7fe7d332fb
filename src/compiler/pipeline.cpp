#include "compiler/pipeline.h"

#include <algorithm>

#include "compiler/fusion/fuse.h"
#include "compiler/lowering/emulate.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/report.h"
#include "compiler/run/assemble.h"
#include "ir/text.h"
#include "ops/decompose.h"
#include "runtime/cpu/features.h"
#include "runtime/cuda/device.h"
#include "runtime/thread_pool.h"
#include "support/error.h"
#include "support/settings.h"
#include "transforms/complex.h"

namespace brasa::compiler {

using ir::Graph;
using ir::Value;

namespace {

constexpr GraphPass kAlgebra[] = {
    {"complex", false,
     [](Primitives& p, const PassContext& c) { p.graph = transforms::split_complex(*p.graph, c.facts); }},
    {"simplify", true, simplify},
};

constexpr GraphPass kForms[] = {
    {"specialise", false, specialise},
    {"convolutions", false, lower_convolutions},
    {"contractions", false, shape_contractions},
    {"accumulators", false, widen_accumulators},
    {"split_reductions", true, split_reductions},
    {"library_operands", false, place_library_operands},
    {"copy_inputs", false, copy_inputs},
};

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

// Complex outputs are pairs of real numbers by then.
std::vector<std::vector<ir::Expr>> real_strides(const Graph& graph, std::vector<std::vector<ir::Expr>> strides) {
  size_t fresh = 0;
  for (const ir::Output& o : graph.outputs()) {
    if (!o.check.empty() || o.into >= 0) continue;
    if (fresh < strides.size() && is_complex(type_of(o.value).dtype))
      strides[fresh] = transforms::strides_of_parts(strides[fresh]);
    ++fresh;
  }
  return strides;
}

std::string key_of(const Group& g) {
  std::string key = str(name(g.kind), g.domain, "\n", ir::print(*g.graph));
  for (const auto& strides : g.output_strides) key += str(strides);
  return key;
}

bool computes_nothing(const Group& g) {
  return std::all_of(g.outputs.begin(), g.outputs.end(), [](Value v) { return type_of(v).numel().is(0); });
}

std::string joined(const std::vector<std::string>& parts, const char* end) {
  std::string out;
  for (const std::string& p : parts) out += p + end;
  return out;
}

LoweredGraph lower_graph(const Graph& graph, ir::Facts& facts, const CompileOptions& options, const Machine& machine,
                         PassRunner& passes, Report& report) {
  LoweredGraph out;
  Primitives p;
  PassContext context{facts, machine};

  // Operators to primitives, simpler ones, and the forms that have a lowering.
  passes.run("decompose", p, [&] { p.graph = ops::decompose(graph, facts); });
  for (const GraphPass& pass : algebra_passes()) passes.run(pass, p, context);
  report.primitives = ir::print(*p.graph);
  count_before(*p.graph, report);
  for (const GraphPass& pass : form_passes()) passes.run(pass, p, context);

  // What is computed together, in which order, and where it lies.
  FusedGraph fused;
  passes.run("fuse", "groups", [&] { fused = fuse(*p.graph, p.in_memory); }, [&] { return str(fused); });
  passes.run(
      "plan", "plan", [&] { out.plan = plan(*p.graph, std::move(fused), real_strides(graph, options.output_strides)); },
      [&] { return str(out.plan); });

  // How each distinct group runs.
  passes.run(
      "schedule", "fusion",
      [&] {
        for (const Group& group : out.plan.steps) {
          auto [it, added] = out.made.try_emplace(key_of(group));
          if (added && !computes_nothing(group)) it->second.schedule = schedule(group, machine);
          out.of_step.push_back(&it->second);
          report.kernels.push_back(describe(group, it->second.schedule));
          count_after(group, report);
        }
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
          for (Lowered& l : k.lowered) {
            // A GPU's loops on the CPU, for tests.
            if (machine.gpu && options.device == "cpu") l.loops = emulated(*l.loops);
            k.kernels.push_back(out.texts.size());
            out.texts.push_back(ir::print(*l.loops));
            out.loops.push_back(l.loops.get());
          }
        }
      },
      [&] { return joined(out.texts, ""); });
  out.graph = std::move(p.graph);
  return out;
}

}  // namespace

std::span<const GraphPass> algebra_passes() { return kAlgebra; }
std::span<const GraphPass> form_passes() { return kForms; }

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
  std::string numbers = options.numbers == Numbers::Strict ? ";strict"
                        : options.numbers == Numbers::Fast ? ";fast"
                                                           : "";
  std::string target = on_gpu || !machine.gpu ? machine.target : runtime::cpu::host_target();
  std::vector<LoadedKernel> loaded, compared;
  passes.run("code", "", [&] { loaded = load_kernels(lowered.texts, target + numbers); });
  if (const char* check = environment("BRASA_CUDA_CHECK"); on_gpu && check && *check && *check != '0')
    passes.run("code of the check", "", [&] {
      std::vector<std::string> texts;
      for (const Graph* loops : lowered.loops) texts.push_back(ir::print(*emulated(*loops)));
      compared = load_kernels(texts, runtime::cpu::host_target() + numbers);
    });
  return assemble(graph, lowered, loaded, compared, std::move(report), options.device);
}

std::shared_ptr<Executable> compile(const Graph& graph, ir::Facts& facts, const CompileOptions& options) {
  if (options.backend == "interpreter") return interpret(graph);
  BRASA_CHECK(options.backend == "inductor", "there is no compiler '", options.backend,
              "': it is inductor or interpreter");
  return run_pipeline(graph, facts, options);
}

}  // namespace brasa::compiler
