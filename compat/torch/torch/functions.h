#pragma once

#include <brasa/brasa.h>

// Functions of what Brasa has as methods alone, or with all options as one.
namespace at {

namespace detail {
inline ::brasa::TensorOptions options_of(std::optional<::brasa::DType> dtype, std::optional<::brasa::Layout> layout,
                                         std::optional<::brasa::Device> device, std::optional<bool> pin_memory) {
  return ::brasa::TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory);
}
}  // namespace detail

inline ::brasa::Tensor index(const ::brasa::Tensor& self, ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices) {
  return self.index(indices);
}
inline ::brasa::Tensor index_put(const ::brasa::Tensor& self, ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices,
                                 const ::brasa::Tensor& values, bool accumulate = false) {
  return self.index_put(indices, values, accumulate);
}
inline ::brasa::Tensor& index_put_(const ::brasa::Tensor& self,
                                   ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices,
                                   const ::brasa::Tensor& values, bool accumulate = false) {
  return self.index_put_(indices, values, accumulate);
}
inline ::brasa::Tensor copy(const ::brasa::Tensor& self, const ::brasa::Tensor& src, bool = false) {
  return ::brasa::call("aten::copy", {self, src})[0];
}
inline ::brasa::Tensor& detach_(::brasa::Tensor& self) { return self.detach_(); }
inline const ::brasa::Tensor& as_strided_(const ::brasa::Tensor& self, ::brasa::IntArrayRef size,
                                          ::brasa::IntArrayRef stride, std::optional<int64_t> storage_offset = {}) {
  return self.as_strided_(size, stride, storage_offset);
}
inline ::brasa::Tensor empty(::brasa::IntArrayRef size, std::optional<::brasa::DType> dtype,
                             std::optional<::brasa::Layout> layout, std::optional<::brasa::Device> device,
                             std::optional<bool> pin_memory, std::optional<::brasa::MemoryFormat> memory_format) {
  return ::brasa::empty(size, detail::options_of(dtype, layout, device, pin_memory), memory_format);
}
inline ::brasa::Tensor empty_like(const ::brasa::Tensor& self, std::optional<::brasa::DType> dtype,
                                  std::optional<::brasa::Layout> layout, std::optional<::brasa::Device> device,
                                  std::optional<bool> pin_memory, std::optional<::brasa::MemoryFormat> memory_format) {
  return ::brasa::empty_like(self, detail::options_of(dtype, layout, device, pin_memory), memory_format);
}
inline ::brasa::Tensor empty_strided(::brasa::IntArrayRef size, ::brasa::IntArrayRef stride,
                                     std::optional<::brasa::DType> dtype, std::optional<::brasa::Layout> layout,
                                     std::optional<::brasa::Device> device, std::optional<bool> pin_memory) {
  return ::brasa::empty_strided(size, stride, detail::options_of(dtype, layout, device, pin_memory));
}
inline bool is_same_size(const ::brasa::Tensor& a, const ::brasa::Tensor& b) { return a.is_same_size(b); }
inline bool is_nonzero(const ::brasa::Tensor& self) { return self.is_nonzero(); }
inline bool is_conj(const ::brasa::Tensor&) { return false; }
inline int64_t numel(const ::brasa::Tensor& self) { return self.numel(); }
inline int64_t size(const ::brasa::Tensor& self, int64_t dim) { return self.size(dim); }
inline int64_t stride(const ::brasa::Tensor& self, int64_t dim) { return self.stride(dim); }

}  // namespace at

namespace torch {
using ::at::as_strided_;
using ::at::copy;
using ::at::detach_;
using ::at::index;
using ::at::index_put;
using ::at::index_put_;
using ::at::is_conj;
using ::at::is_nonzero;
using ::at::is_same_size;
using ::at::numel;
using ::at::size;
using ::at::stride;
}  // namespace torch
