#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

/// [N, C·r², H, W] to [N, C, H·r, W·r], and back.
BRASA_LAYER(PixelShuffle, const Tensor& input);
BRASA_LAYER(PixelUnshuffle, const Tensor& input);

/// Resamples [N, C, spatial…].
BRASA_LAYER(Upsample, const Tensor& input);

}  // namespace brasa::nn
