#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <brasa/amp.h>
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/error.h>
#include <brasa/nn/utils.h>
#include <brasa/safetensors.h>

#include "commands.h"
#include "files.h"
#include "training.h"

namespace brasa::tool {
namespace {

using nlohmann::json;

using Options = VerifyOptions;

// The tensors under a prefix, by the rest of their names.
verify::Parameters tensors_under(const safetensors::File& file, const std::string& prefix) {
  verify::Parameters out;
  for (const safetensors::Entry& e : file.entries())
    if (e.name.starts_with(prefix)) out[e.name.substr(prefix.size())] = tensor_of(e, std::nullopt);
  return out;
}

// The worst difference so far as a part of what is allowed, and where.
class Comparison {
 public:
  void number(const std::string& what, double got, double expected, double allowed) {
    double distance = std::abs(got - expected) / allowed;
    if (distance <= worst_) return;
    worst_ = std::isnan(distance) ? INFINITY : distance;
    char text[160];
    std::snprintf(text, sizeof text, " is %.9g, expected %.9g", got, expected);
    where_ = what + text;
  }
  // |a - b| <= tolerance · (1 + |b|), but for elements [skip_from, skip_to) of the whole.
  void tensor(const std::string& what, const Tensor& got, const Tensor& expected, double tolerance,
              int64_t skip_from = 0, int64_t skip_to = 0) {
    if (!(got.sizes() == expected.sizes())) {
      worst_ = INFINITY;
      where_ = what + " has other sizes";
      return;
    }
    Tensor a = got.detach().cpu().to(kFloat64).contiguous().reshape({-1}),
           b = expected.cpu().to(kFloat64).reshape({-1});
    const auto *x = a.data_ptr<double>(), *y = b.data_ptr<double>();
    for (int64_t i = 0; i < a.numel(); ++i)
      if (i < skip_from || i >= skip_to)
        number(what + "[" + std::to_string(i) + "]", x[i], y[i], tolerance * (1 + std::abs(y[i])));
  }
  double worst() const { return worst_; }
  bool passed() const { return worst_ <= 1; }
  const std::string& where() const { return where_; }

