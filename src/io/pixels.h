#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <brasa/image.h>

namespace brasa::io {

using Bytes = std::span<const std::byte>;

/// What a file's header says, before anything of that size exists.
struct ImageSize {
  int64_t width, height;
};

/// brasa::Error if there are more than `most` pixels.
void check_pixels(ImageSize size, int64_t most, const std::string& source);
/// brasa::Error for a file whose `bytes` cannot hold the image, however well it is compressed.
[[noreturn]] void fail_too_few_bytes(ImageSize size, size_t bytes, const std::string& source);

/// The planes of a tensor that rows of a file are written into, turned as its EXIF data says: `orientation` is 1 to 8.
class Planes {
 public:
  Planes(ImageSize size, int channels, int orientation);
  /// `pixels` has the channels of one pixel after another. Allocates and throws nothing.
  void put_row(int64_t y, const uint8_t* pixels);
  Tensor image() const { return image_; }

 private:
  ImageSize size_;
  int channels_;
  Tensor image_;
  uint8_t* first_;  // of the file's first pixel
  int64_t right_, down_, plane_;
};

/// Rows of an image to write, the channels of one pixel after another.
class Rows {
 public:
  /// brasa::Error, with the function's name, for what is not uint8 [channels, height, width] with at most `most_channels`, or is empty or larger
  /// than `most_side`.
  Rows(const Tensor& image, int64_t most_channels, int64_t most_side, const char* function);
  ImageSize size() const { return size_; }
  int channels() const { return channels_; }
  const uint8_t* row(int64_t y) const;

 private:
  Tensor pixels_;  // [height, width, channels]
  ImageSize size_;
  int channels_;
};

/// The orientation that EXIF data gives, which begins with its byte order: 1 to 8, and 1 where it says none or is damaged.
int exif_orientation(Bytes exif);

bool looks_like_jpeg(Bytes bytes);
Tensor decode_jpeg(Bytes bytes, const ImageOptions& options, const std::string& source);
bool looks_like_png(Bytes bytes);
Tensor decode_png(Bytes bytes, const ImageOptions& options, const std::string& source);

}  // namespace brasa::io
