#include "tensor/backend.h"

#include <string_view>

#include "compiler/compile.h"
#include "support/error.h"
#include "support/settings.h"

namespace brasa::eager {

std::shared_ptr<compiler::Executable> executable_of(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device,
                                                    std::vector<bool> by_value) {
  static const bool interpreted = [] {
    const char* name = environment("BRASA_EAGER_BACKEND");
    std::string_view backend = name ? name : "inductor";
    BRASA_CHECK(backend == "inductor" || backend == "interpreter",
                "BRASA_EAGER_BACKEND: expected inductor or interpreter, got '", backend, "'");
    return backend == "interpreter";
  }();
  if (interpreted) return compiler::interpret(graph, &device, std::move(by_value));
  compiler::CompileOptions options;
  options.device = &device;
  options.by_value = std::move(by_value);
  return compiler::compile(graph, facts, options);
}

}  // namespace brasa::eager
