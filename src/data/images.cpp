#include <brasa/data/images.h>

#include <algorithm>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::data::transforms {
namespace {

struct Extent {
  int64_t height, width;
};

Extent extent_of(const Tensor& image, const char* function) {
  BRASA_CHECK(image.defined(), function, ": the image is undefined");
  BRASA_CHECK(image.dim() == 3 || image.dim() == 4, function,
              ": expected [channels, height, width], or a batch of them, got ", image.sizes());
  Extent e{image.size(-2), image.size(-1)};
  BRASA_CHECK(e.height >= 1 && e.width >= 1, function, ": the image is empty: ", image.sizes());
  return e;
}

// Of {height, width}, or of one number.
void check_size(IntArrayRef size, const char* function) {
  bool right = size.size() == 1 || size.size() == 2;
  for (int64_t n : size) right = right && n >= 1;
  BRASA_CHECK(right, function, ": expected a size of one or two positive numbers, got ", size);
}

Extent resized(Extent from, IntArrayRef size, std::optional<int64_t> max_size) {
  BRASA_CHECK(size.size() == 1 || !max_size, "resize: max_size goes with a size of one number, got ", size);
  if (size.size() == 2) return {size[0], size[1]};
  BRASA_CHECK(!max_size || *max_size > size[0], "resize: expected a max_size above the shorter side's, ", size[0],
              ", got ", max_size.value_or(0));
  int64_t shorter = std::min(from.height, from.width), longer = std::max(from.height, from.width);
  int64_t to_shorter = size[0], to_longer = size[0] * longer / shorter;
  if (max_size && to_longer > *max_size) {
    to_shorter = std::max<int64_t>(*max_size * to_shorter / to_longer, 1);
    to_longer = *max_size;
  }
  return from.height < from.width ? Extent{to_shorter, to_longer} : Extent{to_longer, to_shorter};
}

// n / 2, halves to even numbers.
int64_t half(int64_t n) { return n / 2 + (n % 2 != 0 && n / 2 % 2 != 0); }

}  // namespace

Tensor resize(const Tensor& image, IntArrayRef size, InterpolationMode interpolation, std::optional<int64_t> max_size,
              bool antialias) {
  Extent from = extent_of(image, "resize");
  check_size(size, "resize");
  Extent to = resized(from, size, max_size);
  if (to.height == from.height && to.width == from.width) return image;

  bool cubic = interpolation == InterpolationMode::Bicubic;
  auto sampled = [&](const Tensor& x) {
    int64_t sizes[] = {to.height, to.width};
    IntArrayRef out(sizes);
    if (antialias) return cubic ? _upsample_bicubic2d_aa(x, out, false) : _upsample_bilinear2d_aa(x, out, false);
    return cubic ? upsample_bicubic2d(x, out, false) : upsample_bilinear2d(x, out, false);
  };
  Tensor x = image.dim() == 3 ? image.unsqueeze(0) : image;
  bool direct = image.is_floating_point() || image.scalar_type() == kUInt8;
  x = direct ? sampled(x) : sampled(x.to(kFloat32)).round().to(image.scalar_type());
  return image.dim() == 3 ? x.squeeze(0) : x;
}

Tensor center_crop(const Tensor& image, IntArrayRef output_size) {
  Extent from = extent_of(image, "center_crop");
  check_size(output_size, "center_crop");
  Extent to{output_size[0], output_size[output_size.size() - 1]};
  Tensor x = image;
  int64_t rows = std::max<int64_t>(to.height - from.height, 0), columns = std::max<int64_t>(to.width - from.width, 0);
  if (rows > 0 || columns > 0)
    x = constant_pad_nd(x, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2}, 0);
  return x.narrow(-2, half(x.size(-2) - to.height), to.height).narrow(-1, half(x.size(-1) - to.width), to.width);
}

Tensor normalize(const Tensor& image, ArrayRef<double> mean, ArrayRef<double> stddev) {
  extent_of(image, "normalize");
  BRASA_CHECK(image.is_floating_point(), "normalize: expected a floating-point image, got ", name(image.scalar_type()),
              "; image.to(kFloat32) / 255 makes one of uint8");
  auto channels = static_cast<size_t>(image.size(-3));
  BRASA_CHECK(mean.size() == channels && stddev.size() == channels, "normalize: expected ", channels,
              " means and deviations, one a channel, got ", mean.size(), " and ", stddev.size());
  for (double s : stddev) BRASA_CHECK(s != 0, "normalize: a stddev is zero");
  auto each = [&](ArrayRef<double> values) {
    return tensor(values.vec(), image.options()).view({static_cast<int64_t>(channels), 1, 1});
  };
  return (image - each(mean)) / each(stddev);
}

}  // namespace brasa::data::transforms
