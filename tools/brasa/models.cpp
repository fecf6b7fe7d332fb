#include "models.h"

#include "files.h"

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/error.h>

namespace brasa::tool {

Run runner(const io::ExportedModule& module, const std::string& backend) {
  // The programs themselves say where gradients begin; to others, which change their weights, recording them would be an error.
  auto call = [module](const std::vector<Tensor>& inputs) {
    NoGradGuard no_grad;
    return module.ptr()->forward(inputs);
  };
  if (backend == "eager") return call;
  auto compiled = compile(call, {.backend = backend});
  return [compiled](const std::vector<Tensor>& inputs) { return compiled(inputs); };
}

std::vector<Tensor> inputs_of(const safetensors::File& file, const io::ExportedModule& module) {
  std::vector<std::optional<DType>> dtypes = module->input_dtypes();
  std::vector<Tensor> out;
  for (size_t i = 0; const safetensors::Entry* entry = file.find("in" + std::to_string(i)); ++i)
    out.push_back(tensor_of(*entry, i < dtypes.size() ? dtypes[i] : std::nullopt));
  return out;
}

}  // namespace brasa::tool
