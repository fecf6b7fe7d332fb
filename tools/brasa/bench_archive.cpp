#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "bench_workloads.h"
#include "models.h"

namespace brasa::tool {

Workload archive(const std::string& path, const std::string& inputs) {
  return {path, "an exported program", [=](const std::string& mode) -> Prepared {
            io::ExportedModule module = io::load_pt2(path, {.device = get_default_device()});
            Run call = call_of(module);
            if (mode != "eager") call = compile(call, {.mode = mode});
            int64_t parameters = 0;
            for (const Tensor& p : module->parameters()) parameters += p.numel();
            return {[call, values = inputs_from(inputs, module)] { (void)call(values); }, parameters, nullptr};
          }};
}

}  // namespace brasa::tool
