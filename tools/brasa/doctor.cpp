#include <brasa/doctor.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"

namespace brasa::tool {
namespace {

const char* word(Finding::State state) {
  switch (state) {
    case Finding::State::Found: return "found";
    case Finding::State::Missing: return "missing";
    default: return "unusable";
  }
}

void show_json(const std::vector<Finding>& findings) {
  nlohmann::json all = nlohmann::json::array();
  for (const Finding& f : findings)
    all.push_back({{"area", f.area},
                   {"name", f.name},
                   {"state", word(f.state)},
                   {"value", f.value},
                   {"where", f.where},
                   {"advice", f.advice}});
  std::printf("%s\n", all.dump().c_str());
}

void show(const std::vector<Finding>& findings) {
  std::string area;
  for (const Finding& f : findings) {
    if (f.area != area) std::printf("%s%s\n", area.empty() ? "" : "\n", f.area.c_str());
    area = f.area;
    std::printf("  %-8s  %-14s  %s\n", word(f.state), f.name.c_str(), f.value.c_str());
    constexpr const char* kIndent = "                            ";
    if (!f.where.empty()) std::printf("%s%s\n", kIndent, f.where.c_str());
    if (!f.advice.empty()) std::printf("%s-> %s\n", kIndent, f.advice.c_str());
  }
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* c =
      app.add_subcommand("doctor", "What of this machine Brasa can use, what is missing, and what to do about it");
  c->footer(
      "Examples:\n"
      "  brasa doctor\n"
      "  brasa doctor --json | python3 -m json.tool\n"
      "  BRASA_CUDA_LIBRARIES=/opt/cuda/lib64 brasa doctor");
  auto json = std::make_shared<bool>(false);
  c->add_flag("--json", *json, "as JSON: a list of area, name, state (found, missing, unusable), value, where, advice");
  c->callback([json] { *json ? show_json(examine()) : show(examine()); });
}

}  // namespace brasa::tool
