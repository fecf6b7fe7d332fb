#include "capture/backend.h"

#include <map>
#include <mutex>

#include "capture/stepwise.h"
#include "compiler/compile.h"
#include "ops/decompose.h"
#include "support/error.h"

namespace brasa::capture {
namespace {

std::shared_ptr<compiler::Executable> inductor(const ir::Graph& graph, ir::Facts& facts, const CompileOptions&) {
  return compiler::compile(graph, facts, {});
}

std::shared_ptr<compiler::Executable> inductor_cuda(const ir::Graph& graph, ir::Facts& facts, const CompileOptions&) {
  compiler::CompileOptions options;
  options.device = "cuda";
  return compiler::compile(graph, facts, options);
}

struct Registry {
  std::mutex mutex;
  std::map<std::string, Backend> backends = {
      {"inductor", inductor},
      {"inductor-cuda", inductor_cuda},
      {"interpreter", [](const ir::Graph& g, ir::Facts&, const CompileOptions&) { return compiler::interpret(g); }},
      {"eager", [](const ir::Graph& g, ir::Facts& facts, const CompileOptions&) { return run_stepwise(g, facts); }},
      {"aot_eager", [](const ir::Graph& g, ir::Facts& facts,
                       const CompileOptions&) { return run_stepwise(*ops::decompose(g, facts), facts); }},
  };
  static Registry& get() {
    static Registry* r = new Registry;
    return *r;
  }
};

}  // namespace

Backend find_backend(const std::string& name) {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  auto it = r.backends.find(name);
  if (it != r.backends.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, backend] : r.backends) names.push_back(known);
  fail(str("compile: there is no backend '", name, "'; there are ", names));
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
