#include "capture/backend.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "capture/kept_values.h"
#include "capture/stepwise.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/nearest.h"
#include "support/settings.h"

namespace brasa::capture {
namespace {

std::shared_ptr<compiler::Executable> inductor(const ir::Graph& graph, ir::Facts& facts, const CompileOptions& given,
                                               runtime::Device& device, const Lasting& lasting) {
  compiler::CompilerOptions out;
  out.lasting = lasting;
  out.device = &device;
  if (traces_nan(given)) return run_stepwise(graph, facts, device, true);
  out.measure = given.mode.starts_with("max-autotune");
  if (auto given_seconds = given.options.find("tune_seconds"); given_seconds != given.options.end())
    out.tune_seconds = number_in(given_seconds->second).value_or(out.tune_seconds);
  out.join_products = out.measure && !memory_budget_of(given);
  out.keep_launches = given.mode == "reduce-overhead" || given.mode == "max-autotune";
  out.numbers = numbers_of(given);
  return compiler::compile(graph, facts, out);
}

struct Registry {
  Mutex mutex;
  std::map<std::string, Backend> backends = {
      {"inductor", inductor},
      {"interpreter", [](const ir::Graph& g, ir::Facts&, const CompileOptions&, runtime::Device& d,
                         const Lasting&) { return compiler::interpret(g, &d); }},
      {"eager", [](const ir::Graph& g, ir::Facts& facts, const CompileOptions&, runtime::Device& d,
                   const Lasting&) { return run_stepwise(g, facts, d); }},
      {"aot_eager", [](const ir::Graph& g, ir::Facts& facts, const CompileOptions&, runtime::Device& d,
                       const Lasting&) { return run_stepwise(*ops::decompose(g, facts), facts, d); }},
  };
  static Registry& get() {
    static constinit Lazy<Registry> r;
    return *r;
  }
};

}  // namespace

compiler::Numbers numbers_of(const CompileOptions& options) {
  auto given = options.options.find("numbers");
  return given != options.options.end() ? compiler::numbers_named(given->second) : compiler::default_numbers();
}

bool traces_nan(const CompileOptions& options) {
  auto given = options.options.find("trace_nan");
  return given != options.options.end() && given->second == "true";
}

bool is_built_in(const std::string& name) {
  static const char* const kNames[] = {"inductor", "interpreter", "eager", "aot_eager"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

void check_options(const CompileOptions& options) {
  if (options.backend.function || !is_built_in(options.backend)) return;
  check_compile_option("mode", options.mode);
  std::vector<std::string> known;
  if (options.backend == "inductor") known = compile_options("options[");
  for (const auto& [key, value] : options.options) {
    BRASA_CHECK(std::find(known.begin(), known.end(), key) != known.end(), "compile: backend '",
                static_cast<const std::string&>(options.backend), "' has no option '", key, "'",
                known.empty() ? "" : nearest(key, known));
    check_compile_option("options[" + key + "]", value);
  }
  double budget = memory_budget_of(options).value_or(1);
  BRASA_CHECK(budget >= 0 && budget <= 1, "compile: options[memory_budget] is ", budget, ", expected 0 to 1");
}

Backend find_backend(const std::string& name) {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  auto it = r.backends.find(name);
  if (it != r.backends.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, backend] : r.backends) names.push_back(known);
  fail(str("compile: there is no backend '", name, "'", nearest(name, names)));
}

std::vector<std::string> backend_names() {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  std::vector<std::string> names;
  for (const auto& [name, backend] : r.backends) names.push_back(name);
  return names;
}

void register_backend(std::string name, Backend backend) {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.backends.insert_or_assign(std::move(name), std::move(backend));
}

}  // namespace brasa::capture
