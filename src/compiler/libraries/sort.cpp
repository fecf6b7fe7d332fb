#include "compiler/libraries/lines.h"
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
void sort_lines(const void* x, void* values, int64_t* indices, const Lines& lines, bool descending) {
  int64_t length = lines.length, inner = lines.inner;
  if (length == 0) return;
  int64_t grain = std::max<int64_t>(1, 4096 / length);
  runtime::parallel_for(lines.count(), grain, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> order(length);
    std::vector<decltype(key(T{}))> keys(length);
    for (int64_t line = begin; line < end; ++line) {
      int64_t start = lines.start(line);
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
  Lines along(x.sizes, call.integer(1));
  bool descending = call.args[2].get<bool>();
  auto lines = [&](auto element) {
    sort_lines<decltype(element)>(x.data, call.outputs[0].data, static_cast<int64_t*>(call.outputs[1].data), along,
                                  descending);
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
