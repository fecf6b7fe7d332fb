#include "capture/bound_inputs.h"

#include <algorithm>
#include <utility>

namespace brasa::capture {
namespace {

// Of tensors that share memory.
bool same_place(const TensorImpl& a, const TensorImpl& b) {
  return &a == &b || (a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides);
}

size_t hash(const Storage* s) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(s) * 0x9E3779B97F4A7C15ull >> 32);
}

}  // namespace

// The storage's slot, or the empty one where it belongs.
BoundInputs::Slot& BoundInputs::slot(const Storage* storage) {
  size_t mask = slots_.size() - 1, i = hash(storage) & mask;
  while (slots_[i].storage && slots_[i].storage != storage) i = (i + 1) & mask;
  return slots_[i];
}

void BoundInputs::add(const Tensor& tensor, Number number) {
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::max<size_t>(16, 2 * slots_.size())));
    for (const Slot& s : old)
      if (s.storage) slot(s.storage) = s;
  }
  Slot& s = slot(impl_of(tensor)->storage->root());
  if (!s.storage) {
    s.storage = impl_of(tensor)->storage->root();
    ++used_;
  }
  inputs_.push_back({tensor, number, s.last});
  s.last = static_cast<int>(inputs_.size()) - 1;
}

void BoundInputs::keep(const Tensor& tensor) {
  for (int i = last_of(*impl_of(tensor)); i >= 0; i = inputs_[i].before)
    if (inputs_[i].tensor.is_same(tensor)) inputs_[i].tensor = shallow_copy(tensor);
}

void BoundInputs::clear() {
  inputs_.clear();
  std::fill(slots_.begin(), slots_.end(), Slot{});
  used_ = 0;
}

int BoundInputs::last_of(const TensorImpl& t) const {
  return slots_.empty() ? -1 : const_cast<BoundInputs*>(this)->slot(t.storage->root()).last;
}

const BoundInputs::Bound* BoundInputs::same_as(const TensorImpl& t) const {
  for (int i = last_of(t); i >= 0; i = inputs_[i].before)
    if (same_place(*impl_of(inputs_[i].tensor), t)) return &inputs_[i];
  return nullptr;
}

}  // namespace brasa::capture
