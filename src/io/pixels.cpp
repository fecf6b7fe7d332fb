#include "io/pixels.h"

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::io {

void check_pixels(ImageSize size, int64_t most, const std::string& source) {
  int64_t pixels = 0;
  bool overflow = __builtin_mul_overflow(size.width, size.height, &pixels);
  BRASA_CHECK(!overflow && pixels <= most, source, ": ", size.width, " x ", size.height,
              " pixels; expected at most max_pixels = ", most);
}

void fail_too_few_bytes(ImageSize size, size_t bytes, const std::string& source) {
  fail(str(source, ": ", size.width, " x ", size.height, " pixels cannot come from ", bytes,
           " bytes; the file is damaged or incomplete"));
}

Planes::Planes(ImageSize size, int channels, int orientation) : size_(size), channels_(channels) {
  // 1 to 4 keep rows; 5 to 8 make columns of them.
  bool turned = orientation >= 5;
  bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  int64_t height = turned ? size.width : size.height, width = turned ? size.height : size.width;
  image_ = empty({channels, height, width}, TensorOptions().dtype(kUInt8).device(kCPU));
  plane_ = height * width;
  right_ = turned ? width : 1;
  down_ = turned ? 1 : width;
  first_ = static_cast<uint8_t*>(image_.data_ptr());
  if (from_right) first_ += (size.width - 1) * right_, right_ = -right_;
  if (from_below) first_ += (size.height - 1) * down_, down_ = -down_;
}

void Planes::put_row(int64_t y, const uint8_t* pixels) {
  for (int c = 0; c < channels_; ++c) {
    uint8_t* to = first_ + c * plane_ + y * down_;
    const uint8_t* from = pixels + c;
    for (int64_t x = 0; x < size_.width; ++x, to += right_, from += channels_) *to = *from;
  }
}

Rows::Rows(const Tensor& image, int64_t most_channels, int64_t most_side, const char* function) {
  BRASA_CHECK(image.defined(), function, ": the image is undefined");
  BRASA_CHECK(image.layout() == kStrided && image.scalar_type() == kUInt8 && image.dim() == 3, function,
              ": expected uint8 [channels, height, width], got ", name(image.scalar_type()), image.sizes());
  channels_ = static_cast<int>(image.size(0));
  size_ = {image.size(2), image.size(1)};
  BRASA_CHECK(channels_ >= 1 && image.size(0) <= most_channels, function, ": expected 1 to ", most_channels,
              " channels, got ", image.size(0));
  BRASA_CHECK(size_.width >= 1 && size_.height >= 1 && size_.width <= most_side && size_.height <= most_side, function,
              ": ", size_.width, " x ", size_.height, " pixels; expected 1 to ", most_side, " in each direction");
  pixels_ = image.detach().cpu().permute({1, 2, 0}).contiguous();
}

const uint8_t* Rows::row(int64_t y) const {
  return static_cast<const uint8_t*>(pixels_.const_data_ptr()) + y * size_.width * channels_;
}

int exif_orientation(Bytes exif) {
  constexpr int kNone = 1;
  constexpr unsigned kTag = 0x0112, kShort = 3;
  auto at = [&](size_t i) { return std::to_integer<unsigned>(exif[i]); };
  if (exif.size() < 8 || at(0) != at(1) || (at(0) != 'I' && at(0) != 'M')) return kNone;
  bool little = at(0) == 'I';
  auto number = [&](size_t i, size_t bytes) {
    size_t n = 0;
    for (size_t k = 0; k < bytes; ++k) n = n << 8 | at(little ? i + bytes - 1 - k : i + k);
    return n;
  };
  // The first directory: a count, then entries of 12 bytes: tag, type, how many, value.
  size_t directory = number(4, 4);
  if (directory > exif.size() || exif.size() - directory < 2) return kNone;
  size_t entries = number(directory, 2), entry = directory + 2;
  for (size_t i = 0; i < entries && exif.size() - entry >= 12; ++i, entry += 12) {
    if (number(entry, 2) != kTag) continue;
    size_t value = number(entry + 8, 2);
    return number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : kNone;
  }
  return kNone;
}

}  // namespace brasa::io
