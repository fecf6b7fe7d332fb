#pragma once

#include <functional>
#include <memory>

#include <brasa/tensor.h>

#include "runtime/device.h"
#include "support/pooled.h"
#include "support/small_vector.h"
#include "tensor/recorder.h"

namespace brasa {

namespace autograd {
struct AutogradMeta;
}
namespace eager {
struct ViewInfo;
}

/// Memory of a device that tensors share, and its version: the number of writes, which views share too.
class Storage : Pooled {
 public:
  /// From the device's allocator, for this thread's stream.
  static Storage* make(size_t bytes, runtime::Device& device = runtime::host());
  /// The host's memory that `device` copies from while the host goes on.
  static Storage* pinned(size_t bytes, runtime::Device& device);
  /// The caller's memory.
  static Storage* borrow(void* data, size_t bytes, std::function<void(void*)> deleter,
                         runtime::Device& device = runtime::host());
  /// The same memory with a version of its own. Whatever happens to the memory, recordings too, happens to both.
  static Storage* alias(Storage* of);
  /// Without memory until the recorder gives it some (see recorder.h), which finds it again by `slot`. Has two references: the
  /// recorder takes one.
  static Storage* recorded(size_t bytes, Recorder* recorder, uint32_t slot, runtime::Device& device) {
    auto* s = new Storage(device);
    s->bytes_ = bytes;
    s->references_.store(2, std::memory_order_relaxed);
    s->recorder_ = recorder;
    s->recorder_slot_ = slot;
    return s;
  }

  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    // A count can't change where all owners are this thread's: the only one, and a tensor beside the recording that goes on here. Loads and
    // stores are cheaper than a locked subtraction.
    uint32_t owners = references_.load(std::memory_order_acquire);
    if (owners == 2 && recorder_ && recorder_ == Recorder::current())
      references_.store(1, std::memory_order_relaxed);
    else if (owners == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }
  uint32_t use_count() const { return references_.load(std::memory_order_relaxed); }

  runtime::Device& device() const { return *root()->device_; }
  /// The stream whose work may use it.
  runtime::Stream stream() const { return root()->stream_; }
  /// An address of the device's. Null while a recorder has not materialised it, and for 0 bytes.
  void* data() const { return root()->data_; }
  size_t bytes() const { return root()->bytes_; }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() {
    version_.fetch_add(1, std::memory_order_relaxed);
    owner()->content_.store(0, std::memory_order_relaxed);
  }
  /// A number for what the memory holds: the same until the next write, and never that of another content. 0 where writes go unseen.
  uint64_t content() const;
  /// That of what it will hold when recorded writes have been made.
  uint64_t content_delivered() const;
  /// Somebody else has the address from now on, and may write there.
  void expose() { owner()->exposed_.store(true, std::memory_order_relaxed); }
  bool is_pinned() const { return root()->pinned_; }
  /// A few values of the host's that go along with work of any device, as numbers do: a random key.
  bool travels() const { return root()->travels_; }
  void set_travels() { owner()->travels_ = true; }
  /// The storage that owns the memory.
  const Storage* root() const { return owner_ ? owner_ : this; }

  /// Who holds the value of a storage without memory; null otherwise.
  Recorder* recorder() const { return root()->recorder_; }
  /// The recorder's number for it.
  uint32_t recorder_slot() const { return root()->recorder_slot_; }
  /// Makes (more) memory, keeping what was there. Ends a recording of this storage.
  void allocate(size_t bytes);
  /// Says that the present value is with `recorder`, whatever the memory holds.
  void set_recorder(Recorder* recorder, uint32_t slot) {
    owner()->recorder_ = recorder;
    owner()->recorder_slot_ = slot;
  }
  /// The present value is in the memory.
  void end_recording() { owner()->recorder_ = nullptr; }
  /// As `allocate`, with the memory of another storage, which has none afterwards.
  void take_memory(Storage& from);
  /// Gives up the memory, for an executable that hands its own over. `deleter` frees it.
  void adopt(void* data, size_t bytes, std::function<void(void*)> deleter);

 private:
  explicit Storage(runtime::Device& device) : device_(&device) {}
  ~Storage();
  Storage* owner() { return owner_ ? owner_ : this; }
  void free_memory();

