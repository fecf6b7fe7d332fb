#include <cmath>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "support/error.h"

namespace brasa::nn::functional {
namespace {

template <size_t D>
std::vector<int64_t> filled(const ExpandingArrayWithOptionalElem<D>& wanted, const Tensor& input) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < D; ++i)
    out.push_back((*wanted)[i].value_or(input.size(static_cast<int64_t>(i) - static_cast<int64_t>(D))));
  return out;
}
std::vector<int64_t> filled(const ExpandingArray<1>& wanted, const Tensor&) { return {(*wanted)[0]}; }

}  // namespace

#define BRASA_POOL(D)                                                                                              \
  Tensor max_pool##D##d(const Tensor& input, const MaxPool##D##dFuncOptions& o) {                                  \
    return brasa::max_pool##D##d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());    \
  }                                                                                                                \
  std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input, const MaxPool##D##dFuncOptions& o) { \
    return brasa::max_pool##D##d_with_indices(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),       \
                                              o.ceil_mode());                                                      \
  }                                                                                                                \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptiveAvgPool##D##dFuncOptions& o) {                 \
    return brasa::adaptive_avg_pool##D##d(input, filled(o.output_size(), input));                                  \
  }                                                                                                                \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(const Tensor& input,                             \
                                                                  const AdaptiveMaxPool##D##dFuncOptions& o) {     \
    return brasa::adaptive_max_pool##D##d(input, filled(o.output_size(), input));                                  \
  }                                                                                                                \
  Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) {                 \
    return std::get<0>(adaptive_max_pool##D##d_with_indices(input, o));                                            \
  }
BRASA_POOL(1)
BRASA_POOL(2)
BRASA_POOL(3)
#undef BRASA_POOL

Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& o) {
  return brasa::avg_pool1d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad());
}
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& o) {
  return brasa::avg_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad(),
                           o.divisor_override());
}
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& o) {
  return brasa::avg_pool3d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(), o.count_include_pad(),
                           o.divisor_override());
}

namespace {

// (sum of xᵖ)^(1/p) from the mean over a window of `count` elements.
Tensor lp(const Tensor& mean, double p, int64_t count) {
  return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / p);
}

}  // namespace

Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& o) {
  Tensor mean = brasa::avg_pool1d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), 0, o.ceil_mode());
  return lp(mean, o.norm_type(), (*o.kernel_size())[0]);
}
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& o) {
  Tensor mean = brasa::avg_pool2d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), 0, o.ceil_mode());
  return lp(mean, o.norm_type(), (*o.kernel_size())[0] * (*o.kernel_size())[1]);
}
Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& o) {
  const auto& k = *o.kernel_size();
  Tensor mean = brasa::avg_pool3d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), 0, o.ceil_mode());
  return lp(mean, o.norm_type(), k[0] * k[1] * k[2]);
}

namespace {

template <size_t D>
std::vector<int64_t> fractional_sizes(const Tensor& input, const FractionalMaxPoolOptions<D>& o) {
  BRASA_CHECK(o.output_size() || o.output_ratio(), "fractional_max_pool", D,
              "d requires specifying either an output_size or an output_ratio");
  std::vector<int64_t> out;
  for (size_t i = 0; i < D; ++i) {
    int64_t have = input.size(static_cast<int64_t>(i) - static_cast<int64_t>(D));
    out.push_back(o.output_size() ? (**o.output_size())[i]
                                  : static_cast<int64_t>(static_cast<double>(have) * (**o.output_ratio())[i]));
  }
  return out;
}
template <size_t D>
Tensor samples(const Tensor& input, const FractionalMaxPoolOptions<D>& o) {
  if (o._random_samples().defined()) return o._random_samples();
  int64_t d = static_cast<int64_t>(D), batch = input.dim() == d + 1 ? 1 : input.size(0);
  return rand({batch, input.size(-d - 1), d}, input.options());
}

}  // namespace

#define BRASA_FRACTIONAL(D)                                                                                         \
  std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(const Tensor& input,                            \
                                                                    const FractionalMaxPool##D##dFuncOptions& o) {  \
    return brasa::fractional_max_pool##D##d(input, o.kernel_size(), fractional_sizes(input, o), samples(input, o)); \
  }                                                                                                                 \
  Tensor fractional_max_pool##D##d(const Tensor& input, const FractionalMaxPool##D##dFuncOptions& o) {              \
    return std::get<0>(fractional_max_pool##D##d_with_indices(input, o));                                           \
  }
BRASA_FRACTIONAL(2)
BRASA_FRACTIONAL(3)
#undef BRASA_FRACTIONAL

namespace {

// The sizes that max pooling without padding to spare would have come from; those asked for may differ by less than a stride.
template <size_t D>
std::vector<int64_t> unpooled(const Tensor& input, const MaxUnpoolFuncOptions<D>& o) {
  std::vector<int64_t> usual, out;
  for (size_t i = 0; i < D; ++i)
    usual.push_back((input.size(static_cast<int64_t>(i) - static_cast<int64_t>(D)) - 1) * (*o.stride())[i] +
                    (*o.kernel_size())[i] - 2 * (*o.padding())[i]);
  if (!o.output_size()) return usual;
  out = *o.output_size();
  if (out.size() == D + 2) out.erase(out.begin(), out.begin() + 2);
  BRASA_CHECK(out.size() == D, "max_unpool: output_size must have ", D, " or ", D + 2, " elements, got ",
              IntArrayRef(*o.output_size()));
  for (size_t i = 0; i < D; ++i)
    BRASA_CHECK(std::abs(out[i] - usual[i]) < (*o.stride())[i], "max_unpool: output_size ", IntArrayRef(out),
                " must lie within a stride of ", IntArrayRef(usual));
  return out;
}

}  // namespace

Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& o) {
  std::vector<int64_t> size = unpooled(input, o);
  return brasa::max_unpool2d(input.unsqueeze(-2), indices.unsqueeze(-2), {1, size[0]}).squeeze(-2);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& o) {
  return brasa::max_unpool2d(input, indices, unpooled(input, o));
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& o) {
  return brasa::max_unpool3d(input, indices, unpooled(input, o), o.stride(), o.padding());
}

}  // namespace brasa::nn::functional
