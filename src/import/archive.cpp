#include "import/archive.h"

#include <brasa/pickle.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "import/types.h"
#include "io/stored_tensor.h"
#include "io/zip.h"
#include "support/error.h"
#include "support/mapped_file.h"

namespace brasa::import {
namespace {

using Json = nlohmann::ordered_json;  // the order of the file is that of the parameters
using Tensors = std::vector<std::pair<std::string, Tensor>>;

class Reader {
 public:
  explicit Reader(const std::string& path) : file_(map_file(path)), zip_(file_.bytes, path), source_(path) {}

  Archive read(bool tensors) {
    Archive out;
    if (zip_.has("serialized_exported_program.json")) {
      out.program = zip_.text("serialized_exported_program.json");
      if (!tensors) return out;
      out.weights = checkpoint("serialized_state_dict.pt");
      out.constants = checkpoint("serialized_constants.pt");
      if (zip_.has("serialized_example_inputs.pt")) out.example_inputs = zip_.text("serialized_example_inputs.pt");
      return out;
    }
    BRASA_CHECK(!zip_.names().empty(), source_, ": an empty archive");
    folder_ = zip_.names()[0].substr(0, zip_.names()[0].find('/') + 1);
    std::string model = only_model();
    out.program = zip_.text(folder_ + "models/" + model + ".json");
    if (!tensors) return out;
    out.weights = group("data/weights/", model, "_weights_config.json");
    out.constants = group("data/constants/", model, "_constants_config.json");
    std::string inputs = str(folder_, "data/sample_inputs/", model, ".pt");
    if (zip_.has(inputs)) out.example_inputs = zip_.text(inputs);
    return out;
  }

 private:
  std::string only_model() const {
    std::vector<std::string> found;
    std::string prefix = folder_ + "models/";
    for (const std::string& name : zip_.names())
      if (name.starts_with(prefix) && name.ends_with(".json"))
        found.push_back(name.substr(prefix.size(), name.size() - prefix.size() - 5));
    BRASA_CHECK(!found.empty() || !zip_.has(folder_ + "constants.pkl"), source_,
                ": a TorchScript archive, whose code Brasa does not run; load_tensors gives its tensors, and Python's "
                "torch.export writes what can be run");
    BRASA_CHECK(!found.empty(), source_, ": no exported model: the archive has no '", prefix, "….json'");
    BRASA_CHECK(found.size() == 1, source_, ": the archive has several models: ", found);
    return found[0];
  }

  Tensors group(const std::string& part, const std::string& model, const char* config) {
    std::string name = folder_ + part + model + config;
    return zip_.has(name) ? records(part, name) : checkpoint(folder_ + part + model + ".pt");
  }

  // A dictionary of tensors as torch.save writes it.
  Tensors checkpoint(const std::string& name) const {
    pickle::Value value = parsed(name);
    BRASA_CHECK(value.is_dict(), source_, ": ", name, " is a ", value.kind_name(), ", not a dictionary of tensors");
    Tensors out;
    for (const auto& [key, item] : value.pairs()) {
      BRASA_CHECK(key.is_string() && item.is_tensor(), source_, ": ", name, " is no dictionary of tensors");
      out.emplace_back(key.text(), item.to_tensor());
    }
    return out;
  }
  pickle::Value parsed(const std::string& name) const {
    std::vector<std::byte> inflated;
    std::span<const std::byte> bytes = zip_.read(name, inflated);
    return pickle::parse(bytes, source_ + ": " + name);
  }

  // {"config": {name: {"path_name", "is_param", "use_pickle", "tensor_meta"}}}
  Tensors records(const std::string& part, const std::string& config) {
    Json j = Json::parse(zip_.text(config), nullptr, /*allow_exceptions=*/false);
    BRASA_CHECK(j.is_object() && j.contains("config") && j["config"].is_object(), source_, ": ", config,
                " is malformed");
    Tensors out;
    std::map<std::string, StorageRef> storages;
    std::map<std::string, Tensor> same;  // by storage and place
    for (const auto& [name, item] : j["config"].items()) {
      std::string where = str(source_, ": tensor '", name, "'");
      try {
        std::string record = folder_ + part + item.at("path_name").get<std::string>();
        if (item.value("use_pickle", false)) {
          out.emplace_back(name, parsed(record).to_tensor());
          continue;
        }
        const Json& meta = item.at("tensor_meta");
        io::Placement place{stored_dtype_of_archive(meta.at("dtype").get<int64_t>(), source_),
                            meta.at("storage_offset").at("as_int").get<int64_t>(), sizes(meta.at("sizes")),
                            sizes(meta.at("strides"))};
        BRASA_CHECK(brasa::name(place.dtype.as) == place.dtype.name, where, " is of dtype ", place.dtype.name,
                    ", which Brasa has not");
        if (!storages.contains(record)) storages[record] = storage(record, place, where);
        Tensor& t = same[str(record, place.offset, place.sizes, place.strides, place.dtype.name)];
        if (!t.defined()) {
          t = io::tensor_in(storages[record], place, where);
          if (meta.value("requires_grad", false)) t.set_requires_grad(true);
        }
        out.emplace_back(name, t);
      } catch (const Json::exception& e) {
        fail(str(where, ": ", config, " is malformed: ", e.what()));
      }
    }
    return out;
  }

  // An export of fake tensors has records without bytes: their elements are 0.
  StorageRef storage(const std::string& record, const io::Placement& place, const std::string& where) const {
    std::vector<std::byte> inflated;
    std::span<const std::byte> bytes = zip_.read(record, inflated);
    bool empty = std::find(place.sizes.begin(), place.sizes.end(), 0) != place.sizes.end();
    BRASA_CHECK(!bytes.empty() || empty, where, ": the archive does not hold its values");
    return io::storage_of(bytes);
  }

  static std::vector<int64_t> sizes(const Json& list) {
    std::vector<int64_t> out;
    for (const Json& size : list) out.push_back(size.at("as_int").get<int64_t>());
    return out;
  }

  MappedFile file_;
  io::ZipReader zip_;
  std::string source_, folder_;
};

}  // namespace

Archive read_archive(const std::string& path, bool tensors) { return Reader(path).read(tensors); }

}  // namespace brasa::import
