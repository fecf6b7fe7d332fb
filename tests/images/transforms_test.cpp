#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/data.h>
#include <brasa/error.h>
#include <brasa/image.h>

#include <cstdio>
#include <filesystem>

#include "error_of.h"

namespace brasa::data::transforms {
namespace {

namespace fs = std::filesystem;
using enum InterpolationMode;

const fs::path kData = fs::path(BRASA_TEST_DATA) / "images";

Tensor photograph() { return io::read_image((kData / "good/color.png").string()); }
Tensor difference(const Tensor& a, const Tensor& b) { return (a.to(kFloat32) - b.to(kFloat32)).abs(); }

TEST(ImageTransforms, ResizeIsPils) {
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(kData / "resized")) {
    std::string name = entry.path().filename().string();  // "bicubic.10x16.png"
    int height = 0, width = 0;
    ASSERT_EQ(std::sscanf(name.c_str() + name.find('.'), ".%dx%d", &height, &width), 2) << name;
    Tensor got = resize(photograph(), {height, width}, name.starts_with("bicubic") ? Bicubic : Bilinear);
    Tensor expected = io::read_image(entry.path().string());
    ASSERT_EQ(got.sizes(), expected.sizes()) << name;
    EXPECT_EQ(got.scalar_type(), kUInt8);
    Tensor off = difference(got, expected);
    EXPECT_LE(off.max().item<float>(), 1) << name;
    EXPECT_LE(off.mean().item<float>(), 0.05) << name;  // PIL's fixed-point weights: halves go either way
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

TEST(ImageTransforms, ResizeOfNumbersIsThatOfBytesBeforeRounding) {
  Tensor x = photograph();
  for (InterpolationMode mode : {Bilinear, Bicubic})
    for (bool antialias : {true, false}) {
      Tensor exact = resize(x.to(kFloat32), {11, 19}, mode, {}, antialias);
      EXPECT_EQ(exact.scalar_type(), kFloat32);
      // Bytes are rounded twice; a cubic's overshoot is cut between.
      EXPECT_LE(difference(resize(x, {11, 19}, mode, {}, antialias), exact.clamp(0, 255)).mean().item<float>(), 0.5);
      EXPECT_TRUE(resize(x.to(kInt32), {11, 19}, mode, {}, antialias).equal(exact.round().to(kInt32)));
    }
  // Without antialiasing fewer of the pixels take part.
  EXPECT_GT(difference(resize(x, {5, 8}), resize(x, {5, 8}, Bilinear, {}, false)).max().item<float>(), 1);
}

TEST(ImageTransforms, ResizeKeepsProportionsForOneNumber) {
  auto sizes = [](const Tensor& x) { return std::vector<int64_t>{x.size(-2), x.size(-1)}; };
  Tensor x = photograph();  // 27 x 40
  EXPECT_EQ(sizes(resize(x, {10})), (std::vector<int64_t>{10, 14}));
  EXPECT_EQ(sizes(resize(x.transpose(1, 2), {10})), (std::vector<int64_t>{14, 10}));
  EXPECT_EQ(sizes(resize(x, {33})), (std::vector<int64_t>{33, 48}));
  EXPECT_EQ(sizes(resize(x, {10}, Bilinear, 13)), (std::vector<int64_t>{9, 13}));
  EXPECT_EQ(sizes(resize(x, {33}, Bilinear, 36)), (std::vector<int64_t>{24, 36}));
  EXPECT_EQ(resize(x, {27}).data_ptr(), x.data_ptr());
  EXPECT_TRUE(resize(stack({x, x}), {9, 9})[1].equal(resize(x, {9, 9})));
}

TEST(ImageTransforms, CenterCropIsTheMiddle) {
  Tensor x = photograph();
  EXPECT_TRUE(center_crop(x, {7, 20}).equal(x.narrow(1, 10, 7).narrow(2, 10, 20)));
  EXPECT_TRUE(center_crop(x, {20}).equal(x.narrow(1, 4, 20).narrow(2, 10, 20)));  // 3.5 rounds to 4
  EXPECT_TRUE(center_crop(x, {26}).equal(x.narrow(1, 0, 26).narrow(2, 7, 26)));   // 0.5 rounds to 0
  Tensor wide = center_crop(x, {30, 20});
  EXPECT_TRUE(wide.narrow(1, 1, 27).equal(x.narrow(2, 10, 20)));
  EXPECT_EQ(wide.select(1, 0).sum().item<int64_t>() + wide.narrow(1, 28, 2).sum().item<int64_t>(), 0);
}

TEST(ImageTransforms, NormalizeIsByChannel) {
  Tensor x = photograph().to(kFloat32) / 255;
  Tensor y = normalize(x, {0.5, 0.25, 0.1}, {0.5, 2, 1});
  EXPECT_TRUE(y[1].equal((x[1] - 0.25) / 2));
  EXPECT_TRUE(normalize(stack({x, x}), {0.5, 0.25, 0.1}, {0.5, 2, 1})[1].equal(y));
}

TEST(ImageTransforms, AreCompiledWithWhatFollows) {
  auto prepare = [](const Tensor& x) {
    return normalize(center_crop(resize(x, {20}, Bicubic), {16}).to(kFloat32) / 255, {0.5, 0.5, 0.5}, {0.2, 0.2, 0.2});
  };
  Tensor x = photograph();
  EXPECT_LE(difference(compile(prepare, {.fullgraph = true})(x), prepare(x)).max().item<float>(), 1e-5);
}

TEST(ImageTransforms, MistakesAreErrors) {
  Tensor x = photograph(), f = x.to(kFloat32);
  EXPECT_EQ(error_of([&] { resize(x[0], {5}); }),
            "resize: expected [channels, height, width], or a batch of them, got [27, 40]");
  EXPECT_EQ(error_of([&] { resize(x, {5, 0}); }), "resize: expected a size of one or two positive numbers, got [5, 0]");
  EXPECT_EQ(error_of([&] { resize(x, {5, 5}, Bilinear, 9); }),
            "resize: max_size goes with a size of one number, got [5, 5]");
  EXPECT_EQ(error_of([&] { resize(x, {5}, Bilinear, 5); }),
            "resize: expected a max_size above the shorter side's, 5, got 5");
  EXPECT_EQ(error_of([&] { resize(x.narrow(1, 0, 0), {5}); }), "resize: the image is empty: [3, 0, 40]");
  EXPECT_EQ(error_of([&] { center_crop(x, {1, 2, 3}); }),
            "center_crop: expected a size of one or two positive numbers, got [1, 2, 3]");
  EXPECT_EQ(error_of([&] { normalize(x, {0, 0, 0}, {1, 1, 1}); }),
            "normalize: expected a floating-point image, got uint8; image.to(kFloat32) / 255 makes one of uint8");
  EXPECT_EQ(error_of([&] { normalize(f, {0, 0}, {1, 1, 1}); }),
            "normalize: expected 3 means and deviations, one a channel, got 2 and 3");
  EXPECT_EQ(error_of([&] { normalize(f, {0, 0, 0}, {1, 0, 1}); }), "normalize: a stddev is zero");
}

}  // namespace
}  // namespace brasa::data::transforms
