#include "models.h"

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/error.h>

namespace brasa::tool {

Run runner(const io::ExportedModule& module, const std::string& backend) {
  auto call = [module](const std::vector<Tensor>& inputs) { return module.ptr()->forward(inputs); };
  if (backend == "eager") return call;
  auto compiled = compile(call, {.backend = backend});
  return [compiled](const std::vector<Tensor>& inputs) { return compiled(inputs); };
}

Tensor tensor_of(const safetensors::Entry& entry, std::optional<DType> dtype) {
  if (!entry.dtype) throw Error("tensor '" + entry.name + "' is of dtype " + entry.format + ", which Brasa has not");
  Tensor here = empty(entry.shape, *entry.dtype);
  if (!entry.data.empty()) here.copy_(from_blob(const_cast<std::byte*>(entry.data.data()), entry.shape, *entry.dtype));
  if (dtype && is_complex(*dtype) && !is_complex(*entry.dtype)) return view_as_complex(here);
  return here;
}

std::vector<Tensor> inputs_of(const safetensors::File& file, const io::ExportedModule& module) {
  std::vector<std::optional<DType>> dtypes = module->input_dtypes();
  std::vector<Tensor> out;
  for (size_t i = 0; const safetensors::Entry* entry = file.find("in" + std::to_string(i)); ++i)
    out.push_back(tensor_of(*entry, i < dtypes.size() ? dtypes[i] : std::nullopt));
  return out;
}

}  // namespace brasa::tool
