#include "tensor/tensor_impl.h"

#include <algorithm>

#include <brasa/autograd.h>

#include "compiler/run/executable.h"
#include "support/error.h"
#include "support/fresh_stack.h"
#include "tensor/autograd/meta.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/views.h"

namespace brasa {

Storage* Storage::make(size_t bytes, runtime::Device& device) {
  auto* s = new Storage(device);
  try {
    s->stream_ = runtime::current_stream(device);
    s->data_ = device.allocate(bytes, s->stream_);
  } catch (...) {
    delete s;
    throw;
  }
  s->bytes_ = bytes;
  return s;
}

Storage* Storage::pinned(size_t bytes, runtime::Device& device) {
  void* p = device.allocate_pinned(bytes);
  auto* s = borrow(p, bytes, [&device, bytes](void* q) { device.deallocate_pinned(q, bytes); });
  s->pinned_ = true;
  return s;
}

Storage* Storage::borrow(void* data, size_t bytes, std::function<void(void*)> deleter, runtime::Device& device) {
  auto* s = new Storage(device);
  s->adopt(data, bytes, std::move(deleter));
  return s;
}

Storage* Storage::alias(Storage* of) {
  auto* s = new Storage(of->device());
  s->owner_ = of->owner();
  s->owner_->retain();
  return s;
}

uint64_t Storage::content() const {
  return recorder() ? 0 : content_delivered();  // a recorded write is still to come
}

uint64_t Storage::content_delivered() const {
  const Storage* s = root();
  if (s->exposed_.load(std::memory_order_relaxed)) return 0;
  uint64_t known = s->content_.load(std::memory_order_relaxed);
  if (known) return known;
  uint64_t fresh = compiler::new_content();
  return s->content_.compare_exchange_strong(known, fresh, std::memory_order_relaxed) ? fresh : known;
}

void Storage::free_memory() {
  content_.store(0, std::memory_order_relaxed);
  if (deleter_) {
    if (*deleter_) (*deleter_)(data_);
    deleter_.reset();
  } else if (data_) {
    device_->deallocate(data_, bytes_, stream_);
  }
  data_ = nullptr;
  pinned_ = false;
}

Storage::~Storage() {
  if (data_ || deleter_) free_memory();
  if (owner_) owner_->release();
}

void Storage::allocate(size_t bytes) {
  if (owner_) return owner_->allocate(bytes);
  runtime::Stream stream = runtime::current_stream(*device_);
  void* fresh = device_->allocate(bytes, stream);
  if (data_ && fresh) device_->copy(fresh, data_, std::min(bytes, bytes_), stream);
  free_memory();
  data_ = fresh;
  bytes_ = bytes;
  stream_ = stream;
  recorder_ = nullptr;
}

void Storage::take_memory(Storage& from) {
  if (owner_) return owner_->take_memory(from);
  free_memory();
  if (from.exposed_.load(std::memory_order_relaxed)) expose();
  data_ = std::exchange(from.data_, nullptr);
  bytes_ = std::exchange(from.bytes_, 0);
  device_ = from.device_;
  stream_ = from.stream_;
  recorder_ = nullptr;
}

void Storage::adopt(void* data, size_t bytes, std::function<void(void*)> deleter) {
  if (owner_) return owner_->adopt(data, bytes, std::move(deleter));
  free_memory();
  data_ = data;
  bytes_ = bytes;
  recorder_ = nullptr;
  deleter_ = std::make_unique<std::function<void(void*)>>(std::move(deleter));
}

TensorImpl::TensorImpl() = default;
TensorImpl::TensorImpl(const Sizes& of, const Sizes& by) : sizes(of), strides(by) {}
// A gradient may have a gradient itself, and so on.
TensorImpl::~TensorImpl() {
  if (autograd && autograd->grad.defined()) with_room([this] { autograd->grad.reset(); });
}

void TensorImpl::materialise(const char* reason) const {
  storage->recorder()->materialise(reason);
  BRASA_ASSERT(!storage->recorder(), "a recorded tensor was not materialised");
}

void before_move(const Tensor& t) {
  if (Recorder* recorder = Recorder::current()) recorder->moves(t);
  ++checked_impl(t)->moves;
}

void TensorImpl::look_at(const TensorImpl& from) {
  storage = from.storage;
  offset = from.offset;
  numel = from.numel;
  sizes = from.sizes;
  strides = from.strides;
  dtype = from.dtype;
  contiguous = from.contiguous;
  whole = false;
  sparse = from.sparse ? std::make_unique<SparseParts>(*from.sparse) : nullptr;
}

void TensorImpl::refresh() {
  numel = product(sizes);
  contiguous = is_row_major(sizes, strides);
  whole = false;
}

namespace detail {
autograd::AutogradMetaInterface* TensorImplBase::autograd_meta() const {
  return static_cast<const TensorImpl*>(this)->view.get();
}
VersionCounter TensorImplBase::version_counter() const {
  const auto* impl = static_cast<const TensorImpl*>(this);
  BRASA_CHECK(!impl->inference, "Inference tensors do not track version counter.");
  return VersionCounter(impl->storage->version());
}
void TensorImplBase::bump_version() {
  auto* impl = static_cast<TensorImpl*>(this);
  BRASA_CHECK(!impl->inference || InferenceMode::is_enabled(),
              "Inplace update to inference tensor outside InferenceMode is not allowed.");
  impl->storage->bump_version();
}
void destroy(TensorImplBase* impl) noexcept { delete static_cast<TensorImpl*>(impl); }
}  // namespace detail

TensorImpl* checked_impl(const Tensor& t) {
  BRASA_CHECK(t.defined(), "expected a tensor, got an undefined one");
  return impl_of(t);
}

namespace {

size_t bytes_of(int64_t elements, DType dtype, std::span<const int64_t> sizes) {
  int64_t bytes;
  BRASA_CHECK(elements >= 0 && !__builtin_mul_overflow(elements, size_of(dtype), &bytes), "a tensor of shape ", sizes,
              " does not fit into memory");
  return static_cast<size_t>(bytes);
}

void check_dtype(const runtime::Device& device, DType dtype) {
  BRASA_CHECK(device.on_host() || device.has(dtype), "device '", device.str(), "' has no ", name(dtype),
              ": convert the tensor to another dtype first");
}

// Sets strides of row-major memory; gives the number of elements.
int64_t stride_row_major(std::span<const int64_t> sizes, Sizes& strides) {
  strides.resize(sizes.size());
  int64_t n = 1;
  bool empty = false;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = n;
    empty = empty || sizes[d] == 0;
    BRASA_CHECK(!__builtin_mul_overflow(n, std::max<int64_t>(sizes[d], 1), &n), "a tensor of shape ", sizes,
                " does not fit into memory");
  }
  return empty ? 0 : n;
}

// On what `storage` makes of as many bytes.
template <class F>
Tensor row_major(std::span<const int64_t> sizes, DType dtype, F storage) {
  auto* impl = new TensorImpl;
  Tensor out(impl);
  impl->dtype = dtype;
  impl->sizes.assign(sizes.data(), sizes.size());
  impl->numel = stride_row_major(sizes, impl->strides);
  impl->inference = InferenceMode::is_enabled();
  impl->storage = StorageRef(storage(bytes_of(impl->numel, dtype, sizes)));
  return out;
}

}  // namespace

