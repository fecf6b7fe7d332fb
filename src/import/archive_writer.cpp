#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include <brasa/pickle.h>

#include "import/archive.h"
#include "import/types.h"
#include "io/zip.h"
#include "support/output_file.h"
#include "support/str.h"

namespace brasa::import {
namespace {

using Json = nlohmann::ordered_json;

Json sizes_json(IntArrayRef sizes) {
  Json out = Json::array();
  for (int64_t n : sizes) out.push_back({{"as_int", n}});
  return out;
}

void write_records(io::ZipWriter& zip, const std::string& folder, const char* prefix,
                   const std::vector<Record>& records) {
  Json config = Json::object();
  // What is one tensor under several names is one file, as PyTorch has it: so it is one again when it is read.
  std::map<std::tuple<const void*, DType, std::vector<int64_t>, std::vector<int64_t>>, size_t> written;
  for (size_t i = 0; i < records.size(); ++i) {
    const Tensor& stored = records[i].tensor;
    auto [at, fresh] =
        written.try_emplace({stored.data_ptr(), stored.scalar_type(), stored.sizes().vec(), stored.strides().vec()}, i);
    Tensor t = stored.detach().cpu().contiguous();
    config[records[i].name] = {{"path_name", str(prefix, at->second)},
                               {"is_param", records[i].parameter},
                               {"use_pickle", false},
                               {"tensor_meta",
                                {{"dtype", archive_number_of(t.scalar_type())},
                                 {"sizes", sizes_json(t.sizes())},
                                 {"requires_grad", stored.requires_grad()},
                                 {"device", {{"type", "cpu"}, {"index", nullptr}}},
                                 {"strides", sizes_json(t.strides())},
                                 {"storage_offset", {{"as_int", 0}}},
                                 {"layout", archive_number_of(kStrided)}}}};
    if (fresh)
      zip.add(str("model/data/", folder, "/", prefix, i),
              {static_cast<const std::byte*>(t.data_ptr()), static_cast<size_t>(t.numel() * t.element_size())});
  }
  zip.add(str("model/data/", folder, "/model_", folder, "_config.json"), Json{{"config", config}}.dump());
}

}  // namespace

void write_archive(const std::string& path, const std::string& program, const std::vector<Record>& weights,
                   const std::vector<Record>& constants, const std::string& example_inputs) {
  OutputFile file(path);
  io::ZipWriter zip([&](const void* data, size_t size) { file.write(data, size); });
  zip.add("model/archive_format", "pt2");
  zip.add("model/models/model.json", program);
  write_records(zip, "weights", "weight_", weights);
  write_records(zip, "constants", "tensor_", constants);
  zip.add("model/data/sample_inputs/model.pt", example_inputs);
  zip.add("model/byteorder", "little");
  zip.add("model/.data/version", "6\n");
  zip.add("model/archive_version", "0");
  zip.finish();
  file.commit();
}

}  // namespace brasa::import
