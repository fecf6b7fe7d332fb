#include <brasa/nn/modules/pooling.h>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

namespace F = functional;

#define BRASA_POOL(D)                                                                                             \
  void MaxPool##D##dImpl::pretty_print(std::ostream& s) const {                                                   \
    Described(s, "MaxPool" #D "d")("kernel_size", options.kernel_size())("stride", options.stride())(             \
        "padding", options.padding())("dilation", options.dilation())("ceil_mode", options.ceil_mode());          \
  }                                                                                                               \
  Tensor MaxPool##D##dImpl::forward(const Tensor& input) { return F::max_pool##D##d(input, options); }            \
  std::tuple<Tensor, Tensor> MaxPool##D##dImpl::forward_with_indices(const Tensor& input) {                       \
    return F::max_pool##D##d_with_indices(input, options);                                                        \
  }                                                                                                               \
  void AvgPool##D##dImpl::pretty_print(std::ostream& s) const {                                                   \
    Described(s, "AvgPool" #D "d")("kernel_size", options.kernel_size())("stride", options.stride())(             \
        "padding", options.padding());                                                                            \
  }                                                                                                               \
  Tensor AvgPool##D##dImpl::forward(const Tensor& input) { return F::avg_pool##D##d(input, options); }            \
  void LPPool##D##dImpl::pretty_print(std::ostream& s) const {                                                    \
    Described(s, "LPPool" #D "d")("norm_type", options.norm_type())("kernel_size", options.kernel_size())(        \
        "stride", options.stride())("ceil_mode", options.ceil_mode());                                            \
  }                                                                                                               \
  Tensor LPPool##D##dImpl::forward(const Tensor& input) { return F::lp_pool##D##d(input, options); }              \
  void AdaptiveMaxPool##D##dImpl::pretty_print(std::ostream& s) const {                                           \
    Described(s, "AdaptiveMaxPool" #D "d")("output_size", options.output_size());                                 \
  }                                                                                                               \
  Tensor AdaptiveMaxPool##D##dImpl::forward(const Tensor& input) {                                                \
    return F::adaptive_max_pool##D##d(input, options);                                                            \
  }                                                                                                               \
  std::tuple<Tensor, Tensor> AdaptiveMaxPool##D##dImpl::forward_with_indices(const Tensor& input) {               \
    return F::adaptive_max_pool##D##d_with_indices(input, options);                                               \
  }                                                                                                               \
  void AdaptiveAvgPool##D##dImpl::pretty_print(std::ostream& s) const {                                           \
    Described(s, "AdaptiveAvgPool" #D "d")("output_size", options.output_size());                                 \
  }                                                                                                               \
  Tensor AdaptiveAvgPool##D##dImpl::forward(const Tensor& input) {                                                \
    return F::adaptive_avg_pool##D##d(input, options);                                                            \
  }                                                                                                               \
  void MaxUnpool##D##dImpl::pretty_print(std::ostream& s) const {                                                 \
    Described(s, "MaxUnpool" #D "d")                                                                              \
        .words()("kernel_size", options.kernel_size())("stride", options.stride())("padding", options.padding()); \
  }                                                                                                               \
  Tensor MaxUnpool##D##dImpl::forward(const Tensor& input, const Tensor& indices,                                 \
                                      const std::optional<std::vector<int64_t>>& output_size) {                   \
    return F::max_unpool##D##d(input, indices,                                                                    \
                               F::MaxUnpool##D##dFuncOptions(options.kernel_size())                               \
                                   .stride(options.stride())                                                      \
                                   .padding(options.padding())                                                    \
                                   .output_size(output_size));                                                    \
  }
BRASA_POOL(1)
BRASA_POOL(2)
BRASA_POOL(3)
#undef BRASA_POOL

#define BRASA_FRACTIONAL(D)                                                                                            \
  FractionalMaxPool##D##dImpl::FractionalMaxPool##D##dImpl(ExpandingArray<D> kernel_size)                              \
      : FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions(kernel_size)) {}                                    \
  FractionalMaxPool##D##dImpl::FractionalMaxPool##D##dImpl(FractionalMaxPool##D##dOptions o) : options(std::move(o)) { \
    FractionalMaxPool##D##dImpl::reset();                                                                              \
  }                                                                                                                    \
  void FractionalMaxPool##D##dImpl::reset() {                                                                          \
    _random_samples = register_buffer("_random_samples", options._random_samples());                                   \
    BRASA_CHECK(options.output_size() || options.output_ratio(),                                                       \
                "FractionalMaxPool" #D "d requires specifying either an output size, or a pooling ratio");             \
    BRASA_CHECK(!options.output_size() || !options.output_ratio(),                                                     \
                "only one of output_size and output_ratio may be specified");                                          \
    if (options.output_ratio())                                                                                        \
      for (double r : **options.output_ratio())                                                                        \
        BRASA_CHECK(r > 0 && r < 1, "output_ratio must be between 0 and 1 (got ", r, ")");                             \
  }                                                                                                                    \
  void FractionalMaxPool##D##dImpl::pretty_print(std::ostream& s) const { Described(s, "FractionalMaxPool" #D "d"); }  \
  std::tuple<Tensor, Tensor> FractionalMaxPool##D##dImpl::forward_with_indices(const Tensor& input) {                  \
    return F::fractional_max_pool##D##d_with_indices(input, options);                                                  \
  }                                                                                                                    \
  Tensor FractionalMaxPool##D##dImpl::forward(const Tensor& input) { return std::get<0>(forward_with_indices(input)); }
BRASA_FRACTIONAL(2)
BRASA_FRACTIONAL(3)
#undef BRASA_FRACTIONAL

}  // namespace brasa::nn
