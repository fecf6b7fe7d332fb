#include "tensor/autograd/saved.h"

#include <cstring>
#include <utility>

#include "support/error.h"
#include "tensor/autograd/meta.h"

namespace brasa::autograd {

Saved::Saved(const eager::InputTensor& in, bool read, bool result)
    : sizes_(in.size_span()),
      strides_(in.stride_span()),
      dtype_(in.dtype),
      read_(read),
      weak_(in.weak),
      result_(result) {
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
  strides_ = impl_of(t)->strides;
  dtype_ = t.scalar_type();
  set_tensor(t);
}

void Saved::set_tensor(const Tensor& t) {
  version_ = impl_of(t)->storage->version();
  check_saved(impl_of(t)->inference);
  if (const auto& meta = impl_of(t)->autograd; meta && result_) output_nr_ = meta->output_nr;
  // With its history, a node would own itself by its result.
  if ((elsewhere_ = drop(t))) [[unlikely]] {
    if (result_) elsewhere_->edge = {};
  } else if (std::shared_ptr<Node> fn = result_ ? nullptr : grad_fn_of(t)) {
    // What t is written to later may come from the node itself, and t's own history would then own it, too.
    tensor_ = shallow_copy(t);
    set_history(tensor_, fn, impl_of(t)->autograd->output_nr);
  } else {
    tensor_ = result_ ? shallow_copy(t) : t;
  }
}

Tensor stand_in(DType dtype, const Sizes& sizes, runtime::Device& device) {
  return make_tensor(StorageRef(Storage::make(static_cast<size_t>(size_of(dtype)), device)), dtype, sizes,
                     Sizes(sizes.size(), 0), 0);
}

void check_saved(bool inference) {
  BRASA_CHECK(!inference, "Inference tensors cannot be saved for backward. Make a clone to get a normal tensor.");
}

std::string modified(const Tensor& t, const std::string& name, uint32_t now, uint32_t expected) {
  return str("one of the variables needed for gradient computation has been modified by an inplace operation: [", t,
             "], which is needed by ", name, ", is at version ", now, "; expected version ", expected,
             " instead. Hint: clone the tensor before it is modified.");
}

void Saved::reset() {
  tensor_.reset();
  if (elsewhere_) std::exchange(elsewhere_, nullptr)->forget();
}

Tensor Saved::unpack(const std::shared_ptr<Node>& node, const std::string& name) const {
  Tensor value = elsewhere_ ? elsewhere_->value(name) : tensor_;
  if (!value.defined()) return {};
  uint32_t now = impl_of(value)->storage->version();
  BRASA_CHECK(elsewhere_ || now == version_ || impl_of(value)->inference, modified(value, name, now, version_));
  BRASA_CHECK(impl_of(value)->sizes == sizes_ && value.scalar_type() == dtype_,
              "one of the variables needed for gradient computation was given other data: ", value,
              ", which is needed by ", name, ", was ", brasa::name(dtype_), sizes_.vec());
  bool own = result_ && node;
  if (!GradMode::is_enabled() || (!elsewhere_ && !own)) return value;
  Tensor out = shallow_copy(value);
  if (own)
    set_history(out, node, output_nr_);
  else if (elsewhere_->edge.is_valid())
    set_history(out, elsewhere_->edge.function, elsewhere_->edge.input_nr);
  return out;
}

eager::InputTensor Saved::input(const std::shared_ptr<Node>& node, const std::string& name, Tensor& holder) const {
  if (tensor_.defined() || elsewhere_) {
    holder = unpack(node, name);
    eager::InputTensor in = eager::InputTensor::of(holder);
    in.weak = weak_;
    return in;
  }
  return {.data = is_number_ ? const_cast<unsigned char*>(number_) : nullptr,
          .sizes = sizes_.data(),
          .strides = strides_.data(),
          .rank = static_cast<uint32_t>(sizes_.size()),
          .dtype = dtype_,
          .weak = weak_};
}

}  // namespace brasa::autograd
