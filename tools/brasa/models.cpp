#include "models.h"

#include "files.h"

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/error.h>

namespace brasa::tool {

Run call_of(const io::ExportedModule& module, bool gradients) {
  return [module, gradients](const std::vector<Tensor>& inputs) {
    AutoGradMode mode(gradients);
    return module.ptr()->forward(inputs);
  };
}

Run runner(const io::ExportedModule& module, const std::string& backend, bool gradients) {
  Run call = call_of(module, gradients);
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

std::vector<Tensor> inputs_from(const std::string& path, const io::ExportedModule& module) {
  if (!path.empty()) return inputs_of(safetensors::File::open(path), module);
  std::vector<Tensor> out;
  for (const io::ProgramInput& input : module->input_types()) {
    std::vector<int64_t> sizes;
    for (const io::ProgramInput::Size& size : input.sizes) sizes.push_back(size.example);
    bool real = input.dtype && (is_floating(*input.dtype) || is_complex(*input.dtype));
    Tensor values = real ? randn(sizes) : input.dtype ? randint(2, sizes, kInt64) : full({}, 2, kInt64);
    out.push_back(input.dtype ? values.to(*input.dtype) : values);
  }
  return out;
}

}  // namespace brasa::tool
