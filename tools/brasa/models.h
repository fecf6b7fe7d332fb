#pragma once

#include <functional>
#include <string>
#include <vector>

#include <brasa/import.h>
#include <brasa/safetensors.h>

namespace brasa::tool {

using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// The module's call. Gradients are recorded only where they are wanted: to programs which change their weights that would be an error.
Run call_of(const io::ExportedModule& module, bool gradients = false);
/// How a module is called: by itself with "eager", else compiled for that backend.
Run runner(const io::ExportedModule& module, const std::string& backend, bool gradients = false);
/// The inputs "in0", "in1", … of a file.
std::vector<Tensor> inputs_of(const safetensors::File& file, const io::ExportedModule& module);
/// Those of a file, or, where `path` is empty, inputs of the sizes that the export had, drawn on the default device: normally
/// distributed; integers and bools 0 or 1, which any table has; a number 2.
std::vector<Tensor> inputs_from(const std::string& path, const io::ExportedModule& module);

}  // namespace brasa::tool
