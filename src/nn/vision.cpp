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

void UpsampleImpl::pretty_print(std::ostream& s) const {
  Described d(s, "Upsample");
  if (options.scale_factor())
    d("scale_factor", ArrayRef<double>(*options.scale_factor()));
  else if (options.size())
    d("size", IntArrayRef(*options.size()));
  d("mode", enumtype::get_enum_name(options.mode()));
}
Tensor UpsampleImpl::forward(const Tensor& input) {
  auto o = functional::InterpolateFuncOptions()
               .size(options.size())
               .scale_factor(options.scale_factor())
               .align_corners(options.align_corners());
  o.mode(options.mode());
  return functional::interpolate(input, o);
}

}  // namespace brasa::nn
