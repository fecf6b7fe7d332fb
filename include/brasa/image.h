#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <brasa/tensor.h>

/// Photographs and pictures: JPEG and PNG. `Tensor x = io::read_image("cat.jpg", {.mode = io::ImageReadMode::Rgb});`.
/// Each function is a brasa::Error with a package's name on a system without libjpeg-turbo or libpng, which are loaded by the first call.
namespace brasa::io {

/// Which channels an image is given: those of its file (1 to 4; a palette's colours as RGB or RGBA, CMYK as the four that the file has), or
/// the named ones. Alpha that a file lacks is 255; alpha that is not wanted is left out, not blended.
enum class ImageReadMode { Unchanged, Gray, GrayAlpha, Rgb, RgbAlpha };

struct ImageOptions {
  ImageReadMode mode = ImageReadMode::Unchanged;
  /// Turns the image as its EXIF data says, as a viewer does.
  bool apply_exif_orientation = false;
  /// More than these are an error, before memory is taken.
  int64_t max_pixels = int64_t{1} << 28;
};

/// uint8 [channels, height, width], contiguous, on the CPU. 16 bits a channel are rounded to 8. brasa::Error for a file that is neither JPEG
/// nor PNG, breaks its format, ends early, or has more pixels than its bytes can hold; for alpha asked of a JPEG; for arithmetic coding.
BRASA_API Tensor read_image(const std::string& path, const ImageOptions& options = {});
/// The same of bytes, which `source` names in errors.
BRASA_API Tensor decode_image(std::span<const std::byte> bytes, const ImageOptions& options = {},
                              const std::string& source = "image data");

/// The file's bytes, uint8 [bytes] on the CPU. `image` is uint8 [channels, height, width], of any strides, on any device; brasa::Error for
/// another. JPEG takes 1 or 3 channels and a quality of 1 to 100; PNG 1 to 4 and a compression level of 0 to 9.
BRASA_API Tensor encode_jpeg(const Tensor& image, int quality = 75);
BRASA_API Tensor encode_png(const Tensor& image, int compression_level = 6);
BRASA_API void write_jpeg(const Tensor& image, const std::string& path, int quality = 75);
BRASA_API void write_png(const Tensor& image, const std::string& path, int compression_level = 6);

}  // namespace brasa::io
