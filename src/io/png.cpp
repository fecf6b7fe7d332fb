#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include <png.h>

#include <brasa/brasa.h>

#include "io/c_errors.h"
#include "io/pixels.h"
#include "support/error.h"
#include "support/shared_library.h"

namespace brasa::io {
namespace {

constexpr SharedLibrary kPng{"libpng16.so.16", "libpng16-16", "a PNG image"};
#define PNG(name) BRASA_SYMBOL(kPng, png_##name)

constexpr int kSignature = 8;
constexpr png_uint_32 kLongestSide = 0x7fffffff;  // of the format
constexpr int kDeflate = 1032;                    // bytes that one byte becomes at most

CErrors& errors_of(png_structp png) { return *static_cast<CErrors*>(PNG(get_error_ptr)(png)); }
void raise(png_structp png, png_const_charp text) { errors_of(png).raise(text); }
void ignore(png_structp, png_const_charp) {}

// A file in memory that libpng reads or writes.
struct Reading {
  Bytes left;
  static void read(png_structp png, png_bytep to, size_t size) {
    Bytes& left = static_cast<Reading*>(PNG(get_io_ptr)(png))->left;
    if (size > left.size()) errors_of(png).raise("the file ends early");
    std::memcpy(to, left.data(), size);
    left = left.subspan(size);
  }
};
struct Writing {
  std::vector<png_byte> bytes;
  static void write(png_structp png, png_bytep from, size_t size) {
    auto& bytes = static_cast<Writing*>(PNG(get_io_ptr)(png))->bytes;
    const char* failed = nullptr;
    try {
      bytes.insert(bytes.end(), from, from + size);
    } catch (const std::exception& e) {
      failed = e.what();
    }
    if (failed) errors_of(png).raise(failed);
  }
};

// libpng's two structs, for either direction.
class Png {
 public:
  enum Direction { kRead, kWrite };
  Png(Direction direction, const std::string& source) : direction_(direction), errors_(source) {
    errors_.run([&] {
      png_ = direction == kRead ? PNG(create_read_struct)(PNG_LIBPNG_VER_STRING, &errors_, raise, ignore)
                                : PNG(create_write_struct)(PNG_LIBPNG_VER_STRING, &errors_, raise, ignore);
      info_ = png_ ? PNG(create_info_struct)(png_) : nullptr;
    });
    BRASA_CHECK(png_, source, ": libpng cannot be used; expected version 1.6, and memory for it");
  }
  ~Png() {
    if (direction_ == kRead)
      PNG(destroy_read_struct)(&png_, &info_, nullptr);
    else
      PNG(destroy_write_struct)(&png_, &info_);
  }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;

  // `f` is given the two structs.
  template <class F>
  void run(F f) {
    errors_.run([&] { f(png_, info_); });
  }

