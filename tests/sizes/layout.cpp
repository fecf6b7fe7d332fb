#include "layout.h"

#include <brasa/factories.h>

#include <cstring>
#include <memory>
#include <vector>

namespace brasa::test {
namespace {

struct Place {
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

Place place_of(const std::vector<int64_t>& shape, Layout layout) {
  Place out;
  out.strides.resize(shape.size());
  int64_t next = layout == Layout::Step ? 2 : 1;
  out.offset = layout == Layout::Step ? 1 : 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    size_t d = layout == Layout::Transposed ? i : shape.size() - 1 - i;
    out.strides[d] = next;
    next *= std::max<int64_t>(shape[d], 1);
  }
  if (layout == Layout::Expanded && !shape.empty()) out.strides[0] = 0;
  return out;
}

// Calls f with each element's place in memory, in row-major order.
template <class F>
void each_place(IntArrayRef shape, IntArrayRef strides, F f) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0, rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at += rest % shape[d] * strides[d];
    f(i, at);
  }
}

}  // namespace

const char* name(Layout layout) {
  constexpr const char* kNames[] = {"row-major", "every second element", "transposed", "expanded"};
  return kNames[static_cast<int>(layout)];
}

ops::Array fitting(const ops::Array& a, Layout layout) {
  if (layout != Layout::Expanded || a.shape.empty() || a.shape[0] == 0) return a;
  ops::Array out = a;
  size_t part = a.data.size() / static_cast<size_t>(a.shape[0]);
  for (int64_t i = 1; i < a.shape[0]; ++i)
    std::memcpy(out.data.data() + static_cast<size_t>(i) * part, a.data.data(), part);
  return out;
}

Tensor placed(const ops::Array& a, Layout layout) {
  Place place = place_of(a.shape, layout);
  int64_t extent = place.offset + 1;
  auto size = static_cast<size_t>(size_of(a.dtype));
  each_place(a.shape, place.strides, [&](int64_t, int64_t at) { extent = std::max(extent, place.offset + at + 1); });
  auto memory = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(extent) * size,
                                                         std::byte(a.dtype == DType::Bool ? 1 : 0xFF));
  std::byte* to = memory->data() + static_cast<size_t>(place.offset) * size;
  each_place(a.shape, place.strides, [&](int64_t i, int64_t at) {
    std::memcpy(to + static_cast<size_t>(at) * size, a.data.data() + static_cast<size_t>(i) * size, size);
  });
  return from_blob(to, a.shape, place.strides, [memory](void*) {}, a.dtype);
}

ops::Array elements(const Tensor& t) {
  ops::Array out{t.scalar_type(), t.sizes().vec(), {}};
  int64_t size = size_of(out.dtype);
  out.data.resize(static_cast<size_t>(t.numel() * size));
  if (out.data.empty()) return out;
  const auto* from = static_cast<const std::byte*>(t.detach().data_ptr());
  each_place(t.sizes(), t.strides(), [&](int64_t i, int64_t at) {
    std::memcpy(out.data.data() + i * size, from + at * size, static_cast<size_t>(size));
  });
  return out;
}

}  // namespace brasa::test
