#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/library.h"
#include "runtime/device.h"
#include "runtime/measuring.h"

// Convolutions by NVIDIA's cuDNN 9, which is loaded when it is first asked for; its interface is declared in cudnn.cpp.
namespace brasa::runtime::cuda {

/// Which of a convolution's three tensors is computed from the other two.
enum class Computed : uint8_t { Result, Image, Weight };

/// A convolution of images [n, places…, channels] with weights [outputs, kernel…, channels of a group]; its result is [n, places…, outputs].
/// All three lie in memory without gaps, of one dtype.
struct Convolution {
  Computed computed;
  DType dtype;
  std::vector<int64_t> image, weight, result;  // sizes in that order
  void *image_data, *weight_data, *result_data;
  std::vector<int64_t> stride, padding, dilation;  // by place
};

/// Whether there is a cuDNN that Brasa can use; `why_not` says why there is none.
bool have_convolutions(std::string* why_not = nullptr);
/// The library as it was found.
const Library& convolutions_library();
/// 9.13.0 as 91300; 0 where there is none.
size_t convolutions_version();
/// Whether it takes tensors of this dtype, with so many places.
bool takes_convolution(DType dtype, size_t places);

/// On the device's stream. With `measuring` the fastest of several ways is chosen when a convolution of this kind is first asked for.
void run_convolution(const Convolution& convolution, Device& device, Stream stream, Measuring* measuring = nullptr);

}  // namespace brasa::runtime::cuda