 private:
  Direction direction_;
  CErrors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

struct Header {
  png_uint_32 width, height;
  int bits, color_type, interlace;
  bool transparent;  // one colour of a palette, or of a file without alpha
  int channels() const {
    bool color = color_type & PNG_COLOR_MASK_COLOR, palette = color_type & PNG_COLOR_MASK_PALETTE;
    return (color && !palette ? 3 : 1) + (color_type & PNG_COLOR_MASK_ALPHA ? 1 : 0);
  }
};

// What libpng makes of each row: 8 bits a channel, the channels of `mode`.
void ask_for(png_structp png, const Header& h, ImageReadMode mode) {
  using enum ImageReadMode;
  bool has_color = h.color_type & PNG_COLOR_MASK_COLOR,
       has_alpha = h.color_type & PNG_COLOR_MASK_ALPHA || h.transparent;
  bool color = mode == Unchanged ? has_color : mode == Rgb || mode == RgbAlpha;
  bool alpha = mode == Unchanged ? has_alpha : mode == GrayAlpha || mode == RgbAlpha;
  PNG(set_expand)(png);
  PNG(set_scale_16)(png);
  if (color && !has_color) PNG(set_gray_to_rgb)(png);
  // torchvision's weights of red and green, in 100,000ths; blue has the rest.
  if (!color && has_color) PNG(set_rgb_to_gray_fixed)(png, PNG_ERROR_ACTION_NONE, 29890, 58700);
  if (alpha && !has_alpha) PNG(set_add_alpha)(png, 0xffff, PNG_FILLER_AFTER);
  if (!alpha && has_alpha) PNG(set_strip_alpha)(png);
}

// The data of the first chunk of this name: chunks are a length, a name, data and a checksum.
Bytes find_chunk(Bytes file, std::string_view name) {
  for (size_t at = kSignature; at <= file.size() && file.size() - at >= 12;) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<size_t>(file[at + i]);
    if (length > file.size() - at - 12) break;
    if (std::memcmp(file.data() + at + 4, name.data(), name.size()) == 0) return file.subspan(at + 8, length);
    at += 12 + length;
  }
  return {};
}

}  // namespace

bool looks_like_png(Bytes bytes) {
  return bytes.size() >= kSignature && std::memcmp(bytes.data(), "\x89PNG\r\n\x1a\n", kSignature) == 0;
}

Tensor decode_png(Bytes bytes, const ImageOptions& options, const std::string& source) {
  Png reader(Png::kRead, source);
  Reading reading{bytes};
  Header h{};
  reader.run([&](png_structp png, png_infop info) {
    PNG(set_read_fn)(png, &reading, Reading::read);
    PNG(set_user_limits)(png, kLongestSide, kLongestSide);
    // Texts and profiles are left alone: some are compressed, and of a colour's meaning nothing is asked.
    PNG(set_keep_unknown_chunks)(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    PNG(read_info)(png, info);
    PNG(get_IHDR)(png, info, &h.width, &h.height, &h.bits, &h.color_type, &h.interlace, nullptr, nullptr);
    h.transparent = PNG(get_valid)(png, info, PNG_INFO_tRNS) != 0;
  });
  ImageSize size{h.width, h.height};
  check_pixels(size, options.max_pixels, source);
  double least =
      static_cast<double>(size.width) * static_cast<double>(size.height) * h.channels() * h.bits / 8 / kDeflate;
  if (least > static_cast<double>(bytes.size())) fail_too_few_bytes(size, bytes.size(), source);

  int passes = 0;
  size_t row_bytes = 0;
  int channels = 0;
  reader.run([&](png_structp png, png_infop info) {
    ask_for(png, h, options.mode);
    passes = PNG(set_interlace_handling)(png);
    PNG(read_update_info)(png, info);
    row_bytes = PNG(get_rowbytes)(png, info);
    channels = PNG(get_channels)(png, info);
  });
  BRASA_ASSERT(row_bytes == h.width * static_cast<size_t>(channels));
  Planes planes(size, channels, options.apply_exif_orientation ? exif_orientation(find_chunk(bytes, "eXIf")) : 1);
  // Interlaced rows come in several passes, each of which adds pixels.
  std::vector<png_byte> pixels(passes > 1 ? row_bytes * h.height : row_bytes);
  reader.run([&](png_structp png, png_infop) {
    for (int pass = 0; pass < passes; ++pass)
      for (png_uint_32 y = 0; y < h.height; ++y) {
        png_bytep row = pixels.data() + (passes > 1 ? y * row_bytes : 0);
        PNG(read_row)(png, row, nullptr);
        if (pass + 1 == passes) planes.put_row(y, row);
      }
    PNG(read_end)(png, nullptr);
  });
  return planes.image();
}

Tensor encode_png(const Tensor& image, int compression_level) {
  BRASA_CHECK(compression_level >= 0 && compression_level <= 9,
              "encode_png: expected a compression level of 0 to 9, got ", compression_level);
  Rows rows(image, 4, kLongestSide, "encode_png");
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
  Png writer(Png::kWrite, "encode_png");
  Writing writing;
  writer.run([&](png_structp png, png_infop info) {
    PNG(set_write_fn)(png, &writing, Writing::write, [](png_structp) {});
    PNG(set_user_limits)(png, kLongestSide, kLongestSide);
    PNG(set_IHDR)(png, info, static_cast<png_uint_32>(rows.size().width), static_cast<png_uint_32>(rows.size().height),
                  8, kTypes[rows.channels() - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                  PNG_FILTER_TYPE_DEFAULT);
    PNG(set_compression_level)(png, compression_level);
    PNG(write_info)(png, info);
    for (int64_t y = 0; y < rows.size().height; ++y) PNG(write_row)(png, rows.row(y));
    PNG(write_end)(png, info);
  });
  Tensor out = empty({static_cast<int64_t>(writing.bytes.size())}, TensorOptions().dtype(kUInt8).device(kCPU));
  std::memcpy(out.data_ptr(), writing.bytes.data(), writing.bytes.size());
  return out;
}

}  // namespace brasa::io
