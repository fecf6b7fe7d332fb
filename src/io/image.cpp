#include <brasa/image.h>

#include "io/pixels.h"
#include "support/error.h"
#include "support/mapped_file.h"
#include "support/output_file.h"

namespace brasa::io {
namespace {

void write_bytes(const Tensor& bytes, const std::string& path) {
  OutputFile file(path);
  file.write(bytes.const_data_ptr(), bytes.nbytes());
  file.commit();
}

}  // namespace

Tensor decode_image(Bytes bytes, const ImageOptions& options, const std::string& source) {
  if (looks_like_jpeg(bytes)) return decode_jpeg(bytes, options, source);
  if (looks_like_png(bytes)) return decode_png(bytes, options, source);
  fail(str(source, ": it begins neither as a JPEG nor as a PNG file"));
}

Tensor read_image(const std::string& path, const ImageOptions& options) {
  return decode_image(map_file(path).bytes, options, path);
}

void write_jpeg(const Tensor& image, const std::string& path, int quality) {
  write_bytes(encode_jpeg(image, quality), path);
}
void write_png(const Tensor& image, const std::string& path, int compression_level) {
  write_bytes(encode_png(image, compression_level), path);
}

}  // namespace brasa::io
