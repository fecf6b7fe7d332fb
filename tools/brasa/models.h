#pragma once

#include <functional>
#include <string>
#include <vector>

#include <brasa/import.h>
#include <brasa/safetensors.h>

namespace brasa::tool {

using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// How a module is called: by itself with "eager", else compiled for that backend.
Run runner(const io::ExportedModule& module, const std::string& backend);
/// The inputs "in0", "in1", … of a file.
std::vector<Tensor> inputs_of(const safetensors::File& file, const io::ExportedModule& module);

}  // namespace brasa::tool
