#pragma once

#include <concepts>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <brasa/ordered_dict.h>
#include <brasa/safetensors.h>
#include <brasa/serialize/archive.h>

/// `save(model, "net.safetensors")`, `load(model, "net.safetensors")`; also optimizers, single tensors, lists and dictionaries of them.
namespace brasa {

using TensorDict = std::map<std::string, Tensor>;

/// Tensors by name, each with memory of its own, and the file's metadata. brasa::Error for a file that breaks the format or has a
/// dtype that Brasa has not.
BRASA_API TensorDict load_tensors(const std::string& path, safetensors::Metadata* metadata = nullptr);
/// The tensors' values; views become contiguous. brasa::Error for what cannot be written.
BRASA_API void save_tensors(const TensorDict& tensors, const std::string& path,
                            const safetensors::Metadata& metadata = {});

/// Anything that has `archive << value`: modules and their holders, optimizers.
template <class T>
  requires requires(serialize::OutputArchive& archive, const T& value) { archive << value; }
void save(const T& value, const std::string& path) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(path);
}
template <class T>
  requires requires(serialize::InputArchive& archive, T& value) { archive >> value; }
void load(T& value, const std::string& path, std::optional<Device> device = std::nullopt) {
  serialize::InputArchive archive;
  archive.load_from(path, device);
  archive >> value;
}

// A tensor is stored under the name "0", those of a list under their index.
BRASA_API void save(const Tensor& tensor, const std::string& path);
BRASA_API void load(Tensor& tensor, const std::string& path, std::optional<Device> device = std::nullopt);
BRASA_API void save(const std::vector<Tensor>& tensors, const std::string& path);
BRASA_API void load(std::vector<Tensor>& tensors, const std::string& path, std::optional<Device> device = std::nullopt);
BRASA_API void save(const OrderedDict<std::string, Tensor>& tensors, const std::string& path);

}  // namespace brasa
