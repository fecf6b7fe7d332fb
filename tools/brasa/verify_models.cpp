#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/error.h>

#include "commands.h"
#include "files.h"
#include "models.h"

namespace brasa::tool {
namespace {

using nlohmann::json;

using Options = VerifyOptions;

// The largest differences of a case, and the first that the tolerance does not allow.
struct Differences {
  double rtol, atol, absolute = 0, relative = 0;
  std::optional<std::string> wrong;

  void compare(const std::string& what, const Tensor& got, const safetensors::Entry& want) {
    if (!got.defined()) return fail(what + " is undefined");
    bool pairs = is_complex(got.scalar_type()) && !is_complex(*want.dtype);
    Tensor is = pairs ? view_as_real(got.detach().cpu()) : got.detach().cpu();
    // A number of Python's is a double, which torch.tensor stores as float32.
    if (is.dim() == 0 && is.scalar_type() == kFloat64 && *want.dtype == kFloat32) is = is.to(kFloat32);
    if (is.scalar_type() != *want.dtype || is.sizes().vec() != want.shape)
      return fail(what + ": got " + is.toString() + " of another dtype or shape");
    Tensor expected = tensor_of(want, std::nullopt).cpu();
    if (!is_floating(is.scalar_type()) && !is_complex(is.scalar_type())) {
      if (!is.equal(expected)) fail(what + ": other values");
      return;
    }
    Tensor a = is.to(kFloat64).contiguous().reshape({-1}), b = expected.to(kFloat64).contiguous().reshape({-1});
    const auto *x = a.data_ptr<double>(), *y = b.data_ptr<double>();
    for (int64_t i = 0; i < a.numel(); ++i) {
      if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
      double distance = std::abs(x[i] - y[i]);
      absolute = std::isnan(distance) ? INFINITY : std::max(absolute, distance);
      relative = std::isnan(distance) ? INFINITY : std::max(relative, distance / std::abs(y[i]));
      if (!(distance <= atol + rtol * std::abs(y[i]))) {
        char text[120];
        std::snprintf(text, sizeof text, ": element %lld is %.9g, expected %.9g", static_cast<long long>(i), x[i],
                      y[i]);
        fail(what + text);
      }
    }
  }
  void fail(const std::string& what) {
    if (!wrong) wrong = what;
  }
};

void compare(Differences& d, const safetensors::File& file, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs, io::ExportedModule& module) {
  OrderedDict<std::string, Tensor> buffers = module->named_buffers(), parameters = module->named_parameters();
  size_t results = 0;
  for (const safetensors::Entry& e : file.entries()) {
    auto after = [&](const char* prefix) { return e.name.substr(std::string_view(prefix).size()); };
    if (e.name.starts_with("out")) {
      size_t i = std::stoul(e.name.substr(3));
      results = std::max(results, i + 1);
      if (i < outputs.size()) d.compare(e.name, outputs[i], e);
    } else if (e.name.starts_with("gradient.")) {
      Tensor* p = parameters.find(after("gradient."));
      d.compare(e.name, p ? p->grad() : Tensor(), e);
    } else if (e.name.starts_with("after.")) {
      std::string name = after("after.");
      bool input = name.starts_with("in") && name.find_first_not_of("0123456789", 2) == name.npos && name.size() > 2;
      Tensor* t = input ? nullptr : buffers.find(name) ? buffers.find(name) : parameters.find(name);
      d.compare(e.name, input ? inputs.at(std::stoul(name.substr(2))) : t ? *t : Tensor(), e);
    }
  }
  if (results != outputs.size())
    d.fail("got " + std::to_string(outputs.size()) + " outputs, expected " + std::to_string(results));
}

// Of the loss that a card names; its gradients are stored with the outputs.
void backward_of(const std::vector<Tensor>& outputs, const std::string& loss) {
  if (loss != "mean of squares") throw Error("the card names an unknown loss: '" + loss + "'");
  Tensor sum;
  for (const Tensor& t : outputs) {
    if (!t.defined() || !t.requires_grad()) continue;
    Tensor mean = t.abs().to(kFloat64).square().mean();
    sum = sum.defined() ? sum + mean : mean;
  }
  if (sum.defined()) sum.backward();
}

std::optional<std::string> verify_one(const std::string& folder, const json& card, const std::string& backend,
                                      std::string& note) {
  io::ExportedModule module =
      io::load_pt2(folder + "/" + card["name"].get<std::string>() + ".pt2", {.device = get_default_device()});
  bool loss = card.contains("loss");
  Run run = runner(module, backend, loss);
  Differences d{card["tolerance"]["rtol"].get<double>(), card["tolerance"]["atol"].get<double>(), 0, 0, {}};
  for (const json& set : card["sets"]) {
    safetensors::File file = safetensors::File::open(folder + "/" + set.get<std::string>());
    std::vector<Tensor> inputs = inputs_of(file, module);
    module->zero_grad();
    std::vector<Tensor> outputs = run(inputs);
    if (loss) backward_of(outputs, card["loss"].get<std::string>());
    compare(d, file, inputs, outputs, module);
    if (d.wrong) {
      d.wrong = set.get<std::string>() + ": " + *d.wrong;
      break;
    }
  }
  char text[96];
  std::snprintf(text, sizeof text, "largest difference %.3g, relative %.3g", d.absolute, d.relative);
  note = text;
  return d.wrong;
}

int verify_models(const Options& o) {
  set_default_device(Device(o.device));
  Counter count(o.json);
  std::set<std::string> cards;
  for (const auto& item : std::filesystem::directory_iterator(o.folder))
    if (item.path().extension() == ".pt2") cards.insert(item.path().stem().string());
  for (const std::string& name : cards) {
    if (!o.wanted(name)) continue;
    std::string card = o.folder + "/" + name + ".json";
    if (std::filesystem::exists(card))
      count.run(name, [&](std::string& note) { return verify_one(o.folder, read_json(card), o.backend, note); });
    else
      count.skip(name, "there is no card");
  }
  return count.finish();
}

}  // namespace

void add_verify_models(CLI::App& verify) {
  auto* sub = verify.add_subcommand("models", "Exported programs against stored inputs and outputs");
  auto options = std::make_shared<Options>();
  sub->add_option("folder", options->folder, "Folder with <name>.pt2, its card <name>.json and what the card names")
      ->required();
  sub->add_option("--backend", options->backend, "What runs them: eager, or one of compile's")->capture_default_str();
  sub->add_option("--device", options->device, "Where they run: cpu, emu, cuda, cuda:1")->capture_default_str();
  sub->add_option("--only", options->only, "Names of archives");
  sub->add_flag("--json", options->json, "One line of JSON");
  sub->callback([options] {
    if (int status = verify_models(*options)) throw CLI::RuntimeError(status);
  });
}

}  // namespace brasa::tool
