#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include <brasa/brasa.h>
#include <brasa/error.h>
#include <brasa/npy.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>

#include "commands.h"
#include "models.h"

namespace brasa::tool {
namespace {

struct Options {
  std::string model, inputs, outputs;
  std::string backend = "inductor";
  std::string device = get_default_device().str();
};

void run(const Options& o) {
  set_default_device(Device(o.device));
  io::ExportedModule module = io::load_pt2(o.model, {.device = get_default_device()});
  std::vector<Tensor> inputs = inputs_of(safetensors::File::open(o.inputs), module);
  std::vector<Tensor> outputs = runner(module, o.backend)(inputs);
  TensorDict named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    Tensor t = outputs[i].detach();
    named["out" + std::to_string(i)] = is_complex(t.scalar_type()) ? view_as_real(t) : t;
  }
  save_tensors(named, o.outputs);
}

void print_tensor(const std::string& name, const Tensor& t, const std::string& dtype) {
  std::string sizes;
  for (int64_t n : t.sizes().vec()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
  std::printf("%s%s%s[%s]\n", name.c_str(), name.empty() ? "" : "  ", dtype.c_str(), sizes.c_str());
}

// Containers by their keys, to a small depth; a shared one stands in each of its places.
void print_value(const std::string& name, const pickle::Value& v, int depth) {
  constexpr int kDepth = 6;
  constexpr size_t kItems = 1000;
  if (v.is_tensor()) return print_tensor(name, v.stored().tensor, v.stored().dtype);
  std::string kind(v.kind_name());
  bool nested = v.is_dict() || v.is_sequence() || v.kind() == pickle::Value::Kind::Object;
  if (!nested) {
    std::printf("%s  %s\n", name.c_str(), kind.c_str());
    return;
  }
  size_t size = v.is_sequence() ? v.items().size() : v.pairs().size();
  std::printf("%s%s%s of %zu\n", name.c_str(), name.empty() ? "" : "  ", kind.c_str(), size);
  if (depth == kDepth) return;
  for (size_t i = 0; i < std::min(size, kItems); ++i) {
    if (v.is_sequence()) {
      print_value(name + "[" + std::to_string(i) + "]", v.items()[i], depth + 1);
    } else {
      const auto& [key, item] = v.pairs()[i];
      std::string text = key.is_string()                          ? key.text()
                         : key.kind() == pickle::Value::Kind::Int ? std::to_string(key.to_int())
                                                                  : "(" + std::string(key.kind_name()) + ")";
      print_value(name.empty() ? text : name + "." + text, item, depth + 1);
    }
  }
}

void info(const std::string& path) {
  if (path.ends_with(".pt2")) {
    std::fputs(io::describe_pt2(path).c_str(), stdout);
  } else if (path.ends_with(".safetensors")) {
    safetensors::File file = safetensors::File::open(path);
    std::printf("safetensors, %zu tensors\n", file.entries().size());
    for (const auto& [key, value] : file.metadata()) std::printf("metadata %s: %s\n", key.c_str(), value.c_str());
    for (const safetensors::Entry& e : file.entries()) {
      std::string sizes;
      for (int64_t n : e.shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
      std::printf("%s  %s[%s]\n", e.name.c_str(), e.format.c_str(), sizes.c_str());
    }
  } else if (path.ends_with(".npy") || path.ends_with(".npz")) {
    std::fputs(io::describe_npy(path).c_str(), stdout);
  } else if (path.ends_with(".json")) {
    for (const auto& [name, t] : map_tensors(path)) print_tensor(name, t, std::string(brasa::name(t.scalar_type())));
  } else {
    pickle::Value value = pickle::load(path);
    if (value.kind() == pickle::Value::Kind::Object)
      std::printf("TorchScript's %s; tensors and attributes can be read, its code is not run\n", value.text().c_str());
    print_value("", value, 0);
  }
}

}  // namespace

void add_run(CLI::App& app) {
  auto* c = app.add_subcommand("run", "Runs an exported program (.pt2) on inputs of a file");
  c->footer("Example:\n  brasa run net.pt2 --inputs in.safetensors --outputs out.safetensors --backend eager");
  auto options = std::make_shared<Options>();
  c->add_option("model", options->model, "The archive that torch.export.save wrote")->required();
  c->add_option("--inputs", options->inputs, "Safetensors file with in0, in1, …; complex numbers as pairs")->required();
  c->add_option("--outputs", options->outputs, "Safetensors file that gets out0, out1, …")->required();
  c->add_option("--backend", options->backend, "What runs it: eager, or one of compile's")->capture_default_str();
  c->add_option("--device", options->device, "Where it runs: cpu, emu, cuda, cuda:1")->capture_default_str();
  c->callback([options] { run(*options); });
}

void add_info(CLI::App& app) {
  auto* c = app.add_subcommand("info",
                               "Says what a file holds: .pt2, .pth, .npy, .npz, .safetensors or the index of several");
  c->footer("Example:\n  brasa info net.pt2");
  auto path = std::make_shared<std::string>();
  c->add_option("file", *path, "The file")->required();
  c->callback([path] { info(*path); });
}

}  // namespace brasa::tool
