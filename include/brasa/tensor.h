#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <brasa/array_ref.h>
#include <brasa/error.h>
#include <brasa/generator.h>
#include <brasa/options.h>
#include <brasa/scalar.h>

namespace brasa {

class Stream;
class Tensor;
class TensorStorage;
namespace indexing {
class TensorIndex;
}
namespace autograd {
struct Node;
struct AutogradMetaInterface;
}  // namespace autograd
using TensorList = ArrayRef<Tensor>;

/// LibTorch's names of what an operator on a tensor passes through; here they only say what holds of the tensor.
enum class DispatchKey : uint8_t { CPU, AutogradCPU, ADInplaceOrView };
class DispatchKeySet {
 public:
  DispatchKeySet() = default;
  DispatchKeySet(std::initializer_list<DispatchKey> keys) {
    for (DispatchKey k : keys) bits_ |= bit(k);
  }
  bool has(DispatchKey k) const { return (bits_ & bit(k)) != 0; }
  friend bool operator==(DispatchKeySet a, DispatchKeySet b) { return a.bits_ == b.bits_; }

 private:
  static uint32_t bit(DispatchKey k) { return 1u << static_cast<int>(k); }
  uint32_t bits_ = 0;
};

namespace detail {

/// How often the memory of a tensor was written to.
class VersionCounter {
 public:
  explicit VersionCounter(uint32_t version) : version_(version) {}
  uint32_t current_version() const { return version_; }

