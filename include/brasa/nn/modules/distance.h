#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

BRASA_LAYER(CosineSimilarity, const Tensor& x1, const Tensor& x2);
/// ‖x1 - x2 + eps‖_p over the last dimension.
BRASA_LAYER(PairwiseDistance, const Tensor& x1, const Tensor& x2);

}  // namespace brasa::nn
