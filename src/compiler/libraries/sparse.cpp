#include <algorithm>
#include <vector>

#include "compiler/libraries/rows.h"
#include "runtime/thread_pool.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

// So many columns of a result's row are summed up in registers and the first cache.
constexpr int64_t kBlock = 64;

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
void multiply(const LibraryCall& call) {
  const auto *row = static_cast<const int64_t*>(call.inputs[0].data),
             *column = static_cast<const int64_t*>(call.inputs[1].data);
  const auto *values = static_cast<const T*>(call.inputs[2].data), *dense = static_cast<const T*>(call.inputs[3].data);
  auto* out = static_cast<T*>(call.outputs[0].data);
  int64_t entries = call.inputs[2].sizes[0], inner = call.inputs[3].sizes[0];
  int64_t rows = call.outputs[0].sizes[0], columns = call.outputs[0].sizes[1];
  ByRow entry = by_row(row, column, entries, rows, inner);
  int64_t work = (entries / std::max<int64_t>(rows, 1) + 1) * std::max<int64_t>(columns, 1);
  runtime::parallel_for(rows, std::max<int64_t>(1, 32768 / work), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t j = 0; j < columns; j += kBlock) {
        T sum[kBlock] = {};
        int64_t width = std::min(kBlock, columns - j);
        for (int64_t k = entry.starts[r]; k < entry.starts[r + 1]; ++k) {
          int64_t e = entry.order.empty() ? k : entry.order[k];
          T v = values[e];
          const T* from = dense + column[e] * columns + j;
          if (width == kBlock)
            for (int64_t i = 0; i < kBlock; ++i) sum[i] += v * from[i];
          else
            for (int64_t i = 0; i < width; ++i) sum[i] += v * from[i];
        }
        std::copy(sum, sum + width, out + r * columns + j);
      }
  });
}

void run(const LibraryCall& call) {
  if (call.outputs[0].dtype == DType::Float32)
    multiply<float>(call);
  else
    multiply<double>(call);
}

}  // namespace

// A row's entries are added in the order in which they come.
const Implementation kSparseMm = {
    .name = "sparse_mm",
    .primitive = "prim::sparse_mm",
    .run = run,
};

}  // namespace brasa::compiler