 private:
  double worst_ = 0;
  std::string where_;
};

struct Outcome {
  Comparison losses, gradients, weights, state;
};

// Softmax is invariant to the key's bias, whose gradient is rounding noise.
std::pair<int64_t, int64_t> noise(const std::string& parameter) {
  return parameter.ends_with("qkv.b") ? std::pair<int64_t, int64_t>{32, 64} : std::pair<int64_t, int64_t>{0, 0};
}

Outcome run_case(const json& j, const safetensors::File& file, const std::string& backend) {
  verify::Parameters parameters = tensors_under(file, "initial.");
  std::vector<Tensor> list;
  for (auto& [name, t] : parameters) list.push_back(t.set_requires_grad(true));
  std::unique_ptr<optim::Optimizer> optimizer = verify::make_optimizer(j.at("optimizer"), j.at("args"), list);
  std::shared_ptr<optim::lr_scheduler::LRScheduler> schedule;
  if (!j.at("schedule").is_null())
    schedule = verify::make_schedule(j["schedule"].at(0), j["schedule"].at(1), *optimizer);
  std::optional<double> max_norm;
  if (!j.at("clip_grad_norm").is_null()) max_norm = j["clip_grad_norm"].get<double>();
  bool autocast = !j.at("autocast").is_null();
  if (autocast && j["autocast"] != "bfloat16") throw Error("autocast to " + j["autocast"].dump());

  verify::Parameters gradients;  // of step 0
  auto loss_of = [&](const Tensor& x, const Tensor& target) {
    amp::autocast guard(kBFloat16, autocast);
    return verify::training_loss(j.at("model"), parameters, x, target);
  };
  auto loss_and_gradients = [&](const Tensor& x, const Tensor& target) {
    optimizer->zero_grad();
    Tensor loss = loss_of(x, target);
    loss.backward();
    if (gradients.empty())
      for (auto& [name, p] : parameters) gradients[name] = p.grad().clone();
    if (max_norm) nn::utils::clip_grad_norm_tensor_(list, *max_norm);
    return loss.detach();
  };
  bool several_evaluations = j["optimizer"] == "LBFGS";
  auto step = [&](const Tensor& x, const Tensor& target) {
    if (several_evaluations) return optimizer->step([&] { return loss_and_gradients(x, target); });
    Tensor loss = loss_and_gradients(x, target);
    optimizer->step();
    return loss;
  };
  // LBFGS looks at values as it goes.
  auto compiled = compile(step, {.fullgraph = !several_evaluations, .backend = backend});

  Outcome out;
  Tensor xs = tensor_of(file.at("input.x"), std::nullopt), targets = tensor_of(file.at("input.target"), std::nullopt);
  double loss_tolerance = j.at("tolerance").at("losses"), tolerance = j["tolerance"].at("weights");
  auto check_loss = [&](const std::string& what, const Tensor& loss, double expected) {
    out.losses.number(what, loss.item<double>(), expected, loss_tolerance * std::abs(expected));
  };
  int64_t batches = j.at("batches"), i = 0;
  for (const json& expected : j.at("losses")) {
    Tensor x = xs.select(0, i % batches).clone(), target = targets.select(0, i % batches).clone();
    Tensor loss = backend == "eager" ? step(x, target) : compiled(x, target);
    if (schedule) schedule->step();
    check_loss("loss of step " + std::to_string(i), loss, expected);
    ++i;
  }
  {
    NoGradGuard no_grad;
    check_loss("final loss", loss_of(xs.select(0, 0).clone(), targets.select(0, 0).clone()), j.at("final_loss"));
  }
  for (auto& [name, expected] : tensors_under(file, "gradient.")) {
    auto [from, to] = noise(name);
    out.gradients.tensor("gradient." + name, gradients.at(name), expected, tolerance, from, to);
  }
  for (auto& [name, expected] : tensors_under(file, "final.")) {
    auto [from, to] = noise(name);
    out.weights.tensor("final." + name, parameters.at(name), expected, tolerance, from, to);
  }
  std::map<std::string, serialize::OutputArchive> states;
  for (auto& [name, expected] : tensors_under(file, "state.")) {
    std::string parameter = name.substr(0, name.rfind('.')), key = name.substr(parameter.size() + 1);
    if (!states.count(parameter)) optimizer->state().at(parameters.at(parameter).impl())->serialize(states[parameter]);
    const auto& kept = states[parameter].contents().tensors;
    auto it = kept.find(key);
    if (it == kept.end()) throw Error("the optimizer has no state '" + key + "'");
    out.state.tensor("state." + name, it->second, expected, tolerance);
  }
  return out;
}

// The rates (and momenta) of 30 steps.
Comparison run_schedule(const json& j) {
  constexpr double kTolerance = 1e-9;  // float64 on both sides, in perhaps another order
  std::vector<optim::OptimizerParamGroup> groups;
  for (double lr : j.at("base_lr"))
    groups.emplace_back(std::vector<Tensor>{zeros({1}, requires_grad())},
                        std::make_unique<optim::SGDOptions>(optim::SGDOptions(lr).momentum(0.9)));
  optim::SGD optimizer(groups, optim::SGDOptions(0.1));
  std::shared_ptr<optim::lr_scheduler::LRScheduler> schedule;
  std::unique_ptr<optim::lr_scheduler::ReduceLROnPlateau> plateau;
  if (j.at("class") == "ReduceLROnPlateau")
    plateau = verify::make_plateau(j.at("args"), optimizer);
  else
    schedule = verify::make_schedule(j.at("class"), j.at("args"), optimizer);
  Comparison out;
  for (size_t row = 0; row < j.at("lr").size(); ++row) {
    for (size_t g = 0; g < groups.size(); ++g) {
      const optim::OptimizerOptions& o = optimizer.param_groups()[g].options();
      std::string where = " of group " + std::to_string(g) + " in step " + std::to_string(row);
      auto compare = [&](const char* what, double got, double expected) {
        out.number(what + where, got, expected, kTolerance * (std::abs(expected) + 1e-6));
      };
      compare("the rate", o.get_lr(), j["lr"][row][g]);
      if (j.contains("momentum")) compare("the momentum", o.get_momentum().value(), j["momentum"][row][g]);
    }
    if (plateau)
      plateau->step(j.at("metrics")[row]);
    else if (row + 1 < j["lr"].size())
      schedule->step();
  }
  return out;
}

class Report {
 public:
  explicit Report(const Options& o) : o_(o) {}
  void pass(const std::string& name, const std::string& detail) {
    ++passed_;
    if (o_.verbose && !o_.json) std::printf("%s: passed%s\n", name.c_str(), detail.c_str());
  }
  void fail(const std::string& name, const std::string& reason) {
    ++failed_;
    failures_.push_back({{"case", name}, {"reason", reason}});
    if (!o_.json) std::printf("%s: %s\n", name.c_str(), reason.c_str());
  }
  int finish() const {
    if (o_.json)
      std::printf("%s\n", json({{"backend", o_.backend},
                                {"device", o_.device},
                                {"passed", passed_},
                                {"failed", failed_},
                                {"skipped", 0},
                                {"failures", failures_}})
                              .dump()
                              .c_str());
    else
      std::printf("%d passed, %d failed, 0 skipped\n", passed_, failed_);
    return failed_ ? 1 : 0;
  }

