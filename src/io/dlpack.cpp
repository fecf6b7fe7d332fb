#include <brasa/dlpack.h>

#include <brasa/brasa.h>

#include <algorithm>
#include <memory>

#include "support/error.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

// Nothing of it is written to a file, but it is what other programs also read and write.
namespace brasa {
namespace {

using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;

constexpr dlpack::Version kVersion{1, 0};

static_assert(sizeof(void*) != 8 ||
                  (sizeof(dlpack::Array) == 48 && sizeof(ManagedTensor) == 64 && sizeof(ManagedTensorVersioned) == 80),
              "DLPack's layout");

// DLPack's number of what a dtype's elements are; their width tells the rest.
uint8_t code_of(DType t) {
  switch (t) {
    case DType::BFloat16: return 4;
    case DType::Float8_e4m3fn: return 10;
    case DType::Float8_e5m2: return 12;
    default: break;
  }
  switch (info_of(t).kind) {
    case DTypeKind::Signed: return 0;
    case DTypeKind::Unsigned: return 1;
    case DTypeKind::Floating: return 2;
    case DTypeKind::Complex: return 5;
    case DTypeKind::Bool: return 6;
  }
  BRASA_ASSERT(false, "a dtype of a new kind: ", name(t));
}

dlpack::DataType type_of(DType t) { return {code_of(t), static_cast<uint8_t>(8 * size_of(t)), 1}; }

DType dtype_of(dlpack::DataType type) {
  BRASA_CHECK(type.lanes == 1, "from_dlpack: elements of ", type.lanes, " lanes; expected 1");
  for (const DTypeInfo& info : kDTypes)
    if (dlpack::DataType known = type_of(info.dtype); known.code == type.code && known.bits == type.bits)
      return info.dtype;
  fail(str("from_dlpack: a dtype of code ", type.code, " and ", type.bits, " bits, which Brasa has not"));
}

runtime::Device& device_of(dlpack::Device device) {
  std::string known;
  for (const runtime::DeviceRow* row : runtime::device_rows()) {
    if (row->dlpack == 0) continue;
    if (row->dlpack == device.device_type) {
      BRASA_CHECK(device.device_id >= 0 && device.device_id <= INT8_MAX, "from_dlpack: device '", row->name, ":",
                  device.device_id, "' is not there");
      return runtime::device_of(brasa::Device(row->type, static_cast<int8_t>(device.device_id)));
    }
    known += str(known.empty() ? "" : ", ", row->dlpack, " (", row->name, ")");
  }
  fail(str("from_dlpack: a device of DLPack's type ", device.device_type, "; Brasa knows ", known));
}

// What a struct points to, in one piece with it.
template <class Managed>
struct Exported {
  Managed managed{};
  StorageRef storage;
  Sizes sizes, strides;
};

template <class Managed>
std::unique_ptr<Exported<Managed>> exported(const Tensor& tensor) {
  BRASA_CHECK(tensor.defined(), "to_dlpack: the tensor is undefined");
  BRASA_CHECK(tensor.layout() == kStrided, "to_dlpack: a sparse tensor, which DLPack has not: ", tensor);
  BRASA_CHECK(
      !tensor.requires_grad(),
      "to_dlpack: the tensor requires a gradient, of which the other library would not know; detach() it first");
  runtime::Device& device = impl_of(tensor)->device();
  const runtime::DeviceRow* row = runtime::find_device_row(device.id().type());
  BRASA_CHECK(row->dlpack != 0, "to_dlpack: DLPack has no number for device '", device.str(), "'");

  auto out = std::make_unique<Exported<Managed>>();
  void* data = tensor.data_ptr();  // waits
  out->storage = impl_of(tensor)->storage;
  out->sizes = impl_of(tensor)->sizes;
  out->strides = impl_of(tensor)->strides;
  out->managed.dl_tensor = {.data = data,
                            .device = {row->dlpack, std::max<int32_t>(device.id().index(), 0)},
                            .ndim = static_cast<int32_t>(out->sizes.size()),
                            .dtype = type_of(tensor.scalar_type()),
                            .shape = out->sizes.data(),
                            .strides = out->strides.data(),
                            .byte_offset = 0};
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_ctx); };
  return out;
}

