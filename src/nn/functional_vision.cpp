#include <cmath>
#include <sstream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "support/error.h"

namespace brasa::nn::functional {
namespace {

template <class E, class Mode>
bool is(const Mode& mode) {
  return holds_alternative<E>(mode);
}

// The output's spatial sizes.
std::vector<int64_t> sizes_of(const Tensor& input, const InterpolateFuncOptions& o) {
  int64_t dims = input.dim() - 2;
  BRASA_CHECK(o.size() || o.scale_factor(), "either size or scale_factor should be defined");
  BRASA_CHECK(!o.size() || !o.scale_factor(), "only one of size or scale_factor should be defined");
  auto check = [&](const auto& got, const char* what) {
    std::ostringstream numbers;
    numbers << ArrayRef(got);
    BRASA_CHECK(static_cast<int64_t>(got.size()) == dims, what, " shape must match input shape. Input is ", dims, "D, ",
                what, " size is ", numbers.str());
  };
  if (o.size()) {
    check(*o.size(), "size");
    return *o.size();
  }
  check(*o.scale_factor(), "scale_factor");
  std::vector<int64_t> out;
  for (int64_t d = 0; d < dims; ++d)
    out.push_back(static_cast<int64_t>(
        std::floor(static_cast<double>(input.size(d + 2)) * (*o.scale_factor())[static_cast<size_t>(d)])));
  return out;
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o) {
  bool nearest = is<enumtype::kNearest>(o.mode()), exact = is<enumtype::kNearestExact>(o.mode());
  bool area = is<enumtype::kArea>(o.mode()), cubic = is<enumtype::kBicubic>(o.mode());
  bool plain = nearest || exact || area;
  BRASA_CHECK(
      !plain || !o.align_corners(),
      "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  BRASA_CHECK(input.dim() >= 3 && input.dim() <= 5, "Input Error: Only 3D, 4D and 5D input Tensors supported (got ",
              input.dim(), "D) for the modes: nearest | linear | bilinear | bicubic | trilinear (got ",
              enumtype::get_enum_name(o.mode()), ")");
  int64_t dims = input.dim() - 2;
  std::vector<int64_t> size = sizes_of(input, o);
  auto scale = [&](size_t d) -> std::optional<double> {
    if (!o.scale_factor() || o.recompute_scale_factor().value_or(false)) return std::nullopt;
    return (*o.scale_factor())[d];
  };
  bool align = o.align_corners().value_or(false);
  BRASA_CHECK(!o.antialias() || ((is<enumtype::kBilinear>(o.mode()) || cubic) && dims == 2),
              "Anti-alias option is only supported for bilinear and bicubic modes");
  if (area)
    return dims == 1   ? brasa::adaptive_avg_pool1d(input, size)
           : dims == 2 ? brasa::adaptive_avg_pool2d(input, size)
                       : brasa::adaptive_avg_pool3d(input, size);
  if (nearest)
    return dims == 1   ? upsample_nearest1d(input, size, scale(0))
           : dims == 2 ? upsample_nearest2d(input, size, scale(0), scale(1))
                       : upsample_nearest3d(input, size, scale(0), scale(1), scale(2));
  if (exact)
    return dims == 1   ? _upsample_nearest_exact1d(input, size, scale(0))
           : dims == 2 ? _upsample_nearest_exact2d(input, size, scale(0), scale(1))
                       : _upsample_nearest_exact3d(input, size, scale(0), scale(1), scale(2));
  int64_t wanted = is<enumtype::kLinear>(o.mode()) ? 1 : is<enumtype::kTrilinear>(o.mode()) ? 3 : 2;
  constexpr const char* words[] = {"linear", "bilinear", "trilinear"};
  BRASA_CHECK(dims == wanted, "Got ", input.dim(), "D input, but ", cubic ? "bicubic" : words[wanted - 1],
              " mode needs ", wanted + 2, "D input");
  if (dims == 1) return upsample_linear1d(input, size, align, scale(0));
  if (dims == 3) return upsample_trilinear3d(input, size, align, scale(0), scale(1), scale(2));
  if (o.antialias())
    return cubic ? _upsample_bicubic2d_aa(input, size, align, scale(0), scale(1))
                 : _upsample_bilinear2d_aa(input, size, align, scale(0), scale(1));
  return cubic ? upsample_bicubic2d(input, size, align, scale(0), scale(1))
               : upsample_bilinear2d(input, size, align, scale(0), scale(1));
}

Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  BRASA_CHECK(theta.is_floating_point(), "Expected theta to have floating point type, but got ", theta.dtype().name());
  for (int64_t s : size) BRASA_CHECK(s > 0, "Expected non-zero, positive output size. Got ", size);
  BRASA_CHECK(size.size() == 4 || size.size() == 5,
              "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size ",
              size);
  int64_t dims = static_cast<int64_t>(size.size()) - 2;
  BRASA_CHECK(theta.dim() == 3 && theta.size(1) == dims && theta.size(2) == dims + 1, "Expected a batch of ", dims,
              "D affine matrices of shape Nx", dims, "x", dims + 1, " for size ", size, ". Got ", theta.sizes(), ".");
  return affine_grid_generator(theta, size, align_corners);
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& o) {
  return grid_sampler(input, grid, is<enumtype::kBilinear>(o.mode()) ? 0 : 1,
                      static_cast<int64_t>(o.padding_mode().index()), o.align_corners().value_or(false));
}

}  // namespace brasa::nn::functional
