#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <filesystem>

#include <brasa/export_program.h>
#include <brasa/import.h>
#include <brasa/serialize.h>

#include "commands.h"

namespace brasa::tool {
namespace {

struct Options {
  std::string model, out, load, kind = "exe", weights = "inside", device = "cpu";
  ExportOptions to;
};

// Others compile the PTX of the first when they start.
const std::vector<std::string> kGpus = {"nvptx+sm_80", "nvptx+sm_90"};

// "out/my-net" gives functions my_net_run, …
std::string function_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ? "program_" + name : name;
}

void run(Options o) {
  if (std::filesystem::path(o.out).filename().empty())
    throw Error("export: --out is '" + o.out + "', expected the name of a file");
  bool archive = o.kind == "pt2" || o.kind == "recorded-pt2";
  if (archive && o.to.strict)
    throw Error("export: --strict asks for code for all sizes; an archive (--kind " + o.kind + ") has none");
  if (o.kind == "object" || o.kind == "shared") o.to.name = function_name(o.out);
  o.to.weights_beside = o.weights == "beside";
  io::ExportedModule module = io::load_pt2(o.model);
  if (!o.load.empty()) load(module, o.load);
  if (archive) {
    o.to.targets.clear();
    o.kind == "pt2" ? module->write_pt2(o.out) : export_(module, o.to).write_pt2(o.out);
    std::printf("%s: an archive of PyTorch's\n", o.out.c_str());
    return;
  }
  if (o.to.targets.empty()) o.to.targets = o.device == "cuda" ? kGpus : ExportOptions().targets;
  ExportedProgram program = export_(module, o.to);
  if (o.kind == "object")
    program.write_object(o.out);
  else if (o.kind == "shared")
    program.write_shared(o.out);
  else
    program.write_executable(o.out);
  std::printf("%s: %zu bytes of code and plan, %zu of weights %s\n", o.out.c_str(), program.code_bytes(),
              program.weight_bytes(), o.weights.c_str());
}

}  // namespace

void add_export(CLI::App& app) {
  auto* c = app.add_subcommand("export", "Writes an exported program (.pt2) as machine code that runs alone");
  c->footer(
      "Examples:\n  brasa export net.pt2 -o net && ./net in.safetensors out.safetensors\n"
      "  brasa export net.pt2 -o net --kind object --weights beside\n"
      "  brasa export net.pt2 -o net --device cuda");
  auto options = std::make_shared<Options>();
  c->add_option("model", options->model, "The archive that torch.export.save wrote")->required();
  c->add_option("-o,--out", options->out, "Where to: OUT, or OUT.o and OUT.so with OUT.h and OUT.hpp")->required();
  c->add_option("--load", options->load, "Weights in place of the archive's: a safetensors or .pth file");
  c->add_option("--kind", options->kind,
                "What it becomes; pt2: the same program with other weights; recorded-pt2: as Brasa records it")
      ->check(CLI::IsMember({"object", "shared", "exe", "pt2", "recorded-pt2"}))
      ->capture_default_str();
  c->add_option("--weights", options->weights, "Inside, or beside as OUT.weights, which is mapped")
      ->check(CLI::IsMember({"inside", "beside"}))
      ->capture_default_str();
  auto* device = c->add_option("--device", options->device,
                               "What it runs on; cuda: it needs NVIDIA's driver there, and nothing here")
                     ->check(CLI::IsMember({"cpu", "cuda"}))
                     ->capture_default_str();
  options->to.targets.clear();
  c->add_option("--target", options->to.targets,
                "Processors that it has code for; it chooses when it runs. Else x86-64, x86-64+avx2 and x86-64+avx512, "
                "for cuda nvptx+sm_80 and nvptx+sm_90")
      ->excludes(device);
  c->add_option(
       "--libraries", options->to.libraries,
       "For cuda: cublaslt computes products, cudnn convolutions; they must be there where it runs. Else it has "
       "kernels of its own")
      ->check(CLI::IsMember({"cublaslt", "cudnn"}));
  c->add_flag("--strict", options->to.strict, "An error where there is no code for sizes that the archive allows");
  c->add_option("--numbers", options->to.numbers, "strict, default or fast, as compile's option; else BRASA_NUMBERS")
      ->capture_default_str();
  c->callback([options] { run(*options); });
}

}  // namespace brasa::tool
