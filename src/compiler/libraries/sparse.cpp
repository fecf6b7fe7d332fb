#include <algorithm>
#include <cstring>
#include <vector>

#include "compiler/libraries/rows.h"
#include "runtime/thread_pool.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

// The entries in order of their rows: those of row r are at starts[r] … starts[r + 1] - 1.
struct ByRow {
  std::vector<int64_t> starts, order;  // order: which entry is where; empty where they are sorted already
};

ByRow by_row(const int64_t* row, const int64_t* column, int64_t entries, int64_t rows, int64_t inner) {
  ByRow out;
  out.starts.assign(static_cast<size_t>(rows) + 1, 0);
  bool sorted = true;
  for (int64_t e = 0; e < entries; ++e) {
    BRASA_CHECK(row[e] >= 0 && row[e] < rows && column[e] >= 0 && column[e] < inner, "sparse_mm: index (", row[e], ", ",
                column[e], ") is out of range for a matrix of shape [", rows, ", ", inner, "]");
    ++out.starts[row[e] + 1];
    sorted = sorted && (e == 0 || row[e - 1] <= row[e]);
  }
  for (int64_t r = 0; r < rows; ++r) out.starts[r + 1] += out.starts[r];
  if (sorted) return out;
  std::vector<int64_t> next(out.starts.begin(), out.starts.end() - 1);
  out.order.resize(entries);
  for (int64_t e = 0; e < entries; ++e) out.order[next[row[e]]++] = e;
  return out;
}

template <class T>
struct Product {
  const int64_t* column;
  const T *values, *dense;
  T* out;
  int64_t columns;
  ByRow entry;
};

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(32)));
};
template <class T>
constexpr int64_t kLanes = 32 / sizeof(T);

// `count` vectors of a row of the result, from column `j` on, which stay in registers; as many numbers of the last one as `width` has.
template <int count, class T>
[[gnu::always_inline]] inline void multiply_block(const Product<T>& p, int64_t r, int64_t j, int64_t width) {
  using Vector = typename Lanes<T>::Vector;
  Vector sum[count] = {};
  for (int64_t k = p.entry.starts[r]; k < p.entry.starts[r + 1]; ++k) {
    int64_t e = p.entry.order.empty() ? k : p.entry.order[k];
    T v = p.values[e];
    const T* from = p.dense + p.column[e] * p.columns + j;
#pragma GCC unroll 8
    for (int64_t i = 0; i < count; ++i) {
      Vector x = {};
      if (i + 1 < count || width == count * kLanes<T>)
        std::memcpy(&x, from + i * kLanes<T>, sizeof x);
      else
        for (int64_t lane = 0; i * kLanes<T> + lane < width; ++lane) x[lane] = from[i * kLanes<T> + lane];
      sum[i] += v * x;
    }
  }
  std::memcpy(p.out + r * p.columns + j, sum, static_cast<size_t>(width) * sizeof(T));
}

// Rows begin … end - 1 of the result.
template <class T>
[[gnu::always_inline]] inline void multiply_rows(const Product<T>& p, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    int64_t j = 0;
    for (; j + 8 * kLanes<T> <= p.columns; j += 8 * kLanes<T>) multiply_block<8>(p, r, j, 8 * kLanes<T>);
    for (; j + 2 * kLanes<T> <= p.columns; j += 2 * kLanes<T>) multiply_block<2>(p, r, j, 2 * kLanes<T>);
    for (; j < p.columns; j += kLanes<T>) multiply_block<1>(p, r, j, std::min(kLanes<T>, p.columns - j));
  }
}

#ifdef __x86_64__
template <class T>
__attribute__((target("avx2"))) void multiply_rows_avx2(const Product<T>& p, int64_t begin, int64_t end) {
  multiply_rows(p, begin, end);
}
#endif
template <class T>
void multiply_rows_plain(const Product<T>& p, int64_t begin, int64_t end) {
  multiply_rows(p, begin, end);
}

template <class T>
void multiply(const LibraryCall& call) {
  const auto* row = static_cast<const int64_t*>(call.inputs[0].data);
  int64_t entries = call.inputs[2].sizes[0], inner = call.inputs[3].sizes[0], rows = call.outputs[0].sizes[0];
  Product<T> p;
  p.column = static_cast<const int64_t*>(call.inputs[1].data);
  p.values = static_cast<const T*>(call.inputs[2].data);
  p.dense = static_cast<const T*>(call.inputs[3].data);
  p.out = static_cast<T*>(call.outputs[0].data);
  p.columns = call.outputs[0].sizes[1];
  p.entry = by_row(row, p.column, entries, rows, inner);
  auto run = multiply_rows_plain<T>;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) run = multiply_rows_avx2<T>;
#endif
  int64_t work = (entries / std::max<int64_t>(rows, 1) + 1) * std::max<int64_t>(p.columns, 1);
  runtime::parallel_for(rows, std::max<int64_t>(1, 32768 / work),
                        [&](int64_t begin, int64_t end) { run(p, begin, end); });
}

void run(const LibraryCall& call) {
  call.outputs[0].dtype == DType::Float32 ? multiply<float>(call) : multiply<double>(call);
}

}  // namespace

// A row's entries are added in the order in which they come.
const Implementation kSparseMm = {.library = "host", .name = "sparse_mm", .primitive = "prim::sparse_mm", .run = run};

}  // namespace brasa::compiler
