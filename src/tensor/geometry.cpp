#include "tensor/geometry.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace brasa {

bool is_row_major(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t expected = 1;
  bool exact = true;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1) exact = exact && strides[d] == expected;
    // Beside a size of 0 the others may be anything.
    exact = !__builtin_mul_overflow(expected, sizes[d], &expected) && exact;
  }
  return exact;
}

Sizes row_major_strides(std::span<const int64_t> sizes) {
  Sizes out(sizes.size());
  int64_t n = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    out[d] = n;
    n = checked_mul(n, std::max<int64_t>(sizes[d], 1));
  }
  return out;
}

Sizes channels_last_strides(std::span<const int64_t> sizes) {
  Sizes out(sizes.size(), 1);
  out[0] = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) out[d] = std::exchange(out[0], checked_mul(out[0], sizes[d]));
  return out;
}

bool lies_channels_last(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (sizes.size() != 4 && sizes.size() != 5) return false;
  auto lies_at = [&](size_t d, int64_t stride) { return sizes[d] == 1 || strides[d] == stride; };
  if (sizes[1] == 1 || strides[1] != 1) return false;  // one channel lies row-major, too
  int64_t stride = sizes[1];
  for (size_t d = sizes.size(); d-- > 2; stride = checked_mul(stride, sizes[d]))
    if (!lies_at(d, stride)) return false;
  return lies_at(0, stride);
}

bool suggests_channels_last(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  size_t rank = sizes.size();
  if ((rank != 4 && rank != 5) || strides[1] == 0 || is_row_major(sizes, strides)) return false;
  // From inside: channels, columns, rows, images. Each lies around what is inside of it.
  int64_t least = 0;
  for (size_t d : {size_t{1}, rank - 1, rank - 2, rank - 3, size_t{0}}) {
    if (d == 1 && least > 0) continue;  // of four dimensions, channels are the third from the end
    if (sizes[d] == 0 || strides[d] < least || (d == 0 && least == strides[1])) return false;
    least = sizes[d] > 1 ? checked_mul(strides[d], sizes[d]) : strides[d];
  }
  return true;
}

size_t channels_last_rank(std::optional<MemoryFormat> format) {
  return format == MemoryFormat::ChannelsLast ? 4 : format == MemoryFormat::ChannelsLast3d ? 5 : 0;
}

int64_t extent_of(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last = checked_add(last, checked_mul(sizes[d] - 1, strides[d]));
  }
  return checked_add(last, 1);
}

namespace {

SmallVector<int64_t, 6> by_stride(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  SmallVector<int64_t, 6> dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) dims.push_back(static_cast<int64_t>(d));
  std::sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  return dims;
}

}  // namespace

bool is_dense(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t expected = 1;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  for (int64_t d : by_stride(sizes, strides)) {
    if (strides[d] != expected) return false;
    expected = checked_mul(expected, sizes[d]);
  }
  return true;
}

bool may_overlap_itself(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t reach = 0;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return false;
  for (int64_t d : by_stride(sizes, strides)) {
    if (strides[d] <= reach) return true;
    reach = checked_add(reach, checked_mul(sizes[d] - 1, strides[d]));
  }
  return false;
}

bool broadcast_into(Sizes& shape, std::span<const int64_t> sizes) {
  if (shape.empty()) {  // the first operand
    shape.assign(sizes.data(), sizes.size());
    return true;
  }
  if (sizes.size() > shape.size()) {
    Sizes longer(sizes.size(), 1);
    std::copy(shape.begin(), shape.end(), longer.end() - shape.size());
    shape = std::move(longer);
  }
  int64_t* at = shape.end() - sizes.size();
  for (int64_t s : sizes) {
    if (*at != s) {
      if (*at == 1)
        *at = s;
      else if (s != 1)
        return false;
    }
    ++at;
  }
  return true;
}

Loop make_loop(std::span<const int64_t> shape, std::span<const OperandLayout> operands) {
  size_t rank = shape.size(), n = operands.size();
  Loop loop;
  loop.order.resize(rank);
  std::iota(loop.order.begin(), loop.order.end(), 0);
  auto dense = [&](const OperandLayout& o) {
    return std::equal(o.sizes.begin(), o.sizes.end(), shape.begin(), shape.end()) && is_row_major(o.sizes, o.strides);
  };
  if (std::all_of(operands.begin(), operands.end(), dense)) {
    loop.sizes.push_back(product(shape));
    loop.strides.resize(n, 1);
    return loop;
  }
  // Strides in the common shape: 0 where an operand is repeated.
  SmallVector<int64_t, 48> all(n * rank);
  for (size_t i = 0; i < n; ++i) {
    size_t lead = rank - operands[i].sizes.size();
    for (size_t d = lead; d < rank; ++d)
      all[i * rank + d] = operands[i].sizes[d - lead] == 1 ? 0 : operands[i].strides[d - lead];
  }
  // Insertion sort, so that dimensions that the operands do not decide on keep their order.
  auto inside = [&](int64_t a, int64_t b) {  // 1: a lies inside b, -1: outside, 0: undecided
    for (size_t i = 0; i < n; ++i) {
      int64_t sa = all[i * rank + a], sb = all[i * rank + b];
      if (sa == 0 || sb == 0 || sa == sb) continue;
      return sa < sb ? 1 : -1;
    }
    return 0;
  };
  for (size_t k = 1; k < rank; ++k)
    for (size_t j = k; j > 0; --j) {
      int64_t outer = loop.order[j - 1], inner = loop.order[j];
      if (shape[outer] == 1 || shape[inner] == 1 || inside(outer, inner) != 1) break;
      std::swap(loop.order[j - 1], loop.order[j]);
    }
  // Merge from outside inwards.
  SmallVector<int64_t, 6> kept;
  for (int64_t d : loop.order) {
    if (shape[d] == 1) continue;
    bool merges = !kept.empty();
    for (size_t i = 0; merges && i < n; ++i)
      merges = all[i * rank + kept.back()] == checked_mul(all[i * rank + d], shape[d]);
    if (merges) {
      loop.sizes.back() = checked_mul(loop.sizes.back(), shape[d]);
      kept.back() = d;
    } else {
      loop.sizes.push_back(shape[d]);
      kept.push_back(d);
    }
  }
  if (kept.empty()) {
    loop.sizes.push_back(1);
    loop.strides.resize(n, 1);
    return loop;
  }
  loop.strides.resize(n * kept.size());
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < kept.size(); ++k) loop.strides[i * kept.size() + k] = all[i * rank + kept[k]];
  return loop;
}

Sizes order_in_memory(std::span<const int64_t> strides) {
  Sizes order(strides.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return order;
}

Sizes strides_in_order(std::span<const int64_t> shape, std::span<const int64_t> order) {
  Sizes out(shape.size());
  int64_t n = 1;
  for (size_t k = order.size(); k-- > 0;) {
    out[order[k]] = n;
    n = checked_mul(n, std::max<int64_t>(shape[order[k]], 1));
  }
  return out;
}

}  // namespace brasa
