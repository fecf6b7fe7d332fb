
#include "support/error.h"
#include "support/lazy.h"
#include "tensor/dispatch.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"

// Copies between tensors, and changes of dtype and memory.
namespace brasa {

namespace {

bool preserves(std::optional<MemoryFormat> f) { return !f || *f == MemoryFormat::Preserve; }

}  // namespace

Tensor Tensor::clone(std::optional<MemoryFormat> format) const {
  const TensorImpl* impl = checked_impl(*this);
  bool plain = impl->contiguous || (preserves(format) && is_dense(impl->sizes, impl->strides));
  bool channels_last = channels_last_rank(format) > 0 ||
                       (!plain && preserves(format) && suggests_channels_last(impl->sizes, impl->strides));
  if (impl->sparse || (plain && !channels_last)) return eager::call_one("aten::clone", {*this});
  return copied(*this, channels_last ? channels_last_strides(impl->sizes) : row_major_strides(impl->sizes));
}

Tensor copied(const Tensor& t, const Sizes& strides) {
  const TensorImpl* impl = checked_impl(t);
  if (Recorder* recorder = Recorder::current()) {
    Tensor out = eager::call_one("aten::clone", {t});
    recorder->lay_out(out, strides);
    return out;
  }
  // Written through copy_, which reads any strides.
  Tensor out = make_tensor(impl->sizes, strides, impl->dtype, impl->device());
  out.copy_(t);
  return out;
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format) || impl_of(*this)->sparse) return *this;
  return clone(format);
}

Tensor& Tensor::copy_(const Tensor& src, bool non_blocking) const {
  checked_impl(*this);
  checked_impl(src);
  auto& self = const_cast<Tensor&>(*this);
  if (is_same(src)) return self;
  if (impl_of(src)->device().id() != device()) return copy_(src.to(device(), scalar_type(), non_blocking));
  static constinit Lazy<eager::Operator&> op([]() -> auto& { return eager::op("aten::copy"); });
  return eager::call_in_place(*op, {*this, src}, *this);
}

Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy,
                  std::optional<MemoryFormat> format) const {
  BRASA_CHECK(!options.requires_grad(),
              "to(options) expects unset requires_grad flag, but got requires_grad set to true");
  DType t = options.dtype_opt().value_or(scalar_type());
  runtime::Device &here = checked_impl(*this)->device(),
                  &there = options.has_device() ? runtime::device_of(options.device()) : here;
  if (&here != &there) {
    // The narrower dtype travels, and the one that the other device has.
    bool before = t != scalar_type() && (size_of(t) < size_of(scalar_type()) || !there.has(scalar_type()));
    TensorOptions rest = options.device(std::nullopt);
    if (before) return moved(to(rest, non_blocking, false, format), there, non_blocking);
    return moved(*this, there, non_blocking).to(rest, non_blocking, false, format);
  }
  if (!format) format = options.memory_format_opt();
  if (options.has_layout() && options.layout() != layout())
    return (options.layout() == kStrided ? to_dense() : to_sparse(options.layout())).to(t);
  bool same = t == scalar_type() && (preserves(format) || is_contiguous(*format));
  if (same) return copy ? clone(format) : *this;
  if (t == scalar_type()) return clone(format);
  Tensor out = eager::call_one("aten::_to_copy", {*this, t});
  return preserves(format) ? out : out.contiguous(*format);
}
Tensor Tensor::to(DType dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> format) const {
  return to(TensorOptions().dtype(dtype), non_blocking, copy, format);
}
Tensor Tensor::to(Device device, DType dtype, bool non_blocking, bool copy, std::optional<MemoryFormat> format) const {
  return to(TensorOptions().dtype(dtype).device(device), non_blocking, copy, format);
}
Tensor Tensor::to(const Tensor& like, bool non_blocking, bool copy, std::optional<MemoryFormat> format) const {
  return to(like.options(), non_blocking, copy, format);
}
Tensor Tensor::cpu() const { return to(TensorOptions().device(Device(kCPU))); }

const Tensor& Tensor::resize_(IntArrayRef sizes, std::optional<MemoryFormat> format) const {
  TensorImpl* impl = checked_impl(*this);
  BRASA_CHECK(!requires_grad(), "cannot resize variables that require grad");
  BRASA_CHECK(!impl->sparse, "resize_ of a sparse tensor is not there: make one of other sizes, got ", *this);
  for (int64_t s : sizes) BRASA_CHECK(s >= 0, "resize_: negative size in ", std::vector<int64_t>(sizes));
  if (impl->storage->recorder()) impl->materialise("a change of memory");
  auto bytes = static_cast<size_t>(checked_mul(checked_add(impl->offset, product(sizes)), size_of(impl->dtype)));
  before_move(*this);
  if (bytes > impl->storage->bytes()) impl->storage->allocate(bytes);
  size_t rank = channels_last_rank(format);
  BRASA_CHECK(rank == 0 || rank == sizes.size(), "required rank ", rank, " tensor to use channels_last format");
  impl->strides = rank > 0 ? channels_last_strides(sizes) : row_major_strides(sizes);
  impl->sizes.assign(sizes.data(), sizes.size());
  impl->refresh();
  return *this;
}

Tensor& Tensor::operator=(const Tensor& o) && { return copy_(o); }
Tensor& Tensor::operator=(Tensor&& o) && { return copy_(o); }
Tensor& Tensor::operator=(const Scalar& v) && { return fill_(v); }

}  // namespace brasa
