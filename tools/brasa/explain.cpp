#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "commands.h"
#include "explain_plot.h"
#include "models.h"

namespace brasa::tool {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model, inputs, plot;
  std::string device = get_default_device().str();
  uint64_t seed = 0;
  bool json = false;
};

Json memory_of(const Explanation::Graph& g) {
  Json out = Json::array();
  for (const Explanation::Graph::Buffer& b : g.memory)
    out.push_back({{"type", b.type},
                   {"prepared", b.prepared},
                   {"offset", b.offset},
                   {"bytes", b.bytes},
                   {"first_kernel", b.first},
                   {"last_kernel", b.last}});
  return out;
}

Json as_json(const Explanation& e, const Options& o) {
  Json graphs = Json::array(), breaks = Json::array();
  for (const Explanation::Graph& g : e.graphs)
    graphs.push_back({{"operators", g.operators},
                      {"operator_count", g.operator_count},
                      {"kernels", g.kernels},
                      {"kernels_before", g.kernels_before},
                      {"kernels_after", g.kernels_after},
                      {"bytes_before", g.bytes_before},
                      {"bytes_after", g.bytes_after},
                      {"memory", memory_of(g)},
                      {"arena_bytes", g.arena_bytes},
                      {"prepared_bytes", g.prepared_bytes},
                      {"guards", g.guards},
                      {"facts", g.facts},
                      {"symbolic", g.symbolic}});
  for (const Explanation::Break& b : e.breaks)
    breaks.push_back({{"reason", b.reason}, {"after", b.after}, {"where", b.where}, {"count", b.count}});
  return {{"model", o.model}, {"seed", o.seed},   {"device", o.device},
          {"graphs", graphs}, {"breaks", breaks}, {"recompiles", e.recompiles}};
}

void run(const Options& o) {
  set_default_device(Device(o.device));
  manual_seed(o.seed);
  io::ExportedModule module = io::load_pt2(o.model, {.device = get_default_device()});
  std::vector<Tensor> inputs = inputs_from(o.inputs, module);
  Explanation e = explain(call_of(module), inputs);
  if (!o.plot.empty()) {
    std::ofstream file(o.plot);
    file << plot_of(e);
    if (!file.flush()) throw Error("cannot write " + o.plot);
  }
  if (o.json) {
    std::printf("%s\n", as_json(e, o).dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::string source = o.inputs.empty() ? "drawn with seed " + std::to_string(o.seed) : "of " + o.inputs;
  std::printf("inputs %s, on %s\n", source.c_str(), o.device.c_str());
  for (const Explanation::Graph& g : e.graphs) std::printf("%s\n", g.operators.c_str());
  std::printf("%s", e.str(/*kernels=*/true).c_str());
}

}  // namespace

void add_explain(CLI::App& app) {
  auto* c = app.add_subcommand(
      "explain",
      "Says what compile() makes of an exported program (.pt2): operators, graph breaks, kernels, memory traffic, the plan of its memory");
  c->footer(
      "Examples:\n  brasa explain net.pt2 --plot net.svg\n  brasa explain net.pt2 --inputs in.safetensors --json");
  auto options = std::make_shared<Options>();
  c->add_option("model", options->model, "The archive that torch.export.save wrote")->required();
  c->add_option("--inputs", options->inputs,
                "Safetensors file with in0, in1, …; else they are drawn, of the archive's sizes");
  c->add_option("--seed", options->seed, "Of the inputs that are drawn")->capture_default_str();
  c->add_option("--device", options->device, "Where it runs: cpu, emu, cuda, cuda:1")->capture_default_str();
  c->add_option("--plot", options->plot, "A file for a picture of kernels and memory, SVG");
  c->add_flag("--json", options->json, "One line of JSON");
  c->callback([options] { run(*options); });
}

}  // namespace brasa::tool
