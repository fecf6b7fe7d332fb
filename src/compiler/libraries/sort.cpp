#include "compiler/libraries/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/thread_pool.h"
#include "support/error.h"
#include "support/half.h"

namespace brasa::compiler {
namespace {

// What elements are compared as.
template <class T>
T key(T v) {
  return v;
}
struct HalfBits {
  uint16_t bits;
};
struct BrainBits {
  uint16_t bits;
};
float key(HalfBits v) { return half_to_float(v.bits); }
float key(BrainBits v) { return bfloat16_to_float(v.bits); }

template <class K>
bool less(K a, K b) {
  if constexpr (std::is_floating_point_v<K>) {
    if (std::isnan(a)) return false;
    if (std::isnan(b)) return true;
  }
  return a < b;
}

template <class T>
void sort_lines(const void* x, void* values, int64_t* indices, int64_t outer, int64_t length, int64_t inner,
                bool descending) {
  int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(length, 1));
  runtime::parallel_for(outer * inner, grain, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> order(length);
    std::vector<decltype(key(T{}))> keys(length);
    for (int64_t line = begin; line < end; ++line) {
      int64_t start = line / inner * length * inner + line % inner;
      const T* from = static_cast<const T*>(x) + start;
      for (int64_t k = 0; k < length; ++k) keys[k] = key(from[k * inner]);
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        return descending ? less(keys[j], keys[i]) : less(keys[i], keys[j]);
      });
      for (int64_t k = 0; k < length; ++k) {
        static_cast<T*>(values)[start + k * inner] = from[order[k] * inner];
        indices[start + k * inner] = order[k];
      }
    }
  });
}

void run(const LibraryCall& call) {
  const LibraryTensor& x = call.inputs[0];
  int64_t dim = call.integer(1), outer = 1, length = 1, inner = 1;
  for (size_t d = 0; d < x.sizes.size(); ++d) {
    auto at = static_cast<int64_t>(d);
    (at < dim ? outer : at == dim ? length : inner) *= x.sizes[d];
  }
  bool descending = call.args[2].get<bool>();
  auto lines = [&](auto element) {
    sort_lines<decltype(element)>(x.data, call.outputs[0].data, static_cast<int64_t*>(call.outputs[1].data), outer,
                                  length, inner, descending);
  };
  switch (x.dtype) {
    case DType::Bool:
    case DType::UInt8: return lines(uint8_t{});
    case DType::Int8: return lines(int8_t{});
    case DType::Int16: return lines(int16_t{});
    case DType::Int32: return lines(int32_t{});
    case DType::Int64: return lines(int64_t{});
    case DType::Float16: return lines(HalfBits{});
    case DType::BFloat16: return lines(BrainBits{});
    case DType::Float32: return lines(float{});
    case DType::Float64: return lines(double{});
    default: fail_internal(str("sort of ", name(x.dtype)));
  }
}

}  // namespace

// Stable; NaN is the greatest.
const Implementation kSort = {
    .name = "sort",
    .primitive = "prim::sort",
    .run = run,
};

}  // namespace brasa::compiler