 private:
  uint32_t version_;
};

/// The part of a tensor that its handles share; see src/tensor/tensor_impl.h.
struct TensorImplBase {
  std::atomic<uint32_t> references{1};
  /// brasa::Error for an inference tensor, whose writes are not counted.
  BRASA_API VersionCounter version_counter() const;
  BRASA_API void bump_version();
  /// Of a view a DifferentiableViewMeta, else null.
  BRASA_API autograd::AutogradMetaInterface* autograd_meta() const;
};
BRASA_API void destroy(TensorImplBase* impl) noexcept;

}  // namespace detail

/// LibTorch's mark on an accessor of memory that nothing else looks at; it makes no difference here.
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
using RestrictPtrTraits = DefaultPtrTraits<T>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class TensorAccessor;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class GenericPackedTensorAccessor;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits>;

/// A handle to a multi-dimensional array: dtype, sizes, strides and an offset into a storage that views share. Copies of
/// the handle are the same tensor. A default-made handle is undefined: it holds no tensor, and every operator rejects it.
class BRASA_API Tensor {
 public:
  Tensor() : impl_(nullptr) {}
  Tensor(const Tensor& o) : impl_(o.impl_) {
    if (impl_) impl_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  ~Tensor() { reset(); }
  Tensor& operator=(const Tensor& o) & {
    Tensor copy(o);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  /// `x[0] = y` writes y into the row.
  Tensor& operator=(const Tensor& o) &&;
  Tensor& operator=(Tensor&& o) &&;
  Tensor& operator=(const Scalar& v) &&;

  bool defined() const { return impl_ != nullptr; }
  void reset() {
    detail::TensorImplBase* p = std::exchange(impl_, nullptr);
    // The only handle's count can't change, and a load is cheaper than a locked subtraction.
    if (p && (p->references.load(std::memory_order_acquire) == 1 ||
              p->references.fetch_sub(1, std::memory_order_acq_rel) == 1))
      detail::destroy(p);
  }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }
  size_t use_count() const { return impl_ ? impl_->references.load(std::memory_order_relaxed) : 0; }

  // ---- What it is.
  int64_t dim() const;
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const;
  IntArrayRef strides() const;
  /// Negative dimensions count from the end; brasa::IndexError outside.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t numel() const;
  int64_t storage_offset() const;
  size_t nbytes() const;
  size_t itemsize() const;
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  DType scalar_type() const;
  TypeMeta dtype() const { return scalar_type(); }
  Device device() const;
  int64_t get_device() const { return device().index(); }
  Layout layout() const;
  TensorOptions options() const;
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_non_overlapping_and_dense() const;
  bool is_floating_point() const { return is_floating(scalar_type()); }
  bool is_complex() const { return brasa::is_complex(scalar_type()); }
  bool is_signed() const { return brasa::is_signed(scalar_type()); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  /// Of coordinate format.
  bool is_sparse() const { return layout() == kSparse; }
  bool is_sparse_csr() const { return layout() == kSparseCsr; }
  bool is_alias_of(const Tensor& o) const;
  bool is_same_size(const Tensor& o) const;
  /// The same elements of the same memory.
  bool is_set_to(const Tensor& o) const;
  /// ChannelsLast(3d) for an image batch whose channels run fastest, else Contiguous.
  MemoryFormat suggest_memory_format() const;
  bool has_storage() const { return !is_sparse() && !is_sparse_csr(); }
  bool is_conj() const { return false; }
  bool is_neg() const { return false; }
  /// Whether it lies in memory of the host that devices copy from while the host goes on.
  bool is_pinned(std::optional<Device> = {}) const;
  /// A copy in such memory; itself if it lies there.
  Tensor pin_memory(std::optional<Device> = {}) const;
  /// Work that this stream has been given uses the tensor's memory: once the tensor is gone, it is not given out before that is done.
  void record_stream(const Stream& stream) const;
  bool is_quantized() const { return false; }
  bool is_nested() const { return false; }
  bool is_mps() const { return false; }
  bool is_xla() const { return false; }
  bool is_xpu() const { return false; }
  /// The memory that this tensor and its views lie in.
  TensorStorage storage() const;
  /// True for a tensor without elements' memory of its own: none here.
  bool is_meta() const { return false; }
  std::string toString() const;
  void print() const;

  // ---- Its values on the host.
  void* data_ptr() const;
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  /// brasa::Error if T is not the dtype's element type.
  template <class T>
  T* data_ptr() const {
    return static_cast<T*>(checked_data(dtype_for<std::remove_const_t<T>>::value));
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  /// The only element; brasa::Error if there are more or fewer.
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>();
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const&;
  /// One that may outlive the tensor's handle, though not its memory.
  template <class T, size_t N>
  PackedTensorAccessor64<T, N> packed_accessor64() const&;
  template <class T, size_t N>
  PackedTensorAccessor64<T, N> packed_accessor32() const& {
    return packed_accessor64<T, N>();
  }
  bool equal(const Tensor& o) const;
  bool allclose(const Tensor& o, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  bool is_nonzero() const;

  // ---- Views and copies.
  Tensor operator[](int64_t index) const;
  Tensor operator[](const Scalar& index) const;
  Tensor operator[](const Tensor& index) const;
  Tensor index(ArrayRef<indexing::TensorIndex> indices) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  /// One optional tensor a dimension, as in PyTorch's index.Tensor.
  Tensor index(ArrayRef<std::optional<Tensor>> indices) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Tensor& values) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& values) const;
  Tensor& index_put_(ArrayRef<indexing::TensorIndex> indices, const Scalar& value) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) const;
  Tensor& index_put_(ArrayRef<std::optional<Tensor>> indices, const Tensor& values, bool accumulate = false) const;
  Tensor& index_put_(std::initializer_list<std::optional<Tensor>> indices, const Tensor& values, bool accumulate) const;
  /// A copy with these elements written.
  Tensor index_put(ArrayRef<std::optional<Tensor>> indices, const Tensor& values, bool accumulate = false) const;
  Tensor index_put(std::initializer_list<std::optional<Tensor>> indices, const Tensor& values,
                   bool accumulate = false) const;
  /// The diagonal of a matrix; with `wrap` it starts anew below a tall one, after a row without.
  Tensor& fill_diagonal_(const Scalar& value, bool wrap = false) const;
  Tensor clone(std::optional<MemoryFormat> format = {}) const;
  /// Itself if it is contiguous.
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor& copy_(const Tensor& src, bool non_blocking = false) const;
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = {}) const;
  Tensor to(DType dtype, bool non_blocking = false, bool copy = false, std::optional<MemoryFormat> format = {}) const;
  Tensor to(TypeMeta dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = {}) const {
    return to(dtype.toScalarType(), non_blocking, copy, format);
  }
  Tensor to(Device device, DType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = {}) const;
  Tensor to(const Tensor& like, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = {}) const;
  Tensor toType(DType dtype) const { return to(dtype); }
  Tensor cpu() const;
  Tensor cuda() const { return to(Device(kCUDA)); }
  Tensor type_as(const Tensor& o) const { return to(o.scalar_type()); }
  /// Changes the sizes; the memory grows if it has to, the elements in front stay.
  const Tensor& resize_(IntArrayRef sizes, std::optional<MemoryFormat> format = {}) const;

