#include "io/stored_tensor.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"

namespace brasa::io {

StorageRef storage_of(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  constexpr uintptr_t kAlignment = 16;
  if (owner && !bytes.empty() && reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0)
    return StorageRef(Storage::borrow(const_cast<std::byte*>(bytes.data()), bytes.size(), [owner](void*) {}));
  StorageRef storage(Storage::make(bytes.size()));
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  return storage;
}

Tensor tensor_in(const StorageRef& storage, const Placement& p, const std::string& where) {
  BRASA_CHECK(p.sizes.size() == p.strides.size(), where, ": ", p.sizes.size(), " sizes, but ", p.strides.size(),
              " strides");
  BRASA_CHECK(p.offset >= 0, where, ": a negative offset");
  bool empty = std::find(p.sizes.begin(), p.sizes.end(), 0) != p.sizes.end(), overflow = false;
  int64_t numel = 1, last = p.offset;
  for (size_t d = 0; d < p.sizes.size(); ++d) {
    BRASA_CHECK(p.sizes[d] >= 0 && p.strides[d] >= 0, where, ": negative sizes or strides: ", p.sizes, ", ", p.strides);
    int64_t way = 0;
    overflow |= __builtin_mul_overflow(numel, std::max<int64_t>(p.sizes[d], 1), &numel) ||
                __builtin_mul_overflow(p.sizes[d] - 1, p.strides[d], &way) || __builtin_add_overflow(last, way, &last);
  }
  auto elements = static_cast<int64_t>(storage->bytes()) / size_of(p.dtype.as);
  BRASA_CHECK(!overflow && (empty || last < elements), where, ": sizes ", p.sizes, " with strides ", p.strides,
              " from element ", p.offset, " do not lie in a storage of ", elements, " elements");
  // Nothing lies somewhere, also behind the end: PyTorch saves views of nothing so.
  int64_t offset = empty ? std::min(p.offset, elements) : p.offset;
  return make_tensor(storage, p.dtype.as, Sizes(std::span<const int64_t>(p.sizes)),
                     Sizes(std::span<const int64_t>(p.strides)), offset);
}

}  // namespace brasa::io
