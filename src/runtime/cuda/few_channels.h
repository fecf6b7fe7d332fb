#pragma once

#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/ready_kernels.h"

// Convolutions of images with few channels, as the first of a network is, by kernels of our own for Hopper: cuDNN's reach a fifth of the
// tensor cores' speed there (an H200: 332 us forward and 476 by weight of 128 images of 115 x 115 x 16 with 4 x 4 taps; forward
// these take 130).
namespace brasa::runtime::cuda {

/// What a kernel is made for: taps along the rows of an image, and the columns of a result.
struct FewChannelsKind {
  DType dtype;  // float16 or bfloat16
  int channels, taps, columns;
  auto operator<=>(const FewChannelsKind&) const = default;
};

/// Whether these kernels compute it there: its taps along a row have 128 bytes together, which lie beside each other; it has 64 outputs, steps
/// of one place and no zeros around the images.
bool takes_few_channels(const Convolution& c, const Device& device);
void run_few_channels(const Convolution& c, Device& device, Stream stream);

WrittenKernel few_channels_forward(const FewChannelsKind& kind);
WrittenKernel few_channels_by_weight(const FewChannelsKind& kind);
/// Adds up what the blocks of few_channels_by_weight have, a thread for each four of the weights.
WrittenKernel few_channels_sum(const FewChannelsKind& kind);

}  // namespace brasa::runtime::cuda
