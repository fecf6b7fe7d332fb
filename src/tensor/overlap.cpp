#include "tensor/overlap.h"

#include "support/error.h"
#include "tensor/geometry.h"

namespace brasa::eager {

void check_writable(const TensorImpl& t) {
  BRASA_CHECK(
      !may_overlap_itself(t.sizes, t.strides),
      "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
      "clone() the tensor before performing the operation.");
}

bool overlaps(const TensorImpl& target, const Tensor& read) {
  if (!read.defined()) return false;
  const TensorImpl& other = *impl_of(read);
  if (other.storage->root() != target.storage->root() || other.numel == 0 || target.numel == 0) return false;
  if (other.offset == target.offset && other.sizes == target.sizes && other.strides == target.strides &&
      other.dtype == target.dtype)
    return false;
  auto begin = [](const TensorImpl& t) { return static_cast<char*>(t.storage->data()) + t.offset * size_of(t.dtype); };
  auto end = [&](const TensorImpl& t) { return begin(t) + extent_of(t.sizes, t.strides) * size_of(t.dtype); };
  return begin(other) < end(target) && begin(target) < end(other);
}

}  // namespace brasa::eager
