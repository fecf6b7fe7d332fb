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
/// A tensor of the file on the default device; pairs of a real dtype become complex numbers where `dtype` is complex.
Tensor tensor_of(const safetensors::Entry& entry, std::optional<DType> dtype);
/// The inputs "in0", "in1", … of a file.
std::vector<Tensor> inputs_of(const safetensors::File& file, const io::ExportedModule& module);

}  // namespace brasa::tool
