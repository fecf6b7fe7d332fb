#pragma once

#include <optional>
#include <vector>

#include <brasa/arg.h>
#include <brasa/enum.h>

namespace brasa::nn {

/// The output's sizes, or factors of the input's.
struct UpsampleOptions {
  using mode_t =
      Choice<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic, enumtype::kTrilinear>;
  BRASA_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  BRASA_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  BRASA_ARG(mode_t, mode) = kNearest;
  BRASA_ARG(std::optional<bool>, align_corners) = std::nullopt;
};

struct PixelShuffleOptions {
  PixelShuffleOptions(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}  // NOLINT
  BRASA_ARG(int64_t, upscale_factor);
};
struct PixelUnshuffleOptions {
  PixelUnshuffleOptions(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}  // NOLINT
  BRASA_ARG(int64_t, downscale_factor);
};

namespace functional {

struct InterpolateFuncOptions {
  using mode_t = Choice<enumtype::kNearest, enumtype::kLinear, enumtype::kBilinear, enumtype::kBicubic,
                        enumtype::kTrilinear, enumtype::kArea, enumtype::kNearestExact>;
  BRASA_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  BRASA_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  BRASA_ARG(mode_t, mode) = kNearest;
  BRASA_ARG(std::optional<bool>, align_corners) = std::nullopt;
  /// Interpolate by the ratio of the sizes rather than by the factor given.
  BRASA_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
  BRASA_ARG(bool, antialias) = false;
};
struct GridSampleFuncOptions {
  using mode_t = Choice<enumtype::kBilinear, enumtype::kNearest>;
  using padding_mode_t = Choice<enumtype::kZeros, enumtype::kBorder, enumtype::kReflection>;
  BRASA_ARG(mode_t, mode) = kBilinear;
  BRASA_ARG(padding_mode_t, padding_mode) = kZeros;
  BRASA_ARG(std::optional<bool>, align_corners) = std::nullopt;
};
using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;

}  // namespace functional
}  // namespace brasa::nn
