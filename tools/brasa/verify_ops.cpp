#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include <brasa/call.h>
#include <brasa/device.h>
#include <brasa/error.h>

#include "commands.h"
#include "compare.h"
#include "files.h"
#include "gauge.h"
#include "run_ops.h"

namespace brasa::tool {
namespace {

using Options = VerifyOptions;

struct Count {
  int passed = 0, failed = 0, skipped = 0;
};

void show(const char* what, const std::vector<std::optional<verify::Array>>& arrays) {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i]) std::printf("    %s %zu: %s\n", what, i, verify::describe(*arrays[i], 64).c_str());
}

void show(const verify::Entry& e, const verify::Outcome& got) {
  for (size_t i = 0; i < e.tensors.size(); ++i)
    std::printf("    tensor %zu: %s\n", i, verify::describe(e.tensors[i], 64).c_str());
  show("result", got.outputs);
  show("expected result", e.outputs);
  show("cotangent", e.cotangents);
  show("gradient", got.gradients);
  show("expected gradient", e.gradients);
}

bool wanted(const Options& o, const std::string& overload) {
  if (o.only.empty()) return true;
  for (const std::string& name : o.only)
    if (overload == name || overload == "aten." + name || overload.starts_with("aten." + name + ".")) return true;
  return false;
}

// Exit status 1 if anything failed.
int verify_ops(const Options& o) {
  std::vector<std::string> known = verify::backends();
  if (std::find(known.begin(), known.end(), o.backend) == known.end())
    throw Error("there is no backend '" + o.backend + "' to verify");
  set_default_device(Device(o.device));
  Count all;
  nlohmann::json failures = nlohmann::json::array();
  std::map<std::string, int> missing;
  for (auto& [overload, card] : verify::read_cards(o.folder)) {
    if (!wanted(o, overload)) continue;
    verify::VectorFile vectors(o.folder + "/" + overload);
    std::string op = verify::operator_name(overload);
    bool present = has_operator(op);
    for (size_t i = 0; i < vectors.size(); ++i) {
      if (!present) {
        ++all.skipped;
        ++missing[overload];
        continue;
      }
      std::optional<std::string> wrong;
      verify::Entry entry;
      verify::Outcome outcome;
      try {
        entry = vectors.entry(i);
        outcome = verify::run(op, entry, o.backend);
        wrong = entry.raises ? "is accepted, expected " + *entry.raises : verify::check(entry, outcome, card);
        if (wrong && !entry.raises)
          if (auto same = verify::in_basis_of(overload, entry, outcome)) {
            if (!same->cotangents.empty()) outcome = verify::run(op, *same, o.backend);
            wrong = verify::check(*same, outcome, card);
          }
      } catch (const verify::Unsupported&) {
        ++all.skipped;
        continue;
      } catch (const Error& e) {
        if (!entry.raises) wrong = std::string("throws: ") + e.what();
      } catch (const std::exception& e) {
        wrong = std::string("throws: ") + e.what();
      }
      if (!wrong) {
        ++all.passed;
        continue;
      }
      ++all.failed;
      if (o.json) {
        failures.push_back({{"overload", overload}, {"entry", i}, {"reason", *wrong}});
      } else {
        std::printf("%s entry %zu: %s\n", overload.c_str(), i, wrong->c_str());
        if (o.verbose) show(entry, outcome);
      }
    }
  }
  if (o.json) {
    nlohmann::json j = {{"backend", o.backend},
                        {"device", o.device},
                        {"passed", all.passed},
                        {"failed", all.failed},
                        {"skipped", all.skipped},
                        {"failures", failures},
                        {"missing", nlohmann::json::array()}};
    for (auto& [name, n] : missing) j["missing"].push_back(name);
    std::printf("%s\n", j.dump().c_str());
  } else {
    if (o.verbose && !missing.empty()) {
      std::printf("not there yet:");
      for (auto& [name, n] : missing) std::printf(" %s", name.c_str());
      std::printf("\n");
    }
    std::printf("%d passed, %d failed, %d skipped\n", all.passed, all.failed, all.skipped);
  }
  return all.failed ? 1 : 0;
}

}  // namespace

void add_verify(CLI::App& app) {
  auto* verify = app.add_subcommand("verify", "Compares results with stored reference values");
  verify->footer(
      "Examples:\n  brasa verify ops DIR --backend inductor\n  brasa verify models DIR --backend eager --only bert");
  verify->require_subcommand(1);
  auto* sub = verify->add_subcommand("ops", "Operators and their gradients, against a folder of reference vectors");
  auto options = std::make_shared<Options>();
  std::string known;
  for (const std::string& name : verify::backends()) known += (known.empty() ? "" : ", ") + name;
  sub->add_option("folder", options->folder, "Folder with index.json and the vectors")->required();
  sub->add_option("--backend", options->backend, "What runs them: " + known)->capture_default_str();
  sub->add_option("--device", options->device, "Where their tensors live: cpu, emu, cuda, cuda:1")
      ->capture_default_str();
  sub->add_option("--only", options->only, "Operators or overloads, as 'gelu' or 'add.Tensor'");
  sub->add_flag("--json", options->json, "One line of JSON");
  sub->add_flag("-v,--verbose", options->verbose, "Shows the values of failures, and which operators are missing");
  sub->callback([options] {
    if (int status = verify_ops(*options)) throw CLI::RuntimeError(status);
  });
  add_verify_training(*verify);
  add_verify_checkpoints(*verify);
  add_verify_models(*verify);
}

}  // namespace brasa::tool
