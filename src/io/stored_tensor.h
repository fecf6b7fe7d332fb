#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/stored_dtype.h"
#include "tensor/tensor_impl.h"

namespace brasa::io {

/// A tensor's place in a storage, as a file states it.
struct Placement {
  StoredDType dtype;
  int64_t offset = 0;  // in elements
  std::vector<int64_t> sizes, strides;
};

/// A storage with these bytes: the bytes themselves if `owner` keeps them alive and they are aligned for every dtype, else a copy.
StorageRef storage_of(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner = nullptr);
/// brasa::Error that begins with `where` for a placement that does not lie in the storage.
Tensor tensor_in(const StorageRef& storage, const Placement& placement, const std::string& where);

}  // namespace brasa::io
