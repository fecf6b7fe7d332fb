#pragma once

#include <optional>

#include "ops/table.h"

// Convolutions that a target computes whole, with channels beside each other in memory.
namespace brasa::ops {

/// A convolution's steps along each place; zeros stand on both sides.
struct ConvolutionSteps {
  ir::Shape stride, padding, dilation;
  ir::Expr groups;
};

/// x convolved with w, [n, channels, places…], where the target takes it.
std::optional<Value> convolution_of_target(Value x, Value w, const ConvolutionSteps& steps);
/// The same linear map's transpose: what has places of these sizes, of what the convolution would make of it.
std::optional<Value> transposed_convolution_of_target(Value x, Value w, const ir::Shape& size,
                                                      const ConvolutionSteps& steps);

/// Its rows, which belong to the family of convolutions.
void add_channels_last(Table& t);

}  // namespace brasa::ops
