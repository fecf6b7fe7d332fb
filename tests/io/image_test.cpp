#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/error.h>
#include <brasa/image.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "error_of.h"

namespace brasa::io {
namespace {

namespace fs = std::filesystem;
using enum ImageReadMode;

const fs::path kData = fs::path(BRASA_TEST_DATA) / "images";

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::string file(const std::string& name) { return (kData / "good" / name).string(); }
Tensor decode(std::string_view bytes, const ImageOptions& options = {}) {
  return decode_image(std::as_bytes(std::span(bytes.data(), bytes.size())), options);
}
std::string text(const Tensor& bytes) {
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

std::string error_of_bytes(std::string_view bytes, const ImageOptions& options = {}) {
  return error_of([&] { decode(bytes, options); });
}

// [channels, height, width] whose neighbours differ.
Tensor picture(int64_t channels, int64_t height, int64_t width) {
  return arange(channels * height * width, kCPU).mul(37).remainder(251).to(kUInt8).view({channels, height, width});
}
// A smooth one, which JPEG changes little.
Tensor smooth(int64_t channels) {
  Tensor x = arange(24, kCPU).view({1, 1, 24}), y = arange(16, kCPU).view({1, 16, 1});
  return (x * 6 + y * 5 + arange(channels, kCPU).view({channels, 1, 1}) * 20).to(kUInt8);
}
int64_t largest_difference(const Tensor& a, const Tensor& b) {
  return (a.to(kInt64) - b.to(kInt64)).abs().max().item<int64_t>();
}

TEST(Images, PngKeepsEveryPixel) {
  for (int64_t channels = 1; channels <= 4; ++channels)
    for (auto [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {64, 33}}) {
      Tensor x = picture(channels, height, width);
      Tensor back = decode(text(encode_png(x)));
      EXPECT_TRUE(back.equal(x)) << channels << ", " << height << " x " << width;
      EXPECT_TRUE(back.is_contiguous());
    }
}

TEST(Images, EncodersTakeAnyStrides) {
  Tensor x = picture(3, 8, 9);
  Tensor rows = x.permute({1, 2, 0}).contiguous().permute({2, 0, 1});
  EXPECT_EQ(text(encode_png(rows)), text(encode_png(x)));
  EXPECT_EQ(text(encode_jpeg(rows)), text(encode_jpeg(x)));
  EXPECT_LT(encode_png(x, 9).numel(), encode_png(x, 0).numel());
}

TEST(Images, JpegIsCloseAndItsQualityMatters) {
  for (int64_t channels : {1, 3}) {
    Tensor x = smooth(channels);
    Tensor back = decode(text(encode_jpeg(x, 95)));
    EXPECT_EQ(back.sizes(), x.sizes());
    EXPECT_LE(largest_difference(back, x), 12);
    EXPECT_LT(encode_jpeg(x, 20).numel(), encode_jpeg(x, 95).numel());
  }
}

TEST(Images, ModesGiveTheChannelsAskedFor) {
  std::string color = text(encode_png(picture(3, 4, 5))), gray = text(encode_png(picture(1, 4, 5)));
  std::string both = text(encode_png(picture(2, 4, 5))), four = text(encode_png(picture(4, 4, 5)));
  for (const std::string& bytes : {color, gray, both, four}) {
    EXPECT_EQ(decode(bytes, {.mode = Gray}).size(0), 1);
    EXPECT_EQ(decode(bytes, {.mode = GrayAlpha}).size(0), 2);
    EXPECT_EQ(decode(bytes, {.mode = Rgb}).size(0), 3);
    EXPECT_EQ(decode(bytes, {.mode = RgbAlpha}).size(0), 4);
  }
  Tensor added = decode(gray, {.mode = RgbAlpha});
  EXPECT_TRUE(added.narrow(0, 0, 3).equal(picture(1, 4, 5).expand({3, 4, 5})));
  EXPECT_TRUE(added[3].equal(full({4, 5}, 255, TensorOptions().dtype(kUInt8).device(kCPU))));
  // Alpha is left out, not blended.
  EXPECT_TRUE(decode(four, {.mode = Rgb}).equal(picture(4, 4, 5).narrow(0, 0, 3)));

  std::string jpeg = text(encode_jpeg(smooth(3)));
  EXPECT_EQ(decode(jpeg, {.mode = Gray}).size(0), 1);
  EXPECT_EQ(decode(text(encode_jpeg(smooth(1))), {.mode = Rgb}).size(0), 3);
  EXPECT_EQ(error_of_bytes(jpeg, {.mode = RgbAlpha}),
            "image data: JPEG files have no alpha; expected the mode Unchanged, Gray or Rgb");
}

// Files that PIL wrote, and what PIL makes of them, or torchvision for the modes gray and unchanged.
TEST(Images, AreThoseOfPilAndTorchvision) {
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(kData / "expected")) {
    std::string name = entry.path().stem().string();  // "palette.png.rgb"
    size_t dot = name.rfind('.');
    std::string mode = name.substr(dot + 1);
    ImageOptions options;
    options.apply_exif_orientation = mode == "turned";
    options.mode = mode == "rgb" ? Rgb : mode == "gray" ? Gray : mode == "rgba" ? RgbAlpha : Unchanged;
    Tensor expected = read_image(entry.path().string()), got = read_image(file(name.substr(0, dot)), options);
    ASSERT_EQ(got.sizes(), expected.sizes()) << name;
    // A gray of CMYK or of 16 bits a colour is rounded once more, or once less.
    int64_t most = name.starts_with("sixteen") || name.starts_with("cmyk") ? 1 : 0;
    EXPECT_LE(largest_difference(got, expected), most) << name;
    ++compared;
  }
  EXPECT_GE(compared, 20u);
}

// EXIF data with an orientation, in either order of bytes, behind an image of 2 x 3.
std::string exif(char order, int orientation, uint16_t type = 3) {
  auto number = [&](unsigned n, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(n >> 8 * (order == 'I' ? i : bytes - 1 - i) & 0xff);
    return out;
  };
  return std::string(2, order) + number(42, 2) + number(8, 4) + number(2, 2) + number(0x0100, 2) + number(3, 2) +
         number(1, 4) + number(9, 2) + number(0, 2) + number(0x0112, 2) + number(type, 2) + number(1, 4) +
         number(static_cast<unsigned>(orientation), 2) + number(0, 2);
}
std::string with_exif(const std::string& jpeg, const std::string& data) {
  std::string marker = std::string("Exif\0\0", 6) + data;
  size_t length = marker.size() + 2;
  return jpeg.substr(0, 2) + "\xff\xe1" + static_cast<char>(length >> 8) + static_cast<char>(length & 0xff) + marker +
         jpeg.substr(2);
}

TEST(Images, AreTurnedAsExifSays) {
  std::string jpeg = text(encode_jpeg(smooth(3), 95));
  Tensor x = decode(jpeg), t = x.transpose(1, 2);
  Tensor turned[] = {x, x.flip({2}), x.flip({1, 2}), x.flip({1}), t, t.flip({2}), t.flip({1, 2}), t.flip({1})};
  for (char order : {'I', 'M'})
    for (int orientation = 1; orientation <= 8; ++orientation) {
      std::string bytes = with_exif(jpeg, exif(order, orientation));
      EXPECT_TRUE(decode(bytes, {.apply_exif_orientation = true}).equal(turned[orientation - 1].contiguous()))
          << order << orientation;
      EXPECT_TRUE(decode(bytes).equal(x));
    }
  // What says nothing turns nothing.
  for (const std::string& data :
       {exif('I', 9), exif('I', 0), exif('I', 6, 4), exif('X', 6), std::string(), std::string("II*")})
    EXPECT_TRUE(decode(with_exif(jpeg, data), {.apply_exif_orientation = true}).equal(x));
  std::string whole = exif('M', 6);
  for (size_t n = 0; n < whole.size() - 2; ++n)
    EXPECT_TRUE(decode(with_exif(jpeg, whole.substr(0, n)), {.apply_exif_orientation = true}).dim() == 3);
}

TEST(Images, ThatEndEarlyAreErrors) {
  for (const std::string& bytes : {text(encode_png(picture(3, 20, 20))), text(encode_jpeg(smooth(3))),
                                   read_file(file("progressive.jpg")), read_file(file("interlaced.png"))})
    for (size_t n = 0; n + 1 < bytes.size(); n += 1 + bytes.size() / 97)
      EXPECT_NE(error_of_bytes(std::string_view(bytes).substr(0, n)), "no error") << n << " of " << bytes.size();
  EXPECT_EQ(error_of_bytes(""), "image data: it begins neither as a JPEG nor as a PNG file");
  EXPECT_EQ(error_of_bytes("GIF89a"), "image data: it begins neither as a JPEG nor as a PNG file");
}

TEST(Images, ThatAreDamagedAreErrors) {
  std::string png = text(encode_png(picture(3, 20, 20)));
  png[png.size() - 15] ^= 1;  // the last byte of IDAT's checksum
  EXPECT_EQ(error_of_bytes(png), "image data: IDAT: CRC error");
  png[png.size() / 2] ^= 1;
  EXPECT_NE(error_of_bytes(png), "no error");
  std::string jpeg = text(encode_jpeg(smooth(3)));
  size_t scan = jpeg.find("\xff\xda");
  EXPECT_NE(error_of_bytes(jpeg.substr(0, scan + 30) + "\xff\xd9"), "no error");
  EXPECT_EQ(error_of([] { read_image("/nowhere/x.png"); }).substr(0, 26), "cannot open /nowhere/x.png");
}

// The size in a header, set to `side` squared.
std::string jpeg_with_side(unsigned side) {
  std::string bytes = text(encode_jpeg(smooth(3)));
  size_t frame = bytes.find("\xff\xc0") + 5;
  for (size_t i = 0; i < 4; ++i) bytes[frame + i] = static_cast<char>(side >> (i % 2 ? 0 : 8) & 0xff);
  return bytes;
}

TEST(Images, OfMorePixelsThanTheFileCanHoldAreErrors) {
  EXPECT_EQ(error_of_bytes(jpeg_with_side(60000)).substr(0, 61),
            "image data: 60000 x 60000 pixels; expected at most max_pixels");
  std::string bytes = jpeg_with_side(9000);
  EXPECT_EQ(error_of_bytes(bytes), "image data: 9000 x 9000 pixels cannot come from " + std::to_string(bytes.size()) +
                                       " bytes; the file is damaged or incomplete");
  // Its checksum is right: PIL wrote the header, and nothing else.
  EXPECT_EQ(error_of([] { read_image((kData / "bad" / "huge.png").string(), {.max_pixels = int64_t{1} << 62}); }),
            (kData / "bad" / "huge.png").string() +
                ": 2000000000 x 2000000000 pixels cannot come from 66 bytes; the file is damaged or incomplete");
  EXPECT_EQ(error_of_bytes(text(encode_png(picture(1, 10, 10))), {.max_pixels = 99}),
            "image data: 10 x 10 pixels; expected at most max_pixels = 99");
  EXPECT_EQ(decode(text(encode_png(picture(1, 10, 10))), {.max_pixels = 100}).numel(), 100);
}

TEST(Images, ThatCannotBeWrittenAreErrors) {
  Tensor x = picture(3, 4, 5);
  EXPECT_EQ(error_of([&] { encode_png(x.to(kFloat32)); }),
            "encode_png: expected uint8 [channels, height, width], got float32[3, 4, 5]");
  EXPECT_EQ(error_of([&] { encode_png(x[0]); }),
            "encode_png: expected uint8 [channels, height, width], got uint8[4, 5]");
  EXPECT_EQ(error_of([&] { encode_jpeg(picture(4, 2, 2)); }), "encode_jpeg: expected 1 to 3 channels, got 4");
  EXPECT_EQ(error_of([&] { encode_jpeg(picture(2, 2, 2)); }), "encode_jpeg: expected 1 or 3 channels, got 2");
  EXPECT_EQ(error_of([&] { encode_jpeg(x, 0); }), "encode_jpeg: expected a quality of 1 to 100, got 0");
  EXPECT_EQ(error_of([&] { encode_png(x, 10); }), "encode_png: expected a compression level of 0 to 9, got 10");
  EXPECT_EQ(error_of([&] { encode_png(picture(3, 0, 5)); }),
            "encode_png: 5 x 0 pixels; expected 1 to 2147483647 in each direction");
  EXPECT_EQ(error_of([&] { encode_jpeg(picture(1, 1, 70000)); }),
            "encode_jpeg: 70000 x 1 pixels; expected 1 to 65500 in each direction");
  EXPECT_EQ(error_of([&] { encode_png(Tensor()); }), "encode_png: the image is undefined");
}

TEST(Images, GoToFilesAndBack) {
  fs::path folder = fs::temp_directory_path() / ("brasa_images_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  Tensor x = smooth(3);
  std::string png = (folder / "x.png").string(), jpeg = (folder / "x.jpg").string();
  write_png(x, png);
  write_jpeg(x, jpeg, 90);
  EXPECT_TRUE(read_image(png).equal(x));
  EXPECT_EQ(read_file(jpeg), text(encode_jpeg(x, 90)));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace brasa::io