Tensor make_tensor(std::span<const int64_t> sizes, DType dtype, runtime::Device& device) {
  check_dtype(device, dtype);
  return row_major(sizes, dtype, [&](size_t bytes) { return Storage::make(bytes, device); });
}

Tensor pinned_tensor(std::span<const int64_t> sizes, DType dtype) {
  return row_major(sizes, dtype, [](size_t bytes) { return Storage::pinned(bytes, runtime::pinning_device()); });
}

RowMajor::RowMajor(std::span<const int64_t> of, DType dtype)
    : sizes(of), numel(stride_row_major(of, strides)), bytes(bytes_of(numel, dtype, of)) {}

Tensor recorded_tensor(const RowMajor& shape, DType dtype, Recorder* recorder, uint32_t slot, runtime::Device& device) {
  auto* impl = new TensorImpl(shape.sizes, shape.strides);
  Tensor out(impl);
  impl->dtype = dtype;
  impl->numel = shape.numel;
  impl->whole = true;
  impl->inference = InferenceMode::is_enabled();
  impl->storage = StorageRef(Storage::recorded(shape.bytes, recorder, slot, device));
  return out;
}

Tensor make_tensor(std::span<const int64_t> sizes, std::span<const int64_t> strides, DType dtype,
                   runtime::Device& device) {
  check_dtype(device, dtype);
  int64_t extent = extent_of(sizes, strides);
  return make_tensor(StorageRef(Storage::make(bytes_of(extent, dtype, sizes), device)), dtype, Sizes(sizes),
                     Sizes(strides), 0);
}

Tensor make_tensor(StorageRef storage, DType dtype, Sizes sizes, Sizes strides, int64_t offset) {
  auto* impl = new TensorImpl;
  Tensor out(impl);
  impl->storage = std::move(storage);
  impl->dtype = dtype;
  impl->sizes = std::move(sizes);
  impl->strides = std::move(strides);
  impl->offset = offset;
  impl->inference = InferenceMode::is_enabled();
  impl->refresh();
  return out;
}

Tensor shallow_copy(const Tensor& t) {
  const TensorImpl* from = checked_impl(t);
  auto* impl = new TensorImpl;
  Tensor out(impl);
  impl->look_at(*from);
  impl->moves = from->moves;
  impl->inference = from->inference;
  impl->weak = from->weak;
  return out;
}

void append_to(std::string& out, const Tensor& t) {
  if (!t.defined()) {
    out += "undefined";
    return;
  }
  if (const auto& parts = impl_of(t)->sparse) out += parts->layout == kSparse ? "sparse " : "sparse CSR ";
  out += name(t.scalar_type());
  append_to(out, impl_of(t)->sizes);
  if (!impl_of(t)->device().on_host()) out += str(" on ", impl_of(t)->device().str());
}

}  // namespace brasa
