#include "capture/bound_inputs.h"

#include <algorithm>
#include <utility>

namespace brasa::capture {
namespace {

// Of tensors that share memory.
bool same_place(const TensorImpl& a, const TensorImpl& b) {
  return &a == &b || (a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides);
}

}  // namespace

void BoundInputs::add(const Tensor& tensor, Number number) {
  const TensorImpl& t = *impl_of(tensor);
  Last& last = last_[t.storage->root()];
  inputs_.push_back({tensor, number, last.at, t.registered ? t.storage->content() : 0});
  last.at = static_cast<int>(inputs_.size()) - 1;
}

void BoundInputs::keep(const Tensor& tensor) {
  for (int i = last_of(*impl_of(tensor)); i >= 0; i = inputs_[i].before)
    if (inputs_[i].tensor.is_same(tensor)) inputs_[i].tensor = shallow_copy(tensor);
}

void BoundInputs::clear() {
  inputs_.clear();
  last_.clear();
}

int BoundInputs::last_of(const TensorImpl& t) const {
  const Last* last = last_.find(t.storage->root());
  return last ? last->at : -1;
}

const BoundInputs::Bound* BoundInputs::same_as(const TensorImpl& t) const {
  for (int i = last_of(t); i >= 0; i = inputs_[i].before)
    if (same_place(*impl_of(inputs_[i].tensor), t)) return &inputs_[i];
  return nullptr;
}

}  // namespace brasa::capture