  // This tensor with other sizes and strides on the same memory. brasa::Error for a view, and for a leaf that requires a gradient.
  Tensor& transpose_(int64_t dim0, int64_t dim1) const;
  Tensor& swapaxes_(int64_t dim0, int64_t dim1) const { return transpose_(dim0, dim1); }
  Tensor& swapdims_(int64_t dim0, int64_t dim1) const { return transpose_(dim0, dim1); }
  Tensor& t_() const;
  Tensor& squeeze_() const;
  Tensor& squeeze_(int64_t dim) const;
  Tensor& squeeze_(IntArrayRef dims) const;
  Tensor& unsqueeze_(int64_t dim) const;
  Tensor& as_strided_(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> storage_offset = {}) const;

  // ---- Sparse tensors; see <brasa/sparse.h>.
  /// Itself if it is dense.
  Tensor to_dense(std::optional<DType> dtype = {}, std::optional<bool> masked_grad = {}) const;
  /// The elements that are not 0, by their first `sparse_dim` indices (all of them by default), in order.
  Tensor to_sparse() const;
  Tensor to_sparse(int64_t sparse_dim) const;
  Tensor to_sparse(Layout layout) const;
  Tensor to_sparse_coo() const;
  /// Of a matrix whose elements have `dense_dim` dimensions.
  Tensor to_sparse_csr(std::optional<int64_t> dense_dim = {}) const;
  /// This tensor's elements at the mask's entries, in the mask's layout.
  Tensor sparse_mask(const Tensor& mask) const;
  // brasa::Error unless the tensor is of the layout that has these.
  /// Entries in ascending order, those of one index added up.
  Tensor coalesce() const;
  bool is_coalesced() const;
  /// Int64 [sparse_dim, nnz], of a coalesced tensor.
  Tensor indices() const;
  /// [nnz, dense sizes…]; of a coalesced tensor where it is of coordinate format.
  Tensor values() const;
  Tensor crow_indices() const;
  Tensor col_indices() const;
  // As they are, coalesced or not; without history.
  Tensor _indices() const;
  Tensor _values() const;
  int64_t _nnz() const;
  Tensor& _coalesced_(bool coalesced) const;
  /// 0 of a dense tensor.
  int64_t sparse_dim() const;
  int64_t dense_dim() const;

  // ---- Autograd.
  bool requires_grad() const;
  const Tensor& set_requires_grad(bool v) const;
  Tensor& requires_grad_(bool v = true) const;
  bool is_leaf() const;
  /// The accumulated gradient; undefined before the first backward.
  const Tensor& grad() const;
  Tensor& mutable_grad() const;
  const std::shared_ptr<autograd::Node>& grad_fn() const;
  int64_t output_nr() const;
  /// Accumulates into the leaves' `grad()` the gradient of this tensor times `gradient` (1 for a single element).
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = {}, bool create_graph = false,
                std::optional<TensorList> inputs = {}) const;
  /// The same values without history; shares memory and version.
  Tensor detach() const;
  Tensor& detach_() const;
  void retain_grad() const;
  bool retains_grad() const;
  /// Called with the gradient of this tensor as soon as it is known; what it returns (if anything) replaces it. Gives a handle
  /// for `remove_hook`.
  template <class F>
  unsigned register_hook(F&& hook) const {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Tensor>>) {
      return add_hook([f = std::forward<F>(hook)](const Tensor& g) mutable {
        f(g);
        return Tensor();
      });
    } else {
      return add_hook(std::forward<F>(hook));
    }
  }
  void remove_hook(unsigned handle) const;
  /// Called with this leaf after its gradient has been accumulated.
  unsigned register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const;
  int64_t _version() const;
  bool is_view() const;
  const Tensor& _base() const;
  bool is_inference() const;
  /// What LibTorch would dispatch on.
  DispatchKeySet key_set() const;
  /// The same memory with a version of its own and no history.
  Tensor data() const;
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }
  Tensor tensor_data() const { return data(); }
  Tensor variable_data() const { return data(); }
  /// Makes this tensor look at o's memory.
  void set_data(const Tensor& o) const;
  /// The same for a tensor without history.
  Tensor& set_(const Tensor& source) const;
  /// Elements of source's memory, as as_strided takes them; without strides row-major.
  Tensor& set_(const Tensor& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride = {}) const;
  Tensor& set_(const TensorStorage& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride = {}) const;
  /// No elements any more.
  Tensor& set_() const;

  // ---- Arithmetic.
  Tensor operator-() const;
  Tensor operator~() const;
  Tensor& operator+=(const Tensor& o);
  Tensor& operator+=(const Scalar& o);
  Tensor& operator-=(const Tensor& o);
  Tensor& operator-=(const Scalar& o);
  Tensor& operator*=(const Tensor& o);
  Tensor& operator*=(const Scalar& o);
  Tensor& operator/=(const Tensor& o);
  Tensor& operator/=(const Scalar& o);
  Tensor& operator&=(const Tensor& o);
  Tensor& operator|=(const Tensor& o);
  Tensor& operator^=(const Tensor& o);

  // Of matrices.
  Tensor det() const;
  Tensor inverse() const;
  /// Sign and logarithm of the magnitude of the determinant.
  std::tuple<Tensor, Tensor> slogdet() const;

  // One dimension, which would otherwise be taken for `unbiased`.
  Tensor var(int dim) const;
  Tensor std(int dim) const;
  // ---- Operators of the table whose schema has a `self`.
