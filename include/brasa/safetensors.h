#pragma once

#include <brasa/dtype.h>
#include <brasa/export.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The safetensors format: a JSON header that names dtype, shape and place of each tensor, then their bytes. No tensors here,
/// only bytes; `<brasa/serialize.h>` reads and writes tensors and modules.
namespace brasa::safetensors {

struct Entry {
  std::string name;
  std::string format;          ///< the file's name of the dtype: "F32", "BF16", "F8_E4M3", …
  std::optional<DType> dtype;  ///< empty for the formats that Brasa has no dtype for: U16, U32, U64, the F8 ones
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  ///< row-major, little-endian; not aligned
};

using Metadata = std::map<std::string, std::string>;

/// A file of which every byte has been accounted for: header, dtypes, shapes, and tensors that cover the rest without overlap or hole.
class BRASA_API File {
 public:
  /// Maps the file; nothing is copied. brasa::Error if it cannot be read or breaks the format.
  static File open(const std::string& path);
  /// `bytes` must outlive the result; `source` names them in errors.
  static File parse(std::span<const std::byte> bytes, const std::string& source = "safetensors data");

  /// In the order of their bytes.
  const std::vector<Entry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  /// nullptr if there is none.
  const Entry* find(std::string_view name) const;
  /// brasa::Error that lists the names that there are.
  const Entry& at(std::string_view name) const;
  const std::string& source() const { return source_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> by_name_;
  Metadata metadata_;
  std::string source_;
  std::shared_ptr<const void> mapping_;
};

/// Hands the bytes to `sink`, piece by piece; `name` stands in errors. Each entry needs name, dtype, shape and data; `format` is ignored. brasa::Error for what cannot be written.
using Sink = std::function<void(const void* data, size_t size)>;
BRASA_API void write(const Sink& sink, std::span<const Entry> entries, const Metadata& metadata = {},
                     const std::string& name = "safetensors data");
/// As a file: writes a temporary one beside `path` and renames it, so that a reader sees the old file or the whole new one.
BRASA_API void write(const std::string& path, std::span<const Entry> entries, const Metadata& metadata = {});

}  // namespace brasa::safetensors
