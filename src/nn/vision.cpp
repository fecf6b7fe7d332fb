#include <brasa/nn/modules/vision.h>

#include <brasa/nn/functional.h>

#include "nn/print.h"

namespace brasa::nn {

void PixelShuffleImpl::pretty_print(std::ostream& s) const {
  Described(s, "PixelShuffle")("upscale_factor", options.upscale_factor());
}
Tensor PixelShuffleImpl::forward(const Tensor& input) { return functional::pixel_shuffle(input, options); }

void PixelUnshuffleImpl::pretty_print(std::ostream& s) const {
  Described(s, "PixelUnshuffle")("downscale_factor", options.downscale_factor());
}
Tensor PixelUnshuffleImpl::forward(const Tensor& input) { return functional::pixel_unshuffle(input, options); }

}  // namespace brasa::nn