#include <brasa/tensor_methods.inc>

  explicit Tensor(detail::TensorImplBase* owned) : impl_(owned) {}
  detail::TensorImplBase* impl() const { return impl_; }
  detail::TensorImplBase* unsafeGetTensorImpl() const { return impl_; }
  detail::TensorImplBase* release() { return std::exchange(impl_, nullptr); }

 private:
  void* checked_data(DType expected) const;
  unsigned add_hook(std::function<Tensor(const Tensor&)> hook) const;

  detail::TensorImplBase* impl_;
};

/// Elements of a tensor on the host by index, without checks.
template <class T, size_t N, template <class> class, class>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }
  int64_t size(int64_t d) const { return sizes_[d]; }
  int64_t stride(int64_t d) const { return strides_[d]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[i * strides_[0]]);
    } else {
      return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
    }
  }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

/// With sizes and strides of its own.
template <class T, size_t N, template <class> class, class>
class GenericPackedTensorAccessor {
 public:
  GenericPackedTensorAccessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = sizes[d];
      strides_[d] = strides[d];
    }
  }
  int64_t size(int64_t d) const { return sizes_[d]; }
  int64_t stride(int64_t d) const { return strides_[d]; }
  T* data() const { return data_; }
  decltype(auto) operator[](int64_t i) const { return TensorAccessor<T, N>(data_, sizes_, strides_)[i]; }

 private:
  T* data_;
  int64_t sizes_[N], strides_[N];
};

namespace detail {
[[noreturn]] BRASA_API void accessor_rank_error(int64_t wanted, int64_t rank);
}
template <class T, size_t N>
TensorAccessor<T, N> Tensor::accessor() const& {
  if (dim() != static_cast<int64_t>(N)) detail::accessor_rank_error(N, dim());
  return TensorAccessor<T, N>(data_ptr<T>(), sizes().data(), strides().data());
}

template <class T, size_t N>
PackedTensorAccessor64<T, N> Tensor::packed_accessor64() const& {
  if (dim() != static_cast<int64_t>(N)) detail::accessor_rank_error(N, dim());
  return PackedTensorAccessor64<T, N>(data_ptr<T>(), sizes().data(), strides().data());
}

#define BRASA_BINARY_OPERATOR(op)                                 \
  BRASA_API Tensor operator op(const Tensor& a, const Tensor& b); \
  BRASA_API Tensor operator op(const Tensor& a, const Scalar& b); \
  BRASA_API Tensor operator op(const Scalar& a, const Tensor& b);
BRASA_BINARY_OPERATOR(+)
BRASA_BINARY_OPERATOR(-)
BRASA_BINARY_OPERATOR(*)
BRASA_BINARY_OPERATOR(/)
BRASA_BINARY_OPERATOR(%)
BRASA_BINARY_OPERATOR(==)
BRASA_BINARY_OPERATOR(!=)
BRASA_BINARY_OPERATOR(<)
BRASA_BINARY_OPERATOR(<=)
BRASA_BINARY_OPERATOR(>)
BRASA_BINARY_OPERATOR(>=)
BRASA_BINARY_OPERATOR(&)
BRASA_BINARY_OPERATOR(|)
BRASA_BINARY_OPERATOR(^)
#undef BRASA_BINARY_OPERATOR

/// LibTorch's form: values with a common factor where that helps, blocks of columns, then dtype and sizes.
BRASA_API std::ostream& operator<<(std::ostream& out, const Tensor& t);
BRASA_API std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_size = 80);
/// To the standard output.
BRASA_API void print(const Tensor& t, int64_t line_size = 80);

}  // namespace brasa

#include <brasa/storage.h>
