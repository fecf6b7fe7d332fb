#pragma once

#include <cstdint>
#include <optional>

#include <brasa/array_ref.h>
#include <brasa/tensor.h>

/// Images to a model's input, as torchvision.transforms.functional does it on tensors. An image is [channels, height, width], or a batch of
/// such, of any dtype and on any device; `<brasa/image.h>` reads files. Each function can be compiled and exported with what follows it.
namespace brasa::data::transforms {

enum class InterpolationMode { Bilinear, Bicubic };

/// `size` is {height, width}, or one number: that of the shorter side, the other in proportion; then `max_size` bounds the longer side.
/// With `antialias` a smaller image averages over all that it leaves out, as PIL does. Integers are computed in float32 and rounded, uint8
/// after each direction, as PIL does it, too. brasa::Error for another rank and for sizes below 1.
BRASA_API Tensor resize(const Tensor& image, IntArrayRef size,
                        InterpolationMode interpolation = InterpolationMode::Bilinear,
                        std::optional<int64_t> max_size = {}, bool antialias = true);

/// The middle, of {height, width} or of one number squared, as a view; with a border of zeros where the image is smaller. Halves of
/// pixels are rounded to even numbers.
BRASA_API Tensor center_crop(const Tensor& image, IntArrayRef output_size);

/// (image - mean) / stddev, with one number a channel. brasa::Error for integers, for other counts, and for a stddev of zero.
BRASA_API Tensor normalize(const Tensor& image, ArrayRef<double> mean, ArrayRef<double> stddev);

}  // namespace brasa::data::transforms
