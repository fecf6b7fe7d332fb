#include "io/tensors.h"

#include <brasa/pickle.h>
#include <brasa/serialize.h>

#include "io/stored_tensor.h"
#include "io/zip.h"
#include "support/error.h"
#include "support/json.h"
#include "support/mapped_file.h"
#include "tensor/geometry.h"

// The tensors of a file by name, whatever its format.
namespace brasa {

namespace io {

Tensor tensor_of(const safetensors::Entry& entry, const std::string& source, const std::shared_ptr<const void>& owner) {
  BRASA_CHECK(entry.dtype, source, ": tensor '", entry.name, "' is of dtype ", entry.format, ", which Brasa has not");
  Sizes sizes{std::span<const int64_t>(entry.shape)};
  return make_tensor(storage_of(entry.data, owner), *entry.dtype, sizes, row_major_strides(entry.shape), 0);
}

}  // namespace io

namespace {

bool ends_with_index(const std::string& path) { return path.ends_with(".json"); }

class Reader {
 public:
  Reader(bool mapped, safetensors::Metadata* metadata) : mapped_(mapped), metadata_(metadata) {}

  TensorDict read(const std::string& path) const {
    if (ends_with_index(path)) return read_index(path);
    MappedFile file = map_file(path);
    return io::looks_like_checkpoint(file.bytes) ? read_checkpoint(path, file.bytes.size())
                                                 : read_safetensors(file, path);
  }

 private:
  TensorDict read_safetensors(const MappedFile& mapped, const std::string& path) const {
    safetensors::File file = safetensors::File::parse(mapped.bytes, path);
    TensorDict out;
    for (const safetensors::Entry& entry : file.entries())
      out.emplace(entry.name, io::tensor_of(entry, path, mapped_ ? mapped.owner : nullptr));
    if (metadata_) metadata_->insert(file.metadata().begin(), file.metadata().end());
    return out;
  }

  TensorDict read_checkpoint(const std::string& path, size_t file_bytes) const {
    pickle::Value value = mapped_ ? pickle::map(path) : pickle::load(path);
    if (value.kind() == pickle::Value::Kind::Object) return io::contents_of_value(value, file_bytes, path).tensors;
    BRASA_CHECK(value.is_dict(), path, ": the checkpoint is a ", value.kind_name(), ", not a dictionary of tensors");
    TensorDict out;
    for (const auto& [key, item] : value.pairs()) {
      BRASA_CHECK(key.is_string(), path, ": a key of the checkpoint is a ", key.kind_name(), ", not a name");
      BRASA_CHECK(item.is_tensor(), path, ": '", key.text(), "' is a ", item.kind_name(),
                  ", not a tensor; brasa::pickle::load reads checkpoints of all kinds");
      out.emplace(key.text(), item.to_tensor());
    }
    return out;
  }

  // {"weight_map": {name: file}}; the files lie beside the index.
  TensorDict read_index(const std::string& path) const {
    MappedFile mapped = map_file(path);
    nlohmann::json index =
        parse_json({reinterpret_cast<const char*>(mapped.bytes.data()), mapped.bytes.size()}, path, 8);
    BRASA_CHECK(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(), path,
                ": no index of safetensors files: no 'weight_map'");
    std::string folder = path.substr(0, path.rfind('/') + 1);
    std::map<std::string, TensorDict> shards;
    TensorDict out;
    for (const auto& [name, file] : index["weight_map"].items()) {
      BRASA_CHECK(file.is_string(), path, ": the file of '", name, "' is no name");
      const auto& shard = file.get_ref<const std::string&>();
      BRASA_CHECK(!shard.empty() && shard.find('/') == shard.npos && !ends_with_index(shard), path, ": '", shard,
                  "' is no name of a file beside the index");
      auto [at, fresh] = shards.try_emplace(shard);
      if (fresh) at->second = read(folder + shard);
      auto tensor = at->second.find(name);
      BRASA_CHECK(tensor != at->second.end(), path, ": there is no tensor '", name, "' in ", shard);
      out.emplace(name, tensor->second);
    }
    return out;
  }

  bool mapped_;
  safetensors::Metadata* metadata_;
};

}  // namespace

TensorDict load_tensors(const std::string& path, safetensors::Metadata* metadata) {
  return Reader(false, metadata).read(path);
}
TensorDict map_tensors(const std::string& path, safetensors::Metadata* metadata) {
  return Reader(true, metadata).read(path);
}

}  // namespace brasa
