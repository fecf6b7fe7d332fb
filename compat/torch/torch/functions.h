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
inline ::brasa::Tensor scalar_tensor(const ::brasa::Scalar& value, std::optional<::brasa::DType> dtype,
                                     std::optional<::brasa::Layout> layout, std::optional<::brasa::Device> device,
                                     std::optional<bool> pin_memory) {
  return ::brasa::scalar_tensor(value, detail::options_of(dtype, layout, device, pin_memory));
}
inline ::brasa::Tensor from_file(std::string_view filename, std::optional<bool> shared, std::optional<int64_t> size,
                                 std::optional<::brasa::DType> dtype, std::optional<::brasa::Layout> layout,
                                 std::optional<::brasa::Device> device, std::optional<bool> pin_memory) {
  return ::brasa::from_file(filename, shared, size, detail::options_of(dtype, layout, device, pin_memory));
}
inline ::brasa::Tensor sparse_coo_tensor(::brasa::IntArrayRef size, std::optional<::brasa::DType> dtype,
                                         std::optional<::brasa::Layout> layout, std::optional<::brasa::Device> device,
                                         std::optional<bool> pin_memory) {
  return ::brasa::sparse_coo_tensor(size, detail::options_of(dtype, layout, device, pin_memory));
}
inline ::brasa::Tensor sparse_coo_tensor(const ::brasa::Tensor& indices, const ::brasa::Tensor& values,
                                         std::optional<::brasa::DType> dtype, std::optional<::brasa::Layout> layout,
                                         std::optional<::brasa::Device> device, std::optional<bool> pin_memory,
                                         std::optional<bool> is_coalesced) {
  return ::brasa::sparse_coo_tensor(indices, values, detail::options_of(dtype, layout, device, pin_memory),
                                    is_coalesced);
}
inline ::brasa::Tensor sparse_coo_tensor(const ::brasa::Tensor& indices, const ::brasa::Tensor& values,
                                         ::brasa::IntArrayRef size, std::optional<::brasa::DType> dtype,
                                         std::optional<::brasa::Layout> layout, std::optional<::brasa::Device> device,
                                         std::optional<bool> pin_memory, std::optional<bool> is_coalesced) {
  return ::brasa::sparse_coo_tensor(indices, values, size, detail::options_of(dtype, layout, device, pin_memory),
                                    is_coalesced);
}
inline ::brasa::Tensor sparse_csr_tensor(const ::brasa::Tensor& crow_indices, const ::brasa::Tensor& col_indices,
                                         const ::brasa::Tensor& values, std::optional<::brasa::DType> dtype,
                                         std::optional<::brasa::Layout> layout, std::optional<::brasa::Device> device,
                                         std::optional<bool> pin_memory) {
  return ::brasa::sparse_csr_tensor(crow_indices, col_indices, values,
                                    detail::options_of(dtype, layout, device, pin_memory));
}
inline ::brasa::Tensor sparse_csr_tensor(const ::brasa::Tensor& crow_indices, const ::brasa::Tensor& col_indices,
                                         const ::brasa::Tensor& values, ::brasa::IntArrayRef size,
                                         std::optional<::brasa::DType> dtype, std::optional<::brasa::Layout> layout,
                                         std::optional<::brasa::Device> device, std::optional<bool> pin_memory) {
  return ::brasa::sparse_csr_tensor(crow_indices, col_indices, values, size,
                                    detail::options_of(dtype, layout, device, pin_memory));
}
inline ::brasa::Tensor lift_fresh(const ::brasa::Tensor& self) { return self; }
inline const ::brasa::Tensor& resize_as_(const ::brasa::Tensor& self, const ::brasa::Tensor& the_template,
                                         std::optional<::brasa::MemoryFormat> memory_format = {}) {
  return self.resize_as_(the_template, memory_format);
}
// Masks among the indices say how large the result is, so that no row writes it into a given tensor.
inline ::brasa::Tensor& index_out(::brasa::Tensor& out, const ::brasa::Tensor& self,
                                  ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices) {
  ::brasa::Tensor results[] = {index(self, indices)};
  ::brasa::detail::write_list(out, results);
  return out;
}
inline ::brasa::Tensor& index_outf(const ::brasa::Tensor& self,
                                   ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices, ::brasa::Tensor& out) {
  return index_out(out, self, indices);
}
inline ::brasa::Tensor& index_put_out(::brasa::Tensor& out, const ::brasa::Tensor& self,
                                      ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices,
                                      const ::brasa::Tensor& values, bool accumulate = false) {
  ::brasa::Tensor results[] = {index_put(self, indices, values, accumulate)};
  ::brasa::detail::write_list(out, results);
  return out;
}
inline ::brasa::Tensor& index_put_outf(const ::brasa::Tensor& self,
                                       ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices,
                                       const ::brasa::Tensor& values, bool accumulate, ::brasa::Tensor& out) {
  return index_put_out(out, self, indices, values, accumulate);
}
inline ::brasa::Tensor trace_backward(const ::brasa::Tensor& grad, ::brasa::IntArrayRef sizes) {
  if (sizes.size() != 2) throw ::brasa::Error("expected matrix input");
  return grad * ::brasa::eye(sizes[0], sizes[1], grad.options());
}
inline ::brasa::Tensor gather_backward(const ::brasa::Tensor& grad, const ::brasa::Tensor& self, int64_t dim,
                                       const ::brasa::Tensor& index, bool sparse_grad) {
  if (sparse_grad) throw ::brasa::Error("gather: sparse gradients are not supported");
  return grad.new_zeros(self.sizes()).scatter_add(dim, index, grad);
}
inline ::brasa::Tensor value_selecting_reduction_backward(const ::brasa::Tensor& grad, int64_t dim,
                                                          const ::brasa::Tensor& indices, ::brasa::IntArrayRef sizes,
                                                          bool keepdim) {
  bool gone = !keepdim && !sizes.empty();
  return grad.new_zeros(sizes).scatter(dim, gone ? indices.unsqueeze(dim) : indices, gone ? grad.unsqueeze(dim) : grad);
}
inline ::brasa::Tensor native_norm(const ::brasa::Tensor& self, const ::brasa::Scalar& p = 2) { return self.norm(p); }
inline ::brasa::Tensor native_norm(const ::brasa::Tensor& self, const std::optional<::brasa::Scalar>& p,
                                   ::brasa::IntArrayRef dim, bool keepdim, std::optional<::brasa::DType> dtype) {
  return dtype ? self.norm(p, dim, keepdim, *dtype) : self.norm(p, dim, keepdim);
}
inline bool is_distributed(const ::brasa::Tensor&) { return false; }
inline bool is_same_size(const ::brasa::Tensor& a, const ::brasa::Tensor& b) { return a.is_same_size(b); }
inline bool is_nonzero(const ::brasa::Tensor& self) { return self.is_nonzero(); }
inline bool is_conj(const ::brasa::Tensor&) { return false; }
inline bool is_complex(const ::brasa::Tensor& self) { return self.is_complex(); }
inline bool is_signed(const ::brasa::Tensor& self) { return self.is_signed(); }
inline bool is_inference(const ::brasa::Tensor& self) { return self.is_inference(); }
inline bool is_neg(const ::brasa::Tensor&) { return false; }
inline int64_t numel(const ::brasa::Tensor& self) { return self.numel(); }
inline int64_t size(const ::brasa::Tensor& self, int64_t dim) { return self.size(dim); }
inline int64_t stride(const ::brasa::Tensor& self, int64_t dim) { return self.stride(dim); }

}  // namespace at

namespace torch {
using ::at::as_strided_;
using ::at::copy;
using ::at::detach_;
using ::at::gather_backward;
using ::at::index;
using ::at::index_out;
using ::at::index_outf;
using ::at::index_put;
using ::at::index_put_;
using ::at::index_put_out;
using ::at::index_put_outf;
using ::at::is_complex;
using ::at::is_conj;
using ::at::is_distributed;
using ::at::is_inference;
using ::at::is_neg;
using ::at::is_nonzero;
using ::at::is_same_size;
using ::at::is_signed;
using ::at::lift_fresh;
using ::at::native_norm;
using ::at::numel;
using ::at::resize_as_;
using ::at::size;
using ::at::stride;
using ::at::trace_backward;
using ::at::value_selecting_reduction_backward;
}  // namespace torch
