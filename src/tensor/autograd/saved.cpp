#include "tensor/autograd/saved.h"

#include <cstring>
#include <utility>

#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/geometry.h"

namespace brasa::autograd {

Saved::Saved(const eager::InputTensor& in, bool read, bool result)
    : sizes_(in.size_span()), dtype_(in.dtype), read_(read), weak_(in.weak), result_(result) {
  strides_ = row_major_strides(sizes_);
  if (!read) return;
  if (in.tensor) {
    set_tensor(*in.tensor);
  } else {
    is_number_ = true;
    std::memcpy(number_, in.data, static_cast<size_t>(size_of(in.dtype)));
  }
}

Saved::Saved(const Tensor& t, bool result) : read_(t.defined()), result_(result) {
  if (!t.defined()) return;
  sizes_ = impl_of(t)->sizes;
  strides_ = row_major_strides(sizes_);
  dtype_ = t.scalar_type();
  set_tensor(t);
}

void Saved::set_tensor(const Tensor& t) {
  version_ = impl_of(t)->storage->version();
  BRASA_CHECK(!impl_of(t)->inference,
              "Inference tensors cannot be saved for backward. Make a clone to get a normal tensor.");
  if ((dropped_ = drop(t))) [[unlikely]] {
    if (result_) dropped_->edge = {};  // the node would own itself
    if (auto& meta = impl_of(t)->autograd) output_nr_ = meta->output_nr;
    return;
  }
  if (!result_) {
    tensor_ = t;
    return;
  }
  // Without history: the node would own itself.
  tensor_ = shallow_copy(t);
  if (auto& meta = impl_of(t)->autograd) output_nr_ = meta->output_nr;
}

void Saved::reset() {
  tensor_.reset();
  if (dropped_) forget(*std::exchange(dropped_, nullptr));
}

Tensor Saved::unpack(const std::shared_ptr<Node>& node, const std::string& name) const {
  if (dropped_) [[unlikely]] {
    Tensor value = recomputed(*dropped_, name);
    if (!GradMode::is_enabled()) return value;
    Tensor out = shallow_copy(value);
    if (result_ && node)
      set_history(out, node, output_nr_);
    else if (dropped_->edge.is_valid())
      set_history(out, dropped_->edge.function, dropped_->edge.input_nr);
    return out;
  }
  if (!tensor_.defined()) return {};
  uint32_t now = impl_of(tensor_)->storage->version();
  BRASA_CHECK(now == version_ || impl_of(tensor_)->inference,
              "one of the variables needed for gradient computation has been modified by an inplace operation: [",
              tensor_, "], which is needed by ", name, ", is at version ", now, "; expected version ", version_,
              " instead. Hint: clone the tensor before it is modified.");
  if (!result_ || !node || !GradMode::is_enabled()) return tensor_;
  Tensor out = shallow_copy(tensor_);
  set_history(out, node, output_nr_);
  return out;
}

eager::InputTensor Saved::input(const std::shared_ptr<Node>& node, const std::string& name, Tensor& holder) const {
  if (tensor_.defined() || dropped_) {
    holder = unpack(node, name);
    eager::InputTensor in = eager::InputTensor::of(holder);
    in.weak = weak_;
    return in;
  }
  eager::InputTensor in;
  in.sizes = sizes_.data();
  in.strides = strides_.data();
  in.rank = static_cast<uint32_t>(sizes_.size());
  in.dtype = dtype_;
  in.weak = weak_;
  if (is_number_) in.data = const_cast<unsigned char*>(number_);
  return in;
}

}  // namespace brasa::autograd