  std::atomic<uint32_t> references_{1}, version_{0};
  mutable std::atomic<uint64_t> content_{0};  // 0: nobody has asked since the last write
  std::atomic<bool> exposed_{false};
  uint32_t recorder_slot_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Recorder* recorder_ = nullptr;
  Storage* owner_ = nullptr;  // of an alias, which has nothing but its version
  runtime::Device* device_;
  runtime::Stream stream_ = runtime::kDefaultStream;
  bool pinned_ = false, travels_ = false;
  std::unique_ptr<std::function<void(void*)>> deleter_;
};

class StorageRef {
 public:
  StorageRef() = default;
  /// Takes over one reference.
  explicit StorageRef(Storage* owned) : p_(owned) {}
  StorageRef(const StorageRef& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  StorageRef(StorageRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  StorageRef& operator=(StorageRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~StorageRef() {
    if (p_) p_->release();
  }
  Storage* get() const { return p_; }
  Storage* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  Storage* p_ = nullptr;
};

/// What a sparse tensor is made of, instead of memory of its own (see tensor/sparse).
struct SparseParts : Pooled {
  Layout layout = kSparse;
  int64_t sparse_dim = 0;
  bool coalesced = false;  // indices ascend, none twice
  Tensor indices;          // int64: COO [sparse_dim, nnz], CSR the columns [nnz]
  Tensor crow;             // CSR, int64 [rows + 1]
  Tensor rows;             // CSR: the row of each entry, once somebody asked for it
  Tensor values;           // [nnz, dense sizes…]; those of a leaf have no history
};

struct TensorImpl final : detail::TensorImplBase, Pooled {
  StorageRef storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  Sizes sizes, strides;
  DType dtype = DType::Float32;
  bool contiguous = true;
  /// All of a storage that a recorder made, as it was recorded.
  bool whole = false;
  bool inference = false;
  /// A module's parameter or buffer.
  bool registered = false;
  /// How often it came to look at other memory, or at its own in another way; what was noted of it before is about the past.
  uint32_t moves = 0;
  /// A number that became a tensor: takes part in promotion by its category alone.
  bool weak = false;
  /// A bit for each dimension whose size compiled functions are to leave open (see mark_dynamic).
  uint64_t dynamic_dims = 0;
  std::unique_ptr<autograd::AutogradMeta> autograd;
  std::unique_ptr<eager::ViewInfo> view;
  /// Of a sparse tensor, whose storage is empty and whose strides are 0; else null.
  std::unique_ptr<SparseParts> sparse;

  TensorImpl();
  inline TensorImpl(const Sizes& of, const Sizes& by);
  ~TensorImpl();

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  runtime::Device& device() const { return storage->device(); }
  /// The address of the first element; a recorded storage is materialised first, for `reason`.
  void* data(const char* reason = "data_ptr()") const {
    if (storage->recorder()) [[unlikely]]
      materialise(reason);
    // An empty view may begin at an offset into no memory at all.
    auto* base = static_cast<char*>(storage->data());
    return base ? base + offset * size_of(dtype) : nullptr;
  }
  void materialise(const char* reason) const;
  /// Takes the elements of another, in the same memory.
  void look_at(const TensorImpl& from);
  /// After a change of sizes or strides: what follows from them.
  void refresh();
};

inline TensorImpl* impl_of(const Tensor& t) { return static_cast<TensorImpl*>(t.impl()); }
/// brasa::Error on an undefined tensor.
TensorImpl* checked_impl(const Tensor& t);

/// Before a tensor comes to look at other memory, or at its own in another way.
void before_move(const Tensor& t);

/// Fresh memory, row-major. brasa::Error if the device has no such dtype.
Tensor make_tensor(std::span<const int64_t> sizes, DType dtype, runtime::Device& device = runtime::host());
/// In the host's memory, for copies of the current device that is no host.
Tensor pinned_tensor(std::span<const int64_t> sizes, DType dtype);
/// Fresh memory with these strides, which address size.. elements densely.
Tensor make_tensor(std::span<const int64_t> sizes, std::span<const int64_t> strides, DType dtype,
                   runtime::Device& device = runtime::host());
/// A tensor on existing storage.
Tensor make_tensor(StorageRef storage, DType dtype, Sizes sizes, Sizes strides, int64_t offset);
/// How a tensor of these sizes lies in memory of its own. brasa::Error if it does not fit into one.
struct RowMajor {
  RowMajor(std::span<const int64_t> of, DType dtype);
  Sizes sizes, strides;
  int64_t numel;
  size_t bytes;
};
/// Row-major, without memory until the recorder gives it some.
Tensor recorded_tensor(const RowMajor& shape, DType dtype, Recorder* recorder, uint32_t slot, runtime::Device& device);
/// The same elements by a new impl: shares storage and version, has no history and knows nothing of being a view.
Tensor shallow_copy(const Tensor& t);

/// The same values in memory of its own with these strides, which address the elements densely. Differentiable.
Tensor copied(const Tensor& t, const Sizes& strides);
/// The same values on another device, contiguous, without autograd; `t` itself if it is there. `pinned`: in such memory of the host.
/// The host waits for copies to it, and for others not at all where `non_blocking`.
Tensor transferred(const Tensor& t, runtime::Device& device, bool non_blocking = false, bool pinned = false);
/// The same with a gradient.
Tensor moved(const Tensor& t, runtime::Device& device, bool non_blocking = false);

/// "float32[2, 3]", and where it lives if not on the host: "float32[2, 3] on cuda:0".
void append_to(std::string& out, const Tensor& t);

}  // namespace brasa