// Where an array lies, checked.
struct Place {
  runtime::Device& device;
  DType dtype;
  Sizes sizes, strides;
  void* data;
  size_t bytes;
};

Place place_of(const dlpack::Array& array) {
  runtime::Device& device = device_of(array.device);
  DType dtype = dtype_of(array.dtype);
  BRASA_CHECK(device.on_host() || device.has(dtype), "from_dlpack: device '", device.str(), "' has no ", name(dtype));
  BRASA_CHECK(array.ndim >= 0 && (array.ndim == 0 || array.shape), "from_dlpack: ", array.ndim, " dimensions",
              array.shape ? "" : " without their sizes");
  auto rank = static_cast<size_t>(array.ndim);
  Place p{device, dtype, Sizes(std::span<const int64_t>(array.shape, rank)), {}, nullptr, 0};
  for (int64_t n : p.sizes) BRASA_CHECK(n >= 0, "from_dlpack: a negative size in ", p.sizes);
  p.strides = array.strides ? Sizes(std::span<const int64_t>(array.strides, rank)) : row_major_strides(p.sizes);
  for (int64_t n : p.strides)
    BRASA_CHECK(n >= 0, "from_dlpack: a negative stride in ", p.strides,
                ", which Brasa's tensors have not; copy them first");
  p.bytes = static_cast<size_t>(checked_mul(extent_of(p.sizes, p.strides), size_of(dtype)));
  if (p.bytes == 0) return p;
  BRASA_CHECK(array.data, "from_dlpack: ", name(dtype), p.sizes, " at a null pointer");
  p.data = static_cast<char*>(array.data) + array.byte_offset;
  BRASA_CHECK(reinterpret_cast<uintptr_t>(p.data) % static_cast<uintptr_t>(size_of(real_part_of(dtype))) == 0,
              "from_dlpack: the memory is not aligned for ", name(dtype));
  return p;
}

Tensor tensor_at(const Place& p, std::function<void(void*)> deleter) {
  StorageRef storage(Storage::borrow(p.data, p.bytes, std::move(deleter), p.device));
  storage->expose();
  return make_tensor(std::move(storage), p.dtype, p.sizes, p.strides, 0);
}

template <class Managed>
Tensor imported(Managed* managed, bool read_only) {
  Place p = place_of(managed->dl_tensor);
  auto done = [managed, &device = p.device](void*) {
    try {
      if (!device.on_host()) device.synchronize();
    } catch (
        const std::exception&) {  // a check of that work, or a device that is lost: the next one who waits hears of it
    }
    if (managed->deleter) managed->deleter(managed);
  };
  if (!read_only) return tensor_at(p, done);
  Recorder::Scope alone(nullptr);  // the copy is made at once, also in a compiled function
  Tensor copy = tensor_at(p, {}).clone();
  done(nullptr);
  return copy;
}

}  // namespace

namespace detail {

ManagedTensorVersioned* to_dlpack(const Tensor& tensor, dlpack::Options options) {
  auto out = exported<ManagedTensorVersioned>(tensor);
  out->managed.version = kVersion;
  out->managed.flags = options.read_only ? dlpack::kReadOnly : 0;
  return &out.release()->managed;
}

ManagedTensor* to_unversioned_dlpack(const Tensor& tensor, dlpack::Options options) {
  BRASA_CHECK(!options.read_only,
              "to_dlpack: DLManagedTensor cannot say that it is read-only; DLManagedTensorVersioned can");
  return &exported<ManagedTensor>(tensor).release()->managed;
}

Tensor from_dlpack(ManagedTensorVersioned* managed) {
  BRASA_CHECK(managed, "from_dlpack: got a null pointer");
  BRASA_CHECK(managed->version.major == kVersion.major, "from_dlpack: version ", managed->version.major, ".",
              managed->version.minor, " of DLPack; expected 1.x");
  return imported(managed, (managed->flags & dlpack::kReadOnly) != 0);
}

Tensor from_dlpack(ManagedTensor* managed) {
  BRASA_CHECK(managed, "from_dlpack: got a null pointer");
  return imported(managed, false);
}

}  // namespace detail
}  // namespace brasa
