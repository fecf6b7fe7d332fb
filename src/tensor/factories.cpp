#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>

#include "ops/primitives/interp.h"
#include "support/error.h"
#include "support/mapped_file.h"
#include "tensor/dispatch.h"
#include "tensor/geometry.h"
#include "tensor/parse.h"
#include "tensor/sparse/sparse.h"
#include "tensor/unwritten.h"

namespace brasa {
namespace {

void check_sizes(IntArrayRef sizes) {
  for (int64_t s : sizes)
    BRASA_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", std::vector<int64_t>(sizes));
}

Tensor unwritten(Tensor t, const TensorOptions& options) {
  const StorageRef& storage = impl_of(t)->storage;
  if (unwritten_is_zero && storage->device().on_host() && storage->data())
    std::memset(storage->data(), 0, storage->bytes());
  return eager::with_options(std::move(t), options);
}

}  // namespace

Tensor empty(IntArrayRef sizes, const TensorOptions& options, std::optional<MemoryFormat> format) {
  check_sizes(sizes);
  if (options.layout() != kStrided) return eager::sparse::without_entries(sizes, options);
  if (!format) format = options.memory_format_opt();
  if (size_t rank = channels_last_rank(format)) {
    BRASA_CHECK(sizes.size() == rank, "required rank ", rank, " tensor to use channels_last format");
    return empty_strided(sizes, channels_last_strides(sizes).vec(), options);
  }
  if (!options.pinned_memory())
    return unwritten(make_tensor(sizes, options.dtype(), runtime::device_of(options.device())), options);
  BRASA_CHECK(options.device().is_cpu(), "Only dense CPU tensors can be pinned, got a tensor on ",
              options.device().str());
  return unwritten(pinned_tensor(sizes, options.dtype()), options);
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  check_sizes(sizes);
  BRASA_CHECK(options.layout() == kStrided, "empty_strided: sparse tensors have no strides");
  BRASA_CHECK(sizes.size() == strides.size(), "empty_strided: ", sizes.size(), " sizes and ", strides.size(),
              " strides");
  for (int64_t s : strides) BRASA_CHECK(s >= 0, "empty_strided: negative stride ", s);
  runtime::Device& device = runtime::device_of(options.device());
  return unwritten(make_tensor(sizes, strides, options.dtype(), device), options);
}

Tensor empty_like(const Tensor& self, const TensorOptions& options, std::optional<MemoryFormat> format) {
  const TensorImpl* impl = checked_impl(self);
  if (options.layout_opt().value_or(self.layout()) != kStrided)
    return eager::sparse::without_entries(self.sizes(), TensorOptions(self.options()).merge_in(options));
  DType t = options.dtype_opt().value_or(impl->dtype);
  bool keep = (!format || *format == MemoryFormat::Preserve) && is_dense(impl->sizes, impl->strides);
  runtime::Device& device = options.has_device() ? runtime::device_of(options.device()) : impl->device();
  return unwritten(keep ? make_tensor(impl->sizes, impl->strides, t, device) : make_tensor(impl->sizes, t, device),
                   options);
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                 const TensorOptions& options) {
  check_sizes(sizes);
  BRASA_CHECK(sizes.size() == strides.size(), "from_blob: ", sizes.size(), " sizes and ", strides.size(), " strides");
  DType t = options.dtype();
  auto bytes = static_cast<size_t>(extent_of(sizes, strides) * size_of(t));
  // What is not said to lie elsewhere is the host's, whatever the default device.
  runtime::Device& device = options.has_device() ? runtime::device_of(options.device()) : runtime::host();
  StorageRef storage(Storage::borrow(data, bytes, std::move(deleter), device));
  storage->expose();
  return eager::with_options(make_tensor(std::move(storage), t, Sizes(std::span(sizes)), Sizes(std::span(strides)), 0),
                             options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options) {
  return from_blob(data, sizes, strides, std::function<void(void*)>(), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter, const TensorOptions& options) {
  Sizes strides = row_major_strides(sizes);
  return from_blob(data, sizes, IntArrayRef(strides.data(), strides.size()), std::move(deleter), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, std::function<void(void*)>(), options);
}
Tensor from_file(std::string_view filename, std::optional<bool> shared, std::optional<int64_t> size,
                 const TensorOptions& options) {
  int64_t elements = size.value_or(0);
  check_sizes({elements});
  std::string path(filename);
  auto bytes = static_cast<size_t>(checked_mul(elements, size_of(options.dtype())));
  MappedFile file = shared.value_or(false) ? map_shared_file(path, bytes) : map_file(path);
  BRASA_CHECK(file.bytes.size() >= bytes, "file <", path, "> size <", file.bytes.size(),
              "> is smaller than the required mapping size <", bytes, ">");
  return from_blob(const_cast<std::byte*>(file.bytes.data()), {elements}, [owner = file.owner](void*) {}, options);
}

namespace {

void write_element(void* at, DType t, const Scalar& v) {
  v.check_fits(t);
  visit_dtype(t, [&](auto type) {
    using T = typename decltype(type)::type;
    T x;
    if constexpr (std::is_convertible_v<T, double> && !ReducedFloat<T>)
      x = v.to<T>();
    else if constexpr (ReducedFloat<T>)
      x = T::rounded(v.toDouble());
    else
      x = T(v.toComplexDouble());
    std::memcpy(at, &x, sizeof x);
  });
}

}  // namespace

Tensor scalar_tensor(const Scalar& value, const TensorOptions& options) {
  Tensor t = make_tensor({}, options.dtype());
  write_element(impl_of(t)->storage->data(), t.scalar_type(), value);
  return eager::with_options(transferred(t, runtime::device_of(options.device())), options);
}

Tensor Tensor::var(int dim) const { return var(OptionalIntArrayRef(IntArrayRef{dim}), std::optional<Scalar>()); }
Tensor Tensor::std(int dim) const { return std(OptionalIntArrayRef(IntArrayRef{dim}), std::optional<Scalar>()); }
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim) {
  return var_mean(self, OptionalIntArrayRef(IntArrayRef{dim}), std::optional<Scalar>());
}
Tensor one_hot(const Tensor& self, int64_t num_classes) { return call("aten::one_hot", {self, num_classes})[0]; }
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim) {
  return std_mean(self, OptionalIntArrayRef(IntArrayRef{dim}), std::optional<Scalar>());
}

namespace detail {

TensorData::TensorData(std::initializer_list<TensorData> items) : kind_(Kind::List) {
  shape_.push_back(static_cast<int64_t>(items.size()));
  const TensorData* first = items.size() ? items.begin() : nullptr;
  if (first) {
    shape_.insert(shape_.end(), first->shape_.begin(), first->shape_.end());
    dtype_ = first->dtype_;
  }
  auto text = [](const std::vector<int64_t>& sizes) {
    std::string t;
    for (int64_t s : sizes) t += (t.empty() ? "" : ", ") + std::to_string(s);
    return t;
  };
  for (const TensorData& item : items) {
    if (item.shape_ != first->shape_) {
      std::ostringstream usual, other;
      usual << *first;
      other << item;
      fail(str("Expected all sub-lists to have sizes: ", text(first->shape_), " (e.g. ", usual.str(),
               "), but got sub-list ", other.str(), " with sizes: ", text(item.shape_)));
    }
    BRASA_CHECK(dtype_ == item.dtype_,
                "Expected all elements of the tensor to have the same scalar type: ", toString(dtype_),
                ", but got element of scalar type: ", toString(item.dtype_));
    if (item.is_scalar())
      values_.push_back(item.scalar_);
    else
      values_.insert(values_.end(), item.values_.begin(), item.values_.end());
  }
}

const Scalar& TensorData::scalar() const {
  BRASA_CHECK(is_scalar(), "Can only call `scalar()` on a TensorDataContainer that has `is_scalar() == true`");
  return scalar_;
}
const std::vector<Scalar>& TensorData::init_list() const {
  BRASA_CHECK(is_init_list(), "Can only call `init_list()` on a TensorDataContainer that has `is_init_list() == true`");
  return values_;
}
Tensor TensorData::tensor() const {
  BRASA_CHECK(is_tensor(), "Can only call `tensor()` on a TensorDataContainer that has `is_tensor() == true`");
  return make_tensor(*this, dtype_);
}

namespace {

size_t print_level(std::ostream& out, const std::vector<int64_t>& shape, const std::vector<Scalar>& values,
                   size_t depth, size_t at) {
  if (depth == shape.size()) {
    out << values[at];
    return at + 1;
  }
  out << "{";
  for (int64_t i = 0; i < shape[depth]; ++i) {
    if (i) out << ", ";
    at = print_level(out, shape, values, depth + 1, at);
  }
  out << "}";
  return at;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const TensorData& data) {
  if (data.is_scalar()) return out << data.scalar_;
  print_level(out, data.shape_, data.values_, 0, 0);
  return out;
}

Tensor make_tensor(const TensorData& data, const TensorOptions& options) {
  // As in LibTorch: C++'s int and long are int64, float and double the default, other elements what they are.
  DType given = data.dtype_;
  DType natural = given == DType::Int32                                ? DType::Int64
                  : given == DType::Float32 || given == DType::Float64 ? get_default_dtype()
                                                                       : given;
  DType wanted = options.dtype_opt().value_or(natural);
  BRASA_CHECK(
      !data.is_tensor() || !is_complex(data.dtype_) || is_complex(wanted),
      "can not do torch::tensor(complex, dtype=non-complex) because complex can not be casted to real number without "
      "loss of information");
  BRASA_CHECK(!is_complex(data.dtype_) || is_complex(wanted), "value cannot be converted to type ",
              TypeMeta(wanted).name(), " without overflow: it is complex");
  Tensor t = brasa::make_tensor(data.shape_, wanted);
  auto* at = static_cast<char*>(impl_of(t)->storage->data());
  int64_t step = size_of(t.scalar_type());
  if (data.is_scalar()) write_element(at, t.scalar_type(), data.scalar_);
  for (const Scalar& v : data.values_) {
    write_element(at, t.scalar_type(), v);
    at += step;
  }
  return eager::with_options(transferred(t, runtime::device_of(options.device())), options);
}

}  // namespace detail
}  // namespace brasa

namespace brasa::eager {
namespace {

std::vector<int64_t> ints(const ir::Arg& a) { return ops::constants(a.get<std::vector<ir::Expr>>()); }

// The dtype at place i, and the device where one is named; else the other's.
TensorOptions options_at(CallArgs args, const ir::Args& literals, size_t i, const TensorOptions& other) {
  runtime::Device* place = named_place(args);
  auto* dtype = literals[i].get_if<DType>();
  TensorOptions there = other.device(place ? place->id() : other.device());
  return dtype ? there.dtype(*dtype) : there;
}

Tensor call_empty_strided(CallArgs args, const ir::Args& literals) {
  return empty_strided(ints(literals[0]), ints(literals[1]), options_at(args, literals, 2, {}));
}

Tensor call_new_empty_strided(CallArgs args, const ir::Args& literals) {
  return empty_strided(ints(literals[1]), ints(literals[2]), options_at(args, literals, 3, args[0].tensor->options()));
}

Tensor call_empty_like(CallArgs args, const ir::Args& literals) {
  constexpr size_t kFormat = 5;
  std::optional<MemoryFormat> format;
  if (args.size() > kFormat && args[kFormat].kind == CallArg::Kind::MemoryFormat)
    format = static_cast<MemoryFormat>(args[kFormat].integer);
  return empty_like(*args[0].tensor, options_at(args, literals, 1, args[0].tensor->options()), format);
}

// physical_layout lists the dimensions from the slowest to the fastest in memory.
Tensor call_empty_permuted(CallArgs args, const ir::Args& literals) {
  std::vector<int64_t> sizes = ints(literals[0]), layout = ints(literals[1]), sorted = layout, all(sizes.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  BRASA_CHECK(sorted == all, "empty_permuted: expected physical_layout to list each of ", sizes.size(),
              " dimensions once, got ", layout);
  return empty_strided(sizes, strides_in_order(sizes, layout).vec(), options_at(args, literals, 2, {}));
}

Tensor number(int64_t n) { return scalar_tensor(Scalar(n), DType::Int64); }

Tensor call_stride(CallArgs args, const ir::Args& literals) {
  return number(args[0].tensor->stride(literals[1].get<ir::Expr>().constant()));
}

Tensor call_storage_offset(CallArgs args, const ir::Args&) { return number(args[0].tensor->storage_offset()); }

// It looks at the memory behind the tensor, elements between those of the tensor too.
Tensor call_as_strided_copy(CallArgs args, const ir::Args&) { return call_one(op("aten::as_strided"), args).clone(); }

// In the order of ops::Memory.
constexpr Operator::Memory kFunctions[] = {nullptr,
                                           call_stride,
                                           call_storage_offset,
                                           call_empty_like,
                                           call_empty_strided,
                                           call_new_empty_strided,
                                           call_empty_permuted,
                                           call_as_strided_copy};

}  // namespace

Operator::Memory memory_function(ops::Memory what) { return kFunctions[static_cast<size_t>(what)]; }

}  // namespace brasa::eager
