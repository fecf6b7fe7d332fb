#include "compiler/libraries/lines.h"
#include "compiler/libraries/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <brasa/elements.h>

#include "runtime/thread_pool.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

// What elements are compared as.
template <class T>
auto key(T v) {
  if constexpr (ReducedFloat<T>)
    return static_cast<float>(v);
  else
    return v;
}

template <class K>
bool less(K a, K b) {
  if constexpr (std::is_floating_point_v<K>) {
    if (std::isnan(a)) return false;
    if (std::isnan(b)) return true;
  }
  return a < b;
}

// As an unsigned number of the same order.
template <class T>
uint64_t ordinal(T v, bool descending) {
  auto bits = static_cast<uint64_t>(v);
  if (std::is_signed_v<T>) bits ^= uint64_t{1} << 63;
  return descending ? ~bits : bits;
}

// Sorts `order` by its keys: by one byte after the other, the last one first. Bytes that all keys share are left out.
void sort_by_bytes(std::vector<uint64_t>& keys, std::vector<int64_t>& order) {
  std::vector<uint64_t> other_keys(keys.size());
  std::vector<int64_t> other_order(order.size());
  uint64_t differ = 0;
  for (uint64_t k : keys) differ |= k ^ keys[0];
  for (int shift = 0; shift < 64; shift += 8) {
    if ((differ >> shift & 255) == 0) continue;
    size_t next[257] = {};
    for (uint64_t k : keys) ++next[(k >> shift & 255) + 1];
    for (int i = 0; i < 256; ++i) next[i + 1] += next[i];
    for (size_t i = 0; i < keys.size(); ++i) {
      size_t to = next[keys[i] >> shift & 255]++;
      other_keys[to] = keys[i];
      other_order[to] = order[i];
    }
    keys.swap(other_keys);
    order.swap(other_order);
  }
}

// From this length on counting bytes takes less time than comparing.
constexpr int64_t kBytesFrom = 512;

template <class T>
void sort_lines(const void* x, void* values, int64_t* indices, const Lines& lines, bool descending) {
  int64_t length = lines.length, inner = lines.inner;
  if (length == 0) return;
  // Line by line `sort` brings `order` into the order of the keys.
  auto sort_all = [&](int64_t grain, auto key_of, auto sort) {
    runtime::parallel_for(lines.count(), grain, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(length);
      std::vector<decltype(key_of(T{}))> keys(length);
      for (int64_t line = begin; line < end; ++line) {
        int64_t start = lines.start(line);
        const T* from = static_cast<const T*>(x) + start;
        for (int64_t k = 0; k < length; ++k) keys[k] = key_of(from[k * inner]);
        std::iota(order.begin(), order.end(), int64_t{0});
        sort(keys, order);
        for (int64_t k = 0; k < length; ++k) {
          static_cast<T*>(values)[start + k * inner] = from[order[k] * inner];
          indices[start + k * inner] = order[k];
        }
      }
    });
  };
  if constexpr (std::is_integral_v<T>)
    if (length >= kBytesFrom) return sort_all(1, [&](T v) { return ordinal(v, descending); }, sort_by_bytes);
  sort_all(std::max<int64_t>(1, 4096 / length), key<T>, [&](const auto& keys, std::vector<int64_t>& order) {
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      return descending ? less(keys[j], keys[i]) : less(keys[i], keys[j]);
    });
  });
}

void run(const LibraryCall& call) {
  const LibraryTensor& x = call.inputs[0];
  Lines along(x.sizes, call.integer(1));
  bool descending = call.args[2].get<bool>();
  visit_dtype(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_convertible_v<T, double>)
      sort_lines<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>(
          x.data, call.outputs[0].data, static_cast<int64_t*>(call.outputs[1].data), along, descending);
    else
      fail_internal(str("sort of ", name(x.dtype)));
  });
}

}  // namespace

// Stable; NaN is the greatest.
const Implementation kSort = {.library = "host", .name = "sort", .primitive = "prim::sort", .run = run};

}  // namespace brasa::compiler
