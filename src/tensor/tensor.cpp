#include <brasa/autograd.h>
#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "ops/algebra.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/dispatch.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"
#include "tensor/views.h"

// What a tensor is, and its values on the host.
namespace brasa {

int64_t Tensor::dim() const { return checked_impl(*this)->rank(); }
IntArrayRef Tensor::sizes() const {
  const TensorImpl* impl = checked_impl(*this);
  return {impl->sizes.data(), impl->sizes.size()};
}
IntArrayRef Tensor::strides() const {
  const TensorImpl* impl = checked_impl(*this);
  BRASA_CHECK(!impl->sparse, "sparse tensors do not have strides: ", *this);
  return {impl->strides.data(), impl->strides.size()};
}

namespace {

size_t wrapped_dim(const TensorImpl& impl, int64_t dim) {
  int64_t rank = impl.rank();
  if (rank == 0 || dim < -rank || dim >= rank)
    fail_index(str("Dimension out of range (expected to be in range of [", -std::max<int64_t>(rank, 1), ", ",
                   std::max<int64_t>(rank, 1) - 1, "], but got ", dim, ")"));
  return static_cast<size_t>(dim < 0 ? dim + rank : dim);
}

}  // namespace

int64_t Tensor::size(int64_t dim) const { return sizes()[wrapped_dim(*checked_impl(*this), dim)]; }
int64_t Tensor::stride(int64_t dim) const { return strides()[wrapped_dim(*checked_impl(*this), dim)]; }
int64_t Tensor::numel() const { return defined() ? impl_of(*this)->numel : 0; }
int64_t Tensor::storage_offset() const { return checked_impl(*this)->offset; }
size_t Tensor::itemsize() const { return static_cast<size_t>(size_of(checked_impl(*this)->dtype)); }
size_t Tensor::nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
DType Tensor::scalar_type() const { return checked_impl(*this)->dtype; }
Device Tensor::device() const { return checked_impl(*this)->device().id(); }
TensorOptions Tensor::options() const { return TensorOptions().dtype(scalar_type()).device(device()).layout(layout()); }

bool Tensor::is_contiguous(MemoryFormat format) const {
  const TensorImpl* impl = checked_impl(*this);
  size_t rank = channels_last_rank(format);
  if (!rank) return impl->contiguous;
  if (impl->sizes.size() != rank) return false;
  Sizes strides = channels_last_strides(impl->sizes);
  for (size_t d = 0; d < rank; ++d)
    if (impl->sizes[d] != 1 && impl->strides[d] != strides[d]) return false;
  return true;
}
bool Tensor::is_pinned(std::optional<Device>) const { return checked_impl(*this)->storage->is_pinned(); }
bool Tensor::is_non_overlapping_and_dense() const {
  const TensorImpl* impl = checked_impl(*this);
  return is_dense(impl->sizes, impl->strides);
}
bool Tensor::is_alias_of(const Tensor& o) const {
  return checked_impl(*this)->storage->root() == checked_impl(o)->storage->root();
}
bool Tensor::is_same_size(const Tensor& o) const { return sizes() == o.sizes(); }
bool Tensor::is_set_to(const Tensor& o) const {
  return is_alias_of(o) && sizes() == o.sizes() && strides() == o.strides() && storage_offset() == o.storage_offset();
}
MemoryFormat Tensor::suggest_memory_format() const {
  // Where the strides suit both, as with one channel, they are taken for the usual.
  const TensorImpl* impl = checked_impl(*this);
  if (!is_channels_last(impl->sizes, impl->strides)) return MemoryFormat::Contiguous;
  return impl->rank() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}
Tensor Tensor::det() const { return brasa::det(*this); }
Tensor Tensor::inverse() const { return brasa::inverse(*this); }
std::tuple<Tensor, Tensor> Tensor::slogdet() const { return brasa::slogdet(*this); }
std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  const auto& parts = impl_of(*this)->sparse;
  const char* layout = !parts ? "" : parts->layout == kSparse ? "Sparse" : "SparseCsr";
  std::string device(runtime::find_device_row(impl_of(*this)->device().id().type())->name);
  for (char& c : device) c = static_cast<char>(std::toupper(c));
  return str(layout, device, brasa::toString(scalar_type()), "Type");
}

void* Tensor::data_ptr() const {
  const TensorImpl* impl = checked_impl(*this);
  BRASA_CHECK(!impl->sparse, "Cannot access data pointer of Tensor that doesn't have storage: ", *this,
              "; its parts are values() and its indices");
  void* p = impl->data();
  if (Recorder* recorder = Recorder::current()) recorder->host_reads(*this, "data_ptr()");
  // Whoever takes the address does not know of streams.
  if (!impl->device().on_host()) impl->device().synchronize(runtime::current_stream(impl->device()));
  impl->storage->expose();
  return p;
}
void* Tensor::checked_data(DType expected) const {
  BRASA_CHECK(scalar_type() == expected, "expected scalar type ", brasa::toString(expected), " but found ",
              brasa::toString(scalar_type()));
  return data_ptr();
}

namespace detail {
void accessor_rank_error(int64_t wanted, int64_t rank) {
  fail(str("TensorAccessor expected ", wanted, " dims but tensor has ", rank));
}
}  // namespace detail

namespace {

Scalar read_element(const void* at, DType t) {
  return visit_dtype(t, [&](auto type) -> Scalar {
    using T = typename decltype(type)::type;
    if constexpr (std::is_same_v<T, bool>) return *static_cast<const uint8_t*>(at) != 0;
    T v;
    std::memcpy(&v, at, sizeof v);
    if constexpr (std::is_same_v<T, ComplexHalf>)
      return static_cast<std::complex<double>>(v);
    else
      return v;
  });
}

}  // namespace

