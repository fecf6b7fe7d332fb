#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/cuda/library.h"
#include "runtime/device.h"
#include "runtime/measuring.h"

// Products of matrices by NVIDIA's cuBLASLt, which is loaded when it is first asked for; its interface is declared in cublaslt.cpp.
namespace brasa::runtime::cuda {

/// A matrix in memory, `rows` times `columns` as it is used: neighbours in a row lie `column` elements apart, in a column `row`.
struct Matrix {
  const void* data;
  int64_t row, column, batch;
};

/// result[b] = left[b] · right[b], plus `bias` in every row where there is one (of the result's dtype; one matrix, of float32 or reduced floats), rounded once;
/// neighbours in a row of the result are neighbours in memory.
struct Product {
  DType operands, result;
  int64_t rows, inner, columns, count;
  Matrix left, right;
  const void* bias;
  void* to;
  int64_t to_row, to_batch;  // how far apart its rows and matrices lie
};

/// Whether there is a cuBLASLt that Brasa can use; `why_not` says why there is none.
bool have_products(std::string* why_not = nullptr);
/// The library as it was found.
const Library& products_library();
/// 13.1.0 as 130100; 0 where there is none.
size_t products_version();
/// Whether it takes matrices of these dtypes.
bool takes_product(DType operands, DType result);
/// Whether a matrix with these steps and sizes can be one of its operands.
bool lies_well(int64_t row, int64_t column, int64_t rows, int64_t columns);

/// On the device's stream. With `measuring` the fastest of several ways is chosen when a product of this kind is first asked for.
void run_product(const Product& product, Device& device, Stream stream, Measuring* measuring = nullptr);

}  // namespace brasa::runtime::cuda
