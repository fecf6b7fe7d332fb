#pragma once

#include "compiler/passes/convolution.h"

namespace brasa::compiler {

/// Whether a convolution of an image [n, places…, channels] has two or three taps of each remainder by the step along its first dimension, and
/// so many channels, results and places that fewer multiplications pay for sums before and after them. Never where numbers are strict.
bool takes_winograd(const Conv& c, const PassContext& context);

/// Winograd's minimal filtering (Lavin & Gray 2016) along the first dimension of places: four results of three taps by six products in
/// place of twelve, four of two by five in place of eight. Each product is a convolution of what remains of the kernel.
ir::Value winograd_channels_last(const Conv& c, Primitives& out, const PassContext& context);

/// Likewise where each of two or three rows of results, at steps from each other, is a sum over many places, as in gradients by weights; of an
/// image [n, channels, places…].
bool takes_winograd_of_places(const Conv& c, const ir::Shape& result, const PassContext& context);
ir::Value winograd_of_places(const Conv& c, const ir::Shape& result, Primitives& out, const PassContext& context);

}  // namespace brasa::compiler