Scalar Tensor::item() const {
  const TensorImpl* impl = checked_impl(*this);
  if (impl->sparse && impl->numel == 1) return to_dense().item();
  BRASA_CHECK(impl->numel == 1, "a Tensor with ", impl->numel, " elements cannot be converted to Scalar");
  if (Recorder* recorder = impl->storage->recorder())
    if (Tensor known = recorder->known(*this); known.defined()) return known.item();
  if (Recorder* recorder = Recorder::current())
    if (std::optional<int64_t> item = recorder->item(*this)) return *item;
  const void* at = impl->data("item()");
  if (Recorder* recorder = Recorder::current()) recorder->host_reads(*this, "item()");
  runtime::Device& device = impl->device();
  if (device.on_host()) return read_element(at, impl->dtype);
  alignas(16) std::byte element[16];
  device.download(element, at, static_cast<size_t>(size_of(impl->dtype)), runtime::current_stream(device));
  return read_element(element, impl->dtype);
}

bool Tensor::is_nonzero() const {
  BRASA_CHECK(numel() == 1, "Boolean value of Tensor with ", numel() == 0 ? "no values" : "more than one value",
              " is ambiguous");
  return item().toBool();
}

bool Tensor::equal(const Tensor& o) const {
  if (!(sizes() == o.sizes())) return false;
  if (numel() == 0) return true;
  NoGradGuard guard;
  if (impl_of(*this)->sparse || impl_of(o)->sparse) return to_dense().equal(o.to_dense());
  return (*this == o).all().item<bool>();
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  NoGradGuard guard;
  return isclose(a.to_dense(), b.to_dense(), rtol, atol, equal_nan).all().item<bool>();
}

bool Tensor::allclose(const Tensor& o, double rtol, double atol, bool equal_nan) const {
  return brasa::allclose(*this, o, rtol, atol, equal_nan);
}

bool is_floating_point(const Tensor& self) { return self.is_floating_point(); }
DType promote_types(DType a, DType b) { return promote(a, b); }

namespace {

DType result_type_of(std::initializer_list<ir::Type> types) {
  ir::Graph graph(ir::Level::Primitives);
  std::vector<ir::Value> values;
  for (const ir::Type& t : types) values.push_back(graph.add_input(t));
  return ops::result_type(values);
}
ir::Type type_for_promotion(const Tensor& t) {
  return {t.scalar_type(), t.dim() ? ir::Shape{ir::Expr(1)} : ir::Shape{}, impl_of(t)->weak};
}

ir::Type type_for_promotion(const Scalar& s) { return {s.type(), {}, true}; }

}  // namespace

DType result_type(const Tensor& a, const Tensor& b) {
  return result_type_of({type_for_promotion(a), type_for_promotion(b)});
}
DType result_type(const Tensor& a, const Scalar& b) {
  return result_type_of({type_for_promotion(a), type_for_promotion(b)});
}
DType result_type(const Scalar& a, const Tensor& b) { return result_type(b, a); }
DType result_type(const Scalar& a, const Scalar& b) {
  return result_type_of({type_for_promotion(a), type_for_promotion(b)});
}

namespace eager {

Tensor& look_like(const Tensor& self, const Tensor& view) {
  TensorImpl* impl = impl_of(self);
  const TensorImpl* from = impl_of(view);
  BRASA_CHECK(!GradMode::is_enabled() || !self.requires_grad() || !self.is_leaf(),
              "a leaf Variable that requires grad is being used in an in-place operation.");
  std::shared_ptr<autograd::Node> node = GradMode::is_enabled() ? view.grad_fn() : nullptr;
  before_move(self);
  impl->sizes = from->sizes;
  impl->strides = from->strides;
  impl->offset = from->offset;
  impl->refresh();
  if (impl->view && from->view && impl->view->differentiable) {
    // A view is from now on that view of the same base.
    impl->view->last = from->view->last;
    impl->view->version = from->view->version;
    impl->view->moves = impl->moves;
    impl->view->base_moves = impl_of(impl->view->base)->moves;
  }
  if (node) autograd::set_history(self, std::move(node), static_cast<uint32_t>(view.output_nr()));
  return const_cast<Tensor&>(self);
}

}  // namespace eager

Tensor& Tensor::transpose_(int64_t dim0, int64_t dim1) const { return eager::look_like(*this, transpose(dim0, dim1)); }
Tensor& Tensor::t_() const { return eager::look_like(*this, t()); }
Tensor& Tensor::squeeze_() const { return eager::look_like(*this, squeeze()); }
Tensor& Tensor::squeeze_(int64_t dim) const { return eager::look_like(*this, squeeze(dim)); }
Tensor& Tensor::squeeze_(IntArrayRef dims) const { return eager::look_like(*this, squeeze(dims)); }
Tensor& Tensor::as_strided_(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset) const {
  return eager::look_like(*this, as_strided(size, stride, storage_offset));
}
Tensor& Tensor::unsqueeze_(int64_t dim) const { return eager::look_like(*this, unsqueeze(dim)); }

void* TensorStorage::data() const {
  return static_cast<char*>(tensor_.data_ptr()) - static_cast<size_t>(tensor_.storage_offset()) * tensor_.itemsize();
}
size_t TensorStorage::nbytes() const { return impl_of(tensor_)->storage->bytes(); }

}  // namespace brasa
