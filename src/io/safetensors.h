#pragma once

#include <brasa/dtype.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brasa::io {

/// One tensor of a safetensors file; `data` is row-major and holds exactly the bytes that dtype and shape ask for.
struct StoredTensor {
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// A safetensors file in memory. Nothing in it is trusted: brasa::Error names the file and what is wrong with it.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  /// From bytes; `name` is for messages.
  SafetensorsFile(std::vector<std::byte> bytes, std::string name);

  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  /// brasa::Error if there is none of this name.
  const StoredTensor& at(std::string_view name) const;

 private:
  void read();
  std::string name_;
  std::vector<std::byte> bytes_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

struct NamedTensor {
  std::string name;
  StoredTensor tensor;
};
/// Writes beside the path first and renames, so that a reader never sees half a file.
void write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata = {});

}  // namespace brasa::io
