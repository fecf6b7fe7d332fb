#include <brasa/serialize.h>

#include <cstring>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa {
namespace {

Tensor read(const safetensors::Entry& entry, const std::string& source) {
  BRASA_CHECK(entry.dtype, source, ": tensor '", entry.name, "' is of dtype ", entry.format, ", which Brasa has not");
  Tensor t = empty(entry.shape, *entry.dtype);
  if (!entry.data.empty()) std::memcpy(t.mutable_data_ptr(), entry.data.data(), entry.data.size());
  return t;
}

}  // namespace

TensorDict load_tensors(const std::string& path, safetensors::Metadata* metadata) {
  safetensors::File file = safetensors::File::open(path);
  TensorDict out;
  for (const safetensors::Entry& entry : file.entries()) out.emplace(entry.name, read(entry, path));
  if (metadata) *metadata = file.metadata();
  return out;
}

void save_tensors(const TensorDict& tensors, const std::string& path, const safetensors::Metadata& metadata) {
  std::vector<Tensor> held;
  std::vector<safetensors::Entry> entries;
  for (const auto& [name, tensor] : tensors) {
    BRASA_CHECK(tensor.defined(), path, ": tensor '", name, "' is undefined");
    held.push_back(tensor.detach().cpu().contiguous());
    const Tensor& t = held.back();
    entries.push_back(
        {name, "", t.scalar_type(), t.sizes().vec(), {static_cast<const std::byte*>(t.const_data_ptr()), t.nbytes()}});
  }
  safetensors::write(path, entries, metadata);
}

namespace serialize {

void OutputArchive::save_to(const std::string& filename) const {
  save_tensors(contents_.tensors, filename, contents_.texts);
}

void InputArchive::load_from(const std::string& filename, std::optional<Device> device) {
  auto contents = std::make_shared<Contents>();
  contents->tensors = load_tensors(filename, &contents->texts);
  if (device)
    for (auto& [name, tensor] : contents->tensors) tensor = tensor.to(*device);
  contents_ = std::move(contents);
  prefix_.clear();
  source_ = filename;
}

}  // namespace serialize

void save(const Tensor& tensor, const std::string& path) { save_tensors({{"0", tensor}}, path); }

void load(Tensor& tensor, const std::string& path, std::optional<Device> device) {
  std::vector<Tensor> tensors;
  load(tensors, path, device);
  BRASA_CHECK(tensors.size() == 1, path, ": expected one tensor, found ", tensors.size());
  tensor = tensors[0];
}

void save(const std::vector<Tensor>& tensors, const std::string& path) {
  TensorDict dict;
  for (size_t i = 0; i < tensors.size(); ++i) dict.emplace(std::to_string(i), tensors[i]);
  save_tensors(dict, path);
}

void load(std::vector<Tensor>& tensors, const std::string& path, std::optional<Device> device) {
  TensorDict dict = load_tensors(path);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dict.size(); ++i) {
    auto it = dict.find(std::to_string(i));
    BRASA_CHECK(it != dict.end(), path, ": it is no list of tensors: among its ", dict.size(), " there is none named '",
                i, "'");
    out.push_back(device ? it->second.to(*device) : it->second);
  }
  tensors = std::move(out);
}

void save(const OrderedDict<std::string, Tensor>& tensors, const std::string& path) {
  TensorDict dict;
  for (const auto& item : tensors) dict.emplace(item.key(), item.value());
  save_tensors(dict, path);
}

}  // namespace brasa
