#include <string_view>

#include "compiler/compile.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/log.h"
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
  options.size_classes = ir::SizeClasses::apart();
  return compiler::compile(graph, facts, options);
}

void note_compiled(const Computation& computation, const program::VariantKey& key,
                   std::span<const compiler::Operand> operands, bool for_all) {
  if (!logs("recompiles")) return;
  std::vector<ir::Fact> failed = program::VariantCache::get().failed(key, operands);
  std::string line = str("eager ", computation.name(), ":");
  for (const ir::Fact& f : failed) line += str(&f == failed.data() ? " " : ", ", f);
  line += failed.empty() ? " nothing is compiled for" : failed.size() == 1 ? " does not hold for" : " do not hold for";
  for (const compiler::Operand& o : operands)
    line += str(" ", short_name(o.dtype), IntArrayRef(o.sizes.data(), o.sizes.size()));
  log_line("recompiles", for_all ? line + ", and all other sizes" : line);
}

}  // namespace brasa::eager
