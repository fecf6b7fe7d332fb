#pragma once

#include <brasa/nn.h>

namespace models {

struct UNetOptions {
  int64_t channels = 3, classes = 2, width = 32, depth = 4;
};

/// Ronneberger et al. 2015 with padding and batch norm: `depth` times half the size and twice the channels, and back again beside what
/// was there on the way down. [n, channels, h, w] -> [n, classes, h, w]; h and w are multiples of 2^depth.
struct UNetImpl : brasa::nn::Module {
  explicit UNetImpl(const UNetOptions& options = {});
  brasa::Tensor forward(const brasa::Tensor& images);
  brasa::nn::Sequential first{nullptr};
  std::vector<brasa::nn::Sequential> down, merge;  // merge[i] and up[i] undo down[i]
  std::vector<brasa::nn::ConvTranspose2d> up;
  brasa::nn::Conv2d last{nullptr};
};
BRASA_MODULE(UNet);

}  // namespace models
