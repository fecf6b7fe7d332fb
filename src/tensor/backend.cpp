#include <string_view>

#include "compiler/compile.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/settings.h"
#include "tensor/execute_call.h"

namespace brasa::eager {

std::shared_ptr<compiler::Executable> executable_of(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device) {
  static constinit Lazy<bool> interpreted([] {
    const char* name = environment("BRASA_EAGER_BACKEND");
    std::string_view backend = name ? name : "inductor";
    BRASA_CHECK(backend == "inductor" || backend == "interpreter",
                "BRASA_EAGER_BACKEND: expected inductor or interpreter, got '", backend, "'");
    return backend == "interpreter";
  });
  if (*interpreted) return compiler::interpret(graph, &device);
  compiler::CompilerOptions options;
  options.device = &device;
  options.size_classes = true;
  return compiler::compile(graph, facts, options);
}

}  // namespace brasa::eager
