#pragma once

#include <brasa/tensor.h>

namespace brasa {

/// The memory of a tensor as a whole, which it keeps alive.
class BRASA_API TensorStorage {
 public:
  struct DataPtr {
    void* pointer;
    void* get() const { return pointer; }
    void* get_context() const { return nullptr; }
  };
  explicit TensorStorage(Tensor tensor) : tensor_(std::move(tensor)) {}
  /// One that lies in it.
  const Tensor& tensor() const { return tensor_; }
  void* data() const;
  void* mutable_data() const { return data(); }
  DataPtr data_ptr() const { return {data()}; }
  size_t nbytes() const;
  Device device() const { return tensor_.device(); }

 private:
  Tensor tensor_;
};
inline TensorStorage Tensor::storage() const { return TensorStorage(*this); }

}  // namespace brasa
