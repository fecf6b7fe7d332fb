#pragma once

#include <brasa/tensor.h>

#include <cstdint>

/// Tensors of other libraries and for them, in the same memory, by DLPack (https://dmlc.github.io/dlpack/latest/c_api.html):
/// `auto* m = to_dlpack(x);` gives a tensor away, `Tensor y = from_dlpack(m);` takes one.
namespace brasa {

/// DLPack's structs as they lie in memory, with its names of their members.
namespace dlpack {

struct Version {
  uint32_t major, minor;
};
struct Device {
  int32_t device_type;  ///< 1: the CPU, 2: CUDA
  int32_t device_id;
};
struct DataType {
  uint8_t
      code;  ///< 0: signed, 1: unsigned, 2: IEEE's floating numbers, 4: bfloat16, 5: complex, 6: bool, 10: float8_e4m3fn, 12: float8_e5m2
  uint8_t bits;
  uint16_t lanes;  ///< 1
};
struct Array {
  void* data;  ///< an address of the device's
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;      ///< in elements; null: row-major
  uint64_t byte_offset;  ///< from `data` to the first element
};
/// As it was before DLPack 1.0, and as many libraries still have it.
struct ManagedTensor {
  Array dl_tensor;
  void* manager_ctx;                     ///< whatever the library that gives needs
  void (*deleter)(ManagedTensor* self);  ///< called once by the one who takes; null: there is nothing to do
};
inline constexpr uint64_t kReadOnly = 1, kCopied = 2;
struct ManagedTensorVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned* self);
  uint64_t flags;  ///< kReadOnly: nobody may write; kCopied: nobody else has this memory
  Array dl_tensor;
};

/// Such a struct by whatever header: its own `DLManagedTensor` and `DLManagedTensorVersioned` too.
template <class T>
concept Versioned = requires(T& m) {
  m.dl_tensor.byte_offset;
  m.version;
} && sizeof(T) == sizeof(ManagedTensorVersioned);
template <class T>
concept Unversioned = requires(T& m) { m.dl_tensor.byte_offset; } && sizeof(T) == sizeof(ManagedTensor);

struct Options {
  /// The one who takes may not write. Only what has a version can say so.
  bool read_only = false;
};

}  // namespace dlpack

namespace detail {
BRASA_API dlpack::ManagedTensorVersioned* to_dlpack(const Tensor& tensor, dlpack::Options options);
BRASA_API dlpack::ManagedTensor* to_unversioned_dlpack(const Tensor& tensor, dlpack::Options options);
BRASA_API Tensor from_dlpack(dlpack::ManagedTensorVersioned* managed);
BRASA_API Tensor from_dlpack(dlpack::ManagedTensor* managed);
}  // namespace detail

/// The tensor's memory for another library, which calls the deleter once when it is done. The memory lives that long, whatever becomes of the
/// tensor; resizing the tensor would free it. Waits for what the device still computes: any stream may read. `to_dlpack<DLManagedTensor>(x)`
/// gives another struct than dlpack::ManagedTensorVersioned. brasa::Error for a tensor that is undefined or sparse, requires a gradient
/// (`x.detach()` does not), or lives on a device that DLPack has no number for.
template <class T = dlpack::ManagedTensorVersioned>
  requires(dlpack::Versioned<T> || dlpack::Unversioned<T>)
T* to_dlpack(const Tensor& tensor, dlpack::Options options = {}) {
  if constexpr (dlpack::Versioned<T>)
    return reinterpret_cast<T*>(detail::to_dlpack(tensor, options));
  else
    return reinterpret_cast<T*>(detail::to_unversioned_dlpack(tensor, options));
}

/// A tensor in the memory of another library, whose deleter is called once, when no tensor has the memory any more and the device is done with
/// it. What computes the values must be done. Brasa's tensors can be written to: of read-only memory the tensor is a copy. brasa::Error,
/// after which the struct is the caller's still, for a version other than 1.x, a device or dtype that Brasa has not, several lanes,
/// negative strides, and memory that is null or not aligned for the dtype.
template <class T>
  requires(dlpack::Versioned<T> || dlpack::Unversioned<T>)
Tensor from_dlpack(T* managed) {
  if constexpr (dlpack::Versioned<T>)
    return detail::from_dlpack(reinterpret_cast<dlpack::ManagedTensorVersioned*>(managed));
  else
    return detail::from_dlpack(reinterpret_cast<dlpack::ManagedTensor*>(managed));
}

}  // namespace brasa
