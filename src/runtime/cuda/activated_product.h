#pragma once

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/epilogue.h"

// Products whose elements become something else before they are read.
namespace brasa::runtime::cuda {

/// result = epilogue(left · right + bias, other), rounded before and after: by a kernel of tiles where that is as fast as the library, which is measured
/// if `measuring` says so, else by the library and a kernel of elements. `count` is 1.
void run_product(const Product& product, const AfterProduct& after, Device& device, Stream stream,
                 Measuring* measuring);

}  // namespace brasa::runtime::cuda
