#pragma once

#include "compiler/passes/convolution.h"

namespace brasa::compiler {

/// Whether a convolution of an image [n, places…, channels] has a kernel of three places along its first dimension, a step of 1, and so many
/// channels, results and places that fewer multiplications pay for sums before and after them. Never where numbers are strict.
bool takes_winograd(const Conv& c, const PassContext& context);

/// Winograd's minimal filtering (Lavin & Gray 2016) along the first dimension of places: four results of three taps by six products in
/// place of twelve. Each of the six is a convolution of what remains of the kernel.
ir::Value winograd_channels_last(const Conv& c, Primitives& out, const PassContext& context);

/// Likewise where each of three rows of results is a sum over many places, as in gradients by weights; of an image [n, channels, places…].
bool takes_winograd_of_places(const Conv& c, const ir::Shape& result, const PassContext& context);
ir::Value winograd_of_places(const Conv& c, const ir::Shape& result, Primitives& out, const PassContext& context);

}  // namespace brasa::compiler
