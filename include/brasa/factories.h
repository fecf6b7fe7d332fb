#pragma once

#include <complex>
#include <functional>
#include <initializer_list>
#include <vector>

#include <brasa/tensor.h>

// New tensors that no operator of the table computes.
namespace brasa {

/// Memory that is not filled.
BRASA_API Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}, std::optional<MemoryFormat> format = {});
BRASA_API Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
BRASA_API Tensor empty_like(const Tensor& self, const TensorOptions& options = {},
                            std::optional<MemoryFormat> format = {});
/// The caller's memory as a tensor; `deleter` runs when the last tensor on it is gone.
BRASA_API Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
BRASA_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
BRASA_API Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter,
                           const TensorOptions& options = {});
BRASA_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                           const TensorOptions& options = {});
/// The first `size` elements of a file, mapped. What is written to them goes into the file if it is `shared`, which is then made where it is
/// not there, and grows to that size; else it stays in this process.
BRASA_API Tensor from_file(std::string_view filename, std::optional<bool> shared = {}, std::optional<int64_t> size = 0,
                           const TensorOptions& options = {});
/// A tensor without dimensions.
BRASA_API Tensor scalar_tensor(const Scalar& value, const TensorOptions& options = {});

namespace detail {

/// What `tensor(...)` takes: a number, or lists of these nested to one depth.
class BRASA_API TensorData {
 public:
  template <class T>
    requires requires { dtype_for<T>::value; }
  TensorData(T v) : scalar_(v), dtype_(dtype_for<T>::value) {}  // NOLINT
  TensorData(std::initializer_list<TensorData> items);          // NOLINT
  template <class T>
    requires requires { dtype_for<T>::value; }
  TensorData(ArrayRef<T> items)
      : kind_(Kind::Array), dtype_(dtype_for<T>::value), shape_{static_cast<int64_t>(items.size())} {  // NOLINT
    for (const T& v : items) values_.emplace_back(v);
  }
  template <class T>
    requires requires { dtype_for<T>::value; }
  TensorData(const std::vector<T>& items)  // NOLINT
      : kind_(Kind::Array), dtype_(dtype_for<T>::value), shape_{static_cast<int64_t>(items.size())} {
    for (const T& v : items) values_.emplace_back(v);
  }

  bool is_scalar() const { return kind_ == Kind::Scalar; }
  bool is_init_list() const { return kind_ == Kind::List; }
  bool is_tensor() const { return kind_ == Kind::Array; }
  // brasa::Error for one of another kind.
  const Scalar& scalar() const;
  /// All numbers of the lists, one after the other.
  const std::vector<Scalar>& init_list() const;
  Tensor tensor() const;
  IntArrayRef sizes() const { return shape_; }
  DType scalar_type() const { return dtype_; }

 private:
  friend BRASA_API Tensor make_tensor(const TensorData& data, const TensorOptions& options);
  friend BRASA_API std::ostream& operator<<(std::ostream& out, const TensorData& data);
  enum class Kind : uint8_t { Scalar, List, Array };
  Kind kind_ = Kind::Scalar;
  Scalar scalar_;
  DType dtype_ = DType::Float32;
  std::vector<int64_t> shape_;
  std::vector<Scalar> values_;
};
/// "{{1, 2}, {3, 4}}".
BRASA_API std::ostream& operator<<(std::ostream& out, const TensorData& data);

BRASA_API Tensor make_tensor(const TensorData& data, const TensorOptions& options);

}  // namespace detail

/// `tensor({{1, 2}, {3, 4}})`, `tensor(0.5)`, `tensor(std::vector<float>{...})`. Without a dtype: int64, the default dtype, or bool.
inline Tensor tensor(detail::TensorData data, const TensorOptions& options = {}) {
  return detail::make_tensor(data, options);
}

// Functions on host data.
inline bool equal(const Tensor& a, const Tensor& b) { return a.equal(b); }
/// |a - b| <= atol + rtol * |b| everywhere.
BRASA_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                        bool equal_nan = false);
inline Tensor clone(const Tensor& self, std::optional<MemoryFormat> format = {}) { return self.clone(format); }
inline Tensor var(const Tensor& self, int dim) { return self.var(dim); }
inline Tensor std(const Tensor& self, int dim) { return self.std(dim); }
BRASA_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim);
BRASA_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim);
inline Tensor detach(const Tensor& self) { return self.detach(); }
/// 1 at each index, 0 elsewhere, along a new last dimension of num_classes; -1: as many as the largest index needs.
BRASA_API Tensor one_hot(const Tensor& self, int64_t num_classes = -1);
BRASA_API bool is_floating_point(const Tensor& self);
BRASA_API DType promote_types(DType a, DType b);
BRASA_API DType result_type(const Tensor& a, const Tensor& b);
BRASA_API DType result_type(const Tensor& a, const Scalar& b);
BRASA_API DType result_type(const Scalar& a, const Tensor& b);
BRASA_API DType result_type(const Scalar& a, const Scalar& b);

}  // namespace brasa
