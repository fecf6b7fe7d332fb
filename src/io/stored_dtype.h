#pragma once

#include <brasa/dtype.h>

#include <optional>
#include <string_view>

namespace brasa::io {

/// A dtype of PyTorch's files and what Brasa keeps its elements in: the dtype itself, or integers of the same width.
struct StoredDType {
  std::string_view name;     // "float32"
  std::string_view storage;  // the storage class of a checkpoint, "FloatStorage"; empty where it has none
  DType as;
  bool quantized() const { return name.starts_with("q"); }
};

/// Whether PyTorch has a dtype of this name.
bool names_dtype(std::string_view name);
/// Whether PyTorch has a layout of this name: "strided", "sparse_coo".
bool is_layout(std::string_view name);

/// Nothing for a name that no dtype has.
std::optional<StoredDType> stored_dtype(std::string_view name);
std::optional<StoredDType> stored_dtype_of_storage(std::string_view storage_class);

}  // namespace brasa::io
