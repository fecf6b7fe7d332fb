#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>

#include <brasa/brasa.h>

#include "io/c_errors.h"
#include "io/pixels.h"
#include "support/error.h"
#include "support/shared_library.h"

namespace brasa::io {
namespace {

// The layout of its structs is the header's: each of the two versions of the interface has a library of its own.
constexpr SharedLibrary kJpeg = JPEG_LIB_VERSION >= 80
                                    ? SharedLibrary{"libjpeg.so.8", "libjpeg-turbo8", "a JPEG image"}
                                    : SharedLibrary{"libjpeg.so.62", "libjpeg62-turbo", "a JPEG image"};
#define JPEG(name) BRASA_SYMBOL(kJpeg, jpeg_##name)

// A progressive file repeats the whole image in each scan, which a few bytes may be; encoders write about ten.
constexpr int kMostScans = 100;

// What libjpeg warns of and goes on after, with pixels that are the file's.
bool is_harmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_ADOBE_XFORM || warning == JWRN_BOGUS_PROGRESSION ||
         warning == JWRN_JFIF_MAJOR;
}

struct Errors : jpeg_error_mgr {
  explicit Errors(const std::string& source) : c(source) {
    JPEG(std_error)(this);
    error_exit = [](j_common_ptr info) {
      char text[JMSG_LENGTH_MAX];
      info->err->format_message(info, text);
      of(info).c.raise(text);
    };
    emit_message = [](j_common_ptr info, int level) {
      if (level < 0 && !is_harmless(info->err->msg_code)) info->err->error_exit(info);
    };
  }
  static Errors& of(j_common_ptr info) { return *static_cast<Errors*>(info->err); }
  CErrors c;
};

class Decoder {
 public:
  Decoder(Bytes bytes, const std::string& source) : errors_(source) {
    info_.err = &errors_;
    progress_.progress_monitor = [](j_common_ptr info) {
      if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
      char text[40];
      std::snprintf(text, sizeof text, "more than %d scans", kMostScans);
      Errors::of(info).c.raise(text);
    };
    run([&] {
      JPEG(CreateDecompress)(&info_, JPEG_LIB_VERSION, sizeof info_);
      JPEG(mem_src)(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
      info_.progress = &progress_;
    });
  }
  ~Decoder() { JPEG(destroy_decompress)(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  template <class F>
  void run(F f) {
    errors_.c.run(f);
  }
  jpeg_decompress_struct* operator->() { return &info_; }
  j_decompress_ptr info() { return &info_; }

 private:
  Errors errors_;
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

int orientation_of(const jpeg_decompress_struct& info) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  for (jpeg_saved_marker_ptr m = info.marker_list; m; m = m->next) {
    std::string_view data(reinterpret_cast<const char*>(m->data), m->data_length);
    if (data.starts_with(kExif)) return exif_orientation(std::as_bytes(std::span(data).subspan(kExif.size())));
  }
  return 1;
}

// Each 8 x 8 block of a component takes at least one bit of Huffman's code.
bool can_hold(const jpeg_decompress_struct& info, size_t bytes) {
  uint64_t blocks = 0;
  for (int i = 0; i < info.num_components; ++i)
    blocks += uint64_t{info.comp_info[i].width_in_blocks} * info.comp_info[i].height_in_blocks;
  return blocks / 8 <= bytes;
}

// CMYK to RGB or gray, in place. Adobe's programs write inverted values: 255 is no ink.
void convert_cmyk(uint8_t* row, int64_t width, int channels, bool inverted) {
  const uint8_t* from = row;
  for (int64_t x = 0; x < width; ++x, from += 4) {
    int rgb[3], k = inverted ? from[3] : 255 - from[3];
    for (int c = 0; c < 3; ++c) rgb[c] = ((inverted ? from[c] : 255 - from[c]) * k + 127) / 255;
    if (channels == 3)
      for (int v : rgb) *row++ = static_cast<uint8_t>(v);
    else  // the luminance of ITU-R BT.601, in 65536ths
      *row++ = static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
  }
}

}  // namespace

bool looks_like_jpeg(Bytes bytes) { return bytes.size() >= 3 && std::memcmp(bytes.data(), "\xff\xd8\xff", 3) == 0; }

Tensor decode_jpeg(Bytes bytes, const ImageOptions& options, const std::string& source) {
  bool as_stored = options.mode == ImageReadMode::Unchanged, gray = options.mode == ImageReadMode::Gray;
  BRASA_CHECK(as_stored || gray || options.mode == ImageReadMode::Rgb, source,
              ": JPEG files have no alpha; expected the mode Unchanged, Gray or Rgb");
  Decoder d(bytes, source);
  d.run([&] {
    if (options.apply_exif_orientation) JPEG(save_markers)(d.info(), JPEG_APP0 + 1, 0xffff);
    JPEG(read_header)(d.info(), TRUE);
  });
  ImageSize size{d->image_width, d->image_height};
  check_pixels(size, options.max_pixels, source);
  BRASA_CHECK(!d->arith_code, source, ": a JPEG file with arithmetic coding; expected Huffman's");
  if (!can_hold(*d.info(), bytes.size())) fail_too_few_bytes(size, bytes.size(), source);
  BRASA_CHECK(d->num_components <= 4, source, ": ", d->num_components, " channels; expected at most 4");

  bool from_cmyk = !as_stored && d->out_color_space == JCS_CMYK;
  if (!as_stored && !from_cmyk) d->out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  d.run([&] { JPEG(start_decompress)(d.info()); });
  int channels = as_stored ? d->output_components : gray ? 1 : 3;
  Planes planes(size, channels, options.apply_exif_orientation ? orientation_of(*d.info()) : 1);
  std::vector<uint8_t> row(static_cast<size_t>(size.width) * static_cast<size_t>(d->output_components));
  d.run([&] {
    while (d->output_scanline < d->output_height) {
      JSAMPROW at = row.data();
      int64_t y = d->output_scanline;
      JPEG(read_scanlines)(d.info(), &at, 1);
      if (from_cmyk) convert_cmyk(at, size.width, channels, d->saw_Adobe_marker);
      planes.put_row(y, at);
    }
    JPEG(finish_decompress)(d.info());
  });
  return planes.image();
}

Tensor encode_jpeg(const Tensor& image, int quality) {
  BRASA_CHECK(quality >= 1 && quality <= 100, "encode_jpeg: expected a quality of 1 to 100, got ", quality);
  Rows rows(image, 3, JPEG_MAX_DIMENSION, "encode_jpeg");
  BRASA_CHECK(rows.channels() != 2, "encode_jpeg: expected 1 or 3 channels, got 2");
  Errors errors("encode_jpeg");
  jpeg_compress_struct info{};
  info.err = &errors;
  unsigned char* written = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  struct Destroy {
    jpeg_compress_struct& info;
    ~Destroy() { JPEG(destroy_compress)(&info); }
  };
  errors.c.run([&] { JPEG(CreateCompress)(&info, JPEG_LIB_VERSION, sizeof info); });
  Destroy destroy{info};
  // After an error, which is a lack of memory, libjpeg does not tell what of `written` it has freed.
  errors.c.run([&] {
    JPEG(mem_dest)(&info, &written, &size);
    info.image_width = static_cast<JDIMENSION>(rows.size().width);
    info.image_height = static_cast<JDIMENSION>(rows.size().height);
    info.input_components = rows.channels();
    info.in_color_space = rows.channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
    JPEG(set_defaults)(&info);
    JPEG(set_quality)(&info, quality, TRUE);
    JPEG(start_compress)(&info, TRUE);
    for (int64_t y = 0; y < rows.size().height; ++y) {
      JSAMPROW row = const_cast<JSAMPROW>(rows.row(y));  // which it only reads
      JPEG(write_scanlines)(&info, &row, 1);
    }
    JPEG(finish_compress)(&info);
  });
  std::unique_ptr<unsigned char, void (*)(void*)> owned(written, std::free);
  Tensor out = empty({static_cast<int64_t>(size)}, TensorOptions().dtype(kUInt8).device(kCPU));
  std::memcpy(out.data_ptr(), written, size);
  return out;
}

}  // namespace brasa::io