 private:
  const Options& o_;
  int passed_ = 0, failed_ = 0;
  json failures_ = json::array();
};

std::string percent(const char* what, const Comparison& c) {
  char text[64];
  std::snprintf(text, sizeof text, " %s %.2g%%", what, 100 * c.worst());
  return text;
}

// Exit status 1 if anything failed.
int verify_training(const Options& o) {
  std::vector<std::string> known = list_backends();
  if (std::find(known.begin(), known.end(), o.backend) == known.end())
    throw Error("there is no backend '" + o.backend + "' to verify");
  set_default_device(Device(o.device));
  std::vector<std::string> cases;
  for (const auto& entry : std::filesystem::directory_iterator(o.folder))
    if (entry.path().extension() == ".json" && entry.path().stem() != "schedulers")
      cases.push_back(entry.path().stem());
  std::sort(cases.begin(), cases.end());
  if (cases.empty()) throw Error("there are no training references in '" + o.folder + "'");
  Report report(o);
  for (const std::string& name : cases) {
    if (!o.wanted(name)) continue;
    try {
      std::filesystem::path stem = std::filesystem::path(o.folder) / name;
      safetensors::File file = safetensors::File::open(stem.string() + ".safetensors");
      Outcome got = run_case(read_json(stem.string() + ".json"), file, o.backend);
      std::string wrong;
      for (const Comparison* c : {&got.losses, &got.gradients, &got.weights, &got.state})
        if (!c->passed()) wrong += (wrong.empty() ? "" : "; ") + c->where();
      if (wrong.empty())
        report.pass(name, ", of the tolerance:" + percent("losses", got.losses) + percent("gradients", got.gradients) +
                              percent("weights", got.weights) + percent("state", got.state));
      else
        report.fail(name, wrong);
    } catch (const std::exception& e) {
      report.fail(name, std::string("throws: ") + e.what());
    }
  }
  std::filesystem::path schedules = std::filesystem::path(o.folder) / "schedulers.json";
  if (std::filesystem::exists(schedules))
    for (const json& j : read_json(schedules.string())) {
      std::string name = j.at("name");
      if (!o.wanted(name)) continue;
      try {
        Comparison c = run_schedule(j);
        if (c.passed())
          report.pass(name, "");
        else
          report.fail(name, c.where());
      } catch (const std::exception& e) {
        report.fail(name, std::string("throws: ") + e.what());
      }
    }
  return report.finish();
}

}  // namespace

void add_verify_training(CLI::App& verify) {
  auto* sub = verify.add_subcommand("training", "Training step for step, against a folder of references");
  auto options = std::make_shared<Options>();
  sub->add_option("folder", options->folder, "Folder with a JSON and a safetensors file a case, and schedulers.json")
      ->required();
  sub->add_option("--backend", options->backend,
                  "'eager' runs the steps as they are, every other one under brasa::compile")
      ->capture_default_str();
  sub->add_option("--device", options->device, "Where their tensors live: cpu, emu, cuda, cuda:1")
      ->capture_default_str();
  sub->add_option("--only", options->only, "Cases, as 'vit_adamw' or 'OneCycleLR_0'");
  sub->add_flag("--json", options->json, "One line of JSON");
  sub->add_flag("-v,--verbose", options->verbose, "A line for each case, with its largest differences");
  sub->callback([options] {
    if (int status = verify_training(*options)) throw CLI::RuntimeError(status);
  });
}

}  // namespace brasa::tool
